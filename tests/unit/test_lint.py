"""What each provider has against a schema: cases as data in `fixtures/lint`, and what no case can hold."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from codemode.cli.catalog_diff import compare
from codemode.cli.catalog_lint import build_lint, parse_linted
from codemode.composition import Toolbox
from codemode.core.errors import InvalidInput
from codemode.core.schemas import find_schema_fault, walk_schema
from codemode.core.types import Json, ToolSpec
from codemode.lint import Finding, lint_tool
from codemode.lint_rules import RULES
from codemode.payload.providers import PROVIDERS
from codemode.render import plain_lint
from codemode.render.lint import render_diff, render_lint
from tests.requirements import requirement
from tests.support.cells import FIXTURES
from tests.support.sessions import tool, toolbox
from tests.support.streams import Stream

CLOSED = '"additionalProperties": false'
CASES = sorted((FIXTURES / "lint").glob("*.json"))


async def nothing(**_given: Any) -> None:
    return None


def spec(parameters: Json, name: str = "look") -> ToolSpec:
    return tool(name, nothing)._replace(parameters=parameters)


def lint(provider: str, parameters: Json, name: str = "look", sent_as: str = "look") -> list[Finding]:
    return lint_tool(spec(parameters, name), provider, sent_as)


def closed(**properties: Json) -> dict[str, Json]:
    """Return an input that strict mode takes, if its properties are."""
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def named(*tools: ToolSpec) -> Toolbox:
    return toolbox(tools=list(tools))


# Cases


@requirement(
    "lint:findings:path-and-fix", "lint:severity:wide-form", "lint:rules:openai-strict", "lint:rules:anthropic",
    "lint:rules:anthropic-strict", "lint:rules:gemini-openapi",
)  # fmt: skip
@pytest.mark.parametrize("provider", RULES)
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in CASES])
def test_a_provider_has_against_a_case_what_the_case_says(path: Path, provider: str) -> None:
    """A case is a file: a schema, and per provider the severity, rule and place of each finding, in order."""
    case = json.loads(path.read_text(encoding="utf-8"))
    found = lint(provider, case["parameters"])

    assert [[each.severity, each.rule, each.path] for each in found] == case[provider]
    assert case["about"].endswith(".")


@requirement("lint:findings:path-and-fix")
def test_every_finding_of_every_case_says_what_is_wrong_and_what_to_change() -> None:
    for path in CASES:
        for provider in RULES:
            for found in lint(provider, json.loads(path.read_text(encoding="utf-8"))["parameters"]):
                assert found.tool_id == "client:app:look"
                assert found.provider == provider
                assert found.says
                assert found.says[-1] not in ".!"
                assert found.fix.endswith(".")
                assert len(found.to_json()) == 7


def test_every_rule_is_met_by_some_case() -> None:
    """The sizes and names, which need large or several tools, have tests of their own below."""
    met = {
        (provider, found.rule)
        for path in CASES
        for provider in RULES
        for found in lint(provider, json.loads(path.read_text(encoding="utf-8"))["parameters"])
    }
    rules = {(provider, rule.name) for provider in RULES for rule in RULES[provider]}

    assert rules - met == {("openai", "strict-size"), ("anthropic", "strict-size")}


def test_there_are_rules_for_each_kind_of_provider_that_requests_are_built_for() -> None:
    assert {name.partition("-")[0] for name in PROVIDERS} == set(RULES)


# Words


@requirement("lint:findings:path-and-fix")
def test_words_name_what_was_found_and_count_what_is_too_much_to_name() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(8)}
    (found,) = lint("openai", closed(**many) | {"required": ["p0"]})

    assert found.says == "p1, p2, p3, p4, p5 and 2 more may be left out"
    assert '["string", "null"]' in found.fix


@requirement("lint:findings:path-and-fix")
@pytest.mark.parametrize(
    ("provider", "parameters", "says"),
    [
        ("openai", {"type": "string"}, "the root has the type string"),
        ("openai", {}, "the root has no type"),
        ("gemini", closed(a={"type": ["string", "null"]}), "several types: string, null"),
        ("gemini", closed() | {"x-a": 1, "x-b": 2}, 'it does not know "x-a", "x-b"'),
        ("openai", closed(a={"$ref": "other.json"}), '"$ref" leads to other.json, and nobody fetches it'),
        ("openai", closed(a={"type": "string", "format": "uri"}), 'the format "uri" is not supported'),
        ("anthropic", closed(**{"a b": {"type": "string"}}), "the property names a b are not allowed"),
        ("anthropic", closed(a={"type": "text"}), "must be one of array, boolean, integer, null, number, object"),
    ],
)
def test_a_finding_says_it_in_words(provider: str, parameters: Json, says: str) -> None:
    assert any(found.says.startswith(says) for found in lint(provider, parameters))


@requirement("lint:severity:wide-form")
def test_a_schema_that_is_none_is_one_error_and_nothing_else() -> None:
    for provider in RULES:
        (found,) = lint(provider, {"type": "object", "properties": {"a": {"type": "any"}}, "anyOf": []})
        assert (found.severity, found.rule, found.path) == ("error", "not-a-schema", "#/anyOf")
        (found,) = lint(provider, {"type": "object", "properties": {"a": {"type": "any"}}})
        assert (found.severity, found.path) == ("error", "#/properties/a/type")
        (deep,) = lint(provider, {"type": "object", "not": 3})
        assert (deep.path, deep.says) == ("#/not", "must be a table (or true or false)")


@requirement("lint:severity:wide-form")
def test_a_reference_that_leads_nowhere_is_an_error_for_all() -> None:
    for provider in RULES:
        (found,) = lint(provider, closed(a={"$ref": "#/$defs/Gone"}))
        assert (found.severity, found.rule) == ("error", "not-a-schema")
        assert "#/$defs/Gone" in found.says


# Names


@requirement("lint:findings:path-and-fix")
def test_a_name_that_gives_way_is_a_warning_at_the_name() -> None:
    (found,) = lint("anthropic", closed(), "read file", "read_file")

    assert (found.severity, found.rule, found.path) == ("warning", "name", "name")
    assert found.says == 'it is sent as "read_file", since "read file" is not allowed or is taken already'


@requirement("lint:findings:path-and-fix")
def test_of_two_tools_of_one_name_the_second_is_sent_under_another() -> None:
    first = spec(closed(), "look")
    second = first._replace(id="client:other:look", owner="other")
    report = build_lint(named(first, second), ("anthropic",))

    assert [(each["toolId"], each["rule"]) for each in report["findings"]] == [("client:other:look", "name")]


# Sizes


@requirement("lint:rules:openai-strict")
def test_strict_mode_bounds_properties_enum_values_and_levels_of_the_whole_schema() -> None:
    deep: dict[str, Json] = {"type": "string"}
    for _ in range(11):
        deep = closed(inner=deep)
    wide = closed(**{f"p{number}": {"type": "string"} for number in range(5001)})
    listed = closed(a={"enum": list(range(600))}, b={"enum": list(range(401))})

    assert [found.says for found in lint("openai", deep)] == ["objects are nested 11 levels deep; 10 are allowed"]
    assert [found.says for found in lint("openai", wide)] == ["5,001 properties in all; 5,000 are allowed"]
    assert [found.says for found in lint("openai", listed)] == ["1,001 enum values in all; 1,000 are allowed"]
    assert {found.path for schema in (deep, wide, listed) for found in lint("openai", schema)} == {"#"}


@requirement("lint:rules:openai-strict")
def test_strict_mode_bounds_the_text_of_names_and_of_enum_values() -> None:
    long = closed(**{f"{'p' * 250}{number}": {"enum": ["v" * 100], "type": "string"} for number in range(400)})
    long |= {"$defs": {"d" * 1000: {"const": "c" * 1000, "type": "string"}}}
    listed = closed(a={"type": "string", "enum": [f"{number:060}" for number in range(251)]})
    short = closed(a={"type": "string", "enum": [f"{number:050}" for number in range(251)]})

    (found,) = lint("openai", long)
    assert found.says == "143,090 characters of names and enum values; 120,000 are allowed"
    (found,) = lint("openai", listed)
    assert (found.path, found.says) == ("#/properties/a", "251 enum values of 15,060 characters")
    assert lint("openai", short) == []


@requirement("lint:rules:anthropic-strict")
def test_strict_tools_of_anthropic_bound_what_may_be_left_out_and_what_has_several_types() -> None:
    loose = closed(**{f"p{number}": {"type": "string"} for number in range(25)}) | {"required": []}
    mixed = closed(
        **{f"p{number}": {"type": ["string", "null"]} for number in range(16)}, q={"anyOf": [{"type": "null"}]}
    )

    assert [found.says for found in lint("anthropic", loose)] == [
        "25 properties may be left out; 24 in all strict tools are allowed"
    ]
    assert [found.says for found in lint("anthropic", mixed)] == [
        "17 values of several types; 16 in all strict tools are allowed"
    ]
    assert lint("anthropic", loose | {"required": ["p0"]}) == []


@requirement("lint:rules:anthropic-strict")
@pytest.mark.parametrize(
    ("defs", "says"),
    [
        ({"A": {"$ref": "#/$defs/B"}, "B": {"items": {"$ref": "#/$defs/A"}, "type": "array"}}, '"#/$defs/A" refers'),
        ({"A": {"type": "array", "items": {"$ref": "#"}}}, '"#" refers'),
        ({"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}}, None),
        ({"A": {"type": "string"}}, None),
    ],
)
def test_strict_tools_of_anthropic_do_not_refer_to_themselves(defs: dict[str, Json], says: str | None) -> None:
    found = lint("anthropic", closed(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/A"}) | {"$defs": defs})

    assert [each.says for each in found if each.rule == "strict-recursion"] == ([f"{says} to itself"] if says else [])


@requirement("lint:rules:openai-strict")
def test_at_the_bounds_strict_mode_has_nothing_against_a_schema() -> None:
    deep: dict[str, Json] = {"type": "string"}
    for _ in range(10):
        deep = closed(inner=deep)

    assert lint("openai", deep) == []
    assert lint("openai", closed(a={"enum": list(range(1000))})) == []


# Anything at all


_KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "$ref",
    "format",
    "additionalProperties",
    "not",
    "definitions",
    "pattern",
    "minItems",
    "const",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["object", "array", "string", "#", "", "a/b~c"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_KEYWORDS, "a", "x y"]), inner),
    max_leaves=12,
)


@requirement("lint:rules:robust")
@given(st.dictionaries(st.sampled_from(_KEYWORDS), _JSON, max_size=6))
@settings(max_examples=400, deadline=None)
def test_no_schema_makes_lint_fail_and_every_path_leads_to_a_part_of_it(schema: dict[str, Json]) -> None:
    for provider in RULES:
        found = lint(provider, schema)
        if find_schema_fault(schema) is None:
            places = {f"#{path}" for path, _, _ in walk_schema(schema)}
            assert {each.path for each in found} <= places
            assert ("error" in {each.severity for each in found}) or schema.get("type") == "object"
        else:
            assert [each.rule for each in found] == ["not-a-schema"]


@requirement("lint:rules:robust")
def test_a_schema_that_refers_to_itself_is_walked_once() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    schema = closed(head={"$ref": "#/$defs/Node"}) | {"$defs": {"Node": node | {"additionalProperties": False}}}

    assert lint("openai", schema) == []


# The report of a catalog


@requirement("cli:catalog:lint")
def test_a_report_lists_per_provider_what_is_refused_and_what_is_warned_of() -> None:
    good = spec(closed(a={"type": "string"}), "good")
    loose = spec({"type": "object"}, "loose")
    bad = spec({"type": "object", "properties": {"tags": {"type": "array"}}}, "bad")
    report = build_lint(named(good, loose, bad), RULES)

    assert (report["ok"], report["tools"]) == (False, 3)
    assert report["providers"] == {
        "openai": {"refused": ["client:app:bad"], "warned": ["client:app:loose"]},
        "anthropic": {"refused": [], "warned": ["client:app:bad", "client:app:loose"]},
        "gemini": {"refused": [], "warned": ["client:app:bad", "client:app:good"]},
    }
    assert build_lint(named(good, loose), ("openai", "gemini"))["ok"]
    assert build_lint(named(), RULES)["findings"] == []


@requirement("cli:catalog:lint")
def test_a_report_is_in_the_order_of_the_ids() -> None:
    tools = [spec({"type": "object"}, name) for name in ("b", "a", "c")]
    report = build_lint(named(*tools), ("openai",))

    assert [each["toolId"] for each in report["findings"]] == ["client:app:a", "client:app:b", "client:app:c"]


@requirement("cli:catalog:lint")
def test_one_provider_can_be_asked_for_and_an_unknown_one_is_refused_with_the_nearest() -> None:
    assert parse_linted(None) == ("openai", "anthropic", "gemini")
    assert parse_linted("gemini") == ("gemini",)
    with pytest.raises(InvalidInput, match='Did you mean "anthropic"'):
        parse_linted("antropic")


@requirement("cli:catalog:lint", "cli:output:plain")
def test_when_each_is_asked_for_it_has_a_line_under_its_tool() -> None:
    bad = spec({"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]}, "bad")
    text = plain_lint.lint_text(build_lint(named(bad), ("openai", "gemini")), every=True)

    items = '#/properties/tags: an array without "items". Say what it holds, as in "items": {"type": "string"}.'

    assert text.splitlines() == [
        "client:app:bad",
        f"  warning  openai strict #: an object without {CLOSED}. Add {CLOSED}.",
        f"  error    openai {items}",
        f"  warning  gemini parameters {items}",
        "openai: 0 of 1 tool can be sent",
        "gemini: 1 of 1 tool can be sent, 1 tool with warnings",
    ]


@requirement("cli:output:harmless")
def test_what_a_schema_says_cannot_steer_a_terminal() -> None:
    wild = spec(closed(a={"type": "string", "format": "\x1b[2J"}), "wild")

    assert "\x1b" not in plain_lint.lint_text(build_lint(named(wild), RULES), every=True)
    assert "\x1b" not in plain_lint.lint_text(build_lint(named(wild), RULES), every=False)


@requirement("cli:catalog:lint-summary", "cli:output:plain")
def test_errors_come_first_and_warnings_are_summed_up_by_rule() -> None:
    bad = spec({"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]}, "bad")
    loose = [spec({"type": "object", "properties": {}}, f"t{at}") for at in (1, 2)]
    other = spec(closed(a={"type": "string", "format": "uri"}, b={"type": "string", "format": "iri"}), "other")
    lines = plain_lint.lint_text(build_lint(named(bad, *loose, other), ("openai",)), every=False).splitlines()

    items = 'an array without "items". Say what it holds, as in "items": {"type": "string"}.'
    uri = 'for one, the format "uri" is not supported. Use "pattern", or say it in the description.'
    assert lines == [
        "client:app:bad",
        f"  error    openai #/properties/tags: {items}",
        f"warning  openai strict-closed, 3 tools: an object without {CLOSED}. Add {CLOSED}.",
        f"warning  openai strict-format, client:app:other: {uri}",
        "5 warnings by rule; --verbose shows each with its path",
        "openai: 3 of 4 tools can be sent, 3 tools with warnings",
    ]


# On a terminal


def drawn(renderable: Any) -> str:
    screen = Stream(terminal=True)
    Console(file=screen, width=100, color_system="standard", force_terminal=True, markup=False).print(renderable)
    return screen.getvalue()


@requirement("cli:catalog:lint")
def test_on_a_terminal_errors_are_red_warnings_yellow_and_advice_dim() -> None:
    bad = spec({"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]}, "bad")
    shown = drawn(render_lint(build_lint(named(bad), ("openai",)), every=True))
    summed = drawn(render_lint(build_lint(named(bad), ("openai",)), every=False))

    assert "\x1b[33m! \x1b[0m\x1b[1mopenai strict-closed\x1b[0m, client:app:bad\n    an object without " in summed
    assert "1 warning by rule; --verbose shows each" in summed
    assert "\x1b[1;31m✗ \x1b[0m" in shown
    assert "\x1b[33m! \x1b[0m" in shown
    assert "\x1b[1;36mclient:app:bad\x1b[0m" in shown
    assert "\x1b[2mAdd " in shown


@requirement("cli:catalog:diff")
def test_on_a_terminal_what_came_is_green_what_went_red_and_what_changed_yellow() -> None:
    old = {"gone": {"id": "gone"}, "t": {"id": "t", "description": "a"}}
    shown = drawn(render_diff(compare(old, {"came": {"id": "came"}, "t": {"id": "t", "description": "b"}})))

    assert "\x1b[31m- gone" in shown
    assert "\x1b[32m+ came" in shown
    assert '\x1b[33m    ~ /description: "a" → "b"' in shown
    assert "1 tool added, 1 removed, 1 changed" in shown
