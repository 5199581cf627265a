"""Python functions as tools: their schema is read from their signature, unless it is given.

`tool` turns a function into the same checked entry that a manifest's `[[tool]]` becomes, so
everything after it (policy, approvals, schema check, threads) is one path. Called by
`CodeMode`, and by whoever wants to say more of a tool than its signature does.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    TypedDict,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from codemode.core.errors import InvalidConfig
from codemode.core.jsonsafe import NotJson, adapt
from codemode.core.names import build_tool_id
from codemode.core.tables import Where, shown
from codemode.core.types import Approval, Json
from codemode.definitions import (
    APPROVALS,
    LoadedFunction,
    ToolEntry,
    check_name,
    check_owner,
    check_parameters,
)

OWNER = "app"  # of tools that a program brings itself: `client:app:<name>`
_CONTEXT = "context"  # a parameter of this name gets the run's context; the cell does not see it
_TYPES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    dict: "object",
    list: "array",
    tuple: "array",
    set: "array",
}
_LISTS = (list, tuple, set, frozenset, Sequence, Iterable, Collection, Set)


class ToolFields(TypedDict, total=False):
    """What may be said of a tool beside its name; what is left out is read from its function.

    parameters: The JSON Schema of its input.
    approval: `ask` stops the cell until a person decides.
    """

    description: str
    parameters: dict[str, Json]
    label: str
    owner: str
    approval: Approval
    timeout_ms: int


class ToolSource(Protocol):
    """What can stand for a tool by itself, as `MockTool` does."""

    @property
    def entry(self) -> ToolEntry:
        """The tool."""
        ...


ToolLike = ToolEntry | ToolSource | Callable[..., Any]


def tool(run: Callable[..., Any], name: str | None = None, **fields: Unpack[ToolFields]) -> ToolEntry:
    """Make a tool of a function.

    Args:
        run: Called with the input's properties as keyword arguments. A parameter `context` gets the
            run's context, a single parameter `input: dict` the whole input. An asynchronous function
            runs in the event loop, another one in a thread.
        name: Its name; the function's when left out.
        **fields: What the signature and the docstring do not say, or should not.

    Raises:
        InvalidConfig: It has no description, or its schema cannot be read from its signature.

    Contract: library:tools:function, library:tools:schema
    """
    if not callable(run):
        raise InvalidConfig(f"a tool is made of a function; found {shown(run)}.")
    name = name or str(getattr(run, "__name__", type(run).__name__))
    where = Where("this program", f"tool {name}")
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        where.fail("it is a generator, and a call has one result; return a list.")
    check_name(name, where)
    owner = fields.get("owner", OWNER)
    check_owner(owner, where.at("owner"))
    approval = fields.get("approval", "never")
    if approval not in APPROVALS:
        where.at("approval").fail(f"found {shown(approval)}; allowed is {', '.join(APPROVALS)}.")
    parameters = fields["parameters"] if "parameters" in fields else _parameters_of(run, where)
    return ToolEntry(
        id=build_tool_id("client", owner, name),
        name=name,
        description=fields.get("description") or _description_of(run, where),
        source="client",
        owner=owner,
        parameters=check_parameters(parameters, where.at("parameters")),
        executor=LoadedFunction(run),
        label=fields.get("label"),
        approval=approval,
        timeout_ms=fields.get("timeout_ms"),
        where=where,
    )


def entry_of(given: ToolLike) -> ToolEntry:
    """Return the tool that somebody means: an entry, something that has one, or a plain function.

    Raises:
        InvalidConfig: As `tool`.
    """
    if isinstance(given, ToolEntry):
        return given
    entry = getattr(given, "entry", None)
    return entry if isinstance(entry, ToolEntry) else tool(given)  # type: ignore[arg-type]  # no entry: a function


def _description_of(run: Callable[..., Any], where: Where) -> str:
    paragraph = (inspect.getdoc(run) or "").partition("\n\n")[0]
    if not paragraph.strip():
        where.fail("it has no description, by which models find it; write a docstring, or give description=.")
    return " ".join(paragraph.split())


def _parameters_of(run: Callable[..., Any], where: Where) -> dict[str, Json]:
    """Read the schema of an input from a signature."""
    try:
        parameters = inspect.signature(run).parameters
        hints = get_type_hints(run if inspect.isroutine(run) else type(run).__call__, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        where.fail(f"its signature cannot be read ({error}); give parameters=, the JSON Schema of its input.")
    own = [parameter for name, parameter in parameters.items() if name != _CONTEXT]
    if len(own) == 1 and own[0].name == "input" and get_origin(hints.get("input")) in (dict, None):
        return {"type": "object"}
    named = [parameter for parameter in own if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
    properties = {each.name: _with_default(schema_of(hints.get(each.name, Any)), each) for each in named}
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    required = [each.name for each in named if each.default is each.empty]
    if required:
        schema["required"] = required
    takes_more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own)
    return schema if takes_more else schema | {"additionalProperties": False}


def _with_default(schema: dict[str, Json], parameter: inspect.Parameter) -> dict[str, Json]:
    if parameter.default is parameter.empty or parameter.default is None:
        return schema
    try:
        return schema | {"default": adapt(parameter.default)}
    except NotJson:
        return schema


def schema_of(hint: Any) -> dict[str, Json]:
    """Return the JSON Schema of a type hint; `{}`, which allows anything, for one that JSON does not know.

    Text in `Annotated[…]` describes the value.

    Contract: library:tools:schema
    """
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if is_typeddict(hint):
        return _schema_of_fields(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        words = next((each for each in arguments[1:] if isinstance(each, str)), None)
        return schema_of(arguments[0]) | ({"description": words} if words else {})
    if origin is NotRequired:
        return schema_of(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if origin in _LISTS:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    return {}


def _schema_of_fields(hint: Any) -> dict[str, Json]:
    properties = {name: schema_of(each) for name, each in get_type_hints(hint, include_extras=True).items()}
    return {"type": "object", "properties": properties, "required": sorted(hint.__required_keys__)}
