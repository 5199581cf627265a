"""A few warm workers, checked out one run at a time, in the order of asking.

A worker that died, is tainted or has served its number of cells is replaced at once, so the
next cell finds one ready. Called by the session; it never looks into a frame.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from codemode.core.errors import RuntimeUnavailable
from codemode.supervisor.spawn import Child, spawn_worker
from codemode.supervisor.worker import Worker


class WorkerPool:
    """At most `size` worker processes; the first one starts with the pool."""

    def __init__(self, size: int = 2, first: Child | None = None, spawn: Callable[[], Child] = spawn_worker) -> None:
        """Prewarm one worker; needs a running loop.

        Args:
            size: How many cells can compute at the same time.
            first: A worker that was spawned already.
            spawn: Starts one more.

        Raises:
            RuntimeUnavailable: The first worker cannot be started.
        """
        self._size = size
        self._spawn = spawn
        self._closed = False
        self._warmed = False
        self._workers: set[Worker] = set()
        self._idle: deque[Worker] = deque()
        self._waiters: deque[asyncio.Future[Worker]] = deque()
        self._idle.append(self._add(first))

    @property
    def has_waiters(self) -> bool:
        """Whether somebody waits for a worker."""
        return bool(self._waiters)

    async def warm(self) -> None:
        """Wait until a worker was ready once: from then on the engine is compiled.

        Raises:
            RuntimeUnavailable: None can be started.
        """
        if not self._warmed:
            self.release(await self.acquire())
            self._warmed = True

    def acquire_idle(self) -> Worker | None:
        """Check out a worker that is ready now, if there is one; the caller must `release` it."""
        if self._idle and self._idle[-1].is_ready:
            return self._idle.pop()
        return None

    async def acquire(self) -> Worker:
        """Check out a worker that is ready; the caller must `release` it.

        Raises:
            RuntimeUnavailable: It cannot be started, or the pool is closed.
        """
        worker = self._take() or await self._wait_in_line()
        try:
            await worker.ready()
        except BaseException:
            self.release(worker)
            raise
        return worker

    def release(self, worker: Worker) -> bool:
        """Give a worker back, without a VM in it, alive or dead; say whether the next in line has got it."""
        worker.on_wanted = None
        if worker not in self._workers:
            return False
        if worker.reusable:
            return self._hand_out(worker)
        worker.kill()
        return False

    async def close(self) -> None:
        """End all workers; whoever waits for one gets `RuntimeUnavailable`."""
        self._closed = True
        workers = tuple(self._workers)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(RuntimeUnavailable("the worker pool was closed"))
        for worker in workers:
            worker.kill()
        await asyncio.gather(*(worker.ready() for worker in workers), return_exceptions=True)

    def _take(self) -> Worker | None:
        if self._closed:
            raise RuntimeUnavailable("the worker pool was closed")
        if self._idle:
            return self._idle.pop()  # the one used last: its caches are warm
        return self._add() if len(self._workers) < self._size else None

    async def _wait_in_line(self) -> Worker:
        waiter: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._ask_back()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _ask_back(self) -> None:
        """Tell one user whose cell only waits that its worker is wanted."""
        for worker in self._workers:
            if worker.on_wanted is not None:
                ask, worker.on_wanted = worker.on_wanted, None
                ask()
                return

    def _add(self, child: Child | None = None) -> Worker:
        worker = Worker(child or self._spawn(), lambda: self._on_end(worker))
        self._workers.add(worker)
        return worker

    def _on_end(self, worker: Worker) -> None:
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        # One that never got ready is not replaced in advance: its successor would fail alike.
        if not self._closed and (self._waiters or (worker.build and not self._idle)):
            self._replace()

    def _replace(self) -> None:
        try:
            self._hand_out(self._add())
        except RuntimeUnavailable as error:
            if self._waiters:
                self._waiters.popleft().set_exception(error)

    def _hand_out(self, worker: Worker) -> bool:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(worker)
                return True
        self._idle.append(worker)
        return False
