"""A conversation with a model, free of any provider's spelling.

`ChatRequest` is what all provider modules turn into a request body, and `Reply` is what they
read out of a response body. Values only; called by the provider modules and by whoever talks to a
model.
"""

import json
from typing import NamedTuple

from codemode.core.types import Json, VisibleTool


class ToolUse(NamedTuple):
    """A tool call that the model made; `input` is the text itself where it was no JSON.

    `signature` is what the provider wants back with the call, unread: Gemini's thought signature.
    """

    id: str
    name: str
    input: Json
    signature: str | None = None


class UserMessage(NamedTuple):
    """What a person said."""

    text: str


class AssistantMessage(NamedTuple):
    """What the model said and which tools it called."""

    text: str
    tool_uses: tuple[ToolUse, ...] = ()


class ToolResult(NamedTuple):
    """The answer to one tool call; `text` is JSON text, `run_id` the run that answered, where known."""

    use: ToolUse
    text: str
    failed: bool = False
    run_id: str | None = None


Message = UserMessage | AssistantMessage | ToolResult


class ChatRequest(NamedTuple):
    """One request to a model."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[VisibleTool, ...]
    system: str = ""
    max_tokens: int = 4096


class Reply(NamedTuple):
    """One answer of a model, with the tokens that the provider counted."""

    message: AssistantMessage
    input_tokens: int
    output_tokens: int


def arguments_object(value: Json) -> dict[str, Json]:
    """Return a tool call's input as the object that providers take; what is none, as Anthropic says to send it."""
    if isinstance(value, dict):
        return value
    return {"INVALID_JSON": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def arguments_text(value: Json) -> str:
    """Return a tool call's input as the JSON text that OpenAI's two APIs want."""
    return json.dumps(arguments_object(value), ensure_ascii=False)


def parse_arguments(text: str) -> Json:
    """Return a tool call's input from the model's text, or the text itself where it is no JSON.

    Models do write broken JSON; the text then fails as an input of `exec`, with a message that
    the model can read, instead of ending the conversation.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
