"""Declarations as text: every schema becomes a type, and what is hostile becomes `unknown`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode.mcp.declarations import DeclaredServer, DeclaredTool, render_index, render_server
from codemode.mcp.schema_types import TypeWriter
from tests.requirements import requirement

_NODE = {"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}}


def _write(schema: Any) -> str:
    return " ".join(TypeWriter(schema, "tool", lambda name: name).write().split())


def _write_named(schema: Any) -> tuple[str, dict[str, str]]:
    writer = TypeWriter(schema, "tool", lambda name: name)
    written = " ".join(writer.write().split())
    return written, {name: " ".join(text.split()) for name, text in writer.named.items()}


def _file(*tools: DeclaredTool, **more: Any) -> str:
    return render_server(DeclaredServer("shop", "shop", tools, **more)).file


@requirement("mcp:types:schemas")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "string", "nullable": True}, "string | null"),
        ({"const": 'a"b'}, '"a\\"b"'),
        ({"const": 1.5}, "1.5"),
        ({"enum": ["a", 1, None, True, "a"]}, '"a" | 1 | null | true'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "number"]}}, "Array<string | number>"),
        ({"type": "array"}, "unknown[]"),
        ({"items": {"type": "null"}}, "null[]"),
        ({"type": "array", "items": [{"type": "string"}, {"type": "number"}]}, "[string, number]"),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "number"}}, "[string, ...number[]]"),
        ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, "[1]"),
        ({"type": "object"}, "{ [key: string]: unknown }"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{ [key: string]: number }"),
        ({"additionalProperties": {"type": "number"}}, "{ [key: string]: number }"),
        ({"type": "object", "patternProperties": {"^x": {"type": "null"}}}, "{ [key: string]: null }"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "properties": {}}, "{}"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "{ a: string; }"),
        ({"properties": {"a": {}, "b-c": True}, "required": ["d"]}, '{ a?: unknown; "b-c"?: unknown; d: unknown; }'),
        (
            {"properties": {"a": {"type": "number", "default": 1}}, "required": ["a"]},
            "{ a?: number; }",
        ),
        (
            {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}},
            "{ a?: string; [key: string]: unknown; }",
        ),
        (
            {"properties": {"a": {"properties": {"b": {"type": "string", "description": "The\n b"}}}}},
            "{ a?: { /** The b */ b?: string; }; }",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, '"a" | "b"'),
        ({"anyOf": [{"type": "string"}, {}]}, "unknown"),
        (
            {"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]},
            "{ a?: 1; } & { b?: 2; }",
        ),
        ({"type": "object", "anyOf": [{"properties": {"a": {"const": 1}}}, {"type": "string"}]}, "{ a?: 1; } | string"),
        (
            {"properties": {"a": {"const": 1}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "{ a?: 1; }",
        ),
        (
            {"properties": {"a": {"const": 1}}, "anyOf": [{"type": "string"}, {"type": "number"}]},
            "{ a?: 1; } & (string | number)",
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, "string"),
        ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"const": 1}}}, "1"),
        ({"items": {"$ref": "#/x/1"}, "x": [{"const": 0}, {"const": 1}]}, "Array<1>"),
        ({"$ref": "#/$defs/A", "nullable": True, "$defs": {"A": {"type": "string"}}}, "string | null"),
        (
            {
                "$ref": "#/$defs/A",
                "properties": {"b": {"const": 1}},
                "$defs": {"A": {"properties": {"a": {"const": 2}}}},
            },
            "{ b?: 1; } & { a?: 2; }",
        ),
        ({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"const": 2}}}}}, "{ a?: 2; }"),
        (
            {
                "properties": {
                    "a": {"oneOf": [{"properties": {"b": {"default": "x"}}, "required": ["b"]}, {"const": 1}]}
                }
            },
            '{ a?: { /** (default "x") */ b: unknown; } | 1; }',
        ),
        (True, "unknown"),
        (False, "never"),
    ],
)
def test_a_schema_becomes_the_type_that_it_means(schema: Any, expected: str) -> None:
    """Layout apart."""
    assert _write(schema) == expected


@requirement("mcp:types:schemas")
def test_recursion_through_an_object_is_spelled_by_name() -> None:
    """Through the root, through a definition, through two of each other."""
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    node = {
        "properties": {"head": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    pair = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"items": {"$ref": "#/$defs/a"}}},
    }

    assert _write_named(tree) == ("ToolRoot", {"ToolRoot": "{ children?: ToolRoot[]; }"})
    assert _write_named(node) == ("{ head?: ToolNode; }", {"ToolNode": "{ next?: ToolNode; }"})
    assert _write_named({"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n"}}, **_NODE}) == (
        "{ a?: ToolN; b?: ToolN; }",
        {"ToolN": "{ n?: ToolN; }"},
    )
    assert _write_named(pair) == ("ToolA", {"ToolA": "{ b?: ToolA[]; }"})


@requirement("mcp:types:schemas")
def test_recursion_through_nothing_is_unknown() -> None:
    """TypeScript cannot spell it, and there is nothing to say."""
    assert _write({"$ref": "#"}) == "unknown"
    assert _write({"prefixItems": [{"$ref": "#"}], "items": {"$ref": "#"}}) == "[unknown, ...unknown[]]"
    assert _write({"anyOf": [{"type": "string"}, {"$ref": "#"}]}) == "unknown"
    assert _write({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}) == "unknown"


@requirement("mcp:types:hostile")
@pytest.mark.parametrize(
    "schema",
    [
        None,
        7,
        "object",
        [],
        {"type": 7},
        {"type": {"a": 1}},
        {"type": []},
        {"type": "no-such-type"},
        {"type": [[], "string"]},
        {"$ref": "https://elsewhere.test/schema.json"},
        {"$ref": "#/nowhere/at/all"},
        {"$ref": "#/a/99", "a": []},
        {"const": {"deep": []}},
        {"enum": [[1], {"a": 2}]},
    ],
)
def test_what_is_no_schema_is_unknown(schema: Any) -> None:
    """It neither raises nor invents."""
    assert _write(schema) == "unknown"


@requirement("mcp:types:hostile")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": ["a"], "required": "a"}, "{ [key: string]: unknown }"),
        ({"properties": {"a": 7}, "required": [7, {}]}, "{ a?: unknown; }"),
        ({"type": "array", "items": 7}, "unknown[]"),
        ({"type": "array", "items": []}, "unknown[]"),
        ({"type": "string", "anyOf": "x", "allOf": []}, "string"),
        ({"type": "string", "enum": []}, "string"),
        ({"enum": [10**30, 1e400, "y" * 1000]}, "number | string"),
        ({"type": "object", "patternProperties": 7}, "{ [key: string]: unknown }"),
    ],
)
def test_parts_that_make_no_sense_are_passed_over(schema: Any, expected: str) -> None:
    """The rest is kept."""
    assert _write(schema) == expected


@requirement("mcp:types:hostile")
def test_size_and_depth_are_bounded() -> None:
    """A bomb of references, a deep tower and a wide object all end."""
    bomb: dict[str, Any] = {f"d{n}": {"items": [{"$ref": f"#/$defs/d{n + 1}"}] * 9} for n in range(12)}
    tower: dict[str, Any] = {}
    for _ in range(5000):
        tower = {"type": "object", "properties": {"x": tower}}
    wide = {"properties": {f"k{n}": {"type": "string"} for n in range(50_000)}}

    for schema in ({"$ref": "#/$defs/d0", "$defs": bomb}, tower, {"enum": list(range(100_000))}):
        assert len(_write(schema)) < 20_000
    assert "k49999?: unknown" in _write(wide)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_KEYWORDS = [
    *("type", "properties", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
    *("additionalProperties", "required", "default", "description", "nullable", "patternProperties"),
]
_VALUES = st.sampled_from(["object", "array", "string", "#", "#/$defs/a", "#/properties/a", True, False, None, 7, []])
SCHEMAS = st.recursive(
    _VALUES | _JSON,
    lambda inner: st.dictionaries(
        st.sampled_from([*_KEYWORDS, "a", "*/"]), inner | st.lists(inner, max_size=3), max_size=4
    ),
    max_leaves=20,
)


@requirement("mcp:types:hostile")
@given(SCHEMAS, SCHEMAS)
def test_any_json_at_all_gives_a_declaration(parameters: Any, output: Any) -> None:
    """It never raises; that `tsc` takes it is tested beside the reference servers."""
    assert _file(DeclaredTool("tool", "*/ } evil {", parameters, output)).endswith("}\n")


@requirement("mcp:types:one-namespace", "mcp:types:comments")
def test_a_tool_is_a_function_with_comment_and_parameters() -> None:
    """As the page shows it."""
    issue = DeclaredTool(
        "createIssue",
        "Create a GitHub issue.\nWith care.",
        {
            "type": "object",
            "properties": {
                "owner": {"type": "string", "description": "Repository owner"},
                "labels": {"type": "array", "items": {"enum": ["bug", "idea"]}, "default": []},
                "body": {"type": "string"},
            },
            "required": ["owner", "labels"],
        },
    )

    assert _file(issue).endswith("""
  /**
   * Create a GitHub issue.
   * With care.
   * @param owner Repository owner
   * @param labels (default [])
   */
  function createIssue(input: {
    owner: string;
    labels?: Array<"bug" | "idea">;
    body?: string;
  }): Promise<McpToolResult>;
}
""")


@requirement("mcp:types:one-namespace")
def test_a_server_has_its_own_types_and_what_it_offers() -> None:
    """Resources and prompts only where they are."""
    bare, full = _file(), _file(has_resources=True, has_prompts=True)

    for text in (bare, full):
        assert text.count("declare namespace MCP.shop {") == 1
        assert "type McpToolResult<Structured = unknown> = {" in text
        assert "type McpApiHeader = {" in text
        assert "function $api(toolName?: string, options?: { schema?: boolean }): Promise<McpApiHeader>;" in text
    assert "namespace resources" not in bare
    assert "namespace prompts" not in bare
    assert "function read(input: { uri: string })" in full
    assert "function get(input: { name: string; arguments?: { [name: string]: string } })" in full


@requirement("mcp:types:output")
def test_an_output_schema_is_the_type_of_structured_content() -> None:
    """One that says nothing changes nothing."""
    schema = {"properties": {"n": {"type": "number"}}, "required": ["n"]}
    text = _file(DeclaredTool("a", "", {}, schema), DeclaredTool("b", "", {}, {}))

    assert "function a(input?: { [key: string]: unknown }): Promise<McpToolResult<{\n    n: number;\n  }>>;" in text
    assert "function b(input?: { [key: string]: unknown }): Promise<McpToolResult>;" in text


@requirement("mcp:types:output", "mcp:call:defaults")
def test_a_default_is_filled_in_on_the_way_in_and_not_on_the_way_out() -> None:
    """What a result must hold it holds."""
    schema = {"properties": {"n": {"type": "number", "default": 1}}, "required": ["n"]}
    text = _file(DeclaredTool("a", "", schema, schema))

    assert "function a(input?: {\n    n?: number;\n  }): Promise<McpToolResult<{" in text
    assert "    n: number;\n  }>>;" in text


@requirement("mcp:types:schemas")
@pytest.mark.parametrize("schema", [{"allOf": [{"$ref": "#/$defs/d"}]}, {"$ref": "#/$defs/d"}])
def test_an_input_is_needed_where_anything_that_holds_requires_a_key(schema: dict[str, Any]) -> None:
    """Behind a reference too."""
    inner = {"properties": {"n": {"type": "number"}}, "required": ["n"]}

    assert "function a(input: {" in _file(DeclaredTool("a", "", {**schema, "$defs": {"d": inner}}))


@requirement("mcp:types:words")
def test_reserved_words_keep_their_names() -> None:
    """Only an export list can give them to a function."""
    text = _file(DeclaredTool("delete", "", {}), DeclaredTool("open", "", {}))

    assert "  function open(input" in text
    assert text.endswith(
        "declare namespace MCP.shop {\n"
        "  function delete_(input?: { [key: string]: unknown }): Promise<McpToolResult>;\n\n"
        "  export { delete_ as delete };\n}\n"
    )


@requirement("mcp:types:comments")
def test_a_comment_cannot_be_ended_from_inside() -> None:
    """Nor can a control character, or another kind of line, break it."""
    text = _file(
        DeclaredTool(
            "a", "one */ two\r\x00three\u2028four", {"properties": {"k": {"description": "*/ }", "default": "*/"}}}
        )
    )

    assert ' * one *\\/ two\n   *  three\n   * four\n   * @param k *\\/ } (default "*\\/")\n   */' in text


@requirement("mcp:types:comments")
def test_long_texts_are_cut() -> None:
    """A description may be a manual; a declaration is not."""
    schema = {"properties": {"o": {"properties": {"p": {"description": "p" * 5000, "default": "d" * 500}}}}}
    text = _file(DeclaredTool("a", "t" * 9000, schema))

    assert f"{'t' * 4000}…" in text
    assert f"/** {'p' * 300}… */" in text
    assert "ddd" not in text


@requirement("mcp:scope:headers")
def test_a_tool_header_is_the_tool_alone() -> None:
    """With what it needs to be read, and to compile."""
    server = DeclaredServer("shop", "shop", (DeclaredTool("a", "First.", {}), DeclaredTool("new", "Second.", {})))
    first, second = render_server(server).headers

    assert first.startswith("declare namespace MCP.shop {\n  type McpToolResult")
    assert "First." in first
    assert "Second." not in first
    assert second.endswith("  export { new_ as new };\n}\n")


def test_the_index_names_every_server() -> None:
    """And its file."""
    text = render_index([DeclaredServer("a", "a-b", (DeclaredTool("x", "", {}),)), DeclaredServer("c", "*/c", ())])

    assert " * MCP.a: 1 tool of a-b (mcp/a.d.ts)\n * MCP.c: 0 tools of *\\/c (mcp/c.d.ts)\n */\n" in text
    assert "function $api(): Promise<McpApiHeader>;" in text


def test_names_of_types_do_not_collide() -> None:
    """Two tools may want the same."""
    recursive = {"properties": {"x": {"$ref": "#"}}}
    text = _file(
        DeclaredTool("toolA", "", recursive),
        DeclaredTool("toolA2", "", recursive),
        DeclaredTool("ToolA", "", recursive),
    )

    names = [line.split()[1] for line in text.splitlines() if line.startswith("  type ")]
    assert names == ["McpToolResult<Structured", "McpApiHeader", "ToolARoot", "ToolA2Root", "ToolARoot2"]
