"""What the guest sees of MCP tools, and where its calls lead."""

import json
from typing import Any

import pytest

from codemode.catalog import build_catalog
from codemode.core.errors import InvalidInput
from codemode.core.tables import Where
from codemode.core.types import PATH_SEPARATOR, GuestScope, Json, RunContext, ToolSpec
from codemode.mcp.adapter import adapt_server
from codemode.mcp.listings import Listing
from codemode.mcp.scope import build_guest_scope, fill_defaults
from codemode.mcp.servers import ServerSpec
from codemode.policy import Policy
from tests.requirements import requirement
from tests.support.mcp import CONTEXT, FILE

_WITH_DEFAULT = {"properties": {"x": {"default": 2}}, "required": ["x"]}


async def _echo(server: str, method: str, params: dict[str, Json], _: RunContext) -> Json:
    return [server, method, params]


def _tools(server: str, *names: str, capabilities: tuple[str, ...] = (), schema: Any = None) -> list[ToolSpec]:
    raw = [{"name": name, "inputSchema": schema or {"type": "object"}} for name in names]
    listing = Listing(0, {key: {} for key in ("tools", *capabilities)}, raw)
    spec = ServerSpec(server, Where(FILE, f"mcp.servers.{server}"), Where(FILE).file, "stdio")  # type: ignore[arg-type]
    return adapt_server(spec, listing, _echo)[0]


def _idents(scope: GuestScope) -> dict[str, dict[str, str]]:
    return {
        server["ident"]: {tool["ident"]: tool["id"] for tool in server["tools"]}
        for server in json.loads(scope.mcp)["servers"]
    }


@requirement("mcp:names:camel-case")
@pytest.mark.parametrize(
    ("name", "ident"),
    [
        ("create_issue", "createIssue"),
        ("get-sum", "getSum"),
        ("GetURL", "getURL"),
        ("a.b/c d", "aBCD"),
        ("2fa", "_2fa"),
        ("日本", "tool"),
        ("toString", "toString"),
        ("delete", "delete"),
    ],
)
def test_a_tool_is_named_in_camel_case(name: str, ident: str) -> None:
    """First word's first letter lower, later words' upper, the rest untouched."""
    assert list(_idents(build_guest_scope(_tools("s", name)))["s"]) == [ident]


@requirement("catalog:notes:reasons")
def test_the_catalog_notes_which_names_got_a_suffix_and_why() -> None:
    """A plain camelCase name needs no note; one that gave way is said with who has it."""
    names = ("list-it", "list_it", "listIt", "resources", "$api", "__proto__", "plain_one")
    tools = _tools("demo", *names, capabilities=("resources",))
    tools += [tool for server in ("my-srv", "my_srv", "tools") for tool in _tools(server, "ok")]
    catalog = build_catalog(tools, Policy())

    catalog = catalog.with_scope(build_guest_scope(catalog.tools))

    assert {(note.tool_id, note.text) for note in catalog.notes} == {
        ("mcp:demo:list_it", "its function is MCP.demo.listIt3; MCP.demo.listIt is taken by mcp:demo:list-it"),
        ("mcp:demo:listIt", "its function is MCP.demo.listIt2; MCP.demo.listIt is taken by mcp:demo:list-it"),
        ("mcp:demo:resources", "its function is MCP.demo.resources2; MCP.demo.resources is taken by code mode"),
        ("mcp:my_srv:*", "its tools are in MCP.mySrv2; MCP.mySrv is taken by the server my-srv"),
        ("mcp:tools:*", "its tools are in MCP.tools2; MCP.tools is taken by code mode"),
    }
    assert {note.kind for note in catalog.notes} == {"suffixed"}


@requirement("mcp:names:collisions")
def test_names_that_are_taken_give_way_in_id_order() -> None:
    """Collisions, guest globals, unsafe words, and what every server has."""
    names = ["a-b", "a_b", "aB", "constructor", "text", "resources", "prompts", "__proto__", "$api", "api"]
    tools = _tools("shop", *names)

    (given,) = _idents(build_guest_scope(reversed(tools))).values()

    assert given == {
        "api2": "mcp:shop:api",
        "api": "mcp:shop:$api",
        "proto": "mcp:shop:__proto__",
        "aB3": "mcp:shop:a_b",
        "aB2": "mcp:shop:aB",
        "aB": "mcp:shop:a-b",
        "constructor2": "mcp:shop:constructor",
        "prompts2": "mcp:shop:prompts",
        "resources2": "mcp:shop:resources",
        "text2": "mcp:shop:text",
    }


