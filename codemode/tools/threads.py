"""Threads for synchronous tools: quick to hop to, and never in the way of an exit.

`asyncio.to_thread` costs 90 µs a hop and its threads are joined when the process ends, so one
hanging tool would keep a finished host alive for ever. These are daemon threads, handed their
work directly: 55 µs.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from codemode.core.errors import NestedToolFailed, type_and_words_of
from codemode.core.limits import MAX_TOOL_THREADS


class _Job(NamedTuple):
    future: asyncio.Future[Any]
    work: Callable[[], Any]


class Threads:
    """Runs functions off the event loop; threads are started when needed and reused."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._given_up: set[asyncio.Future[Any]] = set()  # cancelled, and not at an end

    def run(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call the function in a thread, in the caller's context; cancelling abandons its result.

        Raises:
            NestedToolFailed: Every thread is held by a call that was given up and does not return.

        Contract: tools:python:sync-in-a-thread, tools:python:threads-held
        """
        if len(self._given_up) >= MAX_TOOL_THREADS:
            raise NestedToolFailed(
                f"{MAX_TOOL_THREADS} synchronous calls were given up and have not returned, so no thread is left; "
                "restart, and give what these tools wait for a time limit of its own."
            )
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._note_given_up)
        context = contextvars.copy_context()
        self._jobs.put(_Job(future, lambda: context.run(function, *args)))
        if not self._idle.acquire(blocking=False) and self._started < MAX_TOOL_THREADS:
            self._started += 1
            threading.Thread(target=self._serve, name=f"codemode-tool-{self._started}", daemon=True).start()
        return future

    def close(self) -> None:
        """Let the threads end, each after what it is doing."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            outcome = (None, None) if job.future.cancelled() else _carry_out(job)
            self._idle.release()  # before the outcome is told: whoever awaited it finds this thread idle
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                job.future.get_loop().call_soon_threadsafe(self._deliver, job.future, *outcome)
            del job, outcome  # an idle thread holds nothing of anybody's

    def _note_given_up(self, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self._given_up.add(future)

    def _deliver(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        if future.done():
            # A callback of the loop, so that it comes after the one that notes what was given up.
            future.get_loop().call_soon(self._given_up.discard, future)
        elif failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)


def _carry_out(job: _Job) -> tuple[Any, BaseException | None]:
    """Return the result and what was raised instead."""
    try:
        return job.work(), None
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # it is raised again where it is awaited
        # One that ends an iteration cannot travel through a future.
        return None, told_as_failure(error) if isinstance(error, StopIteration) else error
    except BaseException as error:  # noqa: BLE001  # nothing here may end the process
        return None, told_as_failure(error)


def told_as_failure(error: BaseException) -> RuntimeError:
    """Return an ordinary exception for one that would end more than the tool that raised it."""
    return RuntimeError(f"it raised {type_and_words_of(error)}")
