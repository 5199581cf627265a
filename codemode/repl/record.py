"""What the session's events tell: the trace of each run, open calls, what a person is asked about."""

import time
from collections import OrderedDict
from collections.abc import Callable

from codemode.core.events import CallParked, CallSettled, CallStarted, Event, ExecStarted, RunEnded
from codemode.trajectory import Trajectory, fold

_MAX_RUNS = 200  # whose events are kept for `:trace`


class Record:
    """Hears each event; `last_ms` is how long the last exec or wait took, None before the first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin empty; `clock` gives seconds."""
        self.last_ms: float | None = None
        self.last_run = ""
        self.open: dict[tuple[str, int], tuple[str, float]] = {}  # call → what to call it, since when
        self._clock = clock
        self._events: OrderedDict[str, list[Event]] = OrderedDict()
        self._parked: dict[tuple[str, str], CallParked] = {}

    def hear(self, event: Event) -> None:
        """Take one event."""
        self._events.setdefault(event.run_id, []).append(event)
        match event:
            case ExecStarted():
                self.last_run = event.run_id
            case CallStarted():
                label = event.tool_id or event.method
                self.open[event.run_id, event.call_id] = (label, self._clock())
            case CallParked():
                self._parked[event.run_id, str(event.call_id)] = event
                self.open.pop((event.run_id, event.call_id), None)
            case CallSettled():
                self.open.pop((event.run_id, event.call_id), None)
            case RunEnded():
                self.last_ms = event.duration_ms
                self._forget_oldest()

    def parked(self, run_id: str, call_id: str) -> CallParked | None:
        """Return what a call that awaits approval was asked, and why; None where that was not heard here."""
        return self._parked.get((run_id, call_id))

    def knows(self, run_id: str) -> bool:
        """Say whether events of this run were heard."""
        return run_id in self._events

    def trajectory(self, run_id: str) -> Trajectory:
        """Return what happened in a run, as far as it was heard here."""
        return fold(self._events.get(run_id, ()))

    def _forget_oldest(self) -> None:
        while len(self._events) > _MAX_RUNS:
            self._events.popitem(last=False)
