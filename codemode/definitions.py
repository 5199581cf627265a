"""The entries of a manifest as checked values: one table in, one frozen value out, nothing run.

`[[tool]]`, `[[hook]]`, `[core]` and `[tools.sandbox]` each have a value here and a function that reads their table.
`manifest` calls them, `tools` makes things that run of the values. Plugins and OpenAPI documents end as the same.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codemode.core.files import read_json
from codemode.core.jsonsafe import NotJson, adapt
from codemode.core.names import build_tool_id, did_you_mean
from codemode.core.schemas import find_schema_fault, with_doubles
from codemode.core.tables import Field, Where, check_table, shown
from codemode.core.types import Approval, Json, Source

APPROVALS: tuple[Approval, ...] = ("never", "ask", "always-deny")
CORE_TOOLS = ("read_file", "write_file", "list_files", "search_files", "exec", "http_request")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFAULT_OWNERS = {"openclaw": "core", "client": "app"}
_TARGET = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")
_BRACES = re.compile(r"(?<!\$)\{([^{}]*)\}")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SCRIPTED = ("value", "error", "hugeBytes", "nonJson")
_EXECUTORS = ("python", "command", "http", *_SCRIPTED)
_TOOL_FIELDS = {
    "name": Field("text", required=True),
    "description": Field("text", required=True),
    "label": Field("text"),
    "source": Field("text", ("openclaw", "plugin", "client")),
    "owner": Field("text"),
    "parameters": Field("table"),
    "parametersFile": Field("text"),
    "approval": Field("text", APPROVALS),
    "timeoutMs": Field("integer"),
    "python": Field("text"),
    "command": Field("texts"),
    "http": Field("table"),
    "value": Field("any"),
    "error": Field("text"),
    "hugeBytes": Field("integer"),
    "nonJson": Field("flag"),
    "delayMs": Field("integer"),
    "failNth": Field("integer"),
}
_HTTP_FIELDS = {
    "method": Field("text", _METHODS),
    "url": Field("text", required=True),
    "headers": Field("named texts"),
    "body": Field("text", ("json", "form")),
}
_HOOK_FIELDS = {
    "event": Field("text", ("before_tool_call",), required=True),
    "python": Field("text"),
    "command": Field("texts"),
    "timeoutMs": Field("integer"),
}
_CORE_FIELDS = {"tools": Field("texts", CORE_TOOLS), "roots": Field("texts")}
_SANDBOX_FIELDS = {"enabled": Field("flag"), "tools": Field("table")}
_SANDBOX_TOOLS_FIELDS = {"allow": Field("texts"), "alsoAllow": Field("texts"), "deny": Field("texts")}


class PythonTarget(NamedTuple):
    """`module:function`, imported at its first call."""

    module: str
    function: str


class LoadedFunction(NamedTuple):
    """A function that is here already: a plugin brought it."""

    function: Callable[..., Any]


class CommandTemplate(NamedTuple):
    """An argument list with `{property}` placeholders, run without a shell."""

    argv: tuple[str, ...]


PlaceKind = Literal["path", "query", "header", "body"]


class Place(NamedTuple):
    """Where a property goes in a request, under which name there.

    joint: What the items of a list are joined by; None repeats the name for each.
    keyed: An object's members are written `name[key]`, not `key`.
    """

    kind: PlaceKind
    name: str
    joint: str | None = None
    keyed: bool = False


class HttpTemplate(NamedTuple):
    """A request with `{property}` placeholders in URL and headers.

    `places` says where each property goes; without them the method decides.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: str = "json"
    places: Mapping[str, Place] | None = None


class Script(NamedTuple):
    """A stand-in: `outcome` says which of its fields it plays, after `delay_ms`.

    `fail_nth` makes that call (counted from 1) fail whatever the outcome.
    """

    outcome: str
    value: Json = None
    delay_ms: int = 0
    fail_nth: int = 0


ToolExecutor = PythonTarget | LoadedFunction | CommandTemplate | HttpTemplate | Script


class ToolEntry(NamedTuple):
    """One `[[tool]]`, checked; `where` is its place for later errors."""

    id: str
    name: str
    description: str
    source: Source
    owner: str
    parameters: dict[str, Json]
    executor: ToolExecutor
    label: str | None
    approval: Approval
    timeout_ms: int | None
    where: Where


class HookEntry(NamedTuple):
    """One `[[hook]]`; the only event is `before_tool_call`."""

    executor: PythonTarget | LoadedFunction | CommandTemplate
    timeout_ms: int | None
    where: Where


