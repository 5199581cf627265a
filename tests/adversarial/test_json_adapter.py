"""The guest half of the JSON adapter, fuzzed against the contract's table of rules."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.core.types import OutputItem
from tests.requirements import requirement
from tests.support.guest import Guest


class Sample(NamedTuple):
    """A JavaScript expression with what the adapter must make of it; ABSENT is undefined."""

    source: str
    adapted: Any


ABSENT = object()


def quoted(text: str) -> str:
    return json.dumps(text)


def number(value: float) -> Sample:
    if math.isnan(value) or math.isinf(value):
        return Sample({True: "NaN"}.get(math.isnan(value), "Infinity" if value > 0 else "-Infinity"), None)
    return Sample(repr(value), value)


TEXT = st.text(st.characters(codec="utf-16-le", exclude_categories=["Cs"]), max_size=8)
LEAVES = st.one_of(
    st.just(Sample("undefined", ABSENT)),
    st.just(Sample("null", None)),
    st.booleans().map(lambda flag: Sample(str(flag).lower(), flag)),
    st.floats(width=64).map(number),
    st.integers(-(2**53), 2**53).map(lambda n: Sample(str(n), n)),
    st.integers(-(10**30), 10**30).map(lambda n: Sample(f"{n}n", str(n))),
    TEXT.map(lambda text: Sample(quoted(text), text)),
    TEXT.map(lambda text: Sample(f"({quoted(text)} + '\\ud800')", text + "\ufffd")),
    st.integers(0, 10**12).map(lambda ms: Sample(f"new Date({ms})", ms)),
    st.just(Sample("new Date(NaN)", None)),
    st.sampled_from(["() => 1", "Symbol('s')", "class {}", "async function f() {}"]).map(
        lambda s: Sample(f"({s})", None)
    ),
    TEXT.map(lambda text: Sample(f"new RangeError({quoted(text)})", {"name": "RangeError", "message": text})),
    st.lists(st.integers(0, 255), max_size=4).map(lambda items: Sample(f"new Uint8Array({items})", items)),
    st.lists(st.integers(-100, 100), max_size=3).map(
        lambda items: Sample(f"new BigInt64Array([{','.join(f'{n}n' for n in items)}])", [str(n) for n in items])
    ),
    TEXT.map(lambda text: Sample(f"new String({quoted(text)})", text)),
    st.just(Sample("Object(5n)", "5")),
    st.just(Sample("/x/g", {})),
    st.just(Sample("new WeakMap()", {})),
)


def array(items: list[Sample]) -> Sample:
    return Sample(f"[{','.join(i.source for i in items)}]", [null(i) for i in items])


def null(sample: Sample) -> Any:
    return None if sample.adapted is ABSENT else sample.adapted


def record(items: dict[str, Sample]) -> Sample:
    members = ",".join(f"[{quoted(key)}]: {item.source}" for key, item in items.items())
    return Sample(f"({{{members}}})", {key: null(item) for key, item in items.items()})


def text_map(items: dict[str, Sample]) -> Sample:
    pairs = ",".join(f"[{quoted(key)}, {item.source}]" for key, item in items.items())
    return Sample(f"new Map([{pairs}])", {key: null(item) for key, item in items.items()})


def other_map(items: list[tuple[int, Sample]]) -> Sample:
    unique = dict(items)
    pairs = ",".join(f"[{key}, {item.source}]" for key, item in unique.items())
    return Sample(f"new Map([{pairs}])", [[key, null(item)] for key, item in unique.items()] or {})


def wrapped(sample: Sample) -> st.SearchStrategy[Sample]:
    source = sample.source
    return st.sampled_from(
        [
            Sample(f"({{toJSON() {{ return {source} }}}})", null(sample)),
            Sample(f"({{get a() {{ return {source} }}, get [Symbol('s')]() {{ return 1 }}}})", {"a": null(sample)}),
            Sample(
                f"Object.create({{hidden: 1}}, {{a: {{value: {source}, enumerable: true}}, b: {{value: 2}}}})",
                {"a": null(sample)},
            ),
            Sample(f"new Proxy({{a: {source}}}, {{}})", {"a": null(sample)}),
            Sample(f"new Set([{source}])", [null(sample)]),
        ]
    )


SAMPLES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(array),
        st.dictionaries(TEXT, inner, max_size=4).map(record),
        st.dictionaries(TEXT, inner, max_size=3).map(text_map),
        st.lists(st.tuples(st.integers(0, 9), inner), max_size=3).map(other_map),
        inner.flatmap(wrapped),
    ),
    max_leaves=12,
)


def same(found: Any, expected: Any, source: str) -> None:
    """Compare as JSON; a date's expectation is its time."""
    if "new Date(" in source:
        return
    assert as_floats(found) == as_floats(expected), source


