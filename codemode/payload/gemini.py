"""Gemini's generateContent: parts, and function declarations grouped inside one tool."""

from codemode.core.types import Json, VisibleTool
from codemode.payload.messages import (
    AssistantMessage,
    ChatRequest,
    Message,
    Reply,
    ToolResult,
    ToolUse,
    UserMessage,
    arguments_object,
    parse_arguments,
)


def build_body(request: ChatRequest) -> dict[str, Json]:
    """Return the body of `POST /v1beta/models/<model>:generateContent`; the model is in the path."""
    body: dict[str, Json] = {}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    body["contents"] = _contents(request.messages)
    body["generationConfig"] = {"maxOutputTokens": request.max_tokens}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
    return body


def parse_reply(body: Json) -> Reply:
    """Return the reply in a response body.

    Raises:
        LookupError: The body is no answer of generateContent.
    """
    parts = body["candidates"][0]["content"].get("parts", [])
    calls = [(part["functionCall"], part.get("thoughtSignature")) for part in parts if "functionCall" in part]
    reply_id = body.get("responseId", "call")  # calls may come without an id; each conversation needs different ones
    uses = tuple(
        ToolUse(call.get("id") or f"{reply_id}_{number}", call["name"], call.get("args", {}), signature)
        for number, (call, signature) in enumerate(calls, 1)
    )
    text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    usage = body.get("usageMetadata") or {}
    said = AssistantMessage(text, uses)
    return Reply(said, usage.get("promptTokenCount", 0), usage.get("candidatesTokenCount", 0))


def _declaration(tool: VisibleTool) -> dict[str, Json]:
    # `parametersJsonSchema` takes JSON Schema as it is; `parameters` only OpenAPI's dialect.
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def _contents(messages: tuple[Message, ...]) -> list[Json]:
    """Return the contents, those of one role in a row joined, as this API wants responses; it takes no empty one."""
    joined: list[Json] = []
    for message in messages:
        role = "model" if isinstance(message, AssistantMessage) else "user"
        parts = _parts(message)
        if joined and joined[-1]["role"] == role:
            joined[-1]["parts"].extend(parts)
        elif parts:
            joined.append({"role": role, "parts": parts})
    return joined


def _parts(message: Message) -> list[Json]:
    match message:
        case UserMessage(text):
            return [{"text": text}]
        case ToolResult(use, text, failed):
            response = {"error" if failed else "result": parse_arguments(text)}
            return [{"functionResponse": {"id": use.id, "name": use.name, "response": response}}]
        case AssistantMessage(text, uses):
            said: list[Json] = [{"text": text}] if text else []
            return said + [_call(use) for use in uses]


def _call(use: ToolUse) -> dict[str, Json]:
    """Return the part of a call; from Gemini 3 on, one that had a signature is refused without it."""
    call: dict[str, Json] = {"functionCall": {"id": use.id, "name": use.name, "args": arguments_object(use.input)}}
    return call | ({"thoughtSignature": use.signature} if use.signature else {})
