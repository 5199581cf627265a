"""The VM of a run: in a worker while it computes, parked as a snapshot where workers are scarce."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from codemode.core.errors import RuntimeUnavailable, TurnTimeout
from codemode.core.limits import PARK_AFTER_MS, Limits
from codemode.core.protocol import Deliver, Resume, Start
from codemode.core.types import TurnEnd
from codemode.supervisor.pool import WorkerPool
from codemode.supervisor.worker import Worker


class Vm:
    """At any moment a worker holds the VM, or a snapshot is it, or there is none.

    `build` is the engine's that ran it last; `is_wanted` says that its worker would serve
    somebody else while the cell waits. `kept` is the snapshot that an ended cell left behind, if
    it was to be kept. `meanwhile` is called in each turn, while the worker computes.
    """

    def __init__(self, pool: WorkerPool, limits: Limits, deadline: float, parked: bytes = b"") -> None:
        """Take workers from a pool until `deadline`, a moment of the loop's clock."""
        self.limits = limits
        self.build = ""
        self.is_wanted = False
        self.kept: bytes | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self._pool = pool
        self._deadline = deadline
        self._parked = parked
        self._worker: Worker | None = None
        self._patience: asyncio.Timeout | None = None
        self._asked_back: asyncio.TimerHandle | None = None
        self._wake: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()

    @property
    def budget_ms(self) -> float:
        """What is left of the deadline."""
        return (self._deadline - self._loop.time()) * 1000

    @property
    def parked_bytes(self) -> int:
        """The size of the snapshot that the VM is, or was before it was restored."""
        return len(self._parked)

    async def check_out(self) -> bool:
        """Make sure that a worker is there; False where none came free before the deadline.

        Raises:
            RuntimeUnavailable: None can be started.
        """
        if self._worker is not None:
            return True
        self._worker = self._pool.acquire_idle() or await self._wait_for_worker()
        if self._worker is None:
            return False
        self.build = self._worker.build
        return True

    async def _wait_for_worker(self) -> Worker | None:
        try:
            async with asyncio.timeout_at(self._deadline) as self._patience:
                return await self._pool.acquire()
        except TimeoutError:
            return None
        finally:
            self._patience = None

    async def start(self, start: Callable[[float], Start]) -> TurnEnd:
        """Run the first turn; `start` makes the request for the time that is left.

        Raises:
            TurnTimeout: No worker came free before the deadline, or the cell computed beyond it.
        """
        if not await self.check_out():
            raise TurnTimeout(f"no worker came free within {self.limits.timeout_ms} ms: too many cells compute")
        return await self._turn(start(self.budget_ms), 0)

    async def deliver(self, settled: bytes, last_id: int) -> TurnEnd | None:
        """Deliver settlements, to the snapshot if that is the VM; None where no worker came free in time.

        Raises:
            SnapshotRestore: The snapshot cannot be restored.
        """
        if self._worker is None and not await self.check_out():
            return None
        if not self._parked:
            return await self._turn(Deliver(self.budget_ms, settled), last_id)
        request = Resume(self.budget_ms, self.limits.memory_limit_bytes, self._parked, settled)
        end = await self._turn(request, last_id)
        self._parked = b""
        return end

    async def _turn(self, request: Start | Resume | Deliver, last_id: int) -> TurnEnd:
        worker = self._worker
        assert worker is not None
        end = await worker.turn(request, last_id, self.meanwhile)
        if end.kept:
            self.kept = await worker.snapshot(self.limits.max_snapshot_bytes)
        if end.state != "suspended":  # the worker has dropped the VM by itself
            self._worker = None
            if self._pool.release(worker):
                await asyncio.sleep(0)  # whoever got it begins before this run is concluded
        return end

    def lend(self, wake: Callable[[], None]) -> None:
        """Let others ask for the worker while the cell only waits; `wake` is called if one does.

        Not at once: parking and restoring take as long as many a call.
        """
        self._wake = wake
        if self._worker is not None:
            self._worker.on_wanted = self._on_wanted
            if self._pool.has_waiters:
                self._on_wanted()

    def reclaim(self) -> None:
        """Keep the worker: the cell computes again."""
        if self._worker is not None:
            self._worker.on_wanted = None
        if self._asked_back is not None:
            self._asked_back.cancel()
            self._asked_back = None

    def _on_wanted(self) -> None:
        self._asked_back = self._loop.call_later(PARK_AFTER_MS / 1000, self._give_in)

    def _give_in(self) -> None:
        self.is_wanted = True
        self._wake()

    async def park(self) -> bytes:
        """Turn the VM into a snapshot, give its worker back, and return the snapshot.

        Raises:
            SnapshotLimit: It is larger than `maxSnapshotBytes`.
        """
        self.is_wanted = False
        if self._worker is not None and not self._parked:
            self._parked = await self._worker.snapshot(self.limits.max_snapshot_bytes)
        self._give_back()
        return self._parked

    async def drop(self) -> None:
        """Give up the VM at rest and its worker, which stays good for others; a dead one is given back dead."""
        if self._worker is not None:
            with suppress(RuntimeUnavailable):
                await self._worker.drop()
            self._give_back()

    def kill(self) -> None:
        """Give up the VM with its worker, which may be computing, or the place in the line for one."""
        if self._patience is not None:
            self._patience.reschedule(self._loop.time())
        if self._worker is not None:
            self._worker.kill()
            self._give_back()

    def _give_back(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._pool.release(worker)
