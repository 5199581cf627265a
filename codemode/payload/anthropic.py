"""Anthropic's messages API: content blocks, and tool results inside user messages."""

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
)


def build_body(request: ChatRequest) -> dict[str, Json]:
    """Return the body of `POST /v1/messages`."""
    body: dict[str, Json] = {"model": request.model, "max_tokens": request.max_tokens}
    if request.system:
        body["system"] = request.system
    body["messages"] = _messages(request.messages)
    return body | {"tools": [_tool(tool) for tool in request.tools]} if request.tools else body


def parse_reply(body: Json) -> Reply:
    """Return the reply in a response body.

    Raises:
        LookupError: The body is no message.
    """
    blocks = body["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    uses = tuple(ToolUse(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    usage = body.get("usage") or {}
    return Reply(AssistantMessage(text, uses), usage.get("input_tokens", 0), usage.get("output_tokens", 0))


def _tool(tool: VisibleTool) -> dict[str, Json]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _messages(messages: tuple[Message, ...]) -> list[Json]:
    """Return the messages, those of one role in a row joined, as this API wants tool results; it takes no empty one."""
    joined: list[Json] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message)
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"].extend(blocks)
        elif blocks:
            joined.append({"role": role, "content": blocks})
    return joined


def _blocks(message: Message) -> list[Json]:
    match message:
        case UserMessage(text):
            return [{"type": "text", "text": text}]
        case ToolResult(use, text, failed):
            answer: dict[str, Json] = {"type": "tool_result", "tool_use_id": use.id, "content": text}
            return [answer | {"is_error": True} if failed else answer]
        case AssistantMessage(text, uses):
            said: list[Json] = [{"type": "text", "text": text}] if text else []
            return said + [_use(use) for use in uses]


def _use(use: ToolUse) -> dict[str, Json]:
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": arguments_object(use.input)}
