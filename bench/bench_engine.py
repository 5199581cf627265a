"""The engine by itself, in this process as a worker has it: fresh VMs, snapshots, plain computing."""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.measure import Figure, Samples, scaled, skip
from codemode.core.limits import WORKER_STACK_BYTES, Limits
from codemode.core.protocol import Drop, Start, TakeSnapshot
from codemode.core.types import Language
from codemode.sandbox.cell import Engine
from codemode.sandbox.engine import Vm
from codemode.sandbox.worker import Worker, build_engine
from codemode.supervisor.spawn import cache_dir

SCOPE = json.dumps({"tools": "[]", "names": "{}", "mcp": "null", "files": "[]", "namespaces": "[]"}).encode()
BUDGET_MS = 60_000.0
LIMITS = Limits()
PROGRAMS = Path(__file__).parent / "programs"
COMPUTING = {"loop": "2.3 x", "fib": "2.8 x", "json": "1.9 x", "string_map": "2.4 x"}  # program → at most


def figures(scale: float) -> Iterator[Figure]:
    """Yield the engine's rows; they are taken on a thread whose stack is that of a worker."""
    threading.stack_size(WORKER_STACK_BYTES)
    try:
        with ThreadPoolExecutor(1) as thread:
            yield from thread.submit(lambda: list(_figures(scale))).result()
    finally:
        threading.stack_size(0)


def _figures(scale: float) -> Iterator[Figure]:
    folder = cache_dir()
    engine = build_engine(Path(folder) if folder else None)
    yield Figure("fresh VM from the boot image", "ms", "1 ms at most", _timed(lambda: _fresh(engine), int(300 * scale)))
    yield _snapshot_size(engine)
    worker = Worker(engine)
    yield from _computing(worker, max(3, int(9 * scale)))
    yield _typescript(worker, max(20, int(100 * scale)), 1)
    yield _typescript(worker, max(5, int(20 * scale)), 10)
    yield _typescript(worker, max(3, int(5 * scale)), 37)


def _timed(
    action: Callable[[], object], count: int, warm_up: int = 3, clock: Callable[[], float] = time.perf_counter
) -> Samples:
    values = []
    for turn in range(count + warm_up):
        started = clock()
        action()
        if turn >= warm_up:
            values.append((clock() - started) * 1000)
    return Samples(tuple(values))


def _computed(action: Callable[[], object], count: int, warm_up: int = 0) -> Samples:
    """Time by the thread's own clock: plain computing waits for nothing, and a neighbour's turn is not its work."""
    return _timed(action, count, warm_up, time.thread_time)


def _fresh(engine: Engine) -> None:
    Vm(engine.machine, engine.image, LIMITS.memory_limit_bytes).close()


def _program(name: str) -> str:
    return (PROGRAMS / name).read_text(encoding="utf-8")


def _run(worker: Worker, text: str, language: Language = "javascript", state: str = "completed") -> None:
    """Run a cell as the host would ask for it, without the pipe between; the scope is sent with each."""
    start = Start(
        source=text,
        language=language,
        budget_ms=BUDGET_MS,
        memory_limit_bytes=LIMITS.memory_limit_bytes,
        max_output_bytes=LIMITS.max_output_bytes,
        max_pending_tool_calls=LIMITS.max_pending_tool_calls,
        seed=1,
        scope="empty",
        scope_text=SCOPE,
    )
    header, _ = worker.answer(start)
    assert header["state"] == state, f"a benchmark's cell ended otherwise: {header}"


def _snapshot_size(engine: Engine) -> Figure:
    worker = Worker(engine)
    _run(worker, _program("holding_200_objects.js"), state="suspended")
    size, full = len(worker.answer(TakeSnapshot(1 << 20))[1]), len(zlib.compress(engine.image.memory, 1))
    worker.answer(Drop())
    name, goal = "snapshot of a cell holding 200 small objects", "32 kB at most"
    return Figure(name, "kB", goal, Samples((size / 1000,)), "its boot image, zlib-1", Samples((full / 1000,)))


def _computing(worker: Worker, count: int) -> Iterator[Figure]:
    """Time plain programs beside the native engine, in turn, both by CPU; a bare cell's price is taken off ours."""
    try:
        import quickjs
    except ImportError:
        why = "quickjs, a development dependency, is not installed"
        yield from (skip(f"computing: {name}", "ms", f"{bound} at most", why) for name, bound in COMPUTING.items())
        return
    bare = _computed(lambda: _run(worker, "return 1;"), 30, 3).median
    for name, bound in COMPUTING.items():
        body = _program(f"{name}.js")
        ours, native, context = [], [], quickjs.Context()
        for _ in range(count):
            ours += _computed(lambda body=body: _run(worker, body), 1).values
            native += _computed(lambda body=body, context=context: context.eval(f"(() => {{{body}}})()"), 1).values
        samples = scaled(Samples(tuple(ours)), 1, bare)
        yield Figure(f"computing: {name}", "ms", f"{bound} at most", samples, "native quickjs", Samples(tuple(native)))


def _typescript(worker: Worker, count: int, repeats: int) -> Figure:
    """Time what TypeScript adds to a cell whose text was never seen before, by turns with the same JavaScript.

    The worker makes ready between two cells, as it does while it waits for the next one.
    """
    typed, plain = (_repeated(_program(name), repeats) for name in ("typed.ts", "typed_without_types.js"))
    added = []
    for turn in range(count + 3):
        worker.make_ready()
        ours = _timed(partial(_run, worker, f"{typed}// {turn}", "typescript"), 1, 0).median
        worker.make_ready()
        added.append(ours - _timed(partial(_run, worker, f"{plain}// {turn}"), 1, 0).median)
    samples = Samples(tuple(added[3:]))
    if repeats == 1:
        return Figure(f"TypeScript over JavaScript, {len(typed)} bytes", "ms", "+ 3 ms at most", samples)
    per_byte = scaled(samples, len(typed) / 1000)
    return Figure(f"TypeScript over JavaScript, each byte of {len(typed)}", "µs", "7 µs at most", per_byte)


def _repeated(program: str, repeats: int) -> str:
    """Return the program with itself, in blocks that return nothing, before it."""
    block = program.replace("return {", "void {")
    return f"{{\n{block}}}\n" * (repeats - 1) + program
