"""The REPL on a real pseudo-terminal: how soon it is there, and how soon it answers a key."""

import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, Samples

SIZE = 10_000
_COMMAND = (sys.executable, "-m", "codemode", "repl")
_VERBS = ("create", "list", "get", "delete", "update", "search", "open", "close", "sync", "report")
_NOUNS = ("order", "customer", "invoice", "parcel", "issue", "repo", "user", "payment", "stock", "label")
_KEYS = (("tools.", "o"), ("tools.list", "_"), ("tools.pay", "r"), ('tools.call("', "l"), ('tools.call("cr', "p"))
_SEQUENCES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
_BOUND_S = 60


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of the REPL; `scale` multiplies the number of samples."""
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as name:
        folder = Path(name)
        _start(folder)  # the first one fills the caches
        starts = Samples(tuple(_start(folder) for _ in range(max(3, int(15 * scale)))))
        yield Figure("codemode repl, start to prompt, no servers", "ms", "350 ms at most", starts)
        _write_manifest(folder)
        pressed = _press(folder, max(2, int(12 * scale)))
        yield Figure("key press to completion menu, 10,000 tools", "ms", "30 ms at most", pressed)


class _Terminal:
    """A REPL on a pseudo-terminal of 120 columns; it is killed in the end."""

    def __init__(self, folder: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
        environment = kept | {"XDG_STATE_HOME": str(folder), "TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd())}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(_COMMAND[0], _COMMAND, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def shows(self, text: bytes) -> None:
        """Wait until a text was drawn."""
        drawn, deadline = b"", time.monotonic() + _BOUND_S
        while text not in drawn:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the REPL did not draw {text!r}, but {drawn[-500:]!r}")
            drawn += self._read(0.5)

    def rest(self) -> float:
        """Wait until nothing more is drawn, and return when the last of it was."""
        last = time.perf_counter()
        while data := self._read(0.15):
            if _SEQUENCES.sub(b"", data).strip():  # a refresh that changes nothing hides and shows the cursor
                last = time.perf_counter()
        return last

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self.fd, keys.encode())

    def end(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _read(self, wait_s: float) -> bytes:
        if not select.select([self.fd], [], [], wait_s)[0]:
            return b""
        data = os.read(self.fd, 1 << 16)
        for _ in range(data.count(b"\x1b[6n")):  # it asks where the cursor is
            self.press("\x1b[1;1R")
        return data


def _start(folder: Path) -> float:
    started = time.perf_counter()
    terminal = _Terminal(folder)
    terminal.shows(b"[1]> ")
    elapsed = (time.perf_counter() - started) * 1000
    terminal.end()
    return elapsed


def _press(folder: Path, rounds: int) -> Samples:
    """Time the last key of some inputs, from the press until the menu is drawn."""
    terminal = _Terminal(folder)
    terminal.shows(b"[1]> ")
    terminal.rest()
    values = []
    for typed, key in _KEYS * rounds:
        terminal.press("\x15")  # clears the line
        terminal.rest()
        terminal.press(typed)
        terminal.rest()
        started = time.perf_counter()
        terminal.press(key)
        values.append((terminal.rest() - started) * 1000)
    terminal.end()
    return Samples(tuple(values))


def _write_manifest(folder: Path) -> None:
    chosen = random.Random(1)
    lines = ["[tools.codeMode]", "enabled = true"]
    for number in range(SIZE):
        name = f"{chosen.choice(_VERBS)}_{chosen.choice(_NOUNS)}_{number}"
        described = f'description = "Does {name} for whoever needs it."'
        lines += ["[[tool]]", f'name = "{name}"', described, f'owner = "o{number % 37}"', "value = 1"]
    (folder / "codemode.toml").write_text("\n".join(lines), encoding="utf-8")
