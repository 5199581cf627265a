"""A live session, through the worker process and the store: what one exec, call or resume costs."""

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from bench.measure import Figure, Samples, scaled, skip, time_each
from codemode.composition import Setup, open_pool, open_session
from codemode.core.types import CodeModeResult, Completed, Waiting
from codemode.session import Session
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool

ROOT = Path(__file__).parent
Result = TypeVar("Result", Completed, Waiting)
MANIFEST = ROOT / "manifest" / "codemode.toml"
HOSTILE = sorted((ROOT.parent / "fixtures" / "hostile").glob("time__*.js"))
CALLS = 200
AT_ONCE = 16
ROUNDS = 20
SEQUENTIAL = "for (let n = 0; n < {count}; n += 1) await tools.{tool}({{ n }});"
PARALLEL = (
    "for (let r = 0; r < {count}; r += 1)"
    " await Promise.all(Array.from({{ length: 16 }}, (_, n) => tools.{tool}({{ n }})));"
)
TRIVIAL = "trivial exec, live session"
ONE_CALL = "awaited call of an async python tool"
AT_ONCE_EACH = f"{AT_ONCE} calls at once, each"
SUSPEND = "suspend: exec to waiting, in SQLite"
RESUME = "resume: wait to completed"
STORED = "stored bytes of that run"


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of a live session; `scale` multiplies the number of samples."""
    yield from asyncio.run(_figures(scale))


async def _figures(scale: float) -> list[Figure]:
    async with _opened() as (session, pool, store):
        found = await _live(session, scale)
        found += await _many(session, max(100, int(1000 * scale)))
        found.append(await _overshoot(pool, store))
    return found


async def live(scale: float) -> list[Figure]:
    """Take only the rows that others can be compared with."""
    async with _opened() as (session, _, _):
        return await _live(session, scale)


async def _live(session: Session, scale: float) -> list[Figure]:
    found = [await _trivial(session, int(200 * scale))]
    found += await _calls(session, max(3, int(15 * scale)))
    return found + await _suspending(session, max(10, int(100 * scale)))


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Session, WorkerPool, SqliteStore]]:
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
        pool, store = open_pool(), SqliteStore(Database(Path(folder) / "codemode.db"))
        try:
            async with open_session(Setup(manifest=MANIFEST), pool, store) as session:
                yield session, pool, store
        finally:
            await pool.close()
            store.close()


async def _completed(session: Session, code: str) -> None:
    _expect(await session.exec({"code": code}), Completed)


def _expect(result: CodeModeResult, kind: type[Result]) -> Result:
    """Return the result; a figure of a cell that ended otherwise would be worth nothing."""
    assert isinstance(result, kind), f"a benchmark's cell ended otherwise: {result}"
    return result


async def _trivial(session: Session, count: int) -> Figure:
    return Figure(TRIVIAL, "ms", "1.5 ms at most", await time_each(lambda: _completed(session, "return 1"), count))


async def _calls(session: Session, count: int) -> list[Figure]:
    async def each(name: str, goal: str, template: str, rounds: int, calls: int, tool: str = "nothing") -> Figure:
        cell, bare = template.format(count=rounds, tool=tool), template.format(count=0, tool=tool)
        base = (await time_each(lambda: _completed(session, bare), count)).median
        samples = await time_each(lambda: _completed(session, cell), count, 1)
        return Figure(name, "µs", goal, scaled(samples, calls / 1000, base))

    return [
        await each(ONE_CALL, "160 µs at most", SEQUENTIAL, CALLS, CALLS),
        await each(
            "awaited call of a plain python tool (a thread)", "µs", SEQUENTIAL, CALLS, CALLS, "nothing_in_a_thread"
        ),
        await each(AT_ONCE_EACH, "30 µs at most", PARALLEL, ROUNDS, ROUNDS * AT_ONCE),
    ]


async def _suspending(session: Session, count: int) -> list[Figure]:
    """Time a whole exec that ends as waiting, and the whole wait that completes it."""
    cell = (ROOT / "programs" / "holding_200_objects.js").read_text(encoding="utf-8")
    suspend, resume, sizes = [], [], []
    for turn in range(count + 3):
        started = time.perf_counter()
        first = _expect(await session.exec({"code": cell}), Waiting)
        middle = time.perf_counter()
        _expect(await session.wait({"runId": first.run_id}), Completed)
        ended = time.perf_counter()
        if turn >= 3:
            suspend.append((middle - started) * 1000)
            resume.append((ended - middle) * 1000)
            sizes.append(first.telemetry["snapshots"]["lastBytes"] / 1000)
    return [
        Figure(SUSPEND, "ms", "4 ms at most", Samples(tuple(suspend))),
        Figure(RESUME, "ms", "4 ms at most", Samples(tuple(resume))),
        Figure(STORED, "kB", "32 kB at most", Samples(tuple(sizes))),
    ]


async def _many(session: Session, count: int) -> list[Figure]:
    """Run many cells, four at a time, and look at the workers' memory after a tenth and at the end."""
    early = await _run_many(session, count // 10)
    before = _children_kb()
    rate = count / await _run_many(session, count)
    after = _children_kb()
    rate_figure = Figure("cells per second, one session", "/s", "700 at least", Samples((rate,)))
    if not before or early == 0:
        return [rate_figure, skip("workers' memory after many cells", "MB", "flat", "no /proc on this system")]
    memory = Samples((after / 1024,))
    name = f"workers' memory after {count} more cells"
    return [rate_figure, Figure(name, "MB", "within 5 %", memory, f"after {count // 10}", Samples((before / 1024,)))]


async def _run_many(session: Session, count: int) -> float:
    left = iter(range(count))

    async def one_after_the_other() -> None:
        for n in left:
            await _completed(session, f"return {n}")

    started = time.perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(4)))
    return time.perf_counter() - started


def _children_kb() -> int:
    """Return the resident memory of this process's children, in kB; 0 where /proc has none."""
    total = 0
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in task.read_text(encoding="ascii").split():
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            total += int(status.partition("VmRSS:")[2].split()[0]) if "codemode" in _command(pid) else 0
    return total


def _command(pid: str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")


async def _overshoot(pool: WorkerPool, store: SqliteStore) -> Figure:
    """Return by how much each hostile program of the fixtures outlasts its own deadline."""
    late = []
    for path in HOSTILE:
        code = path.read_text(encoding="utf-8")
        flags = shlex.split(code.partition("// @flags ")[2].partition("\n")[0])
        if "--wait" in flags or "// @manifest" in code or "--timeout-ms" not in flags:
            continue
        timeout_ms = int(flags[flags.index("--timeout-ms") + 1])
        async with open_session(Setup(limits={"timeout_ms": timeout_ms}), pool, store) as session:
            started = time.perf_counter()
            await session.exec({"code": code})
            late.append((time.perf_counter() - started) * 1000 - timeout_ms)
    name = f"overshoot of {len(late)} hostile cells, the largest"
    return Figure(name, "ms", "250 ms at most", Samples((max(late),)))
