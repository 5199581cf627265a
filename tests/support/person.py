"""Somebody at a terminal: types at a command on a pseudo-terminal, and sees what it draws."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.cells import COMMAND
from tests.support.display import Display

ENTER, TAB, UP, DOWN = "\r", "\t", "\x1b[A", "\x1b[B"
CTRL_C, CTRL_D, CTRL_X, CTRL_E = "\x03", "\x04", "\x18", "\x05"
ALT_ENTER = "\x1b\r"
_AT_TERMINAL = (  # Ctrl-C reaches only who has the terminal, and its end only who was not started with `nohup`
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
_PATIENCE_S = 60.0  # of somebody who waits for something; a busy machine is slow


def pasted(text: str) -> str:
    """Return what a terminal sends for a paste."""
    return f"\x1b[200~{text}\x1b[201~"


class Person:
    """Runs `codemode ARGUMENTS` on a terminal of its own; use it as a context manager."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        columns: int = 80,
        rows: int = 40,
        term: str = "xterm-256color",
    ) -> None:
        self.display = Display(columns, rows)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        command = [sys.executable, "-c", _AT_TERMINAL, *COMMAND, *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env={**environment, "TERM": term}, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self._is_open:
            self.closes()

    def closes(self) -> None:
        """Close the window: the terminal is gone, and whoever sits at it is told."""
        os.close(self._ours)
        self._is_open = False

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def sees(self, *texts: str) -> str:
        """Wait until all the texts can be seen; return everything that can."""
        return self._until(lambda: all(text in self.display.text() for text in texts), f"{texts}")

    def sees_prompt(self, number: int) -> None:
        """Wait for the prompt of a cell, with nothing typed at it."""
        self._until(
            lambda: f"[{number}]>" in [line.strip() for line in self.display.lines()], f"an empty prompt {number}"
        )

    def waits_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds of what is on the screen."""
        self._until(holds, what)

    def runs(self, number: int, cell: str) -> str:
        """Type a cell at its prompt, and wait for the next prompt; return everything that can be seen."""
        self.sees_prompt(number)
        self.types(cell + ENTER)
        self.sees_prompt(number + 1)
        return self.display.text()

    def asks(self, number: int, command: str) -> str:
        """Type a command at a prompt; return what stands between it and the next prompt, once that is there."""
        self.sees_prompt(number)
        self.types(command + ENTER)

        def below() -> list[str]:
            lines = [line.strip() for line in self.display.text().splitlines()]
            typed = f"[{number}]> {command}"
            return lines[len(lines) - lines[::-1].index(typed) :] if typed in lines else []

        self._until(lambda: f"[{number}]>" in below(), f"a prompt after {command}")
        return "\n".join(below())

    def leaves(self) -> int:
        """Press Ctrl-D and return the exit status."""
        self.types(CTRL_D)
        return self.ends()

    def ends(self) -> int:
        """Wait for the end of the command and return its exit status."""
        self._until(lambda: self.process.poll() is not None, "the end")
        return self.process.wait()

    def _until(self, holds: Callable[[], bool], what: str) -> str:
        deadline = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > deadline or not self._read(0.1):
                if holds():
                    break
                raise AssertionError(f"never saw {what}; the screen was\n{self.display.text()}")
        return self.display.text()

    def _read(self, wait_s: float) -> bool:
        """Take what was written meanwhile; False once nothing will come any more."""
        ready, _, _ = select.select([self._ours], [], [], wait_s)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # the other side is closed: that is how a terminal ends
            self.process.wait(_PATIENCE_S)
            return False
        asked = self.display.asked
        self.display.feed(data)
        for _ in range(self.display.asked - asked):
            row, column = self.display.place
            os.write(self._ours, f"\x1b[{row};{column}R".encode())
        return True
