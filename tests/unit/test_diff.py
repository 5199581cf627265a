"""How a catalog differs from a saved one: tools that came and went, and each field that changed."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.cli.catalog_diff import compare, load_saved
from codemode.core.errors import InvalidInput
from codemode.core.types import Json
from codemode.render import plain_lint
from tests.requirements import requirement
from tests.support.command import Done, command_within

MANIFEST = """
[[tool]]
name = "look"
description = "Look at an order."
parameters = {{ type = "object", properties = {{ id = {{ type = "{kind}" }} }}, required = ["id"] }}
value = 1

[[tool]]
name = "{other}"
description = "Another."
value = 2
"""
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "1", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b/c", "~"]), inner, max_size=3),
    max_leaves=8,
)


def tool_of(tool_id: str = "client:app:look", **fields: Json) -> dict[str, Json]:
    return {"id": tool_id, "name": "look", "description": "Look.", "parameters": {"type": "object"}} | fields


def changes(old: Json, new: Json) -> list[Json]:
    """Return the changes between two versions of the only tool there is."""
    difference = compare({"t": old}, {"t": new})
    return difference["changed"][0]["changes"] if difference["changed"] else []


# Tools


@requirement("diff:tools:added-removed")
def test_tools_that_came_and_went_are_named_in_id_order() -> None:
    old = {id_: tool_of(id_) for id_ in ("c", "b", "kept")}
    new = {id_: tool_of(id_) for id_ in ("z", "a", "kept")}

    assert compare(old, new) == {"same": False, "added": ["a", "z"], "removed": ["b", "c"], "changed": []}


@requirement("diff:tools:added-removed")
def test_the_same_catalog_is_the_same_whatever_the_order_of_its_tools_and_keys() -> None:
    tools = {"a": tool_of("a"), "b": tool_of("b")}
    turned = {key: dict(reversed(value.items())) for key, value in reversed(tools.items())}

    assert compare(tools, turned) == {"same": True, "added": [], "removed": [], "changed": []}
    assert compare({}, {})["same"]


# Fields


@requirement("diff:fields:schema-path")
def test_a_field_that_changed_came_or_went_is_named_by_its_path() -> None:
    old = tool_of(label="Look up", approval="never")
    new = tool_of(description="Look closely.", approval="never", outputSchema={"type": "string"})

    assert changes(old, new) == [
        {"path": "/description", "old": "Look.", "new": "Look closely."},
        {"path": "/label", "old": "Look up"},
        {"path": "/outputSchema", "new": {"type": "string"}},
    ]


@requirement("diff:fields:schema-path")
def test_within_a_schema_the_path_leads_to_the_very_keyword() -> None:
    def schema(**properties: Json) -> Json:
        return tool_of(parameters={"type": "object", "properties": properties})

    old = schema(id={"type": "string"}, tags={"type": "array", "items": {"type": "string"}}, gone={})
    new = schema(id={"type": "integer"}, tags={"type": "array", "items": {"type": "string", "maxLength": 9}})

    assert changes(old, new) == [
        {"path": "/parameters/properties/id/type", "old": "string", "new": "integer"},
        {"path": "/parameters/properties/tags/items/maxLength", "new": 9},
        {"path": "/parameters/properties/gone", "old": {}},
    ]


@requirement("diff:fields:schema-path")
def test_lists_of_schemas_are_compared_one_by_one_and_other_lists_whole() -> None:
    old = tool_of(parameters={"anyOf": [{"type": "string"}, {"type": "null"}], "required": ["a", "b"], "enum": [1, 2]})
    new = tool_of(parameters={"anyOf": [{"type": "string"}, {"type": "number"}], "required": ["a"], "enum": [1, 3]})

    assert changes(old, new) == [
        {"path": "/parameters/anyOf/1/type", "old": "null", "new": "number"},
        {"path": "/parameters/required", "old": ["a", "b"], "new": ["a"]},
        {"path": "/parameters/enum", "old": [1, 2], "new": [1, 3]},
    ]
    longer = tool_of(parameters={"anyOf": [{"type": "string"}]})
    assert next(change["path"] for change in changes(old, longer)) == "/parameters/anyOf"


@requirement("diff:fields:schema-path")
@pytest.mark.parametrize(("old", "new"), [(True, 1), (False, 0), (1, 1.0), (None, ""), ({}, []), ("1", 1)])
def test_values_that_json_tells_apart_differ(old: Json, new: Json) -> None:
    assert changes(tool_of(x=old), tool_of(x=new)) == [{"path": "/x", "old": old, "new": new}]


@requirement("diff:fields:schema-path")
def test_names_with_slashes_and_tildes_are_escaped() -> None:
    assert changes(tool_of(**{"a/b": 1}), tool_of(**{"~": 1})) == [
        {"path": "/a~1b", "old": 1},
        {"path": "/~0", "new": 1},
    ]


def test_where_a_tool_was_defined_is_no_difference() -> None:
    """A listing saved on another machine names other folders."""
    assert changes(tool_of(origin="/home/a/codemode.toml"), tool_of(origin="/home/b/codemode.toml")) == []


@requirement("diff:fields:schema-path")
@given(_JSON, _JSON)
@settings(max_examples=300, deadline=None)
def test_values_differ_exactly_where_their_json_does_and_every_path_leads_to_it(old: Json, new: Json) -> None:
    found = changes({"v": old}, {"v": new})

    assert (found == []) == (json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True))
    for change in found:
        if "old" in change:
            assert at(change["path"], {"v": old}) == change["old"]
        if "new" in change:
            assert at(change["path"], {"v": new}) == change["new"]


def at(path: str, value: Json) -> Json:
    """Return what a JSON Pointer leads to."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


