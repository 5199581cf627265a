"""Runs in numbers: a thousand that wait, 64 that go on at once, what their events cost, what a model pays.

Where a figure is a share of checks that hold, the checks are tests of the suite, run here.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.bench_session import MANIFEST, PARALLEL, ROOT, SEQUENTIAL
from bench.measure import Figure, Samples, scaled, skip
from bench.search_set import many_tools
from codemode.catalog import build_catalog
from codemode.composition import Setup, build_parts, open_session, open_toolbox
from codemode.config import CodeModeConfig
from codemode.core.events import Event
from codemode.core.types import Completed, GuestScope, Waiting
from codemode.executor import Executor
from codemode.live.journal import Journal
from codemode.payload.messages import ChatRequest
from codemode.payload.providers import PROVIDERS
from codemode.payload.sizes import measure
from codemode.policy import Policy
from codemode.session import Identity, Session
from codemode.store.database import Database
from codemode.store.memory import MemoryStore
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from codemode.surface import build_surface

SUSPENDED, SESSIONS = 1000, 20
AT_ONCE, CALLS, WORKERS = 64, 16, 2
HOLDING = (ROOT / "programs" / "holding_200_objects.js").read_text(encoding="utf-8")
SIXTEEN = (
    "const own = Array.from({{length: 16}}, (_, n) => {run} * 16 + n);"
    " const got = await Promise.all(own.map((n) => tools.nothing({{ n }})));"
    " return got.filter((n, at) => n === own[at]).length"
)
CATALOGS = (10, 1000, 10_000)


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows; `scale` multiplies the number of samples, and of the runs that wait."""
    yield from asyncio.run(_waiting(max(100, int(SUSPENDED * scale)), max(10, int(40 * scale))))
    yield from asyncio.run(_at_once(max(3, int(20 * scale))))
    yield from asyncio.run(_events(max(5, int(60 * scale))))
    yield from _surfaces()
    yield _checks("fault walk: share of steps that end as the contract says", "test_fault_walk.py")
    yield _checks("planted secret: share of checks that find it nowhere", "test_planted_secret.py")


# ---- runs that wait ----


