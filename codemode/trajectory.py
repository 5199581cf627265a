"""The trajectory: what happened in each run, as a tree, folded from the one stream of events.

Runs hold their nested calls, the waits that continued them and the spans in which they were
suspended. The fold takes what there is: a run that failed, whose process died, or that is
still going on has a tree too, with what is known of it. Inputs and errors are redacted
before they become events, so every export is.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, cast

from codemode.core.events import (
    CallParked,
    CallProgress,
    CallSettled,
    CallStarted,
    Event,
    ExecStarted,
    RunEnded,
    SnapshotEvent,
    TurnMeasured,
    WaitStarted,
)
from codemode.core.names import camel_case
from codemode.core.types import Json
from codemode.runs import RunState, has_ended

FORMAT_VERSION = 1
DELIVERED_BY_EXEC = "exec"
CallState = Literal["awaiting_approval", "running", "ok", "error", "denied", "interrupted"]
SpanEnd = Literal["restored", "expired", "discarded"]
_OPEN: tuple[CallState, ...] = ("awaiting_approval", "running")
_PARTS = {"wait": "waits", "suspended": "suspended", "call": "calls"}  # type of a line → where in a run


class Call(NamedTuple):
    """One nested request under its run.

    input: As redacted for the event; None where it never started.
    start_ms, end_ms: When it was dispatched and settled; None where it was not.
    deliverer: Who gave the answer to the guest: `exec`, or the id of a wait; None so far.
    updates: How many times the tool reported progress.
    reason: Why a hook had a person asked, redacted; None where none did.
    """

    id: int
    method: str | None = None
    tool_id: str | None = None
    state: CallState = "running"
    start_ms: float | None = None
    end_ms: float | None = None
    input: Json = None
    result_bytes: int = 0
    error: str | None = None
    deliverer: str | None = None
    updates: int = 0
    reason: str | None = None


class Wait(NamedTuple):
    """One `wait` that claimed the run; `end_ms` is None where it never returned."""

    id: str
    start_ms: float
    end_ms: float | None = None


class Suspended(NamedTuple):
    """A span without a VM, from snapshot to its end; `end` is None while it lasts."""

    start_ms: float
    bytes: int
    end: SpanEnd | None = None
    end_ms: float | None = None


class Run(NamedTuple):
    """One cell from its `exec` on. `duration_ms` is the time that its exec and waits took, together."""

    run_id: str
    agent_run_id: str = ""
    language: str = ""
    source: str = ""
    state: RunState = "running"
    code: str | None = None
    error: str | None = None
    start_ms: float | None = None
    end_ms: float | None = None
    duration_ms: float = 0.0
    guest_ms: float = 0.0
    calls: tuple[Call, ...] = ()
    waits: tuple[Wait, ...] = ()
    suspended: tuple[Suspended, ...] = ()


class Trajectory(NamedTuple):
    """The runs in the order in which they began."""

    runs: tuple[Run, ...]


def fold(events: Iterable[Event]) -> Trajectory:
    """Return the tree of all runs that the events speak of.

    Contract: trajectory:tree:complete, trajectory:tree:deliverer
    """
    drafts: dict[str, _Draft] = {}
    for event in events:
        drafts.setdefault(event.run_id, _Draft(event.run_id)).add(event)
    return Trajectory(tuple(draft.build() for draft in drafts.values()))


def to_json(trajectory: Trajectory) -> dict[str, Json]:
    """Return `{"version", "runs": [{"runId", …, "calls": […], "waits": […], "suspended": […]}]}`.

    The keys are the fields of the values above in camelCase; all are there, null where unknown.
    """
    runs: list[Json] = []
    for run in trajectory.runs:
        parts = {name: [_shown(part) for part in getattr(run, name)] for name in _PARTS.values()}
        runs.append(_shown(run) | parts)
    return {"version": FORMAT_VERSION, "runs": runs}


def to_jsonl(trajectory: Trajectory) -> Iterator[str]:
    """Yield one line of JSON for each node, parents first: `{"version", "type", "runId", …}`.

    `type` is `run`, `call`, `wait` or `suspended`; the rest is as in `to_json`.

    Contract: trajectory:export:versioned
    """
    for run in trajectory.runs:
        yield json.dumps({"version": FORMAT_VERSION, "type": "run"} | _shown(run))
        for kind, name in _PARTS.items():
            head = {"version": FORMAT_VERSION, "type": kind, "runId": run.run_id}
            yield from (json.dumps(head | _shown(part)) for part in getattr(run, name))


def _shown(node: Run | Call | Wait | Suspended) -> dict[str, Json]:
    return {camel_case(name, name): value for name, value in node._asdict().items() if name not in _PARTS.values()}


class _Draft:
    """One run while its events are read."""

    def __init__(self, run_id: str) -> None:
        self._run = Run(run_id)
        self._calls: dict[int, Call] = {}
        self._waits: list[Wait] = []
        self._suspended: list[Suspended] = []

    def build(self) -> Run:
        """Return the run; a call that its end left open was interrupted."""
        calls = list(self._calls.values())
        if has_ended(self._run.state):
            calls = [call._replace(state="interrupted") if call.state in _OPEN else call for call in calls]
        return self._run._replace(calls=tuple(calls), waits=tuple(self._waits), suspended=tuple(self._suspended))

    def add(self, event: Event) -> None:
        match event:
            case ExecStarted(_, at_ms, agent_run_id, language, source):
                self._change(agent_run_id=agent_run_id, language=language, source=source, start_ms=at_ms)
            case WaitStarted(_, at_ms, wait_id):
                self._waits.append(Wait(wait_id, at_ms))
                self._change(state="running")
            case SnapshotEvent():
                self._add_snapshot(event)
            case TurnMeasured():
                self._add_turn(event)
            case RunEnded():
                self._add_end(event)
            case _:
                self._add_to_call(event)

    def _change(self, **fields: Json) -> None:
        self._run = self._run._replace(**fields)

    def _add_turn(self, event: TurnMeasured) -> None:
        self._change(guest_ms=self._run.guest_ms + event.guest_ms)
        for call_id in event.delivered:
            call = self._calls.get(call_id) or Call(call_id)
            self._calls[call_id] = call._replace(deliverer=event.wait_id or DELIVERED_BY_EXEC)

    def _add_to_call(self, event: CallParked | CallStarted | CallProgress | CallSettled) -> None:
        call = self._calls.get(event.call_id) or Call(event.call_id)
        match event:
            case CallParked(_, _, _, method, tool_id, input_, reason):
                call = call._replace(state="awaiting_approval", method=method, tool_id=tool_id, input=input_)
                call = call._replace(reason=reason)
            case CallStarted(_, at_ms, _, method, tool_id, input_):
                call = call._replace(state="running", method=method, tool_id=tool_id, input=input_, start_ms=at_ms)
            case CallProgress():
                call = call._replace(updates=call.updates + 1)
            case CallSettled(_, at_ms, _, state, result_bytes, error, tool_id):
                call = call._replace(state=state, end_ms=at_ms, result_bytes=result_bytes, error=error)
                call = call._replace(tool_id=call.tool_id or tool_id)
        self._calls[call.id] = call

    def _add_snapshot(self, event: SnapshotEvent) -> None:
        if event.change == "taken":
            self._suspended.append(Suspended(event.at_ms, event.bytes))
        elif self._suspended:
            self._suspended[-1] = self._suspended[-1]._replace(end=event.change, end_ms=event.at_ms)

    def _add_end(self, event: RunEnded) -> None:
        state = cast("RunState", event.state)
        end_ms = event.at_ms if has_ended(state) else None
        duration_ms = self._run.duration_ms + event.duration_ms
        self._change(state=state, code=event.code, error=event.error, end_ms=end_ms, duration_ms=duration_ms)
        if self._waits and self._waits[-1].end_ms is None:
            self._waits[-1] = self._waits[-1]._replace(end_ms=event.at_ms)
