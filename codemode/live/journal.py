"""The events of the runs that this process has: counted, told, and gathered for the store.

One stream for each run. Telemetry counts the streams of an agent run together; what another
process wrote of it is counted once, when a run of it is claimed. The store gets the events of
a run in batches, because a write for each would cost more than the call that it tells of.
"""

from collections.abc import Callable, Iterable, Sequence

from codemode.core.events import CallStarted, Event, to_lines
from codemode.core.types import Json, OutputItem
from codemode.telemetry import Telemetry

_NESTED = ("call", "namespace")
Listener = Callable[[Event], None]
Watcher = Callable[[Sequence[OutputItem]], None]


class _Stream:
    """What the store does not have of one run's events, and the figures of its agent run.

    `fresh` is as it was recorded; what came before that is counted, and `lines` for the store.
    """

    __slots__ = ("fresh", "lines", "telemetry")

    def __init__(self, telemetry: Telemetry) -> None:
        """Begin empty."""
        self.telemetry = telemetry
        self.fresh: list[Event] = []
        self.lines: list[str] = []


class Journal:
    """Takes events from the executor and from live runs; `listeners` hear each one at once.

    `watchers` see what a run has put out since its last result, whenever it rests with more of it.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.listeners: list[Listener] = []
        self.watchers: list[Watcher] = []
        self._telemetry: dict[str, Telemetry] = {}  # agent run id → its figures
        self._streams: dict[str, _Stream] = {}  # run id → its events
        self._dispatched: set[str] = set()

    def knows(self, agent_run_id: str) -> bool:
        """Say whether what was written of an agent run is counted already."""
        return agent_run_id in self._telemetry

    def follow(self, run_id: str, agent_run_id: str, earlier: Iterable[Event] = ()) -> None:
        """Begin to take the events of a run; `earlier` is what the store has of its agent run."""
        if agent_run_id not in self._telemetry:
            self._telemetry[agent_run_id] = Telemetry()
        telemetry = self._telemetry[agent_run_id]
        for event in earlier:
            telemetry.add(event)
        self._streams.setdefault(run_id, _Stream(telemetry))

    def record(self, event: Event) -> None:
        """Add an event to its run; the late ones of a run that is forgotten are dropped."""
        stream = self._streams.get(event.run_id)
        if stream is not None:
            stream.fresh.append(event)
            for listener in self.listeners:
                listener(event)

    def keep_up(self, run_id: str) -> None:
        """Count what was recorded of a run, and make it ready for the store.

        Whoever asks for either sees it done; a run does it while its worker computes, when it takes no time.
        """
        stream = self._streams.get(run_id)
        if stream is not None and stream.fresh:
            self._keep_up(run_id, stream)

    def _keep_up(self, run_id: str, stream: _Stream) -> None:
        fresh, stream.fresh = stream.fresh, []
        for event in fresh:
            stream.telemetry.add(event)
            if type(event) is CallStarted and event.method in _NESTED:
                self._dispatched.add(run_id)
        stream.lines.append(to_lines(fresh))

    def count(self, event: Event) -> None:
        """Count and tell an event that is in the store already."""
        self.keep_up(event.run_id)
        stream = self._streams.get(event.run_id)
        if stream is not None:
            stream.telemetry.add(event)
        for listener in self.listeners:
            listener(event)

    def show(self, outputs: Sequence[OutputItem]) -> None:
        """Show what a run that goes on has put out since its last result."""
        for watcher in self.watchers if outputs else ():
            watcher(outputs)

    def has_dispatched(self, run_id: str) -> bool:
        """Say whether a nested call of the run ever started, as far as this process knows."""
        self.keep_up(run_id)
        return run_id in self._dispatched

    def unwritten(self, run_id: str) -> Sequence[str]:
        """Return the lines that the store does not have of a run."""
        self.keep_up(run_id)
        stream = self._streams.get(run_id)
        return () if stream is None else stream.lines

    def mark_written(self, run_id: str) -> None:
        """Note that the store has what `unwritten` returned."""
        stream = self._streams.get(run_id)
        if stream is not None:
            stream.lines = []

    def forget(self, run_id: str) -> None:
        """Stop taking the events of a run that this process has no more part in."""
        self.keep_up(run_id)
        self._streams.pop(run_id, None)
        self._dispatched.discard(run_id)

    def telemetry(self, agent_run_id: str) -> dict[str, Json]:
        """Return the `CodeModeTelemetry` of an agent run."""
        known = self._telemetry.get(agent_run_id)
        if known is None:
            return Telemetry().to_json()
        for run_id, stream in self._streams.items():
            if stream.telemetry is known:
                self.keep_up(run_id)
        return known.to_json()
