"""A worker process and the frames on its pipes: one request, one answer, within bounds.

What comes from a worker may have been written by hostile code that broke out of its VM:
whatever is not the one expected answer kills the process. Frames go straight from the event
loop's readers to a future, because each nested call of a cell waits for one (26 µs a round
trip *measured*, where asyncio's streams took 66). Nothing here knows what a frame means.
"""

import asyncio
import os
import time
from collections.abc import Callable

from codemode.core.errors import RuntimeUnavailable
from codemode.core.limits import MAX_HEADER_BYTES, STDERR_TAIL_BYTES
from codemode.core.protocol import HEADER_BYTES, ProtocolError, parse_header, parse_lengths
from codemode.core.types import Json
from codemode.supervisor.spawn import Child, kill

_READ_BYTES = 1 << 18
_LINGER_SECONDS = 150e-6
_let_others_run = getattr(os, "sched_yield", lambda: None)  # not on Windows
Answer = tuple[dict[str, Json], bytes]


class Overdue(Exception):
    """The process did not answer in time; it was killed."""


class TooLarge(Exception):
    """The answer announces `args[0]` bytes, more than were allowed; the process was killed."""


class Wire:
    """The pipes of one process; `fate` is empty while it lives, then says how it ended."""

    def __init__(self, child: Child, on_end: Callable[[], None]) -> None:
        """Watch the pipes; `on_end` is called once, when the process has ended. Needs a running loop."""
        self.fate = ""
        self._child = child
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Answer] | None = None
        self._bound = 0
        self._is_quick = True
        self._due = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._received = bytearray()
        self._unsent = memoryview(b"")
        self._stderr = bytearray()
        for fd in child[1:]:
            os.set_blocking(fd, False)
        self._loop.add_reader(child.stdout, self._on_stdout)
        self._loop.add_reader(child.stderr, self._read_stderr)

    async def exchange(
        self, request: bytes, wait_ms: float, max_bytes: int, meanwhile: Callable[[], None] = lambda: None
    ) -> Answer:
        """Send a frame (none when empty) and return the one that answers it.

        Args:
            request: The whole frame.
            wait_ms: How long the answer may take.
            max_bytes: The largest blob that the answer may carry.
            meanwhile: Called once the frame is sent: short work that need not be done before.

        Raises:
            Overdue: No answer in time.
            TooLarge: The answer is too large.
            RuntimeUnavailable: The process died or broke the protocol.
        """
        if self.fate:
            raise self.ended()
        self._answer, self._bound = self._loop.create_future(), max_bytes
        _asking.add(self)
        began = self._loop.time()
        self._watch_until(began + wait_ms / 1000)
        try:
            self._send(memoryview(request))
            meanwhile()
            self._linger(self._answer)
            return await self._answer
        except BaseException:  # whatever it was, an answer that nobody awaits must not meet the next request
            self.kill("was stopped in mid-turn")
            raise
        finally:
            self._answer = None
            self._is_quick = self._loop.time() - began < 2 * _LINGER_SECONDS
            _asking.discard(self)

    def kill(self, fate: str, error: Exception | None = None) -> None:
        """End the process at once; whoever awaits its answer gets `error`, else what `fate` says."""
        if self.fate:
            return
        if self._watch is not None:
            self._watch.cancel()
        self._read_stderr()
        self._loop.remove_reader(self._child.stdout)
        self._loop.remove_reader(self._child.stderr)
        self._loop.remove_writer(self._child.stdin)
        ended = kill(self._child)
        self.fate = fate or ended
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or self.ended())
        self._on_end()

    def ended(self) -> RuntimeUnavailable:
        """Return the error that says how the process ended, with the tail of its stderr."""
        last_words = self._stderr.decode(errors="replace").strip()
        said = f"; its last words: {last_words}" if last_words else ""
        return RuntimeUnavailable(f"the sandbox worker {self.fate}{said}")

    def _watch_until(self, due: float) -> None:
        """Have `_look` called when an answer is due; a timer that comes too early only looks, and is kept."""
        self._due = due
        if self._watch is None or self._watch.when() > due:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._watch = None
        if self._answer is None or self._answer.done():
            return
        if self._loop.time() < self._due:
            self._watch_until(self._due)
        else:
            self.kill("did not answer in time and was killed", Overdue())

    def _send(self, data: memoryview) -> None:
        try:
            sent = os.write(self._child.stdin, data) if data else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # it closed its end: how it died is learned from its stdout
            return
        if sent < len(data):
            self._unsent = data[sent:]
            self._loop.add_writer(self._child.stdin, self._on_writable)

    def _linger(self, answer: asyncio.Future[Answer]) -> None:
        """Look for the answer for a moment, where the last one came soon and no other worker's is awaited.

        Sleeping, being woken and the turns of the loop between take longer than what most cells compute
        between two calls: 363 µs a call became 272 *measured*.
        """
        self._on_stdout()
        until = time.perf_counter() + _LINGER_SECONDS
        while self._is_quick and not answer.done() and len(_asking) == 1 and time.perf_counter() < until:
            _let_others_run()
            self._on_stdout()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._child.stdin)
        self._send(self._unsent)

    def _on_stdout(self) -> None:
        try:
            data = os.read(self._child.stdout, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.kill("")
            return
        self._received += data
        try:
            self._take_frame()
        except ProtocolError as error:
            self.kill(f"broke the protocol ({error}) and was killed")

    def _take_frame(self) -> None:
        received = self._received
        if len(received) < HEADER_BYTES:
            return
        head, blob = parse_lengths(bytes(received[:HEADER_BYTES]))
        if self._answer is None or self._answer.done():
            raise ProtocolError("it sent a frame that nobody asked for")
        if head > MAX_HEADER_BYTES:
            raise ProtocolError(f"a frame's header of {head} bytes; the bound is {MAX_HEADER_BYTES}")
        if blob > self._bound:
            self.kill(f"answered with {blob} bytes where {self._bound} are allowed and was killed", TooLarge(blob))
            return
        excess = len(received) - HEADER_BYTES - head - blob
        if excess > 0:
            raise ProtocolError(f"{excess} bytes after the answer")
        if excess == 0:
            answer = parse_header(bytes(received[HEADER_BYTES : HEADER_BYTES + head]))
            self._answer.set_result((answer, bytes(received[HEADER_BYTES + head :])))
            received.clear()

    def _read_stderr(self) -> None:
        try:
            data = os.read(self._child.stderr, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._child.stderr)
        self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]


_asking: set[Wire] = set()  # those of this process that await an answer
