"""Telemetry: how often and how long, counted from the one stream of events.

Cumulative over an agent run: whoever holds one keeps a `Telemetry` and adds each event as it
happens; a new process folds the log of the agent run instead. Both give the same figures.
Nothing of inputs, results or texts is kept here, so there is nothing to redact.
"""

from collections.abc import Callable, Iterable
from typing import Any

from codemode.core.errors import ErrorCode
from codemode.core.events import (
    CallStarted,
    Event,
    ExecStarted,
    RunEnded,
    SnapshotEvent,
    TurnMeasured,
    WaitStarted,
)
from codemode.core.types import Json

_LIMIT_FAILURES: dict[str, str] = {
    ErrorCode.TIMEOUT: "timeout",
    ErrorCode.MEMORY_LIMIT_EXCEEDED: "memory",
    ErrorCode.SNAPSHOT_LIMIT_EXCEEDED: "snapshot",
    ErrorCode.OUTPUT_LIMIT_EXCEEDED: "output",
}
_COUNTED = {"search": "search", "describe": "describe", "call": "call", "namespace": "call"}


def fold(events: Iterable[Event]) -> dict[str, Json]:
    """Return the `CodeModeTelemetry` of the events of one agent run.

    Contract: telemetry:shape:fields, telemetry:scope:agent-run
    """
    telemetry = Telemetry()
    for event in events:
        telemetry.add(event)
    return telemetry.to_json()


class Telemetry:
    """Counts events as they come."""

    def __init__(self) -> None:
        self._visible: list[str] = []
        self._catalog_size = 0
        self._sources = {"openclaw": 0, "plugin": 0, "mcp": 0, "client": 0}
        self._counts = {"exec": 0, "wait": 0, "search": 0, "describe": 0, "call": 0}
        self._tool_ids: dict[str, None] = {}  # an ordered set: by first call
        self._limits = dict.fromkeys(_LIMIT_FAILURES.values(), 0)
        self._snapshots = {"taken": 0, "restored": 0, "expired": 0, "discarded": 0, "lastBytes": 0}
        self._duration_ms = 0.0
        self._guest_ms = 0.0
        self._adders: dict[type[Any], Callable[[Any], None]] = {
            CallStarted: self._add_call,
            TurnMeasured: self._add_turn,
            ExecStarted: self._add_exec,
            WaitStarted: self._add_wait,
            SnapshotEvent: self._add_snapshot,
            RunEnded: self._add_end,
        }

    def add(self, event: Event) -> None:
        """Count one event; those that no figure needs change nothing."""
        add = self._adders.get(type(event))
        if add is not None:
            add(event)

    def to_json(self) -> dict[str, Json]:
        """Return the figures so far as `CodeModeTelemetry`; it shares nothing with this object."""
        return {
            "visibleTools": list(self._visible),
            "catalogSize": self._catalog_size,
            "sources": dict(self._sources),
            **{f"{name}Count": count for name, count in self._counts.items()},
            "nestedToolIds": list(self._tool_ids),
            "limitFailures": dict(self._limits),
            "snapshots": dict(self._snapshots),
            "durationMs": round(self._duration_ms, 3),
            "guestMs": round(self._guest_ms, 3),
        }

    def _add_turn(self, event: TurnMeasured) -> None:
        self._guest_ms += event.guest_ms

    def _add_exec(self, event: ExecStarted) -> None:
        self._counts["exec"] += 1
        self._visible, self._catalog_size = event.visible_tools, event.catalog_size
        self._sources |= event.sources

    def _add_wait(self, _event: WaitStarted) -> None:
        self._counts["wait"] += 1

    def _add_snapshot(self, event: SnapshotEvent) -> None:
        self._snapshots[event.change] += 1
        if event.change == "taken":
            self._snapshots["lastBytes"] = event.bytes

    def _add_end(self, event: RunEnded) -> None:
        self._duration_ms += event.duration_ms
        limit = _LIMIT_FAILURES.get(event.code) if event.code else None
        if limit is not None:
            self._limits[limit] += 1

    def _add_call(self, event: CallStarted) -> None:
        counted = _COUNTED.get(event.method)
        if counted is not None:
            self._counts[counted] += 1
        if counted == "call" and event.tool_id is not None:
            self._tool_ids[event.tool_id] = None