def as_floats(value: Any) -> Any:
    """Return the JSON value with each number as JavaScript has it; 1 and 1.0 are the same there."""
    return json.loads(json.dumps(value), parse_int=float)


@pytest.fixture(scope="module")
def guest(engine_cache: Path) -> Guest:
    return Guest(engine_cache)


@requirement("json:guest:rules")
@given(SAMPLES)
@settings(deadline=None, max_examples=200)
def test_every_value_becomes_what_the_table_says(guest: Guest, sample: Sample) -> None:
    """As value, as json() output and inside an argument: one adapter."""
    end = guest.start(f"const v = {sample.source}; json(v); tools.add({{v: [v]}}); return v")
    (call,) = end.calls
    assert end.state == "suspended"
    if "undefined" not in sample.source:  # left out of arguments, null elsewhere
        same(call.payload["v"], [null(sample)], sample.source)
    same(end.output, (OutputItem("json", null(sample)),), sample.source)
    same(guest.deliver((1, True, None)).value, null(sample), sample.source)


@requirement("json:guest:rules")
@given(st.dictionaries(TEXT, LEAVES, max_size=5))
@settings(deadline=None, max_examples=100)
def test_arguments_leave_out_undefined_properties(guest: Guest, members: dict[str, Sample]) -> None:
    (call,) = guest.start(f"tools.add({record(members).source}); await 1").calls
    kept = {key: item for key, item in members.items() if item.adapted is not ABSENT}
    same(call.payload, {key: item.adapted for key, item in kept.items()}, record(members).source)


@requirement("json:guest:rules")
@given(st.integers(-(2**60), 2**60).map(lambda n: n / 997))
@settings(deadline=None, max_examples=50)
def test_dates_are_iso_text(guest: Guest, ms: float) -> None:
    shown = guest.value(f"return [new Date({ms}), new Date({ms}).getTime()]")
    assert shown[0] is None if shown[1] is None else shown[0].endswith("Z")


@requirement("json:guest:refused")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("const o = {a: [{}]}; o.a[0].b = o; return o", r"value.a[0].b closes a cycle"),
        ("const m = new Map(); m.set('k', m); return m", "value.k closes a cycle"),
        ("return {a: [1, Promise.resolve(1)]}", "value.a[1] is a Promise; await it"),
        ("return {b: new ArrayBuffer(2)}", "value.b is binary"),
        ("return [new DataView(new ArrayBuffer(2))]", "value[0] is binary"),
        ("let o = {}; for (let i = 0; i < 101; i++) o = {o}; return o", "deeper than 100"),
        ("return {toJSON() { throw new Error('mine') }}", "Error: mine"),
        ("json({get a() { throw new TypeError('getter') }})", "TypeError: getter"),
    ],
)
def test_what_has_no_json_form_is_one_clear_error(guest: Guest, source: str, reason: str) -> None:
    assert reason in guest.failure(source)


def test_a_shared_reference_is_no_cycle_and_getters_run_before_the_value_is_sealed(guest: Guest) -> None:
    end = guest.start("const a = {n: 1}; return {x: a, y: a, get z() { text('ran'); return 2 }}")
    assert end.value == {"x": {"n": 1}, "y": {"n": 1}, "z": 2}
    assert end.output == (OutputItem("text", "ran"),)