# What was saved


@requirement("diff:input:refused")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", r"is not JSON \(.*\); save a listing with codemode catalog --json"),
        ("\xff", "is not JSON"),
        ("[]", "is no listing of a catalog; save one with codemode catalog --json"),
        ("{}", "is no listing"),
        ('{"tools": {}}', "is no listing"),
        ('{"tools": [1]}', "is no listing"),
        ('{"tools": [{"name": "a"}]}', "is no listing"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_listing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(InvalidInput, match=message):
        load_saved(str(path))


@requirement("diff:input:refused")
def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r'old\.json" cannot be read: No such file or directory; save a listing'):
        load_saved(str(tmp_path / "old.json"))
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        load_saved(str(tmp_path))


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = json.dumps({"tools": [tool_of("a")]}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(listing)))

    assert load_saved("-") == {"a": tool_of("a")}

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InvalidInput, match="standard input is not JSON"):
        load_saved("-")


# Lines


@requirement("cli:catalog:diff", "cli:output:plain")
def test_lines_carry_their_mark_and_values_their_json() -> None:
    old = {"gone": tool_of("gone"), "t": tool_of(label="A", parameters={"type": "object", "required": ["a"]})}
    new = {"came": tool_of("came"), "t": tool_of(parameters={"type": "object", "required": ["b"], "title": "T\x1b"})}
    difference = compare(old, new)

    assert [line for _, line in plain_lint.diff_lines(difference)] == [
        "- gone",
        "+ came",
        "~ t",
        '    ~ /parameters/required: ["a"] → ["b"]',
        '    + /parameters/title: "T\\u001b"',
        '    - /label: "A"',
    ]
    assert plain_lint.diff_summary(difference) == "1 tool added, 1 removed, 1 changed"
    assert plain_lint.diff_summary(compare({}, {})) == "the catalog is the same"


def test_a_long_value_is_cut_in_a_line_but_not_in_the_data() -> None:
    difference = compare({"t": tool_of(description="x")}, {"t": tool_of(description="y" * 1000)})
    lines = [line for _, line in plain_lint.diff_lines(difference)]

    assert len(lines[1]) < 250
    assert len(difference["changed"][0]["changes"][0]["new"]) == 1000


# The commands


