"""A line while a cell takes long: what it waits for, and for how long already.

Drawn only on a terminal, only after a moment, and taken away before anything else is printed.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from codemode.render.words import MARKS, counted, duration, one_line, waits
from codemode.repl.record import Record

_PATIENCE_S = 0.4  # nobody wonders before that
_REDRAW_S = 0.125
_TAKE_AWAY = "\r\x1b[K"


class Ticker:
    """Draws the line; without a stream it draws nothing."""

    def __init__(self, record: Record, stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Tell of the open calls of a record."""
        self._record = record
        self._stream = stream
        self._clock = clock
        self._began = 0.0
        self._is_drawn = False
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Draw while something is awaited."""
        self._began = self._clock()
        self._draw_after(_PATIENCE_S)
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.take_away()

    def take_away(self) -> None:
        """Make room for something that is to be printed."""
        if self._is_drawn:
            self._write(_TAKE_AWAY)
            self._is_drawn = False

    def line(self) -> str:
        """Return what there is to say now."""
        now = self._clock()
        opened = self._record.open.values()
        if not opened:
            return f"running, {duration((now - self._began) * 1000)} (Ctrl-C aborts)"
        return f"{counted(len(opened), 'open call')}: {waits(opened, now)} (Ctrl-C aborts)"

    def _draw_after(self, delay_s: float) -> None:
        if self._stream is not None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._draw)

    def _draw(self) -> None:
        mark = MARKS[int(self._clock() / _REDRAW_S) % len(MARKS)]
        width = shutil.get_terminal_size().columns - 3
        self._write(f"{_TAKE_AWAY}{mark} {one_line(self.line(), width)}")
        self._is_drawn = True
        self._draw_after(_REDRAW_S)

    def _write(self, text: str) -> None:
        assert self._stream is not None
        self._stream.write(text)
        self._stream.flush()
