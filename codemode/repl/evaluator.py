"""Evaluate: a cell becomes a result, and the VM that it leaves behind becomes the next one's ground.

Nothing is read or printed here. By default variables live on, so each cell starts from the
snapshot of the one before; with `fresh` each has a VM of its own, as the model has it.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from codemode.core.types import CodeModeResult, Completed, Json, Keep, Language, Waiting
from codemode.repl.cells import Cell
from codemode.repl.states import State, States


class Engine(Protocol):
    """What the REPL asks of a session."""

    async def exec(self, raw: Json, *, keep: Keep | None) -> CodeModeResult:
        """Run a cell."""

    async def wait(self, raw: Json, decisions: Mapping[str, bool], *, always: bool) -> CodeModeResult:
        """Go on with a run that waits."""

    def kept(self, run_id: str) -> bytes | None:
        """Return, once, the snapshot that an ended cell left behind."""

    def stop(self, reason: str) -> bool:
        """Abort what is live."""


class _Origin(NamedTuple):
    cell: Cell
    state: State


class Decision(NamedTuple):
    """Id of a call → whether it may run; with `always` that holds for their tools' later calls in the same run."""

    calls: Mapping[str, bool]
    always: bool = False


class Evaluated(NamedTuple):
    """A result, the cell that it is of, and whether its VM put aside what later cells had done."""

    result: CodeModeResult
    cell: Cell
    overtook: bool = False


class Evaluator:
    """Runs cells one after the other; what can be seen of it goes to the bottom bar."""

    def __init__(
        self, engine: Engine, language: Language = "javascript", clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin without a VM; `clock` gives seconds."""
        self.language = language
        self.fresh = False
        self.states = States()
        self.waiting: dict[str, Waiting] = {}  # run id → its last result, in the order of starting
        self.last: CodeModeResult | None = None
        self._engine = engine
        self._clock = clock
        self._completed: list[Cell] = []
        self._origins: dict[str, _Origin] = {}

    @property
    def completed(self) -> list[Cell]:
        """The cells that completed and are not undone, oldest first."""
        undone = self.states.undone
        return [cell for cell in self._completed if cell.number not in undone]

    async def run(self, cell: Cell) -> Evaluated:
        """Run a cell on the ground that the last one left.

        Contract: repl:variables:live-on, repl:fresh:own-vm
        """
        state = self.states.current
        keep = None if self.fresh else Keep(state.snapshot)
        result = await self._engine.exec({"code": cell.source, "language": cell.language}, keep=keep)
        if result.run_id is not None:
            self._origins[result.run_id] = _Origin(cell, state)
        return self._conclude(result, cell)

    async def wait(self, run_id: str, decision: Decision) -> Evaluated:
        """Go on with a run that waits; one that was begun elsewhere has no cell here.

        Contract: repl:wait:state
        """
        origin = self._origins.get(run_id)
        result = await self._engine.wait({"runId": run_id}, decision.calls, always=decision.always)
        return self._conclude(result, origin.cell if origin else Cell(0, ""))

    def stop(self) -> bool:
        """Abort the cell that computes; False where none has begun."""
        return self._engine.stop("the cell was aborted with Ctrl-C")

    def forget(self, run_id: str) -> None:
        """Let go of a run that was aborted."""
        self.waiting.pop(run_id, None)
        self._origins.pop(run_id, None)

    def _conclude(self, result: CodeModeResult, cell: Cell) -> Evaluated:
        self.last = result
        run_id = result.run_id
        if run_id is None:
            return Evaluated(result, cell)
        if isinstance(result, Waiting):
            self.waiting[run_id] = result
            return Evaluated(result, cell)
        origin = self._origins.get(run_id)
        self.forget(run_id)
        if isinstance(result, Completed) and cell.number:
            self._completed.append(cell)
        snapshot = self._engine.kept(run_id)
        if snapshot is None or origin is None:
            return Evaluated(result, cell)
        overtook = origin.state is not self.states.current
        self.states.push(origin.state.then(snapshot, cell.number, cell.names, self._clock()))
        return Evaluated(result, cell, overtook)