@requirement("mcp:names:collisions")
def test_servers_give_way_too() -> None:
    """`index` is the name of a file."""
    names = ["chrome-devtools", "chromeDevtools", "index", "json", "prototype", "7"]
    scope = build_guest_scope([tool for name in names for tool in _tools(name, "t")])

    assert list(_idents(scope)) == ["_7", "chromeDevtools", "chromeDevtools2", "index2", "json2", "prototype2"]
    assert [file["path"] for file in json.loads(scope.files)][:3] == [
        "mcp/index.d.ts",
        "mcp/_7.d.ts",
        "mcp/chromeDevtools.d.ts",
    ]


@requirement("mcp:scope:files", "mcp:scope:only-visible")
def test_without_a_visible_tool_there_is_nothing() -> None:
    """No global, no files, no sentence."""
    assert build_guest_scope([]) == GuestScope()


@requirement("mcp:scope:only-visible")
async def test_the_scope_leads_only_to_the_tools_it_was_given() -> None:
    """By exact id; an operation is one too."""
    tools = _tools("a-b", "one", "two", capabilities=("resources", "prompts"))
    visible = [tool for tool in tools if tool.name in ("one", "resources/read", "resources/list")]
    scope = build_guest_scope(visible)

    assert {path.replace(PATH_SEPARATOR, "."): target.tool.id for path, target in scope.targets.items()} == {
        "MCP.aB.one": "mcp:a-b:one",
        "MCP.aB.resources.list": "mcp:a-b:resources/list",
        "MCP.aB.resources.read": "mcp:a-b:resources/read",
    }
    (server,) = json.loads(scope.mcp)["servers"]
    assert (server["resources"], server["prompts"]) == (True, False)
    one, read = (scope.targets[f"MCP\x1faB\x1f{path}"].tool for path in ("one", "resources\x1fread"))
    assert await one.invoke({"x": 1}, CONTEXT) == ["a-b", "tools/call", {"name": "one", "arguments": {"x": 1}}]
    assert await read.invoke({"uri": "u"}, CONTEXT) == ["a-b", "resources/read", {"uri": "u"}]


@requirement("mcp:operations:catalog")
def test_a_tool_that_is_called_like_an_operation_stays_a_tool() -> None:
    """Its id was first."""
    scope = build_guest_scope(_tools("s", "resources/read", capabilities=("resources",)))

    paths = [path.replace(PATH_SEPARATOR, ".") for path in scope.targets]
    assert paths == ["MCP.s.resourcesRead", "MCP.s.resources.list"]


@requirement("mcp:scope:files")
def test_a_file_knows_its_size_in_bytes() -> None:
    """UTF-8, for `API.list`."""
    index, file = json.loads(build_guest_scope(_tools("caf\u00e9", "one")).files)

    assert (index["path"], file["path"], file["description"]) == (
        "mcp/index.d.ts",
        "mcp/caf.d.ts",
        "1 tool of the MCP server caf\u00e9, as MCP.caf.",
    )
    assert file["bytes"] == len(file["text"].encode()) == len(file["text"]) + 1


@requirement("mcp:scope:files")
def test_a_server_has_as_many_tools_for_a_cell_as_the_catalog_has_of_it() -> None:
    """Its operations are tools there, so they count here."""
    tools = _tools("s", "one", "two", capabilities=("resources", "prompts"))
    scope = build_guest_scope(tools)
    index, file = json.loads(scope.files)

    assert len(tools) == 6
    assert file["description"] == "6 tools of the MCP server s, as MCP.s."
    assert "MCP.s: 6 tools of s (mcp/s.d.ts)" in index["text"]


@requirement("mcp:scope:headers")
def test_the_scope_carries_headers_and_schemas() -> None:
    """For all, for each server, for each tool."""
    scope = json.loads(build_guest_scope(_tools("s", "one", schema={"properties": {"k": {"type": "null"}}})).mcp)

    (server,) = scope["servers"]
    (tool,) = server["tools"]
    assert "MCP.s: 1 tool of s (mcp/s.d.ts)" in scope["header"]
    assert tool["parameters"] == {"properties": {"k": {"type": "null"}}}
    assert "k?: null;" in tool["header"]
    assert "k?: null;" in server["header"]
    assert (tool["name"], tool["id"], server["name"]) == ("one", "mcp:s:one", "s")


@requirement("mcp:scope:prompt")
def test_the_description_of_exec_names_servers_and_does_not_grow_for_ever() -> None:
    """A dozen, and how many more."""
    few = build_guest_scope(_tools("a", "t") + _tools("b", "t"))
    many = build_guest_scope([tool for n in range(30) for tool in _tools(f"s{n}", "t")])

    assert few.prompts == ("- MCP servers here: MCP.a, MCP.b.",)
    assert many.prompts[0].endswith("MCP.s19 and 18 more.")


