"""A stdio server as a process of ours: its lines, its last words, and its whole family.

We spawn it ourselves, in a session of its own, because the SDK's client hides pid, exit status
and stderr, and because the server can then start while the SDK is imported. Nothing here knows
MCP: lines come out, lines go in. `close` leaves no process behind; `guard` sees to it when
we are killed. A server's environment holds a mark of its own, which all that it starts inherits:
so children are found that left its group, and those whose parents ended before them.
"""

import asyncio
import os
import secrets
import select
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

from codemode.core.limits import MAX_MCP_MESSAGE_BYTES, MCP_EXIT_MS, MCP_KILL_MS, MCP_TERM_MS, STDERR_TAIL_BYTES

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_DRAIN_S = 0.2  # for what is still in the pipe when a server exits, or does not listen any more
_POLL_S = 0.01
_ROUNDS = 5  # of looking for what bears the mark: what is being killed may start more
MARK = "CODEMODE_SERVER"


class Command(NamedTuple):
    """What to run: an argument list without a shell, its whole environment, its folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


class ServerProcess(asyncio.SubprocessProtocol):
    """One running server. Its stdin is never waited for, so a server that does not read cannot hold us."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._lines = asyncio.StreamReader(limit=MAX_MCP_MESSAGE_BYTES)
        self._ended = False
        self._last_words = bytearray()
        self.exited = asyncio.Event()
        self.fault: str | None = None

    @classmethod
    async def spawn(cls, command: Command) -> "ServerProcess":
        """Start the server in a session, and so a process group, of its own.

        Raises:
            OSError: It cannot be started; `filename` is what is missing.
            ValueError: An argument holds a NUL.
        """
        loop = asyncio.get_running_loop()
        mark = secrets.token_hex(8)
        env = {**command.env, MARK: mark}
        _, process = await loop.subprocess_exec(
            lambda: cls(mark), *command.argv, cwd=command.cwd, env=env, start_new_session=True
        )
        return process

    @property
    def pid(self) -> int:
        """The server's process id, which is its group's too."""
        return self._transport.get_pid()

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._transport.get_returncode()

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr, at most `STDERR_TAIL_BYTES`."""
        return self._last_words[-STDERR_TAIL_BYTES:].decode("utf-8", "replace").strip()

    async def read_line(self) -> bytes | None:
        """Return the next line of its stdout, or None at the end; `fault` says if the end is its own fault."""
        try:
            return await self._lines.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial or None
        except asyncio.LimitOverrunError:
            self.fault = f"it sent a message of more than {MAX_MCP_MESSAGE_BYTES} bytes"
            return None

    def write(self, line: bytes) -> None:
        """Queue a line for its stdin.

        Raises:
            BrokenPipeError: It no longer reads, or too much waits already.
        """
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))
        if self._ended or pipe.is_closing() or pipe.get_write_buffer_size() > MAX_MCP_MESSAGE_BYTES:
            raise BrokenPipeError("the server does not read its stdin")
        pipe.write(line)

    async def wait_exit(self, timeout_s: float) -> None:
        """Wait until it has exited, or until the time is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.exited.wait(), timeout_s)

    async def close(self, patience_ms: int = MCP_EXIT_MS) -> None:
        """End the server and all it started: close its stdin, then SIGTERM, then SIGKILL to its group.

        Children that left the group are found beforehand or by their mark, and killed in the end.

        Args:
            patience_ms: How long it may take to leave by itself.
        """
        try:
            await self._end(patience_ms)
        finally:  # whoever is cancelled here leaves the rest to `guard`
            self._end_of_lines()
            self._transport.close()
        await asyncio.sleep(0)  # lets the loop close the pipes

    async def _end(self, patience_ms: int) -> None:
        strays = _find_strays(self.pid)
        cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN)).close()
        if not await _becomes(self._is_gone, patience_ms):
            self._signal_group(signal.SIGTERM)
            if not await _becomes(self._is_gone, MCP_TERM_MS):
                self._signal_group(signal.SIGKILL)
                await _becomes(self._is_gone, MCP_KILL_MS)
        await _end_strays(strays)
        for _ in range(_ROUNDS):
            await _end_strays(strays := _find_marked(self.mark))
            if not strays:
                break

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and let unread output slow the server down."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._lines.set_transport(cast("asyncio.Transport", self._transport.get_pipe_transport(_STDOUT)))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server wrote to stdout or stderr."""
        if fd == _STDERR:
            self._last_words += data
            del self._last_words[: -2 * STDERR_TAIL_BYTES]
        elif not self._ended:
            self._lines.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's signature
        """Note the end of stdout; without a stdin there is nothing to wait for either."""
        if fd == _STDOUT:
            self._end_of_lines()
        elif fd == _STDIN:
            self._end_soon()

    def process_exited(self) -> None:
        """Note the exit; a child that still holds the pipe does not keep the conversation open."""
        self.exited.set()
        self._end_soon()

    def _end_soon(self) -> None:
        asyncio.get_running_loop().call_later(_DRAIN_S, self._end_of_lines)

    def _end_of_lines(self) -> None:
        self._ended = True
        self._lines.feed_eof()

    def _is_gone(self) -> bool:
        return self.exited.is_set() and not (self._signal_group(0) and _has_living_member(self.pid))

    def _signal_group(self, number: int) -> bool:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody of the group changed its user: it is alive
            return True
        return True


async def _becomes(is_so: Callable[[], bool], timeout_ms: int) -> bool:
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    while not is_so():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True


async def _end_strays(strays: list[int]) -> None:
    for stray in strays:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(stray, signal.SIGKILL)
    await _becomes(lambda: len(select.select(strays, [], [], 0)[0]) == len(strays), MCP_KILL_MS)
    for stray in strays:
        os.close(stray)


def _find_strays(pid: int) -> list[int]:
    """Return a pidfd of each descendant that left the server's group; none where Linux does not help."""
    strays: list[int] = []
    for descendant in _descendants(pid):
        with suppress(OSError, AttributeError):  # it has just ended; no pidfd outside Linux
            if os.getpgid(descendant) != pid:
                strays.append(os.pidfd_open(descendant))
    return strays


def _find_marked(mark: str) -> list[int]:
    """Return a pidfd of each process with this mark in its environment; none where Linux does not help."""
    marked: list[int] = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, AttributeError):  # it has just ended, or is not ours
            if f"{MARK}={mark}".encode() in environment.read_bytes():
                marked.append(os.pidfd_open(int(environment.parent.name)))
    return marked


def _descendants(pid: int) -> Iterator[int]:
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, listing.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)


def _has_living_member(group: int) -> bool:
    """Say whether a process group holds more than zombies, which nobody may reap where no init runs."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    for stat in stats:
        with suppress(OSError):  # it has just ended
            state, _, member_of = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return not stats  # no /proc: whoever is left counts
