"""A pattern that tries every way to split a text holds nobody."""

import itertools
import re
from contextlib import suppress
from typing import Any

import pytest

from codemode import patterns
from codemode.patterns import Patterns, Undecided
from codemode.validation import compile_check
from tests.requirements import requirement

ADDRESS = r"^([a-zA-Z0-9]+\.?)+@x$"
SLOW = r"^(a|aa|b|ab)+$"
EVIL = "a" * 200 + "!"


def matches(pattern: str, text: str) -> bool:
    known = Patterns()
    known.begin()
    return known.match(pattern, text)


@requirement("executor:schema:bounded")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (SLOW, EVIL),
        (ADDRESS, EVIL),
        (r"(a|a)+$", EVIL),
        (r"^(?:a*)*$", EVIL),
        (r"(x+x+)+y", "x" * 5000),
        ("(a|a)" * 60 + "$", EVIL),
        (r"a*a*a*a*a*a*$", "a" * 5000 + "!"),
        (r"\w+\d+\w+$", "1" * 50_000 + "!"),
        (r"(.*)(.*)(.*)(.*)(.*)[^a]$", "a" * 50_000),
    ],
)
def test_a_pattern_is_decided_or_given_up(pattern: str, text: str) -> None:
    """That this test ends is what it tests: Python's own engine would take years over the first."""
    with suppress(Undecided):
        assert not matches(pattern, text)


@requirement("executor:schema:bounded")
def test_all_texts_of_an_input_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a thousand texts must not take a thousand times as long."""
    computed = itertools.count(50.0, patterns.PATTERN_MS / 2000)
    monkeypatch.setattr(patterns.time, "thread_time", lambda: next(computed))
    known = Patterns()
    known.begin()

    assert known.match("^a", "a")
    assert known.match("^a", "a")
    with pytest.raises(Undecided):
        known.match("^a", "a")
    known.begin()
    assert known.match("^a", "a")


@requirement("executor:schema:bounded")
def test_what_others_do_meanwhile_costs_a_check_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may get no time for longer than a check may take, and loading the library is no match."""
    now = itertools.count(50.0, 3600.0)
    monkeypatch.setattr(patterns.time, "monotonic", lambda: next(now))
    known = Patterns()
    known.begin()

    assert known.match("^a", "a")
    assert known.match("^a", "a")


@requirement("executor:schema:fast-path-agrees")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^[a-z0-9-]+$", "a" * 100_000),
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "somebody@somewhere.example"),
        (r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", "0" * 36),
        (r"^https?://", "https://x" * 1000),
        (r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$", "2026-11-30T16:30"),
        (r"^(asc|desc|none)$", "asc"),
        (r"[*+({|?]", "+" * 1000),
        (ADDRESS, "a.very.long.name.of.somebody.with.dots@x"),
        (ADDRESS, "\ud800" * 40),
    ],
)
def test_what_schemas_usually_ask_is_answered_as_python_answers_it(pattern: str, text: str) -> None:
    assert matches(pattern, text) is (re.search(pattern, text) is not None)


@requirement("executor:schema:bounded")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": SLOW}}}, {"a": EVIL}),
        ({"properties": {"a": {"items": {"pattern": SLOW}}}}, {"a": [EVIL] * 1000}),
        ({"patternProperties": {SLOW: True}}, {EVIL: 1}),
        ({"patternProperties": {SLOW: True}, "additionalProperties": False}, {EVIL: 1}),
        ({"propertyNames": {"pattern": SLOW}}, {EVIL: 1}),
    ],
)
def test_a_text_that_takes_too_long_is_rejected(schema: Any, value: Any) -> None:
    """Whichever rule of the schema has the pattern."""
    assert compile_check(schema)(value) == (
        f"a text takes too long to be matched with the pattern {SLOW} (rule: pattern)"
    )


@requirement("executor:schema:other-dialects")
def test_a_pattern_that_the_library_does_not_know_is_left_to_the_tool() -> None:
    """It has no meaning here; the tool may know it."""
    assert matches(r"(?z)a", "b")


@requirement("executor:schema:fast-path-agrees")
@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": 1, "x-b": 2}, None),
        ({"x-b": "s"}, "input['x-b']: 's' is not of type 'integer' (rule: type)"),
        ({"y": 1}, "input: {'y': 1} may not have the property 'y' (rule: additionalProperties)"),
    ],
)
def test_keys_by_pattern_and_others_are_told_apart(value: Any, fault: str | None) -> None:
    """As the library does it."""
    schema = {"properties": {"a": {}}, "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}

    assert compile_check(schema)(value) == fault
