"""A worker process that does what the cell's text says: for how a host meets a worker gone wrong.

The text of a `start` is JSON: one list of steps for each request, the first for the `start`
itself. A step is `["send", header, blob]` (a frame), `["write", text]` (raw bytes),
`["say", text]` (stderr), `["exit", status]`, `["signal", number]`, `["until", path]` (a file
appears), `["hang"]`, or `["echo"]` (a turn whose outputs are the request's header and blob).
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from codemode.core.protocol import HEADER_BYTES, encode_frame, parse_header, parse_lengths
from codemode.supervisor.spawn import Child, spawn


def spawner(*before_ready: list) -> Callable[[], Child]:
    """Return what starts such a worker; it takes the given steps before it says that it is ready."""
    root = __file__.rsplit(os.sep, 3)[0]
    boot = "import sys; sys.path.insert(0, sys.argv[1]); from tests.support.scripted_worker import main; main()"
    return lambda: spawn([sys.executable, "-P", "-c", boot, root, json.dumps(before_ready)], {"PATH": "/bin"})


def script(*steps_of_requests: list) -> str:
    """Return the text of a cell: one list of steps for each request."""
    return json.dumps(steps_of_requests)


def turn(state: str = "completed", rows: str = '[["value",2]]', **more: object) -> list:
    """Return the step that sends a well-formed turn."""
    return ["send", {"event": "turn", "state": state, "guestMs": 0.5, **more}, rows]


def main() -> None:
    for step in json.loads(sys.argv[2]):
        _take(step)
    _take(["send", {"event": "ready", "build": "scripted"}, ""])
    steps: list[list] = []
    while (request := _read_request()) is not None:
        header, blob = request
        if header["op"] == "start":
            steps = json.loads(header["source"])
        if not steps:
            _take(["send", {"event": "dropped"}, ""])
            continue
        for step in steps.pop(0):
            _take([*step, header, blob] if step[0] == "echo" else step)


def _take(step: list) -> None:
    match step:
        case ["send", header, blob]:
            _write(encode_frame(header, blob.encode()))
        case ["echo", *_, header, blob]:
            shown = json.dumps([["text", json.dumps(header)], ["text", blob.decode()]])
            _take(turn("suspended", shown))
        case ["write", text]:
            _write(text.encode("latin-1"))
        case ["say", text]:
            os.write(2, text.encode())
        case ["exit", status]:
            os._exit(status)
        case ["signal", number]:
            os.kill(os.getpid(), number)
        case ["until", path]:
            while not Path(path).exists():
                time.sleep(0.001)
        case ["hang"]:
            signal.pause()


def _read_request() -> tuple[dict, bytes] | None:
    lengths = _read(HEADER_BYTES)
    if lengths is None:
        return None
    head, size = parse_lengths(lengths)
    return parse_header(_read(head) or b""), _read(size) or b""


def _read(size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            return None
        data += chunk
    return data


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
