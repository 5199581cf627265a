"""The file of a recording: its lines, read and checked.

A recording is JSON Lines, one line for each tool, each namespace and each call: a call that changes is
one changed line of a diff, and nothing in it (no time, no run id) changes by itself. It is redacted. It
can stand wherever a manifest does, so a run that began on it goes on with it in any process.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codemode.config import CodeModeConfig, parse_code_mode
from codemode.core.errors import InvalidConfig
from codemode.core.jsonsafe import clean_escapes
from codemode.core.limits import Limits
from codemode.core.tables import Field, Where, check_table
from codemode.core.types import Json, ToolSpec
from codemode.manifest import is_recording

FORMAT_VERSION = 1
_HEAD_FIELDS = {
    "recording": Field("integer", required=True),
    "codeMode": Field("table"),
    "variables": Field("texts"),
}
_TOOL_FIELDS = {
    "type": Field("text"),
    "id": Field("text", required=True),
    "name": Field("text", required=True),
    "label": Field("text"),
    "description": Field("any", required=True),
    "source": Field("text", ("openclaw", "plugin", "mcp", "client"), required=True),
    "owner": Field("text", required=True),
    "parameters": Field("table", required=True),
    "outputSchema": Field("table"),
    "operation": Field("flag"),
}
_NAMESPACE_FIELDS = {
    "type": Field("text"),
    "run": Field("integer", required=True),
    "id": Field("text", required=True),
    "plugin": Field("text", required=True),
    "globalName": Field("text", required=True),
    "description": Field("any", required=True),
    "prompt": Field("any"),
    "tools": Field("texts", required=True),
    "scope": Field("any", required=True),
    "calls": Field("tables", required=True),
}
_LEAD_FIELDS = {
    "path": Field("texts", required=True),
    "tool": Field("text", required=True),
    "mapped": Field("flag"),
}
_MAPPED_FIELDS = {
    "type": Field("text"),
    "path": Field("texts", required=True),
    "arguments": Field("any", required=True),
    "input": Field("any"),
    "error": Field("any"),
}
_CALL_FIELDS = {
    "type": Field("text"),
    "call": Field("integer", required=True),
    "tool": Field("text", required=True),
    "input": Field("any", required=True),
    "value": Field("any"),
    "error": Field("any"),
}


class RecordedCall(NamedTuple):
    """One nested call: its number in its run, what it was asked, and the value or the error that came of it."""

    number: int
    tool_id: str
    input: Json
    value: Json = None
    error: str | None = None

    @property
    def key(self) -> str:
        """What a call must be like to get this answer."""
        return call_key(self.tool_id, self.input)

    def to_json(self) -> dict[str, Json]:
        """Return the line of this call."""
        line = {"type": "call", "call": self.number, "tool": self.tool_id, "input": self.input}
        return line | ({"value": self.value} if self.error is None else {"error": self.error})


class Lead(NamedTuple):
    """Where a callable of a namespace leads: its path, its tool's name, and whether a mapper makes the input."""

    path: tuple[str, ...]
    tool: str
    is_mapped: bool = False