@pytest.fixture
def codemode(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `codemode …` in a folder with a manifest of two tools."""
    write_manifest(tmp_path)
    return command_within(tmp_path, capfd, monkeypatch)


def write_manifest(folder: Path, kind: str = "string", other: str = "other") -> None:
    (folder / "codemode.toml").write_text(MANIFEST.format(kind=kind, other=other))


@pytest.fixture
def saved(codemode: Callable[..., Done], tmp_path: Path) -> str:
    path = tmp_path / "catalog.json"
    path.write_text(codemode("catalog", "--json").out)
    return str(path)


@requirement("cli:catalog:diff")
def test_nothing_differs_from_what_was_saved_just_now(codemode: Callable[..., Done], saved: str) -> None:
    plain = codemode("catalog", "diff", saved)
    as_json = codemode("catalog", "diff", saved, "--json")

    assert plain == Done(0, "", "the catalog is the same\n")
    assert (as_json.status, as_json.json["same"], as_json.err) == (0, True, "")


@requirement("cli:catalog:diff", "diff:fields:schema-path", "diff:tools:added-removed")
def test_a_changed_manifest_ends_with_1_and_says_what_changed(
    codemode: Callable[..., Done], saved: str, tmp_path: Path
) -> None:
    write_manifest(tmp_path, kind="integer", other="another")
    plain = codemode("catalog", "diff", saved)
    as_json = codemode("catalog", "diff", saved, "--json")

    assert plain.status == as_json.status == 1
    assert plain.out.splitlines() == [
        "- client:app:other",
        "+ client:app:another",
        "~ client:app:look",
        '    ~ /parameters/properties/id/type: "string" → "integer"',
    ]
    assert as_json.json == {
        "same": False,
        "added": ["client:app:another"],
        "removed": ["client:app:other"],
        "changed": [
            {
                "id": "client:app:look",
                "changes": [{"path": "/parameters/properties/id/type", "old": "string", "new": "integer"}],
            }
        ],
    }


@requirement("cli:catalog:diff")
def test_a_server_that_is_missing_now_is_told_beside_the_tools_that_went_with_it(
    codemode: Callable[..., Done], saved: str, tmp_path: Path
) -> None:
    with (tmp_path / "codemode.toml").open("a") as manifest:
        manifest.write('\n[mcp.servers.gone]\ncommand = "/no/such/program"\n')
    done = codemode("catalog", "diff", saved)

    assert done.status == 0
    assert done.err.startswith("MCP server gone [")


@requirement("diff:input:refused")
def test_a_wrong_file_is_wrong_input(codemode: Callable[..., Done], tmp_path: Path) -> None:
    done = codemode("catalog", "diff", str(tmp_path / "codemode.toml"))

    assert (done.status, done.out) == (2, "")
    assert "save a listing with codemode catalog --json" in done.err


@requirement("cli:catalog:lint")
def test_lint_ends_with_0_on_warnings_and_with_1_where_a_tool_cannot_be_sent(
    codemode: Callable[..., Done], tmp_path: Path
) -> None:
    warned = codemode("catalog", "lint")
    write_manifest(tmp_path, kind="array")
    refused = codemode("catalog", "lint", "--provider", "openai")
    as_json = codemode("catalog", "lint", "--json")

    assert (warned.status, warned.err) == (0, "")
    assert warned.out.splitlines()[-1] == "gemini: 2 of 2 tools can be sent"
    assert refused.status == as_json.status == 1
    assert '  error    openai #/properties/id: an array without "items"' in refused.out
    assert as_json.json["providers"]["openai"]["refused"] == ["client:app:look"]
    assert {found["provider"] for found in as_json.json["findings"]} == {"openai", "anthropic", "gemini"}


@requirement("cli:catalog:lint")
def test_lint_refuses_a_provider_that_it_has_no_rules_for(codemode: Callable[..., Done]) -> None:
    done = codemode("catalog", "lint", "--provider", "opnai")

    assert (done.status, done.out) == (2, "")
    assert 'Did you mean "openai"' in done.err