class CoreEntry(NamedTuple):
    """`[core]`: which core tools are on, and the folders that they may touch."""

    tools: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()


class SandboxGate(NamedTuple):
    """`[tools.sandbox]`: the extra gate of sandboxed sessions; `allow` None means its default."""

    enabled: bool = False
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


def parse_tool(table: Json, where: Where, folder: Path) -> ToolEntry:
    """Check one `[[tool]]` table.

    Args:
        table: The table as the file has it.
        where: Its place, for errors.
        folder: The manifest's folder, which `parametersFile` is relative to.

    Raises:
        InvalidConfig: A wrong key or value, no or several executors, a schema that is none.

    Contract: manifest:tool:one-executor, manifest:tool:owner, manifest:schema:checked
    """
    fields = check_table(table, _TOOL_FIELDS, where)
    name, source = fields["name"], fields.get("source", "client")
    owner = fields.get("owner", _DEFAULT_OWNERS.get(source))
    if owner is None:
        where.fail('a tool with source = "plugin" needs an owner; add owner = "…".')
    check_owner(owner, where.at("owner"))
    check_name(name, where.at("name"))
    parameters, executor = _read_parameters(fields, where, folder), _parse_executor(fields, where)
    if isinstance(executor, HttpTemplate):
        _check_url_names(executor.url, parameters, where.at("http.url"))
    return ToolEntry(
        id=build_tool_id(source, owner, name),
        name=name,
        description=fields["description"],
        source=source,
        owner=owner,
        parameters=parameters,
        executor=executor,
        label=fields.get("label"),
        approval=fields.get("approval", "never"),
        timeout_ms=_positive(fields, "timeoutMs", where),
        where=where,
    )


def check_name(name: str, where: Where) -> None:
    """Refuse a tool's name that no one can read or type.

    Raises:
        InvalidConfig: It holds a control character.
    """
    if not name.isprintable():
        where.fail(f"found {shown(name)}; a tool's name holds printable characters only.")


def check_owner(owner: str, where: Where) -> None:
    """Refuse an owner that would make ids ambiguous.

    Raises:
        InvalidConfig: It holds a colon or a control character.
    """
    if ":" in owner or not owner.isprintable():
        where.fail(f'found {shown(owner)}; an owner is the middle part of an id and holds no ":".')


def parse_hook(table: Json, where: Where) -> HookEntry:
    """Check one `[[hook]]` table.

    Raises:
        InvalidConfig: A wrong key or value, or not exactly one of `python` and `command`.
    """
    fields = check_table(table, _HOOK_FIELDS, where)
    kind = exactly_one(fields, ("python", "command"), where)
    executor = _parse_target(fields, where) if kind == "python" else _parse_command(fields, where)
    return HookEntry(executor, _positive(fields, "timeoutMs", where), where)


def parse_core(table: Json, where: Where, folder: Path) -> CoreEntry:
    """Check `[core]`; roots become absolute and must be folders.

    Raises:
        InvalidConfig: An unknown tool, no roots for one that needs them, or a root that is no folder.
    """
    fields = check_table(table, _CORE_FIELDS, where)
    roots = tuple((folder / root).resolve() for root in fields.get("roots", []))
    for at, root in enumerate(roots):
        if not root.is_dir():
            where.at("roots").at(at).fail(f'"{root}" is not a folder; create it or remove it.')
    tools = tuple(dict.fromkeys(fields.get("tools", [])))
    if not roots and set(tools) - {"http_request"}:
        where.fail('these tools need roots, the folders that they may touch; add roots = ["."].')
    return CoreEntry(tools, roots)


def parse_sandbox(table: Json, where: Where) -> SandboxGate:
    """Check `[tools.sandbox]`.

    Raises:
        InvalidConfig: A wrong key or value.
    """
    fields = check_table(table, _SANDBOX_FIELDS, where)
    gate = check_table(fields.get("tools", {}), _SANDBOX_TOOLS_FIELDS, where.at("tools"))
    allow = tuple(gate["allow"]) if "allow" in gate else None
    return SandboxGate(
        fields.get("enabled", False), allow, tuple(gate.get("alsoAllow", ())), tuple(gate.get("deny", ()))
    )