async def _waiting(count: int, waits: int) -> list[Figure]:
    """Suspend runs of many sessions in one store, then resume some, each beside the only run of a new store."""
    pool = WorkerPool(WORKERS)
    try:
        with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
            full = Path(folder) / "full.db"
            runs = [run for number in range(SESSIONS) for run in await _suspend(pool, full, number, count // SESSIONS)]
            each = Samples((full.stat().st_size / len(runs) / 1000,))
            among, alone = [], []
            for turn, run in enumerate(runs[:: len(runs) // waits]):
                own = Path(folder) / f"{turn}.db"
                only = (await _suspend(pool, own, 0, 1))[0]
                among.append(await _resume(pool, full, run))
                alone.append(await _resume(pool, own, only))
    finally:
        await pool.close()
    beside = "the only run of a new store"
    names = (f"wait on one of {len(runs)} suspended runs", "the same, with opening and sweeping the store")
    return [
        Figure(f"{len(runs)} suspended runs in one store, each", "kB", "40 kB at most", each),
        *(
            Figure(name, "ms", "2 x at most", Samples(ours), beside, Samples(theirs))
            for name, ours, theirs in zip(names, zip(*among, strict=True), zip(*alone, strict=True), strict=True)
        ),
    ]


async def _suspend(pool: WorkerPool, path: Path, number: int, count: int) -> list[tuple[str, str]]:
    """Suspend runs of one session and return its name with each run's id."""
    name, store = f"session-{number}", SqliteStore(Database(path))
    try:
        async with open_session(Setup(manifest=MANIFEST, who=Identity(name)), pool, store) as session:
            results = [await session.exec({"code": HOLDING}) for _ in range(count)]
    finally:
        store.close()
    return [(name, result.run_id) for result in results if isinstance(result, Waiting)]


async def _resume(pool: WorkerPool, path: Path, run: tuple[str, str]) -> tuple[float, float]:
    """Complete a run as a new process would; return the wait's time, and that with the store's opening."""
    name, run_id = run
    before = time.perf_counter()
    store = SqliteStore(Database(path))
    store.sweep()
    opening = time.perf_counter() - before
    try:
        async with open_session(Setup(manifest=MANIFEST, who=Identity(name)), pool, store) as session:
            before = time.perf_counter()
            result = await session.wait({"runId": run_id})
            waiting = time.perf_counter() - before
    finally:
        store.close()
    assert isinstance(result, Completed), f"a run of a benchmark did not complete: {result}"
    return waiting * 1000, (waiting + opening) * 1000


# ---- runs that go on at once ----


async def _at_once(rounds: int) -> list[Figure]:
    """Time the runs at once on two workers beside the ideal: the same processor time without a pause.

    No schedule of one host thread and two workers is faster than the host's time, half of the workers', or
    all of it spread over the processors. How long they take one after the other on one worker is shown too.
    """
    async with _opened(WORKERS) as many, _opened(1) as one:
        together, ideals, singly = [], [], []
        for turn in range(rounds + 1):
            host, workers = time.process_time(), _workers_ms()
            together.append(await _all_at_once(many))
            host, workers = (time.process_time() - host) * 1000, _workers_ms() - workers
            ideals.append(max(host, workers / WORKERS, (host + workers) / (os.cpu_count() or 1)))
            singly.append(await _one_by_one(one))
            if turn == 0:  # a warm-up
                together, ideals, singly = [], [], []
        used = _workers_ms()
    name, ours = f"{AT_ONCE} runs at once, {CALLS} calls each, two workers", Samples(tuple(together))
    goal, ideal = "1.3 x at most", "the same processor time without a pause"
    beside = Figure(name, "ms", goal, ours, ideal, Samples(tuple(ideals)))
    return [
        beside if used else skip(name, "ms", goal, "no /proc on this system"),
        Figure(name, "ms", "", ours, "one after the other, one worker", Samples(tuple(singly))),
    ]


def _workers_ms() -> float:
    """Return the processor time that this process's children have used; 0 where there is no /proc."""
    pids = [pid for children in Path("/proc/self/task").glob("*/children") for pid in children.read_text().split()]
    threads = [thread for pid in pids for thread in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


@asynccontextmanager
async def _opened(workers: int) -> AsyncIterator[Session]:
    pool, store = WorkerPool(workers), MemoryStore()
    try:
        async with open_session(Setup(manifest=MANIFEST), pool, store) as session:
            yield session
    finally:
        await pool.close()
        store.close()


async def _all_at_once(session: Session) -> float:
    before = time.perf_counter()
    await asyncio.gather(*(_sixteen(session, run) for run in range(AT_ONCE)))
    return (time.perf_counter() - before) * 1000


async def _one_by_one(session: Session) -> float:
    before = time.perf_counter()
    for run in range(AT_ONCE):
        await _sixteen(session, run)
    return (time.perf_counter() - before) * 1000


async def _sixteen(session: Session, run: int) -> None:
    """Run a cell that says how many of its calls gave it its own results."""
    result = await session.exec({"code": SIXTEEN.format(run=run)})
    assert isinstance(result, Completed), f"a run of a benchmark did not complete: {result}"
    assert result.value == CALLS, f"only {result.value} of {CALLS} results were this run's own"


# ---- events ----


class _NoJournal(Journal):
    """Takes no event: what is left is a call without telemetry, trajectory and log."""

    def record(self, event: Event) -> None:
        """Pay no heed."""

    def count(self, event: Event) -> None:
        """Pay no heed."""


async def _events(rounds: int) -> list[Figure]:
    """Time calls in a session that keeps events and in one that does not, in turn."""
    pool = WorkerPool(WORKERS)
    kinds = (
        ("an awaited call", "1.05 x at most", SEQUENTIAL, 200, 200),
        (f"{CALLS} calls at once, each", "", PARALLEL, 20, 320),  # nearly all of it is the host's, so events weigh more
    )
    try:
        with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
            store = SqliteStore(Database(Path(folder) / "codemode.db"))
            async with open_toolbox(MANIFEST) as box:
                parts = build_parts(Setup(manifest=MANIFEST), box, pool, store)
                without = parts._replace(
                    around=parts.around._replace(journal=_NoJournal()),
                    executor=Executor(box.redactor, box.policy, box.hooks),
                )
                sessions = Session(parts, Identity()), Session(without, Identity())
                found = [await _with_and_without(sessions, kind, rounds) for kind in kinds]
                for session in sessions:
                    await session.close()
            store.close()
    finally:
        await pool.close()
    return found


async def _with_and_without(sessions: Sequence[Session], kind: tuple[str, str, str, int, int], samples: int) -> Figure:
    name, goal, template, rounds, calls = kind
    cell, bare = (template.format(count=count, tool="nothing") for count in (rounds, 0))
    ours, theirs = await _in_turn(sessions, cell, samples)
    base, their_base = await _in_turn(sessions, bare, samples)
    ours, theirs = scaled(ours, calls / 1000, base.median), scaled(theirs, calls / 1000, their_base.median)
    return Figure(f"{name}, with its events", "µs", goal, ours, "taking no events", theirs)


async def _in_turn(sessions: Sequence[Session], cell: str, count: int) -> tuple[Samples, Samples]:
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(count + 2):
        for session, values in zip(sessions, taken, strict=True):
            before = time.perf_counter()
            result = await session.exec({"code": cell})
            assert isinstance(result, Completed), f"a run of a benchmark did not complete: {result}"
            if turn >= 2:
                values.append((time.perf_counter() - before) * 1000)
    return Samples(tuple(taken[0])), Samples(tuple(taken[1]))


# ---- the surface ----


def _surfaces() -> Iterator[Figure]:
    """Yield the tokens of a request's tools, in the format of the provider that needs most, over three catalogs."""
    config = CodeModeConfig()
    sizes = {}
    for count in CATALOGS:
        catalog = build_catalog(many_tools(count), Policy())
        shown = build_surface(catalog.sources | {"mcp": 1}, GuestScope(), config.languages, config.limits)
        bodies = (each.build_body(ChatRequest(each.model, (), shown)) for each in PROVIDERS.values())
        sizes[count] = max((measure(body["tools"]) for body in bodies), key=lambda size: size.tokens)
    reference = Samples((sizes[CATALOGS[0]].tokens,))
    for count, size in sizes.items():
        name = f"exec and wait before {count:,} tools, tokens by {size.counter}"
        yield Figure(
            name, "tokens", "700 at most, constant", Samples((size.tokens,)), f"before {CATALOGS[0]}", reference
        )


# ---- tests that are figures ----


def _checks(name: str, file: str) -> Figure:
    """Run a file of the adversarial tests and return the share of its checks that hold."""
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"tests/adversarial/{file}", f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT.parent, capture_output=True, check=False)
        if not report.is_file():
            return skip(name, "share", "1", "the tests cannot be run here: install the development dependencies")
        cases = ET.parse(report).getroot().findall(".//testcase")
    held = [case for case in cases if all(case.find(kind) is None for kind in ("failure", "error", "skipped"))]
    return Figure(f"{name}, of {len(cases)}", "share", "1", Samples((len(held) / len(cases),)))
