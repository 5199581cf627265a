"""What may be expected: paths, comparison, and tags as text."""

import json

import pytest

from codemode.smoke.differences import NOTHING, compare
from codemode.smoke.expectations import Expectation, expected_status, format_tag, from_value, parse_text
from codemode.smoke.headers import BadLine, parse_header
from codemode.smoke.paths import follow_path, split_path
from tests.requirements import requirement

VALUE = {"items": [{"sku": "mug", "n": 2}, {"sku": "cup"}], "odd key": {"ä": 1}, "length": 7, "text": "abc"}


@requirement("smoke:paths:subset")
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [VALUE]),
        ("$.items[0].sku", ["mug"]),
        ("$.items[-1].sku", ["cup"]),
        ('$["odd key"]["ä"]', [1]),
        ("$['odd key'].ä", [1]),
        ("$.items[*].sku", ["mug", "cup"]),
        ("$.items[*].n", [2]),
        ("$.items[0][*]", ["mug", 2]),
        ("$.items.length", [2]),
        ("$.text.length", [3]),
        ("$.length", [7]),
        ("$.items[5]", []),
        ("$.nothing.at.all", []),
        ("$.text[0]", []),
        ("$.text[*]", []),
        ("$.items.sku", []),
    ],
)
def test_a_path_leads_to_what_it_says(path: str, found: list[object]) -> None:
    assert follow_path(split_path(path)[0], VALUE) == found


@requirement("smoke:paths:subset")
@pytest.mark.parametrize("text", ["items", "$items", "$..sku", "$.items[?]", "$.items[", "$.", "$[1:2]", "$.a.."])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a path"):
        split_path(text)


def test_a_path_ends_where_its_expectation_begins() -> None:
    path, rest = split_path('$.a["x=y"] = 3')

    assert (path.steps, rest) == (("a", "x=y"), " = 3")


def shown(expected: object, found: object, *, partial: bool = False) -> list[tuple[str, str, str]]:
    return [(each.path, each.expected, each.found) for each in compare("value", expected, found, partial=partial)]


@requirement("smoke:diff:path")
def test_each_difference_names_its_path() -> None:
    expected = {"a": [1, {"b c": 2}], "gone": None, "same": [1]}
    found = {"a": [1, {"b c": 3}, 4], "same": [1], "new": {}}

    assert shown(expected, found) == [
        ('$.a[1]["b c"]', "2", "3"),
        ("$.a[2]", NOTHING, "4"),
        ("$.gone", "null", NOTHING),
        ("$.new", NOTHING, "{}"),
    ]
    assert shown([1, 2], [1]) == [("$[1]", "2", NOTHING)]


@requirement("smoke:diff:path")
def test_values_are_compared_as_json_has_them() -> None:
    assert shown(1, 1.0) == []
    assert shown(1, True) == [("$", "1", "true")]
    assert shown(False, 0) == [("$", "false", "0")]
    assert shown(None, None) == []
    assert shown("1", 1) == [("$", '"1"', "1")]
    assert shown({}, []) == [("$", "{}", "[]")]


def test_a_partial_value_has_more_members_but_not_more_items() -> None:
    assert shown({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, partial=True) == []
    assert shown([{"a": 1}], [{"a": 1, "b": 2}], partial=True) == []
    assert shown([{"a": 1}], [{"a": 1}, {}], partial=True) == [("$[1]", NOTHING, "{}")]
    assert shown({"a": 1}, {"b": 1}, partial=True) == [("$.a", "1", NOTHING)]


def test_long_texts_are_shown_from_where_they_differ() -> None:
    ((_, expected, found),) = shown("x" * 100 + "one", "x" * 100 + "two")

    assert json.loads(expected) == "…" + "x" * 40 + "one"
    assert json.loads(found) == "…" + "x" * 40 + "two"
    assert shown("one", "on") == [("$", '"one"', '"on"')]


@requirement("smoke:tags:default-status")
@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ([], "completed"),
        ([("calls", "")], "completed"),
        ([("code", "timeout")], "failed"),
        ([("error", "boom")], "failed"),
        ([("pending", "timer")], "waiting"),
        ([("reason", "yield"), ("output", "[]")], "waiting"),
        ([("code", "timeout"), ("status", "completed")], "completed"),
    ],
)
def test_a_status_is_implied_by_what_only_it_has(tags: list[tuple[str, str]], status: str) -> None:
    assert expected_status([parse_text(*tag) for tag in tags]) == status


