"""Try what a worker must not be able to do, in a process that has given up what a worker gives up.

`doctor` runs it on the machine at hand: it starts as a worker does, locks itself down by the same
function, then makes the attempts that it is asked for, and says how each ended. One that the kernel
answers with death is the last of its process. One JSON object a line on stdout:

    {"cache": [[file, bytes, state]]}  {"lockdown": [[name, enforced, detail]]}
    {"attempt": name, "outcome": "allowed" | name of the exception}     {"fatal": sentence}
"""

import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from codemode.core.errors import CodeModeError
from codemode.core.limits import WORKER_DATA_BYTES, WORKER_STACK_BYTES
from codemode.core.types import Json
from codemode.sandbox.image import Workshop
from codemode.sandbox.lockdown import lock_down
from codemode.sandbox.worker import build_engine


def _write_a_file() -> None:
    place = f"{tempfile.gettempdir()}/codemode-probe-{os.getpid()}"
    os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    os.unlink(place)  # noqa: PTH108  # the same calls as a cell's escape would make, and no others


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


AUDIT = "audit"  # no attempt: look at the files of the cache first, while files can be opened
ATTEMPTS: dict[str, Callable[[], object]] = {
    "environment": lambda: os.environ["CODEMODE_PROBE"],
    "read": lambda: os.open(sys.executable, os.O_RDONLY),
    "write": _write_a_file,
    "list": lambda: os.listdir("/"),  # noqa: PTH208
    "fork": _fork,
    "signal": lambda: os.kill(os.getppid(), 0),
    "memory": lambda: bytearray(WORKER_DATA_BYTES),
    "socket": socket.socket,
    "program": lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
}


def _say(message: dict[str, Json]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _probe(cache: Path | None, names: Collection[str]) -> None:
    tempfile.gettempdir()  # looks for a folder, which it could not do later
    try:
        build_engine(cache)
        if AUDIT in names:
            _say({"cache": Workshop(cache).audit()})
    except CodeModeError as error:
        _say({"fatal": error.message})
        return
    _say({"lockdown": lock_down()})
    for name in (name for name in names if name != AUDIT):
        try:
            ATTEMPTS[name]()
        except (OSError, LookupError, MemoryError) as error:
            _say({"attempt": name, "outcome": type(error).__name__})
        else:
            _say({"attempt": name, "outcome": "allowed"})


def main() -> None:
    """Probe on a thread like a worker's; the arguments are the cache folder and what to do there."""
    cache = Path(sys.argv[3]) if sys.argv[3] else None
    threading.stack_size(WORKER_STACK_BYTES)
    thread = threading.Thread(target=_probe, args=(cache, sys.argv[4:]))
    thread.start()
    thread.join()
