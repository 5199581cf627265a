"""Spans: what a program's tracer gets of its cells."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from codemode import CodeMode, MockTool, Waiting, tool
from codemode.core.types import CodeModeResult
from codemode.spans.export import RunIds
from codemode.spans.recorder import SpanRecorder
from tests.requirements import requirement
from tests.support.sessions import Gate

RUN_ID = "cm_0f4c2a51-7b1e-4d8f-9a53-6f2d1c0b7e11"


class Tracing:
    """A program's tracing: its tracer, and the spans that ended."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self._provider.get_tracer("test")

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The spans by name; the last of each."""
        return {span.name: span for span in self._memory.get_finished_spans()}

    def close(self) -> None:
        self._provider.shutdown()


pytestmark = pytest.mark.usefixtures("no_kill")


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    made = Tracing()
    yield made
    made.close()


@asynccontextmanager
async def traced(tracing: Tracing, *tools: Any, inputs: bool = False, **options: Any) -> AsyncIterator[CodeMode]:
    recorder = SpanRecorder(tracing.tracer, inputs=inputs)
    async with CodeMode(tools=tools, on_event=recorder, **options) as code_mode:
        yield code_mode
    assert all(not run.calls and run.outer is None for run in recorder._runs.values())


def of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def run_of(result: CodeModeResult) -> str:
    assert isinstance(result, Waiting), result
    return result.run_id


@requirement("spans:names:genai", "spans:tree:nested")
async def test_a_cell_is_a_span_and_its_calls_are_spans_under_it(tracing: Tracing) -> None:
    async with traced(tracing, MockTool("weather", returns={"sky": "clear"})) as code_mode:
        agent_run_id = code_mode.agent_run_id
        result = await code_mode.exec("await tools.search('weather'); return await tools.weather({city: 'Oslo'})")
    cell, call = tracing.spans["execute_tool exec"], tracing.spans["execute_tool weather"]

    assert list(tracing.spans) == ["execute_tool weather", "execute_tool exec"]  # a search is no span
    assert of(cell) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "exec",
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": agent_run_id,
        "codemode.run.id": result.run_id,
        "codemode.run.state": "completed",
        "codemode.cell.language": "javascript",
        "codemode.catalog.size": 1,
    }
    assert of(call) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"{result.run_id}/2",
        "codemode.run.id": result.run_id,
        "codemode.tool.id": "client:app:weather",
        "codemode.call.state": "ok",
        "codemode.result.bytes": 15,
    }
    assert (cell.parent, call.parent) == (None, cell.context)
    assert (call.kind, call.status.status_code) == (SpanKind.INTERNAL, StatusCode.UNSET)
    assert (cell.start_time or 0) <= (call.start_time or 0) <= (call.end_time or 0) <= (cell.end_time or 0)


@requirement("spans:tree:callers")
async def test_the_callers_span_is_the_parent(tracing: Tracing) -> None:
    async with traced(tracing, MockTool("weather")) as code_mode:
        with tracing.tracer.start_as_current_span("invoke_agent helper"):
            await code_mode.exec("return await tools.weather()")
    agent, cell, call = (
        tracing.spans[name] for name in ("invoke_agent helper", "execute_tool exec", "execute_tool weather")
    )

    assert (cell.parent, call.parent) == (agent.context, cell.context)


@requirement("spans:tree:nested", "spans:tree:ends")
async def test_what_a_wait_does_is_under_the_exec_too(tracing: Tracing) -> None:
    gate = Gate()
    slow = tool(gate._run, "slow", description="Slow.", parameters={"type": "object"})
    async with traced(tracing, slow, MockTool("after"), limits={"timeout_ms": 400}) as code_mode:
        first = await code_mode.exec("await tools.slow({}); return await tools.after()")
        gate.open("done")
        await code_mode.wait(run_of(first))
    spans = tracing.spans
    cell = spans["execute_tool exec"]

    assert [span.parent for name, span in spans.items() if name != "execute_tool exec"] == [cell.context] * 3
    assert set(spans) == {f"execute_tool {name}" for name in ("exec", "slow", "wait", "after")}
    assert [of(spans[f"execute_tool {name}"])["codemode.run.state"] for name in ("exec", "wait")] == [
        "waiting",
        "completed",
    ]
    assert of(spans["execute_tool wait"])["gen_ai.tool.call.id"].startswith("wait_")
    assert [event.name for event in cell.events] == ["codemode.snapshot.taken"]
    assert (spans["execute_tool slow"].end_time or 0) > (cell.end_time or 0)


@requirement("spans:tree:ends")
async def test_an_approval_is_noted_and_a_refusal_is_a_span_that_failed(tracing: Tracing) -> None:
    async with traced(tracing, MockTool("pay", approval="ask")) as code_mode:
        first = await code_mode.exec("return await tools.pay().catch((e) => e.code)")
        await code_mode.wait(run_of(first), deny=["1"])
    cell, pay = tracing.spans["execute_tool exec"], tracing.spans["execute_tool pay"]

    assert [event.name for event in cell.events][:1] == ["codemode.approval.requested"]
    assert (pay.start_time, of(pay)["codemode.call.state"]) == (pay.end_time, "denied")
    assert (of(pay)["error.type"], pay.status.status_code) == ("nested_tool_failed", StatusCode.ERROR)
    assert pay.status.description == "client:app:pay was not approved"


@requirement("spans:tree:ends")
@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        ("throw new TypeError('no')", "guest_error", "TypeError: no"),
        ("return await tools.broken()", "nested_tool_failed", "out of order"),
        ("while (true) {}", "timeout", "deadline of 300 ms"),
        ("import 'fs'", "module_access_denied", "import"),
    ],
)
async def test_a_failure_is_the_status_of_its_spans(tracing: Tracing, cell: str, kind: str, words: str) -> None:
    broken = MockTool("broken", returns=RuntimeError("it is out of order"))
    async with traced(tracing, broken, limits={"timeout_ms": 300}) as code_mode:
        await code_mode.exec(cell)
    span = tracing.spans["execute_tool exec"]

    assert (of(span)["error.type"], of(span)["codemode.run.state"]) == (kind, "failed")
    assert span.status.status_code is StatusCode.ERROR
    assert words in (span.status.description or "")


@requirement("spans:tree:ends")
async def test_an_abort_ends_the_spans_of_calls_in_flight(tracing: Tracing) -> None:
    gate = Gate()
    slow = tool(gate._run, "slow", description="Slow.", parameters={"type": "object"})
    async with traced(tracing, slow, session="s") as code_mode:
        going = asyncio.ensure_future(code_mode.exec("await tools.slow({})"))
        await gate.until(begun=1)
        (run,) = code_mode.shared[1].runs("s")
        code_mode.abort(run.run_id)
        await going

    assert of(tracing.spans["execute_tool exec"])["error.type"] == "aborted"
    assert tracing.spans["execute_tool slow"].status.status_code is StatusCode.ERROR


@requirement("spans:content:off")
@pytest.mark.parametrize("inputs", [False, True])
async def test_inputs_are_left_out_unless_asked_for_and_then_redacted(tracing: Tracing, inputs: bool) -> None:
    echo = MockTool("echo", returns=lambda given: given)
    async with traced(tracing, echo, inputs=inputs) as code_mode:
        await code_mode.exec("return await tools.echo({city: 'Oslo-11', password: 'sesame-4815'})")
    everything = json.dumps([span.to_json() for span in tracing.spans.values()])

    assert "sesame-4815" not in everything
    assert ("Oslo-11" in everything) is inputs
    assert ("gen_ai.tool.call.arguments" in of(tracing.spans["execute_tool echo"])) is inputs


@requirement("spans:export:one-trace")
def test_the_ids_of_a_runs_trace_follow_from_its_id() -> None:
    ids = RunIds()
    ids.announce(RUN_ID)
    trace_id, span_id, next_span_id = ids.generate_trace_id(), ids.generate_span_id(), ids.generate_span_id()
    found = RunIds().find(RUN_ID)

    assert f"{trace_id:032x}" == RUN_ID.removeprefix("cm_").replace("-", "")
    assert (found.trace_id, found.span_id, found.is_valid, found.trace_flags.sampled) == (trace_id, span_id, True, True)
    assert next_span_id != span_id
    assert ids.generate_trace_id() != trace_id
