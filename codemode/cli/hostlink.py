"""The front end's side of the host: start it early, ask it, pass on what it tells.

Starting comes before typer is imported, so this file imports neither asyncio nor subprocess.
Ctrl-C asks the host to abort and still shows what it answers.
"""

import codecs
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from codemode.core.errors import CodeModeError, Internal, RuntimeUnavailable
from codemode.core.types import Json
from codemode.supervisor.spawn import Child, kill, spawn

_PACKAGE_ROOT = __file__.rsplit(os.sep, 3)[0]
_HOST_MAIN = (
    "import sys; sys.path.append(sys.argv[1]); from codemode.supervisor.spawn import spawn_first; "
    "first = spawn_first(); from codemode.host import main; main(first)"
)
_READ_BYTES = 1 << 16
_WORDS_BYTES = 4096  # what an error shows of a host's stderr
_TICK_S = 0.5  # how often a Ctrl-C that went unanswered is remembered
_NESTED = ("call", "namespace")
_ABORT_S = 5.0  # from Ctrl-C until a host that does not answer is killed

_early: list[Child] = []


def start_early() -> None:
    """Start a host now, for the request that will follow."""
    _early.append(_spawn_host())


def run_request(
    request: dict[str, Json], follow: Callable[[dict[str, Json]], None], pass_on: Callable[[str], None]
) -> dict[str, Any]:
    """Ask a host and return its answer.

    Args:
        request: `{"op": "exec" | "wait", "input", "session", "noInput", "limits", …}`.
        follow: Takes each event of the run, as JSON.
        pass_on: Takes what the host writes to its stderr, as it comes.

    Returns:
        `{"result", "runId", "trajectory"}`.

    Raises:
        Internal: The host failed before it answered.
        RuntimeUnavailable: It was killed, or ended by what ran in it.
        KeyboardInterrupt: It did not answer after Ctrl-C either, and was killed.

    Contract: host:front-end:ctrl-c, host:front-end:died
    """
    return _Conversation(_early.pop() if _early else _spawn_host(), follow, pass_on).hold(request)


def _spawn_host() -> Child:
    return spawn([sys.executable, "-P", "-c", _HOST_MAIN, _PACKAGE_ROOT], os.environ)


class _Conversation:
    """One request and its answer on the pipes of a host."""

    def __init__(self, host: Child, follow: Callable[[dict[str, Json]], None], pass_on: Callable[[str], None]) -> None:
        self._host = host
        self._follow = follow
        self._tell = pass_on
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode  # a read may end within a character
        self._received = b""
        self._words = b""
        self._give_up_at = math.inf
        self._has_asked = False
        self._has_called = False
        self._open: dict[Json, str] = {}  # nested calls

    def hold(self, request: dict[str, Json]) -> dict[str, Any]:
        """Send the request and read until its answer is there; Ctrl-C asks for another one."""
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.SIG_IGN:  # as in the background of a script
            signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            self._send(request)
            self._has_asked = True
            if self._give_up_at < math.inf:
                self._send({"abort": True})
            while True:
                line = self._read_line()
                if line is None:
                    raise self._died()
                message: dict[str, Any] = json.loads(line)
                if "progress" not in message:
                    while self._has_words() and self._pass_on():
                        pass
                    return message
                self._note_call(message["progress"])
                self._follow(message["progress"])
        finally:
            signal.signal(signal.SIGINT, before)
            self._close()

    def _note_call(self, event: dict[str, Json]) -> None:
        if event["event"] == "call_started" and event["method"] in _NESTED:
            self._has_called = True
            self._open[event["call_id"]] = str(event["tool_id"] or event["method"])
        elif event["event"] == "call_settled":
            self._open.pop(event["call_id"], None)

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._give_up_at < math.inf:
            self._give_up_at = 0
            return
        self._give_up_at = time.monotonic() + _ABORT_S
        if self._has_asked:  # else it would stand before the request, or in the middle of it
            self._send({"abort": True})

    def _send(self, message: dict[str, Json]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        with suppress(BrokenPipeError):  # it has died: its stdout tells
            while data:
                data = data[os.write(self._host.stdin, data) :]

    def _read_line(self) -> bytes | None:
        """Return the next line, or None at the end; what comes on stderr is passed on meanwhile."""
        watched = [self._host.stdout, self._host.stderr]
        while b"\n" not in self._received:
            if time.monotonic() > self._give_up_at:
                kill(self._host)
                raise KeyboardInterrupt
            ready, _, _ = select.select(watched, [], [], _TICK_S)
            if self._host.stderr in ready and not self._pass_on():
                watched.remove(self._host.stderr)
            if self._host.stdout in ready:
                data = os.read(self._host.stdout, _READ_BYTES)
                if not data:
                    return None
                self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _has_words(self) -> bool:
        """Say whether the host wrote to its stderr what was not read yet, as it may just before it answers."""
        return bool(select.select([self._host.stderr], [], [], 0)[0])

    def _pass_on(self) -> bool:
        data = os.read(self._host.stderr, _READ_BYTES)
        self._words = (self._words + data)[-_WORDS_BYTES:]
        self._tell(self._decode(data))
        return bool(data)

    def _died(self) -> CodeModeError:
        while self._pass_on():
            pass
        fate = kill(self._host)
        words = self._words.decode(errors="replace").strip()
        sentence = f"the host process {fate} before it answered"
        if self._open:
            called = ", ".join(dict.fromkeys(self._open.values()))
            sentence += f", while {called} ran and may have taken effect"
        has_failed = "Traceback" in words
        if " by " not in fate and not has_failed:
            sentence += "; a tool, a hook or a plugin in Python must not end its process, as os._exit does"
        sentence += f"; its last words: {words}" if words else ""
        error = Internal(sentence) if has_failed else RuntimeUnavailable(sentence)
        error.dispatched = self._has_called
        return error

    def _close(self) -> None:
        """Close the pipes; the host ends by itself, when its calls have settled."""
        for fd in (self._host.stdin, self._host.stdout, self._host.stderr):
            with suppress(OSError):  # closed already where it was killed
                os.close(fd)
