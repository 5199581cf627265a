"""The events of runs as live spans, after the GenAI semantic conventions.

An `exec` is a span `execute_tool exec`; its nested calls and the `wait`s that went on with it are its
children, also when they happen after it returned. It needs OpenTelemetry's API alone, so that a program
which has a tracer of its own gets codemode's spans in its own traces:

    CodeMode(on_event=SpanRecorder(trace.get_tracer("my agent")))

Nothing secret is added: inputs and errors are redacted before they become events, and inputs are left
out unless asked for.
"""

import json
from typing import Protocol

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from codemode.core.events import (
    CallParked,
    CallSettled,
    CallStarted,
    Event,
    ExecStarted,
    RunEnded,
    SnapshotEvent,
    WaitStarted,
)
from codemode.core.names import VISIBLE_TOOLS
from codemode.core.types import Json

_EXEC, _WAIT = VISIBLE_TOOLS
_NESTED = ("call", "namespace")
_GONE = ("expired", "discarded")
_GUEST_ERROR = "guest_error"  # the type of an error that the cell itself threw, which has no code
Attributes = dict[str, AttributeValue]


class Roots(Protocol):
    """Where the span of a run's `exec` is, also for a process that did not see it begin."""

    def announce(self, run_id: str) -> None:
        """Learn that the next span is that of this run's `exec`."""

    def find(self, run_id: str) -> SpanContext | None:
        """Return the place of a span that another process made."""


class _Run:
    """What is known of one run: the place of its `exec`, the outer span that is open, and its open calls."""

    def __init__(self, root: SpanContext | None) -> None:
        self.root = root
        self.outer: Span | None = None
        self.calls: dict[int, Span] = {}


class SpanRecorder:
    """Takes events, as `on_event=` of a `CodeMode` or a session's listener, and makes spans of them."""

    def __init__(self, tracer: Tracer, *, inputs: bool = False, roots: Roots | None = None) -> None:
        """Use a tracer; the span that is current when a cell begins becomes its parent.

        Args:
            tracer: Makes the spans.
            inputs: Whether spans carry the redacted input of each call.
            roots: Finds the `exec` of a run that began in another process; without it a later `wait`
                begins a trace of its own.

        Contract: spans:tree:nested, spans:content:off
        """
        self._tracer = tracer
        self._inputs = inputs
        self._roots = roots
        self._runs: dict[str, _Run] = {}

    def __call__(self, event: Event) -> None:
        """Begin, add to or end the span that an event speaks of."""
        match event:
            case ExecStarted():
                self._begin_exec(event)
            case WaitStarted():
                self._begin_wait(event)
            case CallStarted() if event.method in _NESTED:
                self._begin_call(event)
            case CallParked():
                self._note(event, "approval.requested", {"codemode.tool.id": event.tool_id or ""})
            case CallSettled():
                self._end_call(event)
            case SnapshotEvent():
                self._note(event, f"snapshot.{event.change}", {"codemode.snapshot.bytes": event.bytes})
                if event.change in _GONE:
                    self._forget(event.run_id)
            case RunEnded():
                self._end_outer(event)
            case _:
                pass

    def _begin_exec(self, event: ExecStarted) -> None:
        if self._roots is not None:
            self._roots.announce(event.run_id)
        run = self._runs[event.run_id] = _Run(None)
        run.outer = self._begin(
            _EXEC,
            event,
            {
                "gen_ai.conversation.id": event.agent_run_id,
                "codemode.cell.language": event.language,
                "codemode.catalog.size": event.catalog_size,
            },
        )
        run.root = run.outer.get_span_context()

    def _begin_wait(self, event: WaitStarted) -> None:
        run = self._run(event.run_id)
        run.outer = self._begin(_WAIT, event, {"gen_ai.tool.call.id": event.wait_id})

    def _begin_call(self, event: CallStarted) -> None:
        attributes = _of_call(event.run_id, event.call_id, event.tool_id or "")
        if self._inputs:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(event.input, ensure_ascii=False)
        name = _tool_name(event.tool_id or "")
        self._run(event.run_id).calls[event.call_id] = self._begin(name, event, attributes)

    def _end_call(self, event: CallSettled) -> None:
        span = self._run(event.run_id).calls.pop(event.call_id, None)
        if span is None:
            if event.tool_id is None:
                return  # a search or a describe, which no span stands for
            attributes = _of_call(event.run_id, event.call_id, event.tool_id)  # it was refused before it began
            span = self._begin(_tool_name(event.tool_id), event, attributes)
        span.set_attribute("codemode.call.state", event.state)
        span.set_attribute("codemode.result.bytes", event.result_bytes)
        if event.state != "ok":
            _fail(span, "nested_tool_failed", event.error)
        span.end(_nanoseconds(event.at_ms))

    def _end_outer(self, event: RunEnded) -> None:
        run = self._run(event.run_id)
        if run.outer is not None:
            run.outer.set_attribute("codemode.run.state", event.state)
            if event.error is not None:
                _fail(run.outer, event.code or _GUEST_ERROR, event.error)
            run.outer.end(_nanoseconds(event.at_ms))
            run.outer = None
        if event.state != "waiting":
            for span in run.calls.values():
                _fail(span, "nested_tool_failed", "its run has ended")
                span.end(_nanoseconds(event.at_ms))
            self._forget(event.run_id)

    def _note(self, event: CallParked | SnapshotEvent, name: str, attributes: Attributes) -> None:
        outer = self._run(event.run_id).outer
        if outer is not None:
            outer.add_event(f"codemode.{name}", attributes, _nanoseconds(event.at_ms))

    def _begin(
        self, tool: str, event: ExecStarted | WaitStarted | CallStarted | CallSettled, attributes: Attributes
    ) -> Span:
        root = self._run(event.run_id).root
        parent = None if root is None else trace.set_span_in_context(NonRecordingSpan(root))
        known: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "codemode.run.id": event.run_id,
        }
        start = _nanoseconds(event.at_ms)
        return self._tracer.start_span(f"execute_tool {tool}", parent, attributes=known | attributes, start_time=start)

    def _run(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            self._runs[run_id] = _Run(self._roots.find(run_id) if self._roots else None)
        return self._runs[run_id]

    def _forget(self, run_id: str) -> None:
        self._runs.pop(run_id, None)


def _of_call(run_id: str, call_id: int, tool_id: str) -> Attributes:
    return {"gen_ai.tool.call.id": f"{run_id}/{call_id}", "codemode.tool.id": tool_id}


def _tool_name(tool_id: str) -> str:
    return tool_id.split(":", 2)[-1]


def _fail(span: Span, kind: str, words: Json) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, words)


def _nanoseconds(at_ms: float) -> int:
    return int(at_ms * 1_000_000)
