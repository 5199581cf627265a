"""The runs that this process has: live ones, and waiting ones whose calls are in flight here.

They come by `enter` and go by `leave`, or are ended from outside: by an abort, here or through
the store, and by the end of the session. While there are any, upkeep writes their events, heeds
aborts from elsewhere and expires what is too old.
"""

import asyncio
from contextlib import suppress

from codemode.bridge import Bridge
from codemode.core.errors import Aborted, RuntimeUnavailable
from codemode.core.limits import SWEEP_MS, UPKEEP_MS
from codemode.core.types import RunContext
from codemode.live.attempt import Attempt
from codemode.live.carrier import Carrier
from codemode.live.late import Late
from codemode.live.requests import Requests
from codemode.live.run import LiveRun
from codemode.live.service import Service, Surroundings
from codemode.live.vm import Vm
from codemode.runs import RunState
from codemode.store.port import Caller


class Residents:
    """Keeps the runs of one session that live in this process."""

    def __init__(self, around: Surroundings) -> None:
        """Begin empty; needs a running loop."""
        self._around = around
        self._live: dict[str, LiveRun] = {}
        self._late: dict[str, Late] = {}
        self._owed: dict[str, Attempt] = {}  # whose end the store could not take yet
        self._ending: set[Carrier] = set()
        self._loop = asyncio.get_running_loop()
        self._moved = asyncio.Event()
        self._upkeep: asyncio.TimerHandle | None = None
        self._sweep_at = self._loop.time() + SWEEP_MS / 1000

    # ---- coming and going ----

    def enter(self, attempt: Attempt, vm: Vm, bridge: Bridge, context: RunContext) -> LiveRun:
        """Make a run live; calls of it that are in flight here already go on.

        Raises:
            RuntimeUnavailable: What those settled to cannot be stored now.
        """
        run_id = context.run_id
        late = self._late.get(run_id)
        if late is not None:
            late.store()
            self._late.pop(run_id, None)
        carrier = Carrier(context) if late is None else late.carrier
        requests = Requests(vm.limits.max_pending_tool_calls)
        service = Service(run_id, bridge, carrier, requests, self._around)
        run = attempt.run = self._live[run_id] = LiveRun(run_id, vm, service, requests, self._around)
        self._keep_up()
        return run

    def leave(self, attempt: Attempt) -> None:
        """Let go of a run, but for the calls that this process carries on while it waits."""
        run, run_id = attempt.run, attempt.run_id
        if attempt.owed is not None and run_id is not None:
            self._owed[run_id] = attempt
            self._keep_up()
        if run is None or run_id is None:
            self._forget_idle(run_id or "")
            return
        del self._live[run_id]
        run.service.close()
        carrier = run.service.carrier
        if attempt.suspended and not carrier.is_idle:
            self._late[run_id] = Late(run_id, carrier, self._around, self._forget)
        else:
            self._forget_idle(run_id)
            self._ending.add(carrier)
        self._ending = {carrier for carrier in self._ending if not carrier.is_idle}
        self._moved.set()

    def _forget(self, run_id: str) -> None:
        """Let go of a waiting run: nothing of it is in flight here any more."""
        self._late.pop(run_id, None)
        self._forget_idle(run_id)
        self._moved.set()

    def _forget_idle(self, run_id: str) -> None:
        """Take no more events of a run, unless something of it is in flight or unwritten here."""
        if run_id not in self._late and run_id not in self._owed:
            self._around.journal.forget(run_id)

    # ---- waiting for them, ending them ----

    async def settled(self) -> None:
        """Wait until no call of a waiting run is in flight here, and all results are in the store.

        Contract: session:late:carried-on
        """
        while self._late:
            await self._move()

    def abort(self, run_id: str, caller: Caller) -> RunState:
        """End a run: at once if it waits or is live here, else by asking the process that has it.

        Raises:
            InvalidInput: Unknown, finished, or not the caller's.

        Contract: session:abort:live, session:abort:waiting
        """
        run = self._live.get(run_id)
        if run is not None:
            run.stop(Aborted("the run was aborted"))
            return "running"
        state = self._around.store.abort(run_id, caller)
        self._drop_late(run_id)
        return state

    def stop(self, reason: str) -> bool:
        """Abort what is live; False where nothing is."""
        for run in self._live.values():
            run.stop(Aborted(reason))
        return bool(self._live)

    async def close(self) -> None:
        """Abort what is live, interrupt the calls of what waits, and wait for the ends of both.

        Contract: session:close:live-aborted, session:close:calls-interrupted
        """
        self.stop("the session was closed")
        while self._live:
            await self._move()
        for late in tuple(self._late.values()):
            await late.carrier.interrupt()
        for carrier in tuple(self._ending):
            await carrier.join()
        with suppress(RuntimeUnavailable, Aborted):
            self._pay()
        if self._upkeep is not None:
            self._upkeep.cancel()

    async def _move(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    def _drop_late(self, run_id: str) -> None:
        late = self._late.get(run_id)
        if late is not None:
            late.carrier.cancel()
            self._ending.add(late.carrier)
            self._forget(run_id)

    # ---- upkeep ----

    def _keep_up(self) -> None:
        if self._upkeep is None:
            self._upkeep = self._loop.call_later(UPKEEP_MS / 1000, self._tend)

    def _tend(self) -> None:
        """Look after the residents, and again as long as there are any.

        Contract: session:abort:from-elsewhere
        """
        self._upkeep = None
        with suppress(RuntimeUnavailable):  # what could not be written is kept, and tried again
            self._pay()
            self._tend_runs()
            if self._loop.time() >= self._sweep_at:
                self._sweep_at = self._loop.time() + SWEEP_MS / 1000
                for event in self._around.store.sweep():
                    self._around.journal.count(event)
        if self._live or self._late or self._owed:
            self._keep_up()

    def _pay(self) -> None:
        """Write down the ends that the store could not take when they came."""
        for run_id, attempt in tuple(self._owed.items()):
            if attempt.owed is not None:
                attempt.owed()
            if attempt.owed is None:
                del self._owed[run_id]
                if run_id not in self._live:
                    self._forget_idle(run_id)

    def _tend_runs(self) -> None:
        store, journal = self._around.store, self._around.journal
        for run_id in (*self._live, *self._late):
            store.append(run_id, journal.unwritten(run_id))
            journal.mark_written(run_id)
            if not store.must_stop(run_id):
                continue
            if run_id in self._live:
                self._live[run_id].stop(Aborted("the run was aborted"))
            self._drop_late(run_id)
        for late in tuple(self._late.values()):
            late.store()
