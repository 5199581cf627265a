"""A terminal that is closed, or somebody who ends the process: what a command has started ends with it.

`run` and `wait` need none of it: their host sees that its front end has gone.
"""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_until_hangup(work: Coroutine[Any, Any, T]) -> T:
    """Run work in an event loop of its own; on SIGHUP or SIGTERM cancel it, so that it closes what it has open.

    Raises:
        KeyboardInterrupt: It was ended so, or by Ctrl-C.

    Contract: session:hangup:leaves-nothing
    """
    try:
        return asyncio.run(_heeding(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _heeding(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has the terminal's end ignored
            loop.add_signal_handler(number, task.cancel)
    return await work
