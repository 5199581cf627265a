"""Many runs: a thousand that are suspended in one store, and 64 that go on at the same time."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.events import TurnMeasured
from codemode.core.types import CodeModeResult, Completed, Waiting
from codemode.session import Identity, Session
from codemode.store.database import Database
from codemode.store.memory import MemoryStore
from codemode.store.owner import this_process
from codemode.store.port import Store
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from codemode.trajectory import fold
from tests.requirements import requirement
from tests.support.sessions import open_test_session, tool, toolbox
from tests.support.stores import ME, answer, new_run, open_call, suspension

pytestmark = pytest.mark.timeout(300)
in_one_loop = pytest.mark.asyncio(loop_scope="module")
SESSIONS, RUNS_PER_SESSION = 20, 50
MAX_BYTES_PER_RUN = 40_000
SAMPLE = 40
AT_ONCE, CALLS = 64, 16
OLD = 9900  # a few less than are kept
PATIENT = {"timeout_ms": 60_000}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(2)
    yield workers
    await workers.close()


async def order(number: int, mark: str = "") -> dict[str, Any]:
    await asyncio.sleep(0)  # let the others go first
    return {"number": number, "mark": mark}


ORDER = tool("order", order)


def name(number: int) -> str:
    return f"session-{number}"


async def suspend_runs(pool: WorkerPool, store: Store, session_name: str) -> list[str]:
    """Suspend runs that hold some state; each waits at a yield after one call."""
    box = toolbox([ORDER], limits=PATIENT)
    async with open_test_session(pool, box, store, Identity(session_name)) as session:
        results = [
            await session.exec(
                {
                    "code": f"const got = await tools.order({{number: {n}, mark: '{session_name}'}});"
                    "const seen = new Map([[got.number, got.mark]]); text('half way'); await yield_control();"
                    "return [...seen, (await tools.order({number: got.number + 1})).number]"
                }
            )
            for n in range(RUNS_PER_SESSION)
        ]
    return [run_of(result) for result in results]


def run_of(result: CodeModeResult) -> str:
    assert isinstance(result, Waiting), result
    return result.run_id


def value_of(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


@requirement("scale:store:size", "scale:store:wait")
@in_one_loop
async def test_a_thousand_suspended_runs_are_small_and_each_goes_on(pool: WorkerPool, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(Database(path))
    runs = {name(n): await suspend_runs(pool, store, name(n)) for n in range(SESSIONS)}
    store.close()  # all is in the file now, its log too
    each = path.stat().st_size / (SESSIONS * RUNS_PER_SESSION)
    assert each <= MAX_BYTES_PER_RUN

    later = SqliteStore(Database(path))
    later.sweep()
    try:
        await resume_some(pool, later, runs)
    finally:
        later.close()


async def resume_some(pool: WorkerPool, store: Store, runs: dict[str, list[str]]) -> None:
    """Resume a few of each session, as other processes would; the rest must still wait."""
    chosen = random.Random(5).sample([(key, n) for key in runs for n in range(RUNS_PER_SESSION)], SAMPLE)
    for session_name, n in chosen:
        box = toolbox([ORDER], limits=PATIENT)
        async with open_test_session(pool, box, store, Identity(session_name)) as session:
            end = await session.wait({"runId": runs[session_name][n]})
        assert value_of(end) == [[n, session_name], n + 1]
        assert end.output == ()
    states = [run.state for key in runs for run in store.runs(key)]
    assert (states.count("completed"), states.count("waiting")) == (SAMPLE, len(states) - SAMPLE)


def add_ended_runs(store: SqliteStore, count: int) -> None:
    """Add ended runs, of the caller's session and of many agent runs, as months of use would."""
    run_id = store.create(new_run())
    store.append(run_id, [TurnMeasured(run_id, 1.0, 2.0)] * 20)
    store.finish(run_id, "completed")
    columns = "session, agent_id, state, language, manifest, limits, created_ms, ended_ms"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    with store._db.write():
        store._db.change(
            f"{numbers} INSERT INTO runs (run_id, agent_run_id, {columns}) "
            f"SELECT 'cm_' || i, 'ar_' || i, {columns} FROM n, runs WHERE run_id = ?",
            count - 1,
            run_id,
        )
        store._db.change(
            f"{numbers} INSERT INTO events (run_id, batch) SELECT 'cm_' || i, batch FROM n, events WHERE run_id = ?",
            count - 1,
            run_id,
        )


