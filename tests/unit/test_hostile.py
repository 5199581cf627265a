"""What a cell, a server or a document can make the host do costs no more than its size.

Many of these tests end in a second or never: that they end is what they test. What they replace took hours.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codemode.catalog import build_catalog
from codemode.core.errors import InvalidConfig, InvalidInput, NestedToolFailed
from codemode.core.jsonsafe import NotJson, adapt, to_text
from codemode.core.names import nearest, unique_names
from codemode.core.redact import Redactor
from codemode.core.schemas import find_schema_fault
from codemode.core.tables import Where, shown
from codemode.core.types import Json, RunContext, ToolSpec
from codemode.extensions import OpenApiEntry
from codemode.mcp.adapter import adapt_server
from codemode.mcp.listings import Listing
from codemode.mcp.schema_types import TypeWriter
from codemode.mcp.scope import fill_defaults
from codemode.mcp.servers import ServerSpec
from codemode.openapi import load_openapi
from codemode.policy import Policy
from codemode.render import value
from codemode.render.page import render_page
from codemode.render.signature import parameters_of
from codemode.search import SearchIndex
from codemode.validation import compile_check
from tests.requirements import requirement

LONG = "k" * (4 << 20)
DIGITS = "9" * 5000  # more than Python makes a number of


@requirement("json:python:long-keys")
def test_a_long_key_is_not_copied_for_each_item_under_it() -> None:
    assert len(to_text({LONG: [10**20] + [0] * 500_000})) > 5_000_000


@requirement("json:python:long-keys")
def test_the_place_of_what_is_no_json_shows_the_beginning_of_long_keys() -> None:
    with pytest.raises(NotJson) as caught:
        adapt({LONG: [{"a": b""}]})

    assert str(caught.value).startswith(f"value.{'k' * 200}[0].a is binary")


@requirement("json:python:rules")
@pytest.mark.parametrize("value", [{"a": [10**5000]}, {"a": [-(10**5000)]}, {"a": [{10**5000: 1}]}])
def test_a_number_of_more_digits_than_python_spells_is_no_json(value: object) -> None:
    with pytest.raises(NotJson, match=r"value\.a\[0\] is a whole number with thousands of digits"):
        adapt(value)


@requirement("manifest:schema:long-names")
def test_a_long_name_in_a_schema_is_not_copied_for_each_schema_under_it() -> None:
    inner: dict[str, object] = {str(at): {} for at in range(100_000)}

    assert find_schema_fault({"properties": {LONG: {"properties": inner}}}) is None


@requirement("manifest:schema:digits")
def test_an_index_of_thousands_of_digits_leads_nowhere() -> None:
    fault = find_schema_fault({"prefixItems": [{}], "$ref": f"#/prefixItems/{DIGITS}"})

    assert (fault or "").startswith("/$ref leads nowhere")


@requirement("catalog:names:many-alike")
def test_a_hundred_thousand_equal_names_are_numbered() -> None:
    names = unique_names((str(at), "tool") for at in range(100_000))

    assert names["0"] == "tool"
    assert names["99999"] == "tool100000"


@requirement("catalog:names:near-bounded")
def test_near_names_are_found_among_a_hundred_thousand() -> None:
    known = ["a" * 250 + str(at) for at in range(100_000)] + ["list_invoices"]

    assert nearest("a" * 200, known)
    assert nearest("list_invoice", known) == ["list_invoices"]


@requirement("mcp:tools:many-faults")
def test_a_hundred_thousand_bad_tools_are_left_out_with_a_few_words(server: ServerSpec) -> None:
    bad = [{"at": at} for at in range(50_000)] + [{"name": "a", "at": at} for at in range(50_000)]
    tools, warnings = adapt_server(server, Listing(0, {}, bad), send=None)  # type: ignore[arg-type]

    assert [tool.name for tool in tools] == ["a"]
    assert len(warnings) == 21
    assert warnings[-1] == "49,981 more of its tools are left out."


@pytest.fixture
def server() -> ServerSpec:
    return ServerSpec("memory", Where("mcp.json"), Path(), "stdio")


TOO_LONG = "input: it takes too long to be checked against the tool's schema; send less of it"
EITHER = {"type": "object", "properties": {"a": {"$ref": "#"}}}


def nested(levels: int, leaf: object) -> object:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


@requirement("executor:schema:steps")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [EITHER, EITHER]}, nested(60, 1)),
        ({"oneOf": [EITHER, EITHER, {"type": "integer"}]}, nested(60, 1)),
        ({"type": "object", "unevaluatedProperties": {"$ref": "#"}, "properties": {"b": True}}, nested(60, 1)),
        (
            {
                "$ref": "#/$defs/0",
                "$defs": {str(at): {"allOf": [{"$ref": f"#/$defs/{at + 1}"}] * 2} for at in range(60)} | {"60": True},
            },
            {},
        ),
        ({"anyOf": [{"type": "string"}] * 1000}, [1] * 500_000),
        ({"allOf": [{"not": {"maxLength": 3}}] * 1000}, "a" * (4 << 20)),
        ({"allOf": [{"uniqueItems": True, "multipleOf": 1}] * 10_000}, list(range(100_000))),
        ({"items": {"enum": [[at] for at in range(3000)]}}, [[2999]] * 3000),
    ],
)
def test_a_check_that_would_never_end_is_given_up(schema: dict[str, object], value: object) -> None:
    assert compile_check(schema)(value) == TOO_LONG


@requirement("executor:schema:steps")
def test_what_is_nested_as_deep_as_it_may_be_is_still_checked() -> None:
    node = {"anyOf": [{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}}, {"type": "integer"}]}
    schema = {"$ref": "#/$defs/n", "$defs": {"n": node}}

    assert compile_check(schema)(nested(99, 1)) is None


@requirement("executor:schema:steps")
def test_a_fault_names_a_long_key_by_its_beginning() -> None:
    fault = compile_check({"additionalProperties": {"multipleOf": 2}})({LONG: 1}) or ""

    assert len(fault) < 1200
    assert fault.endswith("1 is not a multiple of 2 (rule: multipleOf)")


@requirement("executor:schema:steps")
def test_a_large_schema_with_faults_is_not_judged_for_long() -> None:
    schema = {"properties": {f"p{at}": {"required": True, "multipleOf": 2} for at in range(30_000)}}

    assert "(rule: multipleOf)" in (compile_check(schema)({"p1": 1}) or "")
    assert "no JSON Schema" in (compile_check(schema | {"type": "nothing"})({}) or "")


@requirement("executor:schema:fast-path-agrees")
def test_a_choice_of_many_is_looked_up() -> None:
    choices = [*range(20_000), "a", None, True]
    check = compile_check({"items": {"enum": choices}})

    assert check([19_999, "a", None, True] * 100_000) is None
    assert check([1.0]) is None
    assert check([False]) is not None


def written(schema: object) -> str:
    return TypeWriter(schema, "tool", str).write()


@requirement("mcp:types:hostile")
@pytest.mark.parametrize(
    "part",
    [
        {"type": "object", "required": [f"name{at}" for at in range(10_000)]},
        {"type": "object", "properties": {"k" * (1 << 20): {}}},
    ],
)
def test_names_that_references_bring_again_and_again_are_written_a_few_times(part: object) -> None:
    schema = {"properties": {f"p{at}": {"$ref": "#/$defs/a"} for at in range(900)}, "$defs": {"a": part}}

    assert len(written(schema)) < 2_000_000


@requirement("mcp:types:hostile")
def test_a_type_that_is_named_a_million_times_is_written_once() -> None:
    schema = {"type": ["object"] * 1_000_000, "properties": {f"p{at}": {} for at in range(5000)}}

    assert len(written(schema)) < 200_000


@requirement("mcp:types:hostile")
def test_numbers_of_thousands_of_digits_break_no_declaration() -> None:
    part = {"default": 10**5000, "enum": [10**5000], "items": {"$ref": f"#/x/{DIGITS}"}}

    assert "p?: number" in written({"properties": {"p": part}, "x": [1]})


LISTED = {"properties": {"rows": {"items": {"properties": {"x": {"default": {"y": ["z"] * 100}}}}}}}


@requirement("mcp:call:defaults-bounded")
@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        (LISTED, 1_000_000),
        ({"properties": {"rows": {"items": {"properties": {str(at): {} for at in range(20_000)}}}}}, 1_000_000),
    ],
)
def test_defaults_are_not_filled_in_without_end(schema: dict[str, object], rows: int) -> None:
    with pytest.raises(InvalidInput, match="with the defaults of the tool's schema this input is too large"):
        fill_defaults(schema, {"rows": [{}] * rows})


@requirement("mcp:call:defaults-bounded")
def test_a_schema_of_many_parts_is_gathered_once_for_a_list() -> None:
    schema = {"properties": {"rows": {"items": {"allOf": [{"title": str(at)} for at in range(10_000)]}}}}

    assert fill_defaults(schema, {"rows": [7] * 100_000}) == {"rows": [7] * 100_000}


@requirement("mcp:call:defaults-bounded")
def test_defaults_are_filled_in_for_thousands_of_rows() -> None:
    filled = fill_defaults(LISTED, {"rows": [{}] * 5000})

    assert filled["rows"][4999] == {"x": {"y": ["z"] * 100}}
    assert filled["rows"][0]["x"] is not filled["rows"][1]["x"]


@requirement("redaction:known:backslashes")
def test_a_flood_of_backslashes_is_read_once() -> None:
    redactor = Redactor(["$ecret/value", '"quoted secret"', "/one/two/three"])
    flood = "\\" * (1 << 20)

    assert redactor.text(flood) == flood
    assert redactor.text(rf"{flood}$ecret\\/value") == "[redacted]"
    assert redactor.text(r"x\\\"quoted secret\\\"y") == "x[redacted]y"


@requirement("openapi:document:hostile")
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ('{"default": ' + '{"a": ' * 600 + "1" + "}" * 600 + "}", "its input holds a value that is nested too deeply"),
        ('{"$ref": "#/x/' + DIGITS + '"}', "leads nowhere"),
    ],
)
def test_an_operation_that_python_cannot_read_is_left_out(tmp_path: Path, schema: str, why: str) -> None:
    operations = load_openapi(document(tmp_path, schema))

    assert not operations.tools
    assert why in operations.notes[0]


@requirement("openapi:document:hostile")
def test_a_number_of_thousands_of_digits_in_a_document_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"shop\.json has too long a number\."):
        load_openapi(document(tmp_path, '{"maximum": ' + DIGITS + "}"))


@requirement("openapi:document:hostile")
def test_a_pattern_of_five_hundred_groups_is_left_to_the_server(tmp_path: Path) -> None:
    operations = load_openapi(document(tmp_path, json.dumps({"pattern": "(" * 500 + ")" * 500})))

    assert "pattern" not in operations.tools[0].parameters["properties"]["body"]


def document(folder: Path, schema: str) -> OpenApiEntry:
    body = '{"content": {"application/json": {"schema": ' + schema + "}}}"
    operation = '{"post": {"operationId": "add", "requestBody": ' + body + "}}"
    file = folder / "shop.json"
    file.write_text('{"openapi": "3.0.0", "x": [1], "paths": {"/a": ' + operation + "}}", encoding="utf-8")
    return OpenApiEntry(file, "shop", "https://shop.test", {}, Where("codemode.toml"))


@requirement("cli:catalog:describe")
def test_a_type_that_is_named_a_million_times_is_shown_once() -> None:
    part = {"type": ["object"] * 1_000_000 + [["null"]], "properties": {f"p{at}": {} for at in range(5000)}}

    assert parameters_of({"properties": {"x": part}})[0].type.startswith("{p0, p1, ")


def test_what_json_cannot_show_is_shown_by_its_kind() -> None:
    assert shown([10**5000]) == "a list that is too large"


def test_a_run_that_waited_ten_thousand_times_is_drawn() -> None:
    calls = [{"startMs": 4.0 * at, "endMs": 4.0 * at + 3} for at in range(1, 20_001)]
    spans = [{"startMs": 4.0 * at + 1, "endMs": 4.0 * at + 4, "end": "restored", "bytes": 7} for at in range(1, 20_001)]
    known: dict[str, Any] = {
        "method": "call",
        "toolId": "a:b:c",
        "resultBytes": 0,
        "deliverer": None,
        "updates": 0,
        "state": "ok",
    }
    known |= {"input": None, "reason": None, "error": None}
    run: dict[str, Any] = {
        "runId": "cm_x",
        "calls": [known | {"id": at} | call for at, call in enumerate(calls)],
        "suspended": spans,
    }
    run |= {"waits": [], "startMs": 4.0, "endMs": 90_000.0, "state": "completed", "language": "", "durationMs": 1.0}
    run |= {"error": None, "guestMs": 1.0, "code": None, "source": ""}

    assert render_page({"runs": [run]}).count('<li class="row') == 40_000


def test_a_long_list_is_not_laid_out_whole_to_be_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = 0
    lay_out = value._label

    def count(key: str) -> object:
        nonlocal laid_out
        laid_out += 1
        return lay_out(key)

    monkeypatch.setattr(value, "_label", count)
    console = Console(file=io.StringIO(), width=80)
    console.print(value.render_value({str(at): [at] * 5 for at in range(5000)}))

    assert laid_out < 1000


def named(name: str, at: int) -> ToolSpec:
    async def answer(given: Json, context: RunContext) -> Json:
        return None

    return ToolSpec(f"client:shop:{at:05}", name, "Add an order.", "client", "shop", {}, answer)


@requirement("catalog:resolve:near-ids")
def test_an_error_lists_a_few_of_a_thousand_tools_of_one_name() -> None:
    catalog = build_catalog((named("add", at) for at in range(1000)), Policy())

    with pytest.raises(NestedToolFailed, match=r"client:shop:00009 and 990 more\. Use an id\.$"):
        catalog.resolve("add")


@requirement("search:query:bounded")
def test_a_name_of_megabytes_is_read_to_its_first_words() -> None:
    index = SearchIndex([named("addOrder" * 500_000 + "Last", 1)])

    assert index.rank("order", 1)
    assert not index.rank("last", 1)
