"""One `exec` or `wait`, from its beginning to its result, which is written down before it is told.

Every end is here: the cell completed, it rests and waits, nothing could be delivered to it,
or something failed. `fail` is the one function that turns an exception into a failed result.
"""

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial

from codemode.core.errors import Aborted, CodeModeError, ErrorCode, Internal, RuntimeUnavailable
from codemode.core.events import Entry, Event, RunEnded, SnapshotEvent
from codemode.core.limits import MAX_ERROR_BYTES
from codemode.core.types import Completed, Failed, GuestFailure, Json, TurnEnd, Waiting
from codemode.live.run import LiveRun, TurnFailed
from codemode.live.service import Surroundings
from codemode.runs import RunState
from codemode.store.port import FinalState, Suspension
from codemode.telemetry import Telemetry


class Attempt:
    """What one call of a session has come to.

    `run_id` is set once there is a run of ours, `run` once it is driven. `scope` is what its guest
    sees, `namespaces` what a later process must know to open them again. `claimed` says that the
    run had begun in an earlier attempt, `dispatched` that a nested call of it started there,
    `suspended` that it waits now. `owed` writes down how it ended, where the store could not take it.
    """

    def __init__(self, agent_run_id: str, around: Surroundings) -> None:
        """Begin; the clock starts with `start_clock`."""
        self.agent_run_id = agent_run_id
        self.run_id: str | None = None
        self.run: LiveRun | None = None
        self.scope: tuple[str, bytes] = ("", b"")
        self.namespaces: Json = None
        self.claimed = False
        self.dispatched = False
        self.suspended = False
        self.owed: Callable[[], None] | None = None
        self._around = around
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def start_clock(self, timeout_ms: int) -> float:
        """Return the deadline: the moment from which nothing more may be computed.

        Contract: execution:deadline:after-setup
        """
        self._began = self._loop.time()
        return self._began + timeout_ms / 1000

    async def conclude(self, run: LiveRun, end: TurnEnd | None) -> Completed | Waiting:
        """Write down that the cell completed, or that it rests, and return that result."""
        if end is not None:
            return self._complete(run, end)
        if run.has_begun:
            await self._suspend(run)
        else:
            self._give_back(self._ended(run.run_id, "waiting"), self._carry(run))
        self.suspended = True
        pending = tuple(request.to_pending() for request in run.requests.open.values())
        return Waiting(run.run_id, run.requests.reason, pending, run.output.take(), self._telemetry())

    async def fail(self, error: BaseException) -> Failed:
        """Turn an exception into the failed result, and end the run with it.

        A run that was claimed, and to which nothing was delivered, waits again. Where the store cannot
        be told, the caller is told all the same, and the store later.

        Contract: session:errors:never-raised, session:errors:cut, session:faults:owed
        """
        run = self.run
        redact = self._around.redactor.text
        failure = _describe((run and run.stopped) or error, redact)
        text = _cut(redact(failure.error))
        goes_back = self.claimed and not (run and run.has_begun) and failure.code is not ErrorCode.ABORTED
        if run is not None:
            if not goes_back:
                run.service.cancel()
            await run.vm.drop()
        if self.run_id is not None:
            self.suspended = goes_back
            state: RunState = "waiting" if goes_back else "aborted" if failure.code is ErrorCode.ABORTED else "failed"
            self._write_failure(self._ended(self.run_id, state, failure.code, text))
        output = run.output.take() if run else ()
        dispatched = self._has_dispatched()
        return Failed(text, failure.code, failure.phase, dispatched, self.run_id, output, self._telemetry())

    def _complete(self, run: LiveRun, end: TurnEnd) -> Completed:
        ended = self._ended(run.run_id, "completed")
        store, journal = self._around.store, self._around.journal
        store.finish(run.run_id, "completed", events=[*journal.unwritten(run.run_id), ended])
        journal.count(ended)
        return Completed(run.run_id, end.value, run.output.take(), self._telemetry())

    async def _suspend(self, run: LiveRun) -> None:
        snapshot = await run.vm.park()
        run_id, requests, (scope, scope_text) = run.run_id, run.requests, self.scope
        suspension = Suspension(
            run_id=run_id,
            snapshot=snapshot,
            build=run.vm.build,
            reason=requests.reason,
            calls=tuple(request.to_record() for request in requests.open.values()),
            settled=requests.settled(),
            scope=scope,
            scope_text=scope_text,
            carry=self._carry(run),
        )
        taken = SnapshotEvent(run_id, _now_ms(), "taken", len(snapshot))
        events: list[Event] = [taken, self._ended(run_id, "waiting")]
        journal = self._around.journal
        self._around.store.suspend(suspension, [*journal.unwritten(run_id), *events])
        journal.mark_written(run_id)
        for event in events:
            journal.count(event)

    def _carry(self, run: LiveRun) -> Json:
        return {
            "lastId": run.requests.last_id,
            "outputBytes": run.output.used,
            "leftOutBytes": run.output.left_out,
            "dispatched": self._has_dispatched(),
            "namespaces": self.namespaces,
            "approved": sorted(run.service.approved),
        }

    def _write_failure(self, ended: RunEnded) -> None:
        """Write down how the attempt failed: now or, where the store cannot take it, as what is `owed`."""
        self.owed = None
        try:
            if ended.state == "waiting":
                self._give_back(ended)
            else:
                self._finish(ended)
        except RuntimeUnavailable:
            self.owed = partial(self._write_failure, ended)
        except Aborted:  # somebody asked for the end of the run meanwhile; or the store was closed
            if ended.state == "waiting":
                self._write_failure(ended._replace(state="aborted", code=ErrorCode.ABORTED))

    def _finish(self, ended: RunEnded) -> None:
        state: FinalState = "aborted" if ended.state == "aborted" else "failed"
        code, journal = ErrorCode(ended.code) if ended.code else None, self._around.journal
        events: list[Entry] = [*journal.unwritten(ended.run_id), ended]
        self._around.store.finish(ended.run_id, state, code, ended.error, events)
        journal.count(ended)

    def _give_back(self, ended: RunEnded, carry: Json = None) -> None:
        """Let a claimed run, to which nothing was delivered, wait again."""
        journal = self._around.journal
        self._around.store.unclaim(ended.run_id, carry, events=[*journal.unwritten(ended.run_id), ended])
        journal.mark_written(ended.run_id)
        journal.count(ended)

    def _ended(self, run_id: str, state: RunState, code: ErrorCode | None = None, text: str | None = None) -> RunEnded:
        duration_ms = (self._loop.time() - self._began) * 1000
        return RunEnded(run_id, _now_ms(), state, code, text, duration_ms)

    def _has_dispatched(self) -> bool:
        return self.dispatched or self._around.journal.has_dispatched(self.run_id or "")

    def _telemetry(self) -> dict[str, Json]:
        return self._around.journal.telemetry(self.agent_run_id)


def failed_before_run(error: BaseException) -> Failed:
    """Return the failed result of a request for which no session could be opened."""
    failure = _describe(error, str)
    return Failed(_cut(failure.error), failure.code, failure.phase, False, None, (), Telemetry().to_json())


def _describe(error: BaseException, redact: Callable[[str], str]) -> GuestFailure:
    """Return what happened; with CODEMODE_DEBUG a fault of ours is told on stderr with its place.

    Contract: session:errors:debug
    """
    match error:
        case TurnFailed():
            return error.failure
        case CodeModeError():
            return GuestFailure(error.message, error.code, error.phase)
        case asyncio.CancelledError():
            return _describe(Aborted("the program that ran the cell was stopped"), redact)
        case _:
            if os.environ.get("CODEMODE_DEBUG") == "1":
                sys.stderr.write(redact("".join(traceback.format_exception(error))))
            return _describe(Internal(f"{type(error).__name__}: {error}"), redact)


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MAX_ERROR_BYTES else data[: MAX_ERROR_BYTES - 3].decode("utf-8", "ignore") + "…"


def _now_ms() -> float:
    return time.time() * 1000