@requirement("mcp:call:one-object")
@pytest.mark.parametrize("arguments", [["text"], [7], [[]], [{}, {}], [None, 1], [True]])
def test_anything_but_one_object_or_nothing_rejects(arguments: list[Any]) -> None:
    """In the guest's words."""
    target = build_guest_scope(_tools("s", "get-sum")).targets["MCP\x1fs\x1fgetSum"]

    assert target.to_input([]) == target.to_input([None]) == target.to_input([{}]) == {}
    with pytest.raises(InvalidInput, match=r"MCP\.s\.getSum takes one object argument, or none\."):
        target.to_input(arguments)


@requirement("mcp:call:defaults")
def test_defaults_are_filled_in_and_never_shared() -> None:
    """What is there stays, null too; what is no schema fills nothing."""
    schema = {
        "properties": {
            "a": {"default": [1]},
            "b": {"properties": {"c": {"default": 2}}},
            "d": {"default": 3},
            "e": {"default": None},
            "f": 7,
        }
    }
    given = {"b": {}, "d": None}

    filled = fill_defaults(schema, given)
    filled["a"].append(9)

    assert filled == {"a": [1, 9], "b": {"c": 2}, "d": None}
    assert given == {"b": {}, "d": None}
    assert fill_defaults(schema, {})["a"] == [1]
    assert fill_defaults("no schema", {"x": 1}) == {"x": 1}


@requirement("mcp:call:defaults")
@pytest.mark.parametrize(
    ("schema", "given", "filled"),
    [
        ({"properties": {"a": {"items": _WITH_DEFAULT}}}, {"a": [{}, {"x": 1}, 7]}, {"a": [{"x": 2}, {"x": 1}, 7]}),
        ({"properties": {"a": {"$ref": "#/$defs/d"}}, "$defs": {"d": _WITH_DEFAULT}}, {"a": {}}, {"a": {"x": 2}}),
        ({"allOf": [{"$ref": "#/$defs/d"}], "$defs": {"d": _WITH_DEFAULT}}, {}, {"x": 2}),
        ({"$ref": "#/$defs/d", "$defs": {"d": {"$ref": "#/$defs/d", **_WITH_DEFAULT}}}, {}, {"x": 2}),
        (
            {"properties": {"a": {"$ref": "#"}, "x": {"default": 2}}},
            {"a": {"a": {}}},
            {"a": {"a": {"x": 2}, "x": 2}, "x": 2},
        ),
        ({"properties": {"a": {"anyOf": [_WITH_DEFAULT, {"type": "null"}]}}}, {"a": {}}, {"a": {}}),
        ({"properties": {"a": {"default": None}}, "required": ["a"]}, {}, {"a": None}),
        (
            {"properties": {"a": {"items": {"type": "string"}}, "b": {"items": [7]}}},
            {"a": ["s"], "b": [1]},
            {"a": ["s"], "b": [1]},
        ),
    ],
)
def test_defaults_are_found_wherever_they_certainly_hold(schema: Any, given: Any, filled: Any) -> None:
    """In lists, behind references, in `allOf`; which branch of a choice holds is for the server to say."""
    assert fill_defaults(schema, given) == filled


@requirement("mcp:call:defaults")
def test_a_bomb_of_a_schema_costs_each_value_one_look() -> None:
    """Two references to each of the next, and a value as deep as may be."""
    bomb: Any = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, "properties": {"k": {"$ref": "#"}}} for n in range(90)
    }
    value: Any = {}
    for _ in range(90):
        value = {"k": value}

    assert fill_defaults({"$ref": "#/$defs/d0", "$defs": bomb}, value) == value


def test_a_lone_surrogate_of_a_server_does_not_break_the_text() -> None:
    """All of it must cross as UTF-8."""
    scope = build_guest_scope(_tools("s", "t", schema={"properties": {"k": {"description": "half \ud83d"}}}))

    assert "half \ufffd" in scope.mcp
    (scope.mcp + scope.files).encode()


@requirement("mcp:tools:isolated")
def test_a_tower_of_a_schema_leaves_its_neighbours_alone() -> None:
    """It could not cross; the tool is left out."""
    tower: Any = {}
    for _ in range(200):
        tower = {"properties": {"x": tower}}
    listing = Listing(0, {"tools": {}}, [{"name": "deep", "inputSchema": tower}, {"name": "flat"}])
    spec = ServerSpec("s", Where(FILE), Where(FILE).file, "stdio")  # type: ignore[arg-type]

    tools, warnings = adapt_server(spec, listing, _echo)

    assert [tool.name for tool in tools] == ["flat"]
    assert warnings == ['tool "deep" is nested deeper than 100 levels; it is left out.']
