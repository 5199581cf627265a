"""The worker's main: read a frame, run a turn, write the one event that ends it.

A separate process, so that hostile code that breaks its VM finds an empty environment and
no descriptor but its two pipes. It holds at most one cell. Whatever goes wrong inside a
turn becomes a `failed` event here; a worker that ends without one has crashed.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from codemode.core.errors import CodeModeError, ErrorCode, Internal
from codemode.core.limits import WORKER_STACK_BYTES, Limits
from codemode.core.protocol import (
    HEADER_BYTES,
    Deliver,
    Drop,
    Inspect,
    ProtocolError,
    Request,
    Resume,
    Start,
    TakeSnapshot,
    encode_frame,
    parse_header,
    parse_lengths,
    parse_request,
)
from codemode.core.types import Json
from codemode.sandbox.cell import Cell, Engine, Program, Scope
from codemode.sandbox.difference import Difference
from codemode.sandbox.engine import OutOfMemory, Stock, TurnInterrupted
from codemode.sandbox.image import Workshop
from codemode.sandbox.lockdown import lock_down
from codemode.sandbox.toolchain import build_toolchain

_STDIN, _STDOUT = 0, 1
_READ_BYTES = 1 << 16


class Pipe:
    """Blocking frames on two descriptors."""

    def __init__(self) -> None:
        """Begin with nothing received."""
        self._received = b""

    def read(self) -> Request | None:
        """Return the next request, or None when the host is gone.

        Raises:
            ProtocolError: The host sent something else.
        """
        if not self._receive(HEADER_BYTES):
            return None
        header_bytes, blob_bytes = parse_lengths(self._received[:HEADER_BYTES])
        start, end = HEADER_BYTES + header_bytes, HEADER_BYTES + header_bytes + blob_bytes
        if not self._receive(end):
            return None
        frame, self._received = self._received, self._received[end:]
        return parse_request(parse_header(frame[HEADER_BYTES:start]), frame[start:end])

    def write(self, header: dict[str, Json], blob: bytes = b"") -> None:
        """Write one event."""
        data = encode_frame(header, blob)
        while data:
            data = data[os.write(_STDOUT, data) :]

    def _receive(self, size: int) -> bool:
        """Wait until at least `size` bytes are there; False when the host is gone."""
        if len(self._received) >= size:
            return True
        parts = [self._received]
        missing = size - len(self._received)
        while missing > 0:
            data = os.read(_STDIN, max(missing, _READ_BYTES))
            if not data:
                return False
            parts.append(data)
            missing -= len(data)
        self._received = b"".join(parts)
        return True


class Worker:
    """Answers requests with events; holds the cell of the run that has it."""

    def __init__(self, engine: Engine) -> None:
        """Start without a cell."""
        self._engine = engine
        self._cell: Cell | None = None
        self._ended: Cell | None = None  # freed once the answer is on its way
        self._scope = ("", Scope("[]", "{}", "null", "[]", "[]"))
        self._memory_limit_bytes = Limits().memory_limit_bytes  # of the last cell, and so perhaps of the next

    def answer(self, request: Request) -> tuple[dict[str, Json], bytes]:
        """Carry out one request and return the event that ends it."""
        match request:
            case Start() | Resume() | Deliver():
                return self._turn(request)
            case TakeSnapshot(max_bytes, keep):
                data = self._held().snapshot(max_bytes)
                if data is None or not keep:
                    self._drop()
                return {"event": "snapshot", "fits": data is not None}, data or b""
            case Inspect(source, wants, budget_ms):
                return {"event": "inspected", "answer": self._inspect(source, wants, budget_ms)}, b""
            case Drop():
                self._drop()
                return {"event": "dropped"}, b""

    def make_ready(self) -> None:
        """Free what the last cell left, and do beforehand what the next one would wait for."""
        if self._ended is not None:
            self._ended.close()
            self._ended = None
        if self._cell is None:
            self._engine.stock.make_ready(self._memory_limit_bytes)
            self._engine.toolchain.make_ready()

    def _inspect(self, source: str, wants: list[str], budget_ms: float) -> Json:
        try:
            return self._engine.toolchain.inspect(source, wants, time.monotonic() + budget_ms / 1000)
        except (TurnInterrupted, OutOfMemory):
            return {"error": {"message": "too long or too deep to be parsed", "line": 1, "column": 1}}

    def _turn(self, request: Start | Resume | Deliver) -> tuple[dict[str, Json], bytes]:
        started = time.monotonic()
        deadline = started + request.budget_ms / 1000
        header: dict[str, Json] = {"event": "turn", "state": "failed"}
        try:
            completed = self._step(request, deadline)
            header["state"] = "completed" if completed else "suspended"
        except CodeModeError as error:
            header |= {"error": error.message, "code": error.code, "phase": error.phase}
        except MemoryError:
            code = ErrorCode.MEMORY_LIMIT_EXCEEDED
            header |= {"error": "the worker is out of memory", "code": code, "phase": "guest"}
        rows = b"[]" if self._cell is None else self._cell.rows
        header["kept"] = header["state"] != "suspended" and self._cell is not None and self._cell.may_stay
        if header["state"] != "suspended" and not header["kept"]:
            self._ended, self._cell = self._cell, None
        header["guestMs"] = round((time.monotonic() - started) * 1000, 3)
        return header, rows

    def _step(self, request: Start | Resume | Deliver, deadline: float) -> bool:
        match request:
            case Start():
                self._drop()
                self._memory_limit_bytes = request.memory_limit_bytes
                scope = self._take_scope(request)
                self._cell = Cell.create(self._engine, request.memory_limit_bytes, request.base)
                config = _guest_config(request)
                program = Program(request.source, request.language, request.keep)
                return self._cell.start(program, config, scope, deadline)
            case Resume():
                self._drop()
                self._memory_limit_bytes = request.memory_limit_bytes
                self._cell = Cell.restore(self._engine, request.snapshot, request.memory_limit_bytes)
                return self._cell.deliver(request.settled, deadline)
            case Deliver():
                return self._held().deliver(request.settled, deadline)

    def _take_scope(self, request: Start) -> Scope:
        """Remember the scope last sent, so that the host sends each one once."""
        if request.scope_text:
            self._scope = (request.scope, Scope(**json.loads(request.scope_text)))
        digest, scope = self._scope
        if digest != request.scope:
            raise Internal("the worker was asked for a scope that it does not hold")
        return scope

    def _held(self) -> Cell:
        if self._cell is None:
            raise ProtocolError("the worker holds no cell")
        return self._cell

    def _drop(self) -> None:
        if self._cell is not None:
            self._cell.close()
            self._cell = None


def _guest_config(request: Start) -> dict[str, Json]:
    seed = request.seed
    words = [seed >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
    return {"maxOutput": request.max_output_bytes, "maxCalls": request.max_pending_tool_calls, "seed": words}


def build_engine(cache: Path | None) -> Engine:
    """Load the engine, from the cache folder where it can.

    Raises:
        RuntimeUnavailable: The engine is missing or damaged.
    """
    workshop = Workshop(cache)
    machine, image = workshop.machine(), workshop.image("prelude.js")
    difference = Difference(workshop.machine("difference.wat"), image.memory)
    return Engine(machine, image, Stock(machine, image), difference, build_toolchain(workshop), workshop.build)


def serve(cache: Path | None) -> None:
    """Say that the worker is ready, then answer until the host is gone."""
    pipe = Pipe()
    try:
        engine = build_engine(cache)
    except CodeModeError as error:
        pipe.write({"event": "fatal", "error": error.message, "code": error.code})
        return
    worker = Worker(engine)
    pipe.write({"event": "ready", "build": engine.build, "lockdown": lock_down()})
    worker.make_ready()
    while (request := pipe.read()) is not None:
        pipe.write(*worker.answer(request))
        worker.make_ready()


def main() -> None:
    """Run `serve` on a thread whose native stack bears the guest's deepest recursion."""
    cache = Path(sys.argv[-1]) if len(sys.argv) > 1 and sys.argv[-1] else None
    threading.stack_size(WORKER_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(cache,))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
