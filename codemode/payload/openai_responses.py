"""OpenAI's responses API: a flat list of items instead of messages."""

from codemode.core.types import Json, VisibleTool
from codemode.payload.messages import (
    AssistantMessage,
    ChatRequest,
    Message,
    Reply,
    ToolResult,
    ToolUse,
    UserMessage,
    arguments_text,
    parse_arguments,
)


def build_body(request: ChatRequest) -> dict[str, Json]:
    """Return the body of `POST /v1/responses`."""
    body: dict[str, Json] = {"model": request.model}
    if request.system:
        body["instructions"] = request.system
    body["input"] = [item for message in request.messages for item in _items(message)]
    body["max_output_tokens"] = request.max_tokens
    return body | {"tools": [_tool(tool) for tool in request.tools]} if request.tools else body


def parse_reply(body: Json) -> Reply:
    """Return the reply in a response body.

    Raises:
        LookupError: The body is no response.
    """
    items = body["output"]
    text = "".join(
        part["text"]
        for item in items
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
    uses = tuple(
        ToolUse(item["call_id"], item["name"], parse_arguments(item["arguments"]))
        for item in items
        if item["type"] == "function_call"
    )
    usage = body.get("usage") or {}
    return Reply(AssistantMessage(text, uses), usage.get("input_tokens", 0), usage.get("output_tokens", 0))


def _tool(tool: VisibleTool) -> dict[str, Json]:
    # Without `strict: false` this API makes every property required.
    return {"type": "function", **tool._asdict(), "strict": False}


def _items(message: Message) -> list[Json]:
    match message:
        case UserMessage(text):
            return [{"role": "user", "content": text}]
        case ToolResult(use, text, _):
            return [{"type": "function_call_output", "call_id": use.id, "output": text}]
        case AssistantMessage(text, uses):
            said: list[Json] = [{"role": "assistant", "content": text}] if text else []
            return said + [_use(use) for use in uses]


def _use(use: ToolUse) -> dict[str, Json]:
    return {"type": "function_call", "call_id": use.id, "name": use.name, "arguments": arguments_text(use.input)}
