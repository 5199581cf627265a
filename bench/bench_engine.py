"""The engine by itself, in this process as a worker has it: fresh VMs, snapshots, plain computing."""

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import Figure, Samples, scaled, skip
from codemode.core.limits import WORKER_STACK_BYTES, Limits
from codemode.core.types import Language
from codemode.sandbox.cell import Cell, Engine, Scope
from codemode.sandbox.engine import Vm
from codemode.sandbox.worker import build_engine
from codemode.supervisor.spawn import cache_dir

SCOPE = Scope("[]", "{}", "null", "[]", "[]")
CONFIG = {"maxOutput": 65_536, "maxCalls": 16, "seed": [1, 2, 3, 4]}
NO_DEADLINE = float("inf")
MEMORY_BYTES = Limits().memory_limit_bytes
PROGRAMS = Path(__file__).parent / "programs"
COMPUTING = {"loop": "2.3 x", "fib": "2.8 x", "json": "1.9 x", "string_map": "2.4 x"}  # program → at most


def figures(scale: float) -> Iterator[Figure]:
    """Yield the engine's rows; they are taken on a thread whose stack is that of a worker."""
    found: list[Figure] = []
    threading.stack_size(WORKER_STACK_BYTES)
    thread = threading.Thread(target=lambda: found.extend(_figures(scale)))
    thread.start()
    thread.join()
    threading.stack_size(0)
    yield from found


def _figures(scale: float) -> Iterator[Figure]:
    folder = cache_dir()
    engine = build_engine(Path(folder) if folder else None)
    yield Figure("fresh VM from the boot image", "ms", "1 ms at most", _timed(lambda: _fresh(engine), int(300 * scale)))
    yield _snapshot_size(engine)
    yield from _computing(engine, max(3, int(9 * scale)))
    yield _typescript(engine, max(20, int(100 * scale)))


def _timed(action: Callable[[], object], count: int, warm_up: int = 3) -> Samples:
    values = []
    for turn in range(count + warm_up):
        started = time.perf_counter()
        action()
        if turn >= warm_up:
            values.append((time.perf_counter() - started) * 1000)
    return Samples(tuple(values))


def _fresh(engine: Engine) -> None:
    Vm(engine.machine, engine.image, MEMORY_BYTES).close()


def _program(name: str) -> str:
    return (PROGRAMS / name).read_text(encoding="utf-8")


def _run(engine: Engine, text: str, language: Language = "javascript") -> None:
    cell = Cell.create(engine, MEMORY_BYTES)
    cell.start(text, language, CONFIG, SCOPE, NO_DEADLINE)
    cell.close()


def _snapshot_size(engine: Engine) -> Figure:
    cell = Cell.create(engine, MEMORY_BYTES)
    cell.start(_program("holding_200_objects.js"), "javascript", CONFIG, SCOPE, NO_DEADLINE)
    size, full = len(cell.snapshot()), len(zlib.compress(engine.image.memory, 1))
    cell.close()
    name, goal = "snapshot of a cell holding 200 small objects", "48 kB at most"
    return Figure(name, "kB", goal, Samples((size / 1000,)), "its boot image, zlib-1", Samples((full / 1000,)))


def _computing(engine: Engine, count: int) -> Iterator[Figure]:
    """Time plain programs beside the native engine, in turn; the price of a bare cell is taken off ours."""
    try:
        import quickjs
    except ImportError:
        why = "quickjs, a development dependency, is not installed"
        yield from (skip(f"computing: {name}", "ms", f"{bound} at most", why) for name, bound in COMPUTING.items())
        return
    bare = _timed(lambda: _run(engine, "return 1;"), 30).median
    for name, bound in COMPUTING.items():
        body = _program(f"{name}.js")
        ours, native, context = [], [], quickjs.Context()
        for _ in range(count):
            ours += _timed(lambda body=body: _run(engine, body), 1, 0).values
            native += _timed(lambda body=body, context=context: context.eval(f"(() => {{{body}}})()"), 1, 0).values
        samples = scaled(Samples(tuple(ours)), 1, bare)
        yield Figure(f"computing: {name}", "ms", f"{bound} at most", samples, "native quickjs", Samples(tuple(native)))


def _typescript(engine: Engine, count: int) -> Figure:
    """Time what TypeScript adds to a small cell, the toolchain being warm."""
    typed, plain = _program("typed.ts"), _program("typed_without_types.js")
    without = _timed(lambda: _run(engine, plain), count).median
    added = scaled(_timed(lambda: _run(engine, typed, "typescript"), count), 1, without)
    return Figure(f"TypeScript over JavaScript, {len(typed)} bytes", "ms", "+ 3 ms at most", added)
