"""Whatever a cell, a tool or a server says, it is drawn whole or folded, and never steers a terminal."""

import io
import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from codemode.core.types import Json
from codemode.render import plain, plain_catalog
from codemode.render.error import render_error
from codemode.render.report import report_of_result
from codemode.render.runs import render_runs
from codemode.render.signature import parameters_of, type_words
from codemode.render.tool import render_tool
from codemode.render.trajectory import render_trajectory
from codemode.render.value import WHOLE_HINT, render_value
from codemode.render.words import one_line, printable
from tests.requirements import requirement

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
texts = st.text(max_size=40) | st.sampled_from(
    ["\x1b[2J", "\x9b31m", "\u202e", "[bold]x[/bold]", "a\tb", ":smile:", "日本"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=5), max_leaves=40
)
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def drawn(renderable: object, width: int) -> str:
    terminal = io.StringIO()
    console = Console(file=terminal, width=width, highlight=False, markup=False, emoji=False, color_system=None)
    console.print(renderable, soft_wrap=True)
    return terminal.getvalue()


@requirement("cli:output:harmless")
@given(value=json_values, width=st.integers(20, 200))
@relaxed
def test_any_value_is_drawn_without_control_characters(value: Json, width: int) -> None:
    assert not STEERING.search(drawn(render_value(value), width))


@requirement("cli:values:folded")
@given(
    value=st.lists(json_values, max_size=6) | st.dictionaries(texts, json_values, max_size=5),
    width=st.integers(20, 200),
)
@relaxed
def test_what_is_drawn_as_json_and_not_folded_reads_back_as_the_value(value: Json, width: int) -> None:
    shown = drawn(render_value(value), width)
    may_be_a_table = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if not may_be_a_table and WHOLE_HINT not in shown:
        assert json.loads(shown) == value


@requirement("cli:values:folded")
@given(count=st.integers(100, 5000), width=st.integers(30, 160))
@relaxed
def test_a_long_array_never_fills_more_than_some_screens(count: int, width: int) -> None:
    shown = drawn(render_value([{"n": number, "deep": {"k": [number] * 5}} for number in range(count)]), width)

    assert len(shown.splitlines()) < 120
    assert "more" in shown


@requirement("cli:output:plain")
@given(value=json_values)
@relaxed
def test_a_piped_value_is_always_the_value(value: Json) -> None:
    assert json.loads(plain.value_text(value)) == value


@requirement("cli:output:harmless")
@given(text=texts, room=st.integers(1, 60))
@relaxed
def test_one_line_is_one_line_that_fits(text: str, room: int) -> None:
    assert len(one_line(text, room)) <= room
    assert "\n" not in one_line(text, room)
    assert not STEERING.search(printable(text))


@requirement("cli:errors:layout")
@given(error=texts, source=st.lists(texts, max_size=6), line=st.integers(-1, 9), column=st.integers(-1, 60), name=texts)
@relaxed
def test_any_error_has_a_layout_with_its_caret_under_the_line(
    error: str, source: list[str], line: int, column: int, name: str
) -> None:
    result = {"status": "failed", "error": f"{error} (cell.js:{line}:{column})"}
    report = report_of_result(result, "\n".join(source), name)

    assert not STEERING.search(plain.error_text(report))
    assert not STEERING.search(drawn(render_error(report), 80))
    for shown in report.source:
        assert shown.caret is None or 0 <= shown.caret <= len(shown.text)


@given(schema=json_values)
@relaxed
def test_any_schema_has_words_for_its_type(schema: Json) -> None:
    assert isinstance(type_words(schema), str)
    if isinstance(schema, dict):
        parameters_of({"properties": schema, "required": list(schema)})


@requirement("cli:catalog:describe", "cli:output:harmless")
@given(schema=st.dictionaries(texts, json_values, max_size=4), text=texts)
@relaxed
def test_any_tool_can_be_described(schema: Json, text: str) -> None:
    tool = {
        "id": f"client:app:{text}", "name": text, "description": text, "call": f"tools.call({text})", "approval": "ask",
        "parameters": {"type": "object", "properties": schema},
    }  # fmt: skip

    assert not STEERING.search(drawn(render_tool(tool), 80))
    assert not STEERING.search(plain_catalog.tool_text(tool))


moments = st.none() | st.floats(0, 1e6)
calls = st.fixed_dictionaries(
    {
        "id": st.integers(1, 99), "method": st.none() | st.sampled_from(["call", "search", "timer"]),
        "toolId": st.none() | texts, "state": st.sampled_from(["ok", "error", "running", "awaiting_approval"]),
        "startMs": moments, "endMs": moments, "input": json_values, "resultBytes": st.integers(0, 10**9),
        "error": st.none() | texts, "deliverer": st.sampled_from([None, "exec", "w"]), "updates": st.integers(0, 3),
        "reason": st.none() | texts,
    }
)  # fmt: skip
spans = st.fixed_dictionaries(
    {
        "startMs": st.floats(0, 1e6),
        "bytes": st.integers(0, 10**7),
        "end": st.none() | st.just("restored"),
        "endMs": moments,
    }
)


@requirement("cli:trace:tree", "cli:output:harmless")
@given(
    calls=st.lists(calls, max_size=8),
    spans=st.lists(spans, max_size=2),
    width=st.integers(60, 200),
    inputs=st.booleans(),
)
@relaxed
def test_any_trajectory_is_drawn_within_the_width(calls: Json, spans: Json, width: int, inputs: bool) -> None:
    run = {
        "runId": "cm_1", "language": "javascript", "state": "running", "startMs": 10.0, "endMs": None,
        "durationMs": 5.0, "calls": calls, "suspended": spans, "waits": [{"id": "w", "startMs": 20.0, "endMs": None}],
    }  # fmt: skip
    shown = drawn(render_trajectory({"runs": [run]}, inputs=inputs), width)

    assert not STEERING.search(shown)
    assert not STEERING.search(plain.trajectory_text({"runs": [run]}, inputs=inputs))
    assert shown.count("#") >= len(calls)


@requirement("cli:runs:list")
@given(
    rows=st.lists(
        st.tuples(st.just("cm_1"), st.sampled_from(["waiting", "failed"]), st.just("3 s"), texts), max_size=60
    )
)
@relaxed
def test_any_runs_take_one_line_each(rows: list[tuple[str, str, str, str]]) -> None:
    assert len(drawn(render_runs(rows), 80).splitlines()) <= 41
