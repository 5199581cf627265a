"""The providers that codemode can write requests for, as one table.

`build_payload` is the only way a request body leaves this package, so that the fail-closed check
stands between every adapter and the network.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean, safe_name
from codemode.core.types import Json, ToolSpec, VisibleTool
from codemode.payload import anthropic, gemini, openai_chat, openai_responses
from codemode.payload.closed import assert_surface
from codemode.payload.messages import ChatRequest, Reply


class Provider(NamedTuple):
    """One provider's wire format; `name_rule` is what it allows as the name of a tool."""

    name: str
    model: str  # used when nobody names one: what `debug-payload` shows
    name_rule: re.Pattern[str]
    build_body: Callable[[ChatRequest], dict[str, Json]]
    parse_reply: Callable[[Json], Reply]


MAX_NAME_CHARS = 64  # the lowest bound of the four
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_GEMINI = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}\Z")

PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openai", "gpt-5.1", _PLAIN, openai_chat.build_body, openai_chat.parse_reply),
        Provider("openai-responses", "gpt-5.1", _PLAIN, openai_responses.build_body, openai_responses.parse_reply),
        Provider("anthropic", "claude-sonnet-4-5", _PLAIN, anthropic.build_body, anthropic.parse_reply),
        Provider("gemini", "gemini-2.5-pro", _GEMINI, gemini.build_body, gemini.parse_reply),
    )
}


def parse_provider(name: str) -> Provider:
    """Return the provider of that name.

    Raises:
        InvalidInput: There is none; the message lists those that there are.
    """
    if name not in PROVIDERS:
        raise InvalidInput(f'there is no provider "{name}"; use {", ".join(PROVIDERS)}.{did_you_mean(name, PROVIDERS)}')
    return PROVIDERS[name]


Change = Callable[[dict[str, Json]], dict[str, Json]]
"""Gets the body of a request and returns the one to send instead."""


def build_payload(
    provider: Provider, request: ChatRequest, active: bool, change: Change | None = None
) -> dict[str, Json]:
    """Build the body of one request and, where code mode is active, check that it is closed.

    Args:
        provider: Whose wire format to write.
        request: The conversation and the tools to offer.
        active: Whether code mode is active for this request.
        change: A hook that has the last word on the body; what it leaves is checked.

    Raises:
        Internal: Code mode is active and the body offers anything but `exec` and `wait`.

    Contract: payload:shapes:four, payload:closed:exact, payload:closed:changed
    """
    body = provider.build_body(request)
    body = body if change is None else change(body)
    if active:
        assert_surface(body)
    return body


def build_direct_tools(tools: Iterable[ToolSpec], provider: Provider) -> tuple[VisibleTool, ...]:
    """Return the catalog as a model sees it without code mode, in the catalog's order.

    A name that the provider allows is kept, any other gives way to its safe name; whoever finds
    its name taken gets `_2`, `_3`, …, those with an allowed name choosing first.

    Contract: payload:direct:names
    """
    specs = list(tools)
    allowed_first = sorted(specs, key=lambda tool: provider.name_rule.match(tool.name) is None)
    names: dict[str, str] = {}
    used: set[str] = set()
    for tool in allowed_first:
        names[tool.id] = _unused(_allowed_name(tool.name, provider), used)
        used.add(names[tool.id])
    return tuple(VisibleTool(names[tool.id], tool.description, tool.parameters) for tool in specs)


def _allowed_name(name: str, provider: Provider) -> str:
    if provider.name_rule.match(name):
        return name
    return safe_name(name).replace("$", "_")[:MAX_NAME_CHARS] or "_"


def _unused(name: str, used: set[str]) -> str:
    candidate, number = name, 2
    while candidate in used:
        suffix = f"_{number}"
        candidate, number = name[: MAX_NAME_CHARS - len(suffix)] + suffix, number + 1
    return candidate