def _read_parameters(fields: dict[str, Json], where: Where, folder: Path) -> dict[str, Json]:
    if "parameters" in fields and "parametersFile" in fields:
        where.fail("parameters and parametersFile are both given; keep one.")
    place = where.at("parameters")
    schema: Json = fields.get("parameters", {"type": "object", "properties": {}})
    if "parametersFile" in fields:
        place = where.at("parametersFile")
        schema = read_json(folder / fields["parametersFile"], place)
    return check_parameters(schema, place)


def check_parameters(schema: Json, place: Where) -> dict[str, Json]:
    """Return a copy of the JSON Schema of a tool's input.

    Raises:
        InvalidConfig: It is no JSON Schema, or not one of an object.

    Contract: manifest:schema:checked
    """
    try:
        adapt(schema)  # says what is no JSON, such as a cycle
        schema = adapt(with_doubles(schema))
    except NotJson as error:
        place.fail(f"the schema is not JSON: {error}.")
    fault = _schema_fault(schema) or _object_fault(schema)
    if fault:
        place.fail(f"not a JSON Schema of an input: {fault}.")
    return dict(schema)


def _schema_fault(schema: Json) -> str | None:
    dialect = schema.get("$schema", _DIALECT) if isinstance(schema, dict) else _DIALECT
    if not isinstance(dialect, str) or dialect.rstrip("#") == _DIALECT:
        return find_schema_fault(schema)
    # Imported here: 90 ms, and only schemas of another dialect need it.
    import jsonschema

    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        return f"{'/'.join(['', *map(str, error.absolute_path)])}: {error.message}"
    return None


def _object_fault(schema: Json) -> str | None:
    kind = schema.get("type", "object") if isinstance(schema, dict) else None
    return None if kind == "object" or (isinstance(kind, list) and "object" in kind) else 'its type must be "object"'


def _parse_executor(fields: dict[str, Json], where: Where) -> ToolExecutor:
    kind = exactly_one(fields, _EXECUTORS, where)
    if kind not in _SCRIPTED:
        for key in ("delayMs", "failNth"):
            if key in fields:
                where.at(key).fail(f"only a scripted tool ({', '.join(_SCRIPTED)}) takes {key}; this one has {kind}.")
    if kind == "python":
        return _parse_target(fields, where)
    if kind == "command":
        return _parse_command(fields, where)
    if kind == "http":
        return _parse_http(fields["http"], where.at("http"))
    delay, nth = _positive(fields, "delayMs", where), _positive(fields, "failNth", where)
    return Script(kind, fields[kind], delay or 0, nth or 0)


def _parse_target(fields: dict[str, Json], where: Where) -> PythonTarget:
    target = fields["python"]
    if not _TARGET.match(target):
        where.at("python").fail(f'found {shown(target)}; allowed is "module:function".')
    module, _, function = target.partition(":")
    return PythonTarget(module, function)


def _parse_command(fields: dict[str, Json], where: Where) -> CommandTemplate:
    if not fields["command"]:
        where.at("command").fail("found an empty list; allowed is a program and its arguments.")
    return CommandTemplate(tuple(fields["command"]))


def _parse_http(table: Json, where: Where) -> HttpTemplate:
    fields = check_table(table, _HTTP_FIELDS, where)
    if not fields["url"].startswith(("http://", "https://", "${")):
        where.at("url").fail(f"found {shown(fields['url'])}; allowed is a URL that begins with http:// or https://.")
    return HttpTemplate(
        fields.get("method", "GET"), fields["url"], fields.get("headers", {}), fields.get("body", "json")
    )


def _check_url_names(url: str, parameters: dict[str, Json], where: Where) -> None:
    properties = parameters.get("properties", {})
    for name in _BRACES.findall(url):
        if name not in properties:
            where.fail(f"{{{name}}} is no property of the tool's parameters.{did_you_mean(name, properties)}")


def exactly_one(fields: dict[str, Json], kinds: tuple[str, ...], where: Where) -> str:
    """Return which of these keys a table has.

    Raises:
        InvalidConfig: It has none, or several.
    """
    given = [kind for kind in kinds if kind in fields]
    if len(given) != 1:
        found = "none" if not given else " and ".join(given)
        where.fail(f"needs exactly one of {', '.join(kinds)}; found {found}.")
    return given[0]


def _positive(fields: dict[str, Json], key: str, where: Where) -> int | None:
    value: int | None = fields.get(key)
    if value is not None and value < 1:
        where.at(key).fail(f"found {value}; allowed is a whole number of 1 or more.")
    return value
