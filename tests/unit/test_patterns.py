"""A pattern that tries every way to split a text holds nobody."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode import patterns
from codemode.patterns import Undecided, count_steps, matches
from codemode.validation import compile_check
from tests.requirements import requirement

ADDRESS = r"^([a-zA-Z0-9]+\.?)+@x$"
EVIL = "a" * 60 + "!"


@requirement("executor:schema:bounded")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (ADDRESS, EVIL),
        (r"(a|a)+$", EVIL),
        (r"(?:a*)*$", EVIL),
        (r"(a{1,9}){1,90}$", EVIL),
        ("(a|a)" * 60 + "$", EVIL),
        (r"a*a*a*a*a*a*$", "a" * 5000 + "!"),
        (r"[^b]*[^b]*[^b]*b", "a" * 5000),
        (r"\w+\d+\w+$", "1" * 5000 + "!"),
        (r"a+$", "a" * 1_000_000 + "!"),
    ],
)
def test_what_may_take_long_is_not_tried_here(pattern: str, text: str) -> None:
    """It is counted before, from the loops and choices of the pattern."""
    assert count_steps(pattern, len(text)) > patterns._QUICK_STEPS


@requirement("executor:schema:bounded")
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
    ],
)
def test_what_schemas_usually_ask_is_decided_here(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another process."""
    monkeypatch.setattr(patterns, "subprocess", None)

    assert matches(pattern, text) is (re.search(pattern, text) is not None)


@requirement("executor:schema:bounded")
def test_another_process_decides_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it can in time."""
    monkeypatch.setattr(patterns, "PATTERN_MS", 60_000)

    assert matches(ADDRESS, "a.very.long.name.of.somebody.with.dots@x")
    assert not matches(ADDRESS, "\ud800" * 40)


@requirement("executor:schema:bounded")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": ADDRESS}}}, {"a": EVIL}),
        ({"patternProperties": {ADDRESS: True}}, {EVIL: 1}),
        ({"patternProperties": {ADDRESS: True}, "additionalProperties": False}, {EVIL: 1}),
        ({"propertyNames": {"pattern": ADDRESS}}, {EVIL: 1}),
    ],
)
def test_a_text_that_takes_too_long_is_rejected(schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever rule of the schema has the pattern."""
    monkeypatch.setattr(patterns, "PATTERN_MS", 50)

    assert compile_check(schema)(value) == (
        f"a text takes too long to be matched with the pattern {ADDRESS} (rule: pattern)"
    )


def test_a_process_that_cannot_decide_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither yes nor no."""
    monkeypatch.setattr(patterns, "_APART", "raise SystemExit(1)")
    monkeypatch.setattr(patterns, "PATTERN_MS", 60_000)

    with pytest.raises(Undecided):
        matches(ADDRESS, EVIL)


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


@given(st.text("ab(|)*+?[]{1,}\\^$", max_size=12), st.integers(0, 1 << 23))
def test_any_pattern_is_weighed(pattern: str, length: int) -> None:
    """Nonsense too, at once, and longer texts never less."""
    assert 0 < count_steps(pattern, length) <= count_steps(pattern, length + 1)
