"""Awaiting what is somebody else's code: within a time, and telling its end from our own.

What an operator or a plugin brings may ignore its cancellation, or cancel itself. Called by the
executor for tools and by `hooks` for guards.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from codemode.core.limits import CALL_EXIT_MS

T = TypeVar("T")


class Late(Exception):  # the caller says of what, and how long it had
    """What was awaited did not end in its time."""


async def finish_in_time(awaited: Awaitable[T], timeout_ms: int) -> T:
    """Return what is awaited; what is late is cancelled, and closed if it does not heed that soon.

    Raises:
        Late: It did not end in time.

    Contract: executor:timeout:unheeded
    """
    running = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait({running}, timeout=timeout_ms / 1000)
        if done:
            return running.result()
    finally:
        if not running.done():
            running.cancel()
            running.add_done_callback(_pay_no_heed)
            try:
                await asyncio.wait({running}, timeout=CALL_EXIT_MS / 1000)
            finally:
                close_deaf(running)
    raise Late


def close_deaf(running: "asyncio.Future[T]") -> None:
    """End a task that ignored its cancellation, so that it keeps no event loop from its end.

    Its coroutine is closed where it stands; only one that catches even that stays.
    """
    coroutine = running.get_coro() if isinstance(running, asyncio.Task) and not running.done() else None
    if coroutine is not None:
        with contextlib.suppress(RuntimeError):  # it awaits while it is closed
            coroutine.close()
        running.cancel()


def is_cancelled() -> bool:
    """Say whether the task that runs was cancelled itself, rather than something that it awaited."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _pay_no_heed(running: "asyncio.Future[T]") -> None:
    if not running.cancelled():
        running.exception()  # looked at, so that nothing is logged
