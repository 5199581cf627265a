"""Read: where inputs come from, and the reader of plain lines.

A pipe, a file and a terminal that can do no more than lines give their inputs line by line; the
parser says when one is whole. `prompt.py` reads from a real terminal.
"""

import asyncio
import os
import stat
import termios
from collections.abc import Callable
from typing import NamedTuple, Protocol

from codemode.core.types import Language
from codemode.repl.interrupts import Interrupts
from codemode.repl.syntax import Judge, Verdict

_READ_BYTES = 1 << 16


class Input(NamedTuple):
    """What a person typed; `verdict` is the parser's, None for a `:command`."""

    text: str
    verdict: Verdict | None = None


class Reader(Protocol):
    """Who reads inputs."""

    async def read(self, number: int) -> Input:
        """Return the next input, which becomes cell `number` if it is one.

        Raises:
            EOFError: There is no more.
            KeyboardInterrupt: The person gave up this input.
        """

    def discard(self) -> None:
        """Let go of what was typed ahead: it is no answer to a question that was not there yet."""

    async def ask(self, question: str) -> str:
        """Return a person's answer to a question.

        Raises:
            EOFError: There is no answer.
            KeyboardInterrupt: The person wants to stop what asks.
        """


class LineReader:
    """Reads lines from a descriptor; what asks for them is written with `prompt`, if anybody is there to see it."""

    def __init__(
        self, fd: int, judge: Judge, language: Callable[[], Language], interrupts: Interrupts,
        prompt: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """Read nothing yet."""
        self._fd = fd
        self._judge = judge
        self._language = language
        self._interrupts = interrupts
        self._prompt = prompt or (lambda _text: None)
        self._received = bytearray()
        self._at_end = False
        self._may_block = os.isatty(fd) or stat.S_ISFIFO(mode := os.fstat(fd).st_mode) or stat.S_ISSOCK(mode)

    async def read(self, number: int) -> Input:
        """Gather lines until the parser has a whole input; at the end of all lines, what there is.

        Contract: repl:pipe:lines
        """
        first = await self._line(f"[{number}]> ")
        if first.startswith(":") or not first.strip():
            return Input(first.strip())
        text = first
        while True:
            verdict = await self._judge.judge(text, self._language())
            if verdict.state != "incomplete":
                return Input(text, verdict)
            try:
                text += "\n" + await self._line(f"{'.' * len(str(number))}..> ")
            except EOFError:
                return Input(text, verdict)

    def discard(self) -> None:
        """Let go of what was typed ahead at a terminal; what a pipe holds is no typing.

        Contract: repl:approvals:typed-ahead
        """
        if os.isatty(self._fd):
            self._received.clear()
            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def ask(self, question: str) -> str:
        """Read one line as the answer."""
        return (await self._line(question)).strip()

    async def _line(self, prompt: str) -> str:
        self._prompt(prompt)
        while True:
            line, newline, rest = self._received.partition(b"\n")
            if newline or (self._at_end and line):
                self._received = rest
                return bytes(line).decode("utf-8", "replace").removesuffix("\r")
            if self._at_end:
                self._prompt("\n")  # what comes next, of a shell, begins a line
                raise EOFError
            data = await self._next() if self._may_block else os.read(self._fd, _READ_BYTES)
            self._received += data
            self._at_end = not data

    async def _next(self) -> bytes:
        """Wait until something can be read; Ctrl-C gives up the line."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fd, _settle, ready, None)
        try:
            with self._interrupts.calling(lambda: _settle(ready, KeyboardInterrupt())):
                await ready
        except KeyboardInterrupt:
            self._prompt("\n")
            raise
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, _READ_BYTES)


def _settle(ready: "asyncio.Future[None]", error: BaseException | None) -> None:
    if ready.done():
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)
