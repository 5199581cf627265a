"""From an input to what is on the screen: evaluate, print, ask where a person must decide, go on.

Ctrl-C aborts what computes and ends what prints; either way the session goes on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from codemode.core.types import CodeModeResult, Language, OutputItem, PendingCall, Waiting
from codemode.repl.approvals import Approvals
from codemode.repl.cells import Cell
from codemode.repl.evaluator import Decision, Evaluated, Evaluator
from codemode.repl.interrupts import Interrupts
from codemode.repl.printer import Printer
from codemode.repl.reader import Reader
from codemode.repl.record import Record
from codemode.repl.syntax import Verdict
from codemode.repl.ticker import Ticker


class Stage(NamedTuple):
    """Who takes part in evaluating an input."""

    evaluator: Evaluator
    printer: Printer
    reader: Reader
    record: Record
    ticker: Ticker
    interrupts: Interrupts
    abort: Callable[[str], object]


class Driver:
    """Brings runs as far as they come, with a person at hand."""

    def __init__(self, stage: Stage) -> None:
        """Take the stage; the next cell is the first."""
        self.number = 1
        self.approvals = Approvals(stage.reader, stage.printer)
        self._stage = stage

    async def run(self, source: str, verdict: Verdict, language: Language | None = None) -> CodeModeResult:
        """Run the next cell to its end, or until it rests.

        Args:
            source: Its text.
            verdict: What the parser said of it.
            language: Where it is not the session's.

        Raises:
            KeyboardInterrupt: The person gave it up before it had a result.
        """
        evaluator = self._stage.evaluator
        cell = Cell(self.number, source, language or evaluator.language, verdict.names, verdict.is_expression)
        self.number += 1
        return await self._drive(evaluator.run(cell))

    async def go_on(self, run_id: str, decision: Decision) -> CodeModeResult:
        """Go on with a run that waits, as `run` does."""
        return await self._drive(self._stage.evaluator.wait(run_id, decision))

    def stream(self, outputs: Sequence[OutputItem]) -> None:
        """Print what the cell that runs has put out so far, as the session shows it."""
        self._stage.ticker.take_away()
        self._stage.printer.stream(outputs)

    async def _drive(self, work: Coroutine[Any, Any, Evaluated]) -> CodeModeResult:
        """Evaluate and print; where calls await approval, ask, and go on with the answers.

        Contract: repl:approvals:in-place, repl:approvals:always
        """
        put_off: set[str] = set()
        while True:
            evaluated = await self._evaluate(work)
            result = evaluated.result
            asked = _asked(result, put_off)
            self._print(evaluated, is_asked=bool(asked))
            if not asked:
                return result
            assert isinstance(result, Waiting)
            decision = await self._decide(result.run_id, asked)
            if not decision.calls:
                return result
            put_off |= {call.id for call in asked} - set(decision.calls)
            work = self._stage.evaluator.wait(result.run_id, decision)

    async def _evaluate(self, work: Coroutine[Any, Any, Evaluated]) -> Evaluated:
        stage = self._stage
        task = asyncio.ensure_future(work)
        with stage.interrupts.calling(lambda: stage.evaluator.stop() or task.cancel()), stage.ticker.running():
            await asyncio.wait({task})
        if task.cancelled():
            stage.printer.given_up()
            raise KeyboardInterrupt
        return task.result()

    def _print(self, evaluated: Evaluated, *, is_asked: bool) -> None:
        try:
            with self._stage.interrupts.raising():
                self._stage.printer.result(evaluated, is_asked=is_asked)
        except KeyboardInterrupt:
            self._stage.printer.cut_short()

    async def _decide(self, run_id: str, asked: list[PendingCall]) -> Decision:
        """Return what a person decided of these calls; nothing where the decision is put off."""
        stage = self._stage
        try:
            parked = {call.id: stage.record.parked(run_id, call.id) for call in asked}
            decision = await self.approvals.decide(asked, parked)
        except EOFError:
            decision = Decision({})
        except KeyboardInterrupt:
            stage.abort(run_id)
            stage.evaluator.forget(run_id)
            stage.printer.given_up()
            raise
        if not decision.calls:
            stage.printer.put_off()
        return decision


def _asked(result: CodeModeResult, put_off: set[str]) -> list[PendingCall]:
    pending = result.pending if isinstance(result, Waiting) else ()
    return [call for call in pending if call.state == "awaiting_approval" and call.id not in put_off]
