"""A real terminal for a command: a pseudo-terminal of a fixed size, and all that was written to it."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.cells import BOUND_S, COMMAND


class Screen(NamedTuple):
    """What a terminal got, escape sequences and all, and how the command ended."""

    exit_status: int
    text: str


def run_in_terminal(
    arguments: list[str], environment: Mapping[str, str], folder: Path, columns: int = 80, *, typing: bool = False
) -> Screen:
    """Run `codemode ARGUMENTS` with stdout and stderr on one terminal; where somebody is `typing`, stdin too."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env={**environment, "TERM": "xterm-256color"},
        stdin=theirs if typing else subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    received = b""
    try:
        while data := os.read(ours, 1 << 16):
            received += data
    except OSError:  # the other side is closed: that is how a terminal ends
        pass
    os.close(ours)
    return Screen(process.wait(BOUND_S), received.decode().replace("\r\n", "\n"))