def work_of_a_life(store: SqliteStore) -> int:
    """Take a run through all its verbs; return the work of SQLite, in hundreds of its machine's steps."""
    work = 0

    def count() -> int:
        nonlocal work
        work += 1
        return 0

    store._db._connection.set_progress_handler(count, 100)
    store.sweep()
    run_id = store.create(new_run(agent_run_id="ar_new"))
    store.append(run_id, [TurnMeasured(run_id, 1.0, 2.0)])
    store.suspend(suspension(run_id, [open_call(1), open_call(2, state="awaiting_approval", owner=None)]))
    store.sweep()
    assert store.settle(run_id, answer(1))
    store.claim(run_id, ME, this_process())
    assert store.dispatch(run_id, 2, this_process())
    assert store.settle(run_id, answer(2))
    assert len(store.inbox(run_id).replies) == 2
    store.begin_delivery(run_id)
    assert not store.must_stop(run_id)
    assert store.agent_run_events("ar_new")
    store.finish(run_id, "completed")
    assert store.get(run_id, ME).state == "completed"
    store._db._connection.set_progress_handler(None, 0)
    return work


@requirement("scale:store:old")
def test_ten_thousand_old_runs_cost_the_life_of_a_new_one_nothing(tmp_path: Path) -> None:
    """Counted in steps of SQLite's machine, which depend on no clock: an index serves every verb."""
    empty, full = (SqliteStore(Database(tmp_path / f"{name}.db")) for name in ("empty", "full"))
    add_ended_runs(full, OLD)
    assert len(full.runs("default")) == OLD
    work_of_a_life(empty)  # what the first ever must set up

    assert work_of_a_life(full) <= 2 * work_of_a_life(empty) + 10

    empty.close()
    full.close()


async def ask_sixteen_times(session: Session, mark: str) -> CodeModeResult:
    return await session.exec(
        {
            "code": f"const numbers = Array.from({{length: {CALLS}}}, (_, n) => n);"
            f"const got = await Promise.all(numbers.map((number) => tools.order({{number, mark: '{mark}'}})));"
            f"text('{mark}'); return got.map((each) => [each.number, each.mark])"
        }
    )


@requirement("scale:runs:complete", "scale:runs:cross-talk")
@in_one_loop
async def test_64_runs_at_once_in_one_session_complete_and_stay_apart(pool: WorkerPool) -> None:
    store = MemoryStore()
    marks = [f"run-{n}" for n in range(AT_ONCE)]
    async with open_test_session(pool, toolbox([ORDER], limits=PATIENT), store) as session:
        results = await asyncio.gather(*(ask_sixteen_times(session, mark) for mark in marks))
        telemetry = results[-1].telemetry
    for mark, result in zip(marks, results, strict=True):
        assert value_of(result) == [[n, mark] for n in range(CALLS)]
        assert [item.value for item in result.output] == [mark]
        (run,) = fold(store.events(str(result.run_id))).runs
        assert [(call.state, call.input["mark"]) for call in run.calls] == [("ok", mark)] * CALLS
    assert len({result.run_id for result in results}) == AT_ONCE
    assert (telemetry["execCount"], telemetry["nestedToolIds"]) == (AT_ONCE, ["client:app:order"])
    store.close()


@requirement("scale:runs:complete", "scale:runs:cross-talk")
@in_one_loop
async def test_64_sessions_at_once_share_workers_and_nothing_else(pool: WorkerPool) -> None:
    store = MemoryStore()

    async def one(number: int) -> tuple[str, CodeModeResult]:
        mark = name(number)
        own = tool("order", order, parameters={"type": "object", "properties": {"mark": {"const": mark}}})
        async with open_test_session(pool, toolbox([own], limits=PATIENT), store, Identity(mark)) as session:
            return mark, await ask_sixteen_times(session, mark)

    for mark, result in await asyncio.gather(*map(one, range(AT_ONCE))):
        assert value_of(result) == [[n, mark] for n in range(CALLS)]
        assert (result.telemetry["execCount"], result.telemetry["callCount"]) == (1, CALLS)
        assert [run.run_id for run in store.runs(mark)] == [result.run_id]
    store.close()
