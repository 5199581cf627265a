"""What Ctrl-C does in each phase: it aborts a cell, ends a printing, clears a line, and else nothing.

While the prompt is shown, Ctrl-C is a key. Everywhere else it is a signal, which would end the
program; here each phase says what it is to mean.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupts:
    """Holds the signal for the life of a REPL; use it as a context manager in the main thread."""

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, _ignore)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def calling(self, action: Callable[[], object]) -> Iterator[None]:
        """Have the loop call `action`: something is awaited.

        Contract: repl:ctrl-c:aborts
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, action)
        try:
            yield
        finally:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the loop lets it raise for a moment
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, _ignore)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `KeyboardInterrupt` where it comes: something is computed or printed."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, _ignore)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing; unlike SIG_IGN it is not inherited by what is started meanwhile."""
