"""A store that fails at any verb of a run's life, in a process that lives on: nothing twice, nothing lost or stuck."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.errors import RuntimeUnavailable
from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from codemode.session import Session
from codemode.store.database import Database
from codemode.store.port import Caller, RunRecord
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import Gate, open_test_session, tool, toolbox

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("no_kill")]
PATIENT = {"timeout_ms": 30_000}
CELL = "const v = await tools.gate({}).catch((e) => e.message); text('went on'); return v"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(1)
    yield workers
    await workers.close()


class FailingStore(SqliteStore):
    """Becomes read-only, as a disk does that is full or mounted again, from a verb on until it is mended."""

    def __init__(self, path: Path) -> None:
        super().__init__(Database(path, busy_ms=50))
        self.is_broken = False

    def break_at(self, verb: str) -> None:
        """Fail from the next use of this verb on."""
        whole: Callable[..., Any] = getattr(self, verb)

        def broken(*arguments: Any, **more: Any) -> Any:
            setattr(self, verb, whole)
            self.break_now()
            return whole(*arguments, **more)

        setattr(self, verb, broken)

    def break_now(self) -> None:
        self.is_broken = True
        self._db.rows("PRAGMA query_only = 1")

    def mend(self) -> None:
        self._db.rows("PRAGMA query_only = 0")


@pytest.fixture
def store(tmp_path: Path) -> FailingStore:
    return FailingStore(tmp_path / "runs.db")


async def the_run(store: SqliteStore, *, leaves: str) -> RunRecord:
    """Return the only run once it has left a state: upkeep needs a moment. The session bounds the wait."""
    while True:
        (record,) = store.runs("default")
        if record.state != leaves:
            return record
        await asyncio.sleep(0.02)


def error_of(result: CodeModeResult) -> str:
    assert isinstance(result, Failed), result
    assert result.code == RuntimeUnavailable.code
    return result.error


@requirement("session:faults:owed")
@pytest.mark.parametrize("verb", ["suspend", "finish"])
async def test_an_exec_whose_end_cannot_be_written_says_so_and_is_no_running_run_later(
    pool: WorkerPool, store: FailingStore, verb: str
) -> None:
    """A long-lived process would show it as running for ever: nobody drives it."""
    cell = "await yield_control()" if verb == "suspend" else "return 1"
    async with open_test_session(pool, toolbox(), store) as session:
        store.break_at(verb)
        assert "can no longer be written" in error_of(await session.exec({"code": cell}))
        assert store.is_broken
        assert [run.state for run in store.runs("default")] == ["running"]

        store.mend()

        record = await the_run(store, leaves="running")
        assert (record.state, record.code) == ("failed", RuntimeUnavailable.code)
        assert "can no longer be written" in (record.error or "")
    store.close()


async def waiting_run(session: Session, gate: Gate) -> str:
    """Suspend the cell with its call in flight, then let the call settle into the store."""
    first = await session.exec({"code": CELL})
    assert isinstance(first, Waiting), first
    gate.open("done once")
    await session.settled()
    return first.run_id


@requirement("session:faults:owed", "runs:snapshots:once")
@pytest.mark.parametrize("verb", ["begin_delivery", "unclaim"])
async def test_a_wait_that_could_not_be_written_before_it_delivered_leaves_the_run_waiting(
    pool: WorkerPool, store: FailingStore, verb: str
) -> None:
    """Its snapshot and the answer are in the store still: the next wait delivers it."""
    gate = Gate()
    box = toolbox([gate.tool], limits={"timeout_ms": 300})
    async with open_test_session(pool, box, store) as session:
        if verb == "begin_delivery":
            run_id = await waiting_run(session, gate)
        else:
            first = await session.exec({"code": CELL})
            assert isinstance(first, Waiting), first
            run_id = first.run_id
        store.break_at(verb)
        assert "can no longer be written" in error_of(await session.wait({"runId": run_id}, timeout_ms=300))
        assert store.is_broken

        store.mend()
        record = await the_run(store, leaves="running")
        assert record.state == "waiting"
        if verb == "unclaim":
            gate.open("done once")
            await session.settled()
        last = await session.wait({"runId": run_id}, timeout_ms=30_000)

        assert isinstance(last, Completed), last
        assert last.value == "done once"
        assert [item.value for item in last.output] == ["went on"]
        assert len(gate.begun) == 1
    store.close()


@requirement("session:faults:owed")
async def test_a_claim_that_cannot_be_written_changes_nothing(pool: WorkerPool, store: FailingStore) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits={"timeout_ms": 300}), store) as session:
        run_id = await waiting_run(session, gate)
        store.break_now()
        assert "can no longer be written" in error_of(await session.wait({"runId": run_id}))
        store.mend()

        last = await session.wait({"runId": run_id}, timeout_ms=30_000)
        assert isinstance(last, Completed), last
        assert last.value == "done once"
    store.close()


@requirement("session:faults:owed", "runs:calls:dispatched-once")
async def test_an_approved_call_that_cannot_be_recorded_does_not_run(pool: WorkerPool, store: FailingStore) -> None:
    """The record comes before the call: without it a second approval could run it twice."""
    begun = []

    async def once() -> str:
        begun.append("once")
        return "done once"

    box = toolbox([tool("gate", once, approval="ask")], limits=PATIENT)
    async with open_test_session(pool, box, store) as session:
        first = await session.exec({"code": CELL})
        assert isinstance(first, Waiting), first
        (call,) = first.pending
        store.break_at("dispatch")
        assert "can no longer be written" in error_of(await session.wait({"runId": first.run_id}, {call.id: True}))
        assert begun == []

        store.mend()
        record = await the_run(store, leaves="running")
        assert [each.state for each in record.pending] == ["awaiting_approval"]
        last = await session.wait({"runId": first.run_id}, {call.id: True})

        assert isinstance(last, Completed), last
        assert (last.value, begun) == ("done once", ["once"])
    store.close()


@requirement("session:faults:owed")
async def test_an_abort_that_was_asked_for_meanwhile_wins_over_going_back(
    pool: WorkerPool, store: FailingStore, tmp_path: Path
) -> None:
    """The run would wait for nobody."""
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits={"timeout_ms": 300}), store) as session:
        run_id = await waiting_run(session, gate)
        store.break_at("begin_delivery")
        error_of(await session.wait({"runId": run_id}))
        other = SqliteStore(Database(tmp_path / "runs.db"))
        assert other.abort(run_id, Caller("default", "main")) == "running"
        other.close()

        store.mend()

        assert (await the_run(store, leaves="running")).state == "aborted"
    store.close()


@requirement("session:faults:owed")
async def test_the_end_of_a_session_is_the_last_occasion(pool: WorkerPool, store: FailingStore) -> None:
    async with open_test_session(pool, toolbox(), store) as session:
        store.break_at("finish")
        error_of(await session.exec({"code": "return 1"}))
        store.mend()

    assert [run.state for run in store.runs("default")] == ["failed"]
    store.close()