class RecordedNamespace(NamedTuple):
    """What runs saw of a plugin's namespace, from the run of this number on.

    scope: The node that the guest builds it from, as in `core.types.GuestScope`.
    """

    run: int
    id: str
    plugin: str
    global_name: str
    description: str
    prompt: str | None
    tools: tuple[str, ...]
    scope: Json
    leads: tuple[Lead, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the line of this namespace."""
        line: dict[str, Json] = {"type": "namespace", "run": self.run, "id": self.id, "plugin": self.plugin}
        line |= {"globalName": self.global_name, "description": self.description}
        line |= {"prompt": self.prompt} if self.prompt else {}
        calls = [
            {"path": list(lead.path), "tool": lead.tool} | ({"mapped": True} if lead.is_mapped else {})
            for lead in self.leads
        ]
        return line | {"tools": list(self.tools), "scope": self.scope, "calls": calls}


class RecordedMapping(NamedTuple):
    """What a mapper made of a cell's arguments: the input of its tool, or the error that it gave."""

    path: tuple[str, ...]
    arguments: list[Json]
    input: Json = None
    error: str | None = None

    @property
    def key(self) -> str:
        """What a call must be like to get this input."""
        return mapping_key(self.path, self.arguments)

    def to_json(self) -> dict[str, Json]:
        """Return the line of this mapping."""
        line = {"type": "mapped", "path": list(self.path), "arguments": self.arguments}
        return line | ({"input": self.input} if self.error is None else {"error": self.error})


class Recording(NamedTuple):
    """What a file holds: settings, tools as their lines, calls in the order in which they were made.

    variables: The names of those whose values were masked; where they are set, they are masked again.
    namespaces: In the order of their runs.
    mappings: In the order in which they were first made.
    """

    config: CodeModeConfig
    tools: tuple[dict[str, Json], ...]
    calls: tuple[RecordedCall, ...]
    variables: tuple[str, ...] = ()
    namespaces: tuple[RecordedNamespace, ...] = ()
    mappings: tuple[RecordedMapping, ...] = ()


def call_key(tool_id: str, given: Json) -> str:
    """Return a text that is the same for the same call."""
    return f"{tool_id} {_same(given)}"


def mapping_key(path: Iterable[str], arguments: Json) -> str:
    """Return a text that is the same for the same use of a namespace."""
    return _same([list(path), arguments])


def _same(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def check_recording(path: Path) -> Path:
    """Return the path of a recording.

    Raises:
        InvalidConfig: There is none, or it is something else: a manifest would run real tools.

    Contract: recording:replay:no-manifest
    """
    if not path.exists():
        raise InvalidConfig(f"there is no recording {path}; make one with codemode run --record {path}")
    if not is_recording(path):
        raise InvalidConfig(f"{path} is no recording; make one with codemode run --record FILE")
    return path


def load_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        InvalidConfig: It cannot be read, is of a newer format, or a line of it is not right.

    Contract: recording:format:checked
    """
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # a text in it may hold U+2028
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"cannot read the recording {path}: {error}") from error
    places = [Where(f"{path}:{number}") for number in range(1, len(lines) + 1)]
    rows = [(_parse(line, where), where) for line, where in zip(lines, places, strict=True) if line.strip()]
    head = check_table(rows[0][0], _HEAD_FIELDS, rows[0][1])
    config = _read_settings(head, rows[0][1])
    read: dict[str, list[Any]] = {kind: [] for kind in _READERS}
    for row, where in rows[1:]:
        kind = row.get("type")
        if not isinstance(kind, str) or kind not in _READERS:
            *others, last = (f'"{each}"' for each in _READERS)
            where.at("type").fail(f"found {json.dumps(kind)}; allowed is {', '.join(others)} or {last}.")
        read[kind].append(_READERS[kind](row, where))
    return Recording(
        config,
        tuple(read["tool"]),
        tuple(read["call"]),
        tuple(head.get("variables", ())),
        tuple(read["namespace"]),
        tuple(read["mapped"]),
    )


def _parse(line: str, where: Where) -> dict[str, Json]:
    try:
        row = json.loads(clean_escapes(line))
    except (ValueError, RecursionError) as error:
        where.fail(f"not JSON: {error}.")
    if not isinstance(row, dict):
        where.fail("found no object; each line of a recording is one.")
    found: dict[str, Json] = row
    return found


def _read_settings(head: dict[str, Json], where: Where) -> CodeModeConfig:
    if head["recording"] != FORMAT_VERSION:
        where.fail(f"found format {head['recording']}; this codemode reads {FORMAT_VERSION}. Record it anew.")
    return parse_code_mode({"enabled": True} | head.get("codeMode", {}), where.at("codeMode"))


def _read_tool(row: dict[str, Json], where: Where) -> dict[str, Json]:
    return check_table(row, _TOOL_FIELDS, where)


def _read_call(row: dict[str, Json], where: Where) -> RecordedCall:
    fields = check_table(row, _CALL_FIELDS, where)
    if ("value" in fields) == ("error" in fields):
        where.fail("a call has either a value or an error.")
    return RecordedCall(fields["call"], fields["tool"], fields["input"], fields.get("value"), fields.get("error"))


def _read_mapping(row: dict[str, Json], where: Where) -> RecordedMapping:
    fields = check_table(row, _MAPPED_FIELDS, where)
    if ("input" in fields) == ("error" in fields):
        where.fail("what was mapped has either an input or an error.")
    return RecordedMapping(tuple(fields["path"]), fields["arguments"], fields.get("input"), fields.get("error"))


def _read_namespace(row: dict[str, Json], where: Where) -> RecordedNamespace:
    fields = check_table(row, _NAMESPACE_FIELDS, where)
    if not _is_node(fields["scope"]):
        where.at("scope").fail('allowed is ["f"], ["v", value], ["o", {key: node}] or ["a", [node]].')
    calls = [check_table(call, _LEAD_FIELDS, where.at("calls").at(at)) for at, call in enumerate(fields["calls"])]
    return RecordedNamespace(
        run=fields["run"],
        id=fields["id"],
        plugin=fields["plugin"],
        global_name=fields["globalName"],
        description=str(fields["description"]),
        prompt=fields.get("prompt"),
        tools=tuple(fields["tools"]),
        scope=fields["scope"],
        leads=tuple(Lead(tuple(call["path"]), call["tool"], call.get("mapped", False)) for call in calls),
    )


def _is_node(node: Json) -> bool:
    match node:
        case ["f"] | ["v", _]:
            return True
        case ["o", dict(members)]:
            return all(map(_is_node, members.values()))
        case ["a", list(items)]:
            return all(map(_is_node, items))
    return False


_READERS: Mapping[str, Callable[[dict[str, Json], Where], Any]] = {
    "tool": _read_tool,
    "namespace": _read_namespace,
    "mapped": _read_mapping,
    "call": _read_call,
}


def describe_toolbox(
    config: CodeModeConfig, variables: Iterable[str], tools: Iterable[ToolSpec]
) -> list[dict[str, Json]]:
    """Return the first lines of a recording: its head, and each tool that a cell can reach."""
    usual = Limits().to_json()
    settings: dict[str, Json] = {"languages": list(config.languages)}
    settings |= {alias: value for alias, value in config.limits.to_json().items() if value != usual[alias]}
    head: dict[str, Json] = {"recording": FORMAT_VERSION, "codeMode": settings, "variables": sorted(variables)}
    return [head, *map(_describe_tool, tools)]


def _describe_tool(tool: ToolSpec) -> dict[str, Json]:
    line: dict[str, Json] = {"type": "tool", "id": tool.id, "name": tool.name}
    line |= {"label": tool.label} if tool.label else {}
    line |= {"description": tool.description, "source": tool.source, "owner": tool.owner}
    line |= {"parameters": tool.parameters}
    line |= {"outputSchema": tool.output_schema} if tool.output_schema else {}
    return line | ({"operation": True} if getattr(tool.invoke, "is_operation", False) else {})
