"""The pool and its workers, against real processes that crash, hang and lie on command."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codemode.core.errors import RuntimeUnavailable, SnapshotLimit, TurnTimeout
from codemode.core.protocol import Deliver, Start, encode_frame
from codemode.supervisor.pool import WorkerPool
from codemode.supervisor.spawn import Child, kill, spawn
from codemode.supervisor.worker import Worker
from tests.requirements import requirement
from tests.support.processes import has_ended
from tests.support.scripted_worker import script, spawner, turn

PATIENCE_S = 60


def start(*steps: list, budget_ms: float = 10_000, scope: str = "", scope_text: bytes = b"") -> Start:
    """A request to start a cell whose text is a script for the worker."""
    return Start(script(*steps), "javascript", budget_ms, 1 << 20, 1024, 16, 1, scope, scope_text)


@asynccontextmanager
async def pool_of(size: int = 1, spawn: Callable[[], Child] | None = None) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(size, spawn=spawn or spawner())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def one_worker() -> AsyncIterator[Worker]:
    async with pool_of() as pool:
        worker = await pool.acquire()
        yield worker
        pool.release(worker)


async def test_a_turn_comes_back_validated() -> None:
    async with one_worker() as worker:
        end = await worker.turn(start([turn()]), 0)

        assert worker.build == "scripted"
        assert (end.state, end.value, end.guest_ms) == ("completed", 2, 0.5)


async def test_a_frame_that_comes_in_pieces_is_put_together() -> None:
    rows = '[["text","' + "x" * 1_000_000 + '"]]'
    async with one_worker() as worker:
        end = await worker.turn(start([turn("suspended", rows)]), 0)

        assert len(end.output[0].value) == 1_000_000


async def test_a_large_request_is_written_to_its_end() -> None:
    settled = b'"' + b"y" * 3_000_000 + b'"'
    async with one_worker() as worker:
        await worker.turn(start([turn("suspended", "[]")], [["echo"]]), 0)
        end = await worker.turn(Deliver(10_000, settled), 0)

        assert end.output[1].value == settled.decode()


async def test_what_need_not_be_done_before_a_turn_is_done_while_the_worker_has_it() -> None:
    seen = []
    async with one_worker() as worker:
        end = await worker.turn(start([turn()]), 0, lambda: seen.append("meanwhile"))

        assert (end.value, seen) == (2, ["meanwhile"])


async def test_a_worker_given_back_goes_to_the_next_in_line_or_rests() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        waiting = asyncio.ensure_future(pool.acquire())
        await asyncio.sleep(0)

        assert pool.release(worker)
        assert await waiting is worker
        assert not pool.release(worker)
        assert await pool.acquire() is worker


async def test_a_worker_whose_answer_nobody_awaits_any_more_is_killed() -> None:
    def broken() -> None:
        raise ValueError("meanwhile something broke")

    async with pool_of() as pool:
        worker = await pool.acquire()
        with pytest.raises(ValueError, match="meanwhile"):
            await worker.turn(start([turn()]), 0, broken)
        with pytest.raises(RuntimeUnavailable, match="was stopped in mid-turn"):
            await worker.drop()


@requirement("execution:worker:hostile-frames")
async def test_a_worker_that_adds_a_blob_where_none_is_due_is_killed() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        await worker.turn(start([turn("suspended", "[]")], [["send", {"event": "inspected", "answer": {}}, "blob"]]), 0)
        with pytest.raises(RuntimeUnavailable, match="answered with 4 bytes where 0 are allowed and was killed"):
            await worker.inspect("1", [])


async def test_a_scope_is_sent_once_to_each_worker() -> None:
    async with one_worker() as worker:
        first = await worker.turn(start([["echo"]], scope="abc", scope_text=b"the scope"), 0)
        again = await worker.turn(start([["echo"]], scope="abc", scope_text=b"the scope"), 0)
        other = await worker.turn(start([["echo"]], scope="def", scope_text=b"another"), 0)

        assert [end.output[1].value for end in (first, again, other)] == ["the scope", "", "another"]


@requirement("execution:worker:crash")
@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([["say", "it hurts"], ["exit", 3]], "exited with status 3; its last words: it hurts"),
        ([["signal", signal.SIGSEGV]], "was ended by SIGSEGV"),
        ([["write", "\0\0"], ["exit", 0]], "exited with status 0"),
    ],
)
async def test_a_worker_that_dies_in_mid_turn_says_how_and_is_replaced(steps: list, words: str) -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        with pytest.raises(RuntimeUnavailable, match=words):
            await worker.turn(start(steps), 0)
        pool.release(worker)

        fresh = await pool.acquire()
        assert fresh is not worker
        assert (await fresh.turn(start([turn()]), 0)).value == 2


async def test_last_words_are_bounded() -> None:
    async with one_worker() as worker:
        with pytest.raises(RuntimeUnavailable) as caught:
            await worker.turn(start([["say", "x" * 50_000 + "the end"], ["exit", 1]]), 0)

        assert len(caught.value.message) < 5000
        assert caught.value.message.endswith("the end")


def frame(step: list) -> str:
    """Return what a `send` step writes: two frames in one write are read as one, in two writes perhaps not."""
    _, header, blob = step
    return encode_frame(header, blob.encode()).decode("latin-1")


HOSTILE = {
    "not a frame at all": [["write", "G" * 64]],
    "absurd lengths": [["write", "\x7f\xff\xff\xff\x00\x00\x00\x00"]],
    "a header of 2 MiB": [["write", "\x00\x20\x00\x00\x00\x00\x00\x00"]],
    "rows of 64 MiB": [["write", "\x00\x00\x00\x02\x04\x00\x00\x00{}"]],
    "a header that is not JSON": [["write", "\x00\x00\x00\x02\x00\x00\x00\x00{]"]],
    "a header that is no object": [["write", "\x00\x00\x00\x02\x00\x00\x00\x00[]"]],
    "another event": [["send", {"event": "snapshot"}, ""]],
    "an event without a name": [["send", {}, ""]],
    "two answers in one": [["write", 2 * frame(turn())]],
    "bytes after the answer": [["write", "\x00\x00\x00\x02\x00\x00\x00\x00{}tail"]],
    "a state of its own": [turn("exploded")],
    "rows that are not JSON": [turn(rows="[[")],
    "rows too deep to read": [turn(rows="[" * 100_000)],
    "a row out of the grammar": [turn(rows='[["eval","1"]]')],
    "a request without an input": [turn("suspended", '[["call",1,"t"]]')],
    "a request id that it has used": [turn("suspended", '[["yield",1,null],["yield",1,null]]')],
    "a failure without a reason": [turn("failed", "[]")],
    "a failure with a code of its own": [turn("failed", "[]", error="e", code="made_up", phase="guest")],
}


@requirement("execution:worker:hostile-frames")
@pytest.mark.parametrize("steps", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_worker_that_breaks_the_protocol_is_killed(steps: list) -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        with pytest.raises(RuntimeUnavailable, match="killed"):
            await worker.turn(start(steps), 0)
        pool.release(worker)

        assert await pool.acquire() is not worker


@requirement("execution:worker:hostile-frames")
async def test_a_replayed_turn_is_refused_by_its_ids() -> None:
    rows = '[["yield",7,null]]'
    async with one_worker() as worker:
        await worker.turn(start([turn("suspended", rows)], [turn("suspended", rows)]), 6)
        with pytest.raises(RuntimeUnavailable, match="request 7 comes after request 7"):
            await worker.turn(Deliver(10_000, b"[]"), 7)


@requirement("execution:worker:hostile-frames")
async def test_a_frame_that_nobody_asked_for_ends_an_idle_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    async with pool_of() as pool:
        worker, ended = await pool.acquire(), asyncio.Event()
        monkeypatch.setattr(pool, "_on_end", lambda gone: (WorkerPool._on_end(pool, gone), ended.set()))
        await worker.turn(start([turn(), ["until", str(gate)], turn()]), 0)
        pool.release(worker)
        gate.touch()
        await ended.wait()

        assert await pool.acquire() is not worker


@requirement("execution:timeout:kill")
async def test_a_worker_that_hangs_is_killed_after_budget_and_grace() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        with pytest.raises(TurnTimeout, match=r"150 ms later.*output of this turn is lost"):
            await worker.turn(start([["hang"]], budget_ms=50), 0)
        pool.release(worker)

        fresh = await pool.acquire()
        assert (await fresh.turn(start([turn()]), 0)).state == "completed"


@requirement("execution:snapshot:limit")
async def test_a_snapshot_over_its_bound_names_both_sizes() -> None:
    async with one_worker() as worker:
        await worker.turn(start([turn("suspended", "[]")], [["send", {"event": "snapshot"}, "z" * 2000]]), 0)
        with pytest.raises(SnapshotLimit, match="takes 2000 bytes; maxSnapshotBytes allows 1024"):
            await worker.snapshot(1024)


async def test_a_snapshot_is_the_blob_of_its_answer() -> None:
    async with one_worker() as worker:
        await worker.turn(start([turn("suspended", "[]")], [["send", {"event": "snapshot"}, "bytes"]]), 0)

        assert await worker.snapshot(1024) == b"bytes"


async def test_a_turn_that_is_given_up_kills_its_worker() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        going = asyncio.ensure_future(worker.turn(start([["hang"]]), 0))
        await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going

        assert not worker.reusable


@requirement("execution:worker:crash")
async def test_a_worker_that_cannot_start_is_an_error_each_time_and_no_loop() -> None:
    starts: list[Child] = []

    def failing() -> Child:
        starts.append(spawner(["say", "no engine here"], ["exit", 1])())
        return starts[-1]

    async with pool_of(spawn=failing) as pool:
        for _ in range(2):
            with pytest.raises(RuntimeUnavailable, match="exited with status 1; its last words: no engine here"):
                await pool.acquire()

        assert len(starts) == 2


async def test_a_program_that_does_not_exist_is_runtime_unavailable() -> None:
    with pytest.raises(RuntimeUnavailable, match="cannot start /nowhere/python: No such file"):
        spawn(["/nowhere/python"], {})


@requirement("execution:worker:exclusive")
async def test_workers_are_checked_out_one_user_at_a_time_in_the_order_of_asking() -> None:
    served: list[int] = []

    async def use(pool: WorkerPool, number: int) -> None:
        worker = await pool.acquire()
        served.append(number)
        await worker.turn(start([turn()]), 0)
        pool.release(worker)

    async with pool_of(2) as pool:
        first, second = await pool.acquire(), await pool.acquire()
        users = [asyncio.ensure_future(use(pool, number)) for number in range(4)]
        await asyncio.sleep(0)
        assert pool.has_waiters
        assert first is not second
        pool.release(first)
        pool.release(second)
        await asyncio.gather(*users)

        assert served == [0, 1, 2, 3]
        assert not pool.has_waiters


async def test_one_who_stops_waiting_leaves_the_worker_to_the_next() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        impatient = asyncio.ensure_future(pool.acquire())
        patient = asyncio.ensure_future(pool.acquire())
        await asyncio.sleep(0)
        pool.release(worker)
        impatient.cancel()

        assert await patient is worker
        with pytest.raises(asyncio.CancelledError):
            await impatient


async def test_a_user_whose_cell_only_waits_is_asked_for_its_worker() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        worker.on_wanted = lambda: pool.release(worker)

        assert await pool.acquire() is worker
        assert worker.on_wanted is None


@requirement("execution:worker:replaced")
async def test_a_tainted_worker_is_replaced_before_it_is_needed() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        await worker.turn(start([turn(tainted=True)]), 0)
        pool.release(worker)

        assert await pool.acquire() is not worker


@requirement("execution:worker:replaced")
async def test_an_old_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemode.supervisor.worker.WORKER_MAX_CELLS", 2)
    async with pool_of() as pool:
        used = []
        for _ in range(3):
            used.append(await pool.acquire())
            await used[-1].turn(start([turn()]), 0)
            pool.release(used[-1])

        assert used[0] is used[1]
        assert used[2] is not used[1]


async def test_closing_the_pool_ends_its_workers_and_refuses_who_waits() -> None:
    async with pool_of() as pool:
        worker = await pool.acquire()
        waiting = asyncio.ensure_future(pool.acquire())
        await asyncio.sleep(0)
        await pool.close()

        for refused in (waiting, pool.acquire(), worker.turn(start([turn()]), 0)):
            with pytest.raises(RuntimeUnavailable):
                await refused


@requirement("execution:worker:isolated")
def test_a_child_has_its_own_group_and_no_descriptor_but_its_pipes(tmp_path: Path) -> None:
    shared = os.open(tmp_path / "shared", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(shared, True)
    try:
        said_and_ended = "ls /dev/fd; ps -o pgid= -p $$; env; exit 0"  # the shell's own stdout is the last to close
        child = spawn(["/bin/sh", "-c", said_and_ended], {"ONLY": "this"})
        with open(child.stdout, closefd=False) as stdout:
            said = stdout.read()
        ended = kill(child)
    finally:
        os.close(shared)

    assert str(shared) not in said.split()[:4]
    assert str(child.pid) in said.split()
    assert "ONLY=this" in said
    assert "HOME" not in said
    assert ended == "exited with status 0"


@requirement("execution:worker:follows-parent")
def test_a_worker_ends_when_its_host_is_killed() -> None:
    program = """
import asyncio, os, signal
from codemode.supervisor.pool import WorkerPool
from tests.support.scripted_worker import spawner

async def main():
    worker = await WorkerPool(1, spawn=spawner()).acquire()
    print(worker._wire._child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    host = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert host.returncode == -signal.SIGKILL
    assert has_ended(int(host.stdout))
