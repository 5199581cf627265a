"""MCP tools, resources and prompts as `ToolSpec`s: what the rest of the house knows of a server.

A server's tool list is untrusted data: each tool is read by itself, and one that cannot be used
is left out with a warning while its neighbours stay. Reading resources and getting prompts are
catalog tools too (`mcp:<server>:resources/read`), so that policy, approvals and the trajectory
see them like any call. `scope` arranges all of them for the guest.
"""

import fnmatch
import re
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any

from codemode.core.errors import InvalidConfig, NestedToolFailed
from codemode.core.limits import MAX_JSON_DEPTH
from codemode.core.names import build_tool_id
from codemode.core.types import Json, RunContext, ToolSpec
from codemode.mcp.failures import ServerUnavailable
from codemode.mcp.listings import Listing
from codemode.mcp.servers import ServerSpec

_UNUSABLE_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|^\s*$")
_MAX_NAME_CHARS = 256
_MAX_FAULTS = 20  # that are told one by one: a list may hold a million
_TOOL_CALL = "tools/call"
_TEXT = {"type": "string"}
OPERATIONS: dict[str, tuple[str, str, dict[str, Json]]] = {
    "resources/list": ("resources", "List the resources.", {"cursor": _TEXT}),
    "resources/read": ("resources", "Read a resource.", {"uri": _TEXT}),
    "prompts/list": ("prompts", "List the prompts.", {"cursor": _TEXT}),
    "prompts/get": ("prompts", "Get a prompt.", {"name": _TEXT, "arguments": {"type": "object"}}),
}
_REQUIRED = {"resources/read": ["uri"], "prompts/get": ["name"]}

Send = Callable[[str, str, dict[str, Json], RunContext], Awaitable[Json]]
"""Sends `method` with `params` to the server of this name and returns its result."""


class RemoteCall:
    """What a tool's `invoke` is here: one kind of request to one server."""

    def __init__(self, server: str, method: str, name: str, send: Send) -> None:
        """Prepare to send `method` to `server`; `name` is the tool's, or the operation's."""
        self._server = server
        self._method = method
        self._name = name
        self._send = send

    @property
    def is_operation(self) -> bool:
        """Whether this is one of `OPERATIONS` rather than a tool of the server's own."""
        return self._method != _TOOL_CALL

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:
        """Make the request and return the server's result as it is.

        Raises:
            NestedToolFailed: There was no result; the sentence says why.
        """
        params = given if self.is_operation else {"name": self._name, "arguments": given}
        try:
            return await self._send(self._server, self._method, params, context)
        except (ServerUnavailable, InvalidConfig) as error:  # or a variable is unset by now
            raise NestedToolFailed(str(error), build_tool_id("mcp", self._server, self._name)) from error


def adapt_server(spec: ServerSpec, listing: Listing, send: Send) -> tuple[list[ToolSpec], list[str]]:
    """Return the tools of a server, its resources and prompts among them, and warnings of those left out.

    Contract: mcp:tools:many-faults, mcp:tools:isolated, mcp:tools:allow-deny
    """
    tools: dict[str, ToolSpec] = {}
    sound: dict[str, Json] = {}
    faults: dict[str, None] = {}  # each once, even if pages repeat themselves
    for at, raw in enumerate(listing.tools):
        fault = _find_fault(raw)
        if fault is None and raw["name"] not in tools:
            tools[raw["name"]], sound[raw["name"]] = _adapt_tool(spec, raw, send), raw
        elif fault is not None or raw != sound[raw["name"]]:
            faults[f"tool {_shown_name(raw, at)} {fault or 'is listed twice'}; it is left out."] = None
    warnings = [*listing.warnings, *islice(faults, _MAX_FAULTS)]
    if len(faults) > _MAX_FAULTS:
        warnings.append(f"{len(faults) - _MAX_FAULTS:,} more of its tools are left out.")
    for name, (capability, summary, properties) in OPERATIONS.items():
        if capability in listing.capabilities and name not in tools:
            tools[name] = _build_operation(spec, name, summary, properties, send)
    return [tool for tool in tools.values() if _is_allowed(spec, tool.name)], warnings


def _find_fault(raw: Json) -> str | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        return "has no name"
    name = raw["name"]
    if len(name) > _MAX_NAME_CHARS or _UNUSABLE_NAME.search(name):
        return "has a name that is empty, too long or holds control characters"
    return f"is nested deeper than {MAX_JSON_DEPTH} levels" if _is_too_deep(raw) else None


def _is_too_deep(value: Json) -> bool:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [part for above in level for part in _parts(above)]
        if not level:
            return False
    return True


def _parts(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _shown_name(raw: Json, at: int) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    return f'"{name[:60]}"' if isinstance(name, str) and name.isprintable() else f"number {at + 1}"


def _adapt_tool(spec: ServerSpec, raw: dict[str, Any], send: Send) -> ToolSpec:
    schema, result = raw.get("inputSchema"), raw.get("outputSchema")
    annotations = raw.get("annotations")
    title = raw.get("title") or (annotations.get("title") if isinstance(annotations, dict) else None)
    description = raw.get("description")
    return ToolSpec(
        id=build_tool_id("mcp", spec.name, raw["name"]),
        name=raw["name"],
        description=description if isinstance(description, str) else "",
        source="mcp",
        owner=spec.name,
        parameters=schema if isinstance(schema, dict) else {"type": "object"},
        invoke=RemoteCall(spec.name, _TOOL_CALL, raw["name"], send),
        label=title if isinstance(title, str) else None,
        output_schema=result if isinstance(result, dict) else None,
        origin=spec.where.file,
    )


def _build_operation(spec: ServerSpec, name: str, summary: str, properties: dict[str, Json], send: Send) -> ToolSpec:
    return ToolSpec(
        id=build_tool_id("mcp", spec.name, name),
        name=name,
        description=summary,
        source="mcp",
        owner=spec.name,
        parameters={"type": "object", "properties": properties, "required": _REQUIRED.get(name, [])},
        invoke=RemoteCall(spec.name, name, name, send),
        origin=spec.where.file,
    )


def _is_allowed(spec: ServerSpec, name: str) -> bool:
    def matches(globs: tuple[str, ...]) -> bool:
        return any(fnmatch.fnmatchcase(name.lower(), glob.lower()) for glob in globs)

    return matches(spec.allow) and not matches(spec.deny)
