"""OpenAI's chat completions, which most compatible servers speak as well."""

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
    """Return the body of `POST /v1/chat/completions`."""
    system: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    body: dict[str, Json] = {
        "model": request.model,
        "messages": system + [_message(message) for message in request.messages],
        "max_completion_tokens": request.max_tokens,
    }
    return body | {"tools": [_tool(tool) for tool in request.tools]} if request.tools else body


def parse_reply(body: Json) -> Reply:
    """Return the reply in a response body.

    Raises:
        LookupError: The body is no chat completion.
    """
    message = body["choices"][0]["message"]
    uses = tuple(
        ToolUse(call["id"], call["function"]["name"], parse_arguments(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    usage = body.get("usage") or {}
    said = AssistantMessage(message.get("content") or "", uses)
    return Reply(said, usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))


def _tool(tool: VisibleTool) -> dict[str, Json]:
    return {"type": "function", "function": tool._asdict()}


def _message(message: Message) -> dict[str, Json]:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolResult(use, text, _):
            return {"role": "tool", "tool_call_id": use.id, "content": text}
        case AssistantMessage(text, uses):
            if not uses:
                return {"role": "assistant", "content": text}
            return {"role": "assistant", "content": text or None, "tool_calls": [_use(use) for use in uses]}


def _use(use: ToolUse) -> dict[str, Json]:
    function = {"name": use.name, "arguments": arguments_text(use.input)}
    return {"id": use.id, "type": "function", "function": function}
