"""What can happen in a run, as frozen values: one stream, folded twice.

Telemetry counts these events and the trajectory draws them; both see the same stream, so
they can never disagree. Every event names its run and its moment (Unix milliseconds).
`EVENT_TYPES` maps the wire name to the type.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from codemode.core.jsontext import build_encoder
from codemode.core.types import Json


class ExecStarted(NamedTuple):
    """An `exec` began: a new run."""

    run_id: str
    at_ms: float
    agent_run_id: str
    language: str
    source: str  # redacted text of the cell
    catalog_size: int
    sources: dict[str, int]
    visible_tools: list[str]


class WaitStarted(NamedTuple):
    """A `wait` claimed the run; `wait_id` names the deliverer of what follows."""

    run_id: str
    at_ms: float
    wait_id: str


class CallStarted(NamedTuple):
    """A nested request was dispatched; `input` is redacted."""

    run_id: str
    at_ms: float
    call_id: int
    method: str
    tool_id: str | None
    input: Json


class CallParked(NamedTuple):
    """A nested call waits for a person's approval; `input` is redacted, and nothing has run.

    `reason` is why a hook asks, redacted; None where the tool's own setting does.
    """

    run_id: str
    at_ms: float
    call_id: int
    method: str
    tool_id: str | None
    input: Json
    reason: str | None = None


class CallProgress(NamedTuple):
    """A tool reported progress."""

    run_id: str
    at_ms: float
    call_id: int
    update: Json


class CallSettled(NamedTuple):
    """A nested request settled; one that was refused before it started names its tool here."""

    run_id: str
    at_ms: float
    call_id: int
    state: Literal["ok", "error", "denied", "interrupted"]
    result_bytes: int
    error: str | None
    tool_id: str | None = None


class SnapshotEvent(NamedTuple):
    """A snapshot was `taken`, `restored`, `expired` or `discarded`; `bytes` as stored."""

    run_id: str
    at_ms: float
    change: Literal["taken", "restored", "expired", "discarded"]
    bytes: int


class TurnMeasured(NamedTuple):
    """A turn of the VM ended after `guest_ms` in the worker.

    It began with what the calls `delivered` had settled to; `wait_id` is None when the `exec` itself
    delivered that.
    """

    run_id: str
    at_ms: float
    guest_ms: float
    delivered: Sequence[int] = []
    wait_id: str | None = None


class RunEnded(NamedTuple):
    """An `exec` or `wait` returned: `state` is the run's state, `code` that of a failure."""

    run_id: str
    at_ms: float
    state: str
    code: str | None
    error: str | None
    duration_ms: float  # of this one exec or wait


Event = (
    ExecStarted
    | WaitStarted
    | CallStarted
    | CallParked
    | CallProgress
    | CallSettled
    | SnapshotEvent
    | TurnMeasured
    | RunEnded
)

EVENT_TYPES: dict[str, type[Any]] = {
    "exec_started": ExecStarted,
    "wait_started": WaitStarted,
    "call_started": CallStarted,
    "call_parked": CallParked,
    "call_progress": CallProgress,
    "call_settled": CallSettled,
    "snapshot": SnapshotEvent,
    "turn_measured": TurnMeasured,
    "run_ended": RunEnded,
}
_NAMES = {kind: name for name, kind in EVENT_TYPES.items()}
_encode = build_encoder(ascii_only=True, allow_nan=True)
Entry = Event | str  # of the log of a run: an event, or what `to_lines` made of some


def to_json(event: Event) -> dict[str, Json]:
    """Return `{"event": name, …fields}`, JSON all through."""
    return {"event": _NAMES[type(event)], **event._asdict()}


def to_lines(events: Sequence[Event]) -> str:
    """Return events of one run as `[name, at_ms, field, …],…`, which is how logs keep them.

    A third of the size, and twice as fast, as with the names of their fields and their run, and this is
    done for every nested call. A new field goes to the end of its event and has a default; anything else
    raises the version of the store's schema.
    """
    return _encode([(_NAMES[type(event)], *event[1:]) for event in events])[1:-1]


def from_lines(run_id: str, lines: str) -> list[Event]:
    """Return the events of a run of which `to_lines` made these lines.

    Raises:
        KeyError: They name no event of ours.
        TypeError: Their fields are not those of the event.
    """
    return [EVENT_TYPES[name](run_id, *fields) for name, *fields in json.loads(f"[{lines}]")]
