"""One run under one deadline: turns of its VM, and deliveries of what settles in between.

The guest owns its promises, so between two turns a VM is at rest and everything is here: what
it asked for, what came of it, what it put out. The loop is: take a turn, start what it
recorded, wait until something settles, deliver that. It ends when the cell completes, when
nothing more can be delivered in time (the run then waits), or by an error.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from codemode.core.errors import CodeModeError, ErrorCode, RuntimeUnavailable
from codemode.core.events import SnapshotEvent, TurnMeasured
from codemode.core.limits import INBOX_POLL_MS, MIN_TURN_MS
from codemode.core.protocol import Start, encode_settlements
from codemode.core.types import GuestFailure, TurnEnd
from codemode.live.output import Output
from codemode.live.requests import NESTED, Requests
from codemode.live.service import Service, Surroundings
from codemode.live.vm import Vm
from codemode.store.port import Claimed

_TRACED = ("search", "describe", *NESTED)


class TurnFailed(Exception):
    """A turn of the VM ended in failure, as `failure` says."""

    def __init__(self, failure: GuestFailure) -> None:
        """Keep what crossed the process wall."""
        super().__init__(failure.error)
        self.failure = failure


class LiveRun:
    """A run that this process drives, from `exec` or `wait` until it rests or ends.

    `stopped` is why it must end, once somebody said so; `has_begun` says that something ran
    or was delivered, so that it can only go forward; `wait_id` names the `wait` that drives it.
    """

    def __init__(self, run_id: str, vm: Vm, service: Service, requests: Requests, around: Surroundings) -> None:
        """Prepare to drive a run."""
        self.run_id = run_id
        self.vm = vm
        self.service = service
        self.requests = requests
        self.output = Output(vm.limits.max_output_bytes)
        self.wait_id: str | None = None
        self.has_begun = False
        self.stopped: CodeModeError | None = None
        self._around = around
        self._delivered: list[int] = []  # the traced calls that the turn which ends now was told of
        self._loop = asyncio.get_running_loop()
        self._waking: asyncio.Future[None] | None = None
        service.changed = self._wake
        service.has_time = lambda: vm.budget_ms > 0
        vm.meanwhile = partial(around.journal.keep_up, run_id)

    def take_up(self, claimed: Claimed) -> None:
        """Go on where a suspension stopped: its counts, and what it had open."""
        carry = claimed.carry
        self.requests.last_id = carry["lastId"]
        self.output.used, self.output.left_out = carry["outputBytes"], carry["leftOutBytes"]
        self.service.approved |= set(carry.get("approved", ()))
        self.service.restore(claimed.calls)

    async def exec(self, start: Callable[[float], Start]) -> TurnEnd | None:
        """Run the cell from its start; `start` makes the request for the time that is left.

        Returns:
            The end of the completed cell, or None where the run has come to rest.

        Raises:
            TurnFailed: The cell failed.
            CodeModeError: A limit, a worker that died, an abort.

        Contract: execution:drain:inline, execution:drain:one-deadline
        """
        self.has_begun = True
        return await self._follow(await self.vm.start(start))

    async def resume(self) -> TurnEnd | None:
        """Go on from the snapshot, once there is something to deliver.

        Returns:
            As `exec`; None with `has_begun` false where nothing could be delivered in time.

        Raises:
            TurnFailed: The cell failed, or its snapshot cannot be restored.
            CodeModeError: A limit, a worker that died, an abort.
        """
        if not await self._await_settled() or not await self._restore():
            self._raise_if_stopped()
            return None
        return await self._follow(await self._deliver())

    def stop(self, reason: CodeModeError) -> None:
        """End the run from outside: its worker is killed, its calls are cancelled."""
        self.stopped = self.stopped or reason
        self.vm.kill()
        self.service.cancel()
        self._wake()

    async def _follow(self, end: TurnEnd | None) -> TurnEnd | None:
        while end is not None:
            self._take_turn(end)
            if end.state == "completed":
                return end
            end = await self._deliver() if await self._await_settled() else None
        self._raise_if_stopped()
        return None

    def _take_turn(self, end: TurnEnd) -> None:
        """Take over what a turn recorded; one that failed, or breaks a limit, starts nothing.

        Contract: execution:failed:dispatches-nothing
        """
        delivered, self._delivered = self._delivered, []
        self._around.journal.record(TurnMeasured(self.run_id, _now_ms(), end.guest_ms, delivered, self.wait_id))
        self.output.admit(end)
        if end.failure is not None:
            raise TurnFailed(self._with_numbers(end.failure))
        if end.state == "suspended":
            self._around.journal.show(self.output.fresh)
            self.service.start(end.calls, end.cancelled)
            if not self.requests.open:
                raise RuntimeUnavailable("the sandbox worker suspended a cell that waits for nothing")

    def _with_numbers(self, failure: GuestFailure) -> GuestFailure:
        """Say which deadline passed: the worker knows only what was left of it."""
        if failure.code is not ErrorCode.TIMEOUT:
            return failure
        deadline = f"the deadline of {self.vm.limits.timeout_ms} ms (timeoutMs)"
        return failure._replace(error=f"{deadline} passed while the cell was computing; split the work, or raise it")

    async def _deliver(self) -> TurnEnd | None:
        """Deliver what settled; None where no worker came free before the deadline.

        Contract: execution:drain:completion-order
        """
        replies = self.requests.batch()
        end = await self.vm.deliver(encode_settlements(replies), self.requests.last_id)
        if end is not None:
            self._delivered = [call.id for call in self.requests.delivered(replies) if call.method in _TRACED]
        return end

    async def _restore(self) -> bool:
        """Restore the VM and note that it goes forward now; False where no worker came free in time."""
        if not await self.vm.check_out():
            return False
        size, self.has_begun = self.vm.parked_bytes, True
        end = await self.vm.deliver(b"[]", self.requests.last_id)
        if end is not None:
            self._take_turn(end)
        store, journal = self._around.store, self._around.journal
        journal.record(SnapshotEvent(self.run_id, _now_ms(), "restored", size))
        try:
            store.begin_delivery(self.run_id, journal.unwritten(self.run_id))
        except RuntimeUnavailable:  # the store still has the snapshot, to which nothing was delivered
            self.has_begun = False
            raise
        journal.mark_written(self.run_id)
        return True

    async def _await_settled(self) -> bool:
        """Wait until something can be delivered; False where that does not happen in time.

        Contract: execution:waiting:deadline, execution:waiting:approval, execution:yield:rests
        """
        await asyncio.sleep(0)  # calls of instant tools have settled after this; and others get their turn
        while not self.requests.has_settled:
            self._raise_if_stopped()
            if self.vm.budget_ms <= 0 or self.requests.at_rest:
                return False
            if self.vm.is_wanted:
                await self.vm.park()
            await self._idle()
        self._raise_if_stopped()
        return self.vm.budget_ms >= MIN_TURN_MS

    async def _idle(self) -> None:
        """Sleep until something settles, the deadline comes, or the worker is wanted elsewhere."""
        self._waking = self._loop.create_future()
        timers = [self._loop.call_later(self.vm.budget_ms / 1000, self._wake)]
        if self.service.awaits_others:
            timers.append(self._loop.call_later(INBOX_POLL_MS / 1000, self.service.look))
        self.vm.lend(self._wake)
        try:
            await self._waking
        finally:
            self._waking = None
            self.vm.reclaim()
            for timer in timers:
                timer.cancel()

    def _wake(self) -> None:
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)

    def _raise_if_stopped(self) -> None:
        reason = self.stopped or self.service.fault
        if reason is not None:
            raise reason


def _now_ms() -> float:
    return time.time() * 1000