@requirement("smoke:tags:all")
@pytest.mark.parametrize(
    ("tag", "text", "wanted"),
    [
        ("status", "waiting", "waiting"),
        ("value", '{"n": [1, null]}', {"n": [1, None]}),
        ("partial", "[]", []),
        (
            "output",
            '["a", {"type": "json", "value": 1}]',
            [{"type": "text", "text": "a"}, {"type": "json", "value": 1}],
        ),
        ("error", "out of paper", "out of paper"),
        ("calls", "a:b:c  d:e:f", ["a:b:c", "d:e:f"]),
        ("calls", "", []),
        ("max-calls", "3", 3),
        ("duration", "quick", "quick"),
        ("dispatched", "false", False),
    ],
)
def test_a_tag_is_read_and_written_alike(tag: str, text: str, wanted: object) -> None:
    read = parse_text(tag, text)
    (line,) = format_tag(read)

    assert read.wanted == wanted
    assert parse_text(tag, line.removeprefix(f"@{tag}").strip()) == read


def test_a_path_is_read_and_written_alike() -> None:
    read = parse_text("path", '$.a[0]["b c"]   = {"x": 1}')

    assert format_tag(read) == ['@path $.a[0]["b c"] = {"x":1}']


@requirement("smoke:files:unknown-tag")
@pytest.mark.parametrize(
    ("tag", "text", "message"),
    [
        ("status", "compleeted", r'@status takes completed or waiting or failed; found "compleeted".*"completed"'),
        ("code", "time_out", r'found "time_out".*Did you mean "timeout"'),
        ("value", '{"n": }', r"@value takes JSON; .* is none: Expecting value at character 7"),
        ("value", "", "@value takes JSON"),
        ("value", "[" * 100_000, "@value takes JSON"),
        ("output", '"a"', "@output takes an array"),
        ("output", "[1]", "@output takes an array"),
        ("path", "$.a 3", "@path takes a path, = and JSON"),
        ("path", "$.a = x", "@path takes JSON"),
        ("path", "a = 1", "a path begins with"),
        ("error", "", "@error takes a text"),
        ("max-calls", "few", '@max-calls takes a whole number; found "few"'),
        ("max-calls", "-1", "@max-calls takes a whole number"),
        ("duration", "fast", "@duration takes quick or slow"),
        ("dispatched", "1", "@dispatched takes true or false"),
    ],
)
def test_what_a_tag_does_not_take_is_refused(tag: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_text(tag, text)


def test_values_of_a_list_are_checked_as_well() -> None:
    with pytest.raises(ValueError, match="@calls takes ids"):
        from_value("calls", [1])
    with pytest.raises(ValueError, match="@max-calls takes a whole number; found true"):
        from_value("max-calls", True)


def test_long_json_is_written_over_several_lines() -> None:
    lines = format_tag(Expectation("value", {"names": ["a" * 30, "b" * 30, "c" * 30]}))

    assert (lines[0], lines[-1], len(lines)) == ("@value {", "}", 7)
    assert format_tag(Expectation("value", "x" * 200)) == [f'@value "{"x" * 200}"']
    assert parse_header([f"// {line}" for line in lines]).expectations[0].wanted == {
        "names": ["a" * 30, "b" * 30, "c" * 30]
    }


HEADER = """
// Joins orders
// with customers.
// @manifest ../shop
// @value {
//   "n": 1
// }
// And so on.
// @ts-nocheck
// @calls a:b:c
// @error x
// @error y
return 1;
// @status failed
"""


@requirement("smoke:files:header")
def test_a_header_is_the_first_block_of_comments() -> None:
    header = parse_header(HEADER.split("\n"))

    assert header.title == "Joins orders with customers. And so on."
    assert header.settings == {"manifest": "../shop"}
    assert [(each.tag, each.wanted, each.lines) for each in header.expectations] == [
        ("value", {"n": 1}, (5, 7)),
        ("calls", ["a:b:c"], (10, 10)),
        ("error", "x", (11, 11)),
        ("error", "y", (12, 12)),
    ]
    assert header.lines == range(1, 12)


@requirement("smoke:files:header")
@pytest.mark.parametrize("text", ["", "return 1", "\n\n", "/* a */ return 1"])
def test_a_cell_without_comments_has_an_empty_header(text: str) -> None:
    header = parse_header(text.split("\n"))

    assert (header.title, header.expectations, len(header.lines)) == ("", (), 0)


@requirement("smoke:files:unknown-tag")
@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["// x", "// @valu 3"], 2, r'there is no tag "valu".*Did you mean "value"'),
        (["// @value 3", "// @value 3"], 2, "@value is given twice"),
        (["// @flags --wait", "// @flags --wait"], 2, "@flags is given twice"),
        (["// @value {", "// prose", "// @calls"], 1, "@value takes JSON"),
        (["//", "// @value"], 2, "@value takes JSON"),
    ],
)
def test_a_bad_line_is_named(lines: list[str], line: int, message: str) -> None:
    with pytest.raises(BadLine, match=message) as caught:
        parse_header(lines)

    assert caught.value.line == line
