"""A worker that has been taken over speaks to the session: nothing that it says reaches a tool unchecked."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from codemode.core.errors import ErrorCode
from codemode.core.types import CodeModeResult, Completed, Failed
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.scripted_worker import script, spawner, turn
from tests.support.sessions import Gate, open_test_session, tool, toolbox


async def add(n: int = 0, **rest: Any) -> int:
    return n + 1


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(1, spawn=spawner())
    yield workers
    await workers.close()


async def exec_script(pool: WorkerPool, *steps: list, **more: Any) -> CodeModeResult:
    """Run a cell whose worker takes these steps, one list for each request."""
    async with open_test_session(pool, toolbox(**more)) as session:
        return await session.exec({"code": script(*steps)})


def failed(result: CodeModeResult, code: ErrorCode) -> Failed:
    assert isinstance(result, Failed), result
    assert result.code is code
    return result


async def test_a_worker_that_behaves_is_served(pool: WorkerPool) -> None:
    result = await exec_script(
        pool,
        [turn("suspended", '[["call",1,"client:app:add",{"n":1}],["text","t"]]')],
        [turn("completed", '[["value","end"]]')],
        tools=[tool("add", add)],
    )

    assert isinstance(result, Completed)
    assert (result.value, [item.value for item in result.output]) == ("end", ["t"])


@requirement("execution:calls:capped-on-host", "execution:failed:dispatches-nothing")
async def test_more_calls_than_the_cap_are_refused_and_none_is_dispatched(pool: WorkerPool) -> None:
    gate = Gate()
    rows = ",".join(f'["call",{id_},"client:app:gate",{{}}]' for id_ in range(1, 4))
    result = await exec_script(
        pool, [turn("suspended", f"[{rows}]")], tools=[gate.tool], limits={"max_pending_tool_calls": 2}
    )

    assert not failed(result, ErrorCode.TOO_MANY_PENDING_TOOL_CALLS).dispatched
    assert gate.begun == []


@requirement("execution:worker:hostile-frames")
async def test_a_failed_turn_with_calls_in_it_dispatches_none(pool: WorkerPool) -> None:
    gate = Gate()
    rows = '[["call",1,"client:app:gate",{}]]'
    result = await exec_script(pool, [turn("failed", rows, error="boom", code=None, phase="guest")], tools=[gate.tool])

    assert isinstance(result, Failed)
    assert (result.error, result.code, result.dispatched) == ("boom", None, False)
    assert gate.begun == []


@requirement("execution:worker:hostile-frames")
async def test_a_completed_turn_with_calls_in_it_dispatches_none(pool: WorkerPool) -> None:
    gate = Gate()
    result = await exec_script(
        pool, [turn("completed", '[["call",1,"client:app:gate",{}],["value",1]]')], tools=[gate.tool]
    )

    assert isinstance(result, Completed)
    assert gate.begun == []


@requirement("execution:worker:hostile-frames")
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("[]", "waits for nothing"),
        ('[["text","\\ud800"]]', "not JSON"),
        ('[["json",NaN]]', "not JSON"),
        ('[["cancel",5]]', "waits for nothing"),
    ],
)
async def test_a_turn_that_makes_no_sense_is_runtime_unavailable(pool: WorkerPool, rows: str, words: str) -> None:
    result = await exec_script(pool, [turn("suspended", rows)], [["send", {"event": "dropped"}, ""]])

    assert words in failed(result, ErrorCode.RUNTIME_UNAVAILABLE).error


@requirement("execution:worker:hostile-frames")
async def test_a_request_cannot_be_asked_again_after_it_was_answered(pool: WorkerPool) -> None:
    rows = '[["call",1,"client:app:gate",{}]]'
    gate = Gate()
    gate.open("once")
    result = await exec_script(pool, [turn("suspended", rows)], [turn("suspended", rows)], tools=[gate.tool])

    assert "request 1 comes after request 1" in failed(result, ErrorCode.RUNTIME_UNAVAILABLE).error
    assert len(gate.begun) == 1


@requirement("execution:worker:hostile-frames")
async def test_forged_ids_and_paths_are_rejections_that_reach_no_tool(pool: WorkerPool) -> None:
    gate = Gate()
    rows = '[["call",1,"mcp:x:gate",{}],["namespace",2,"MCP\\u001fx\\u001fgate",{"args":[]}],["describe",3,"gate "]]'
    result = await exec_script(pool, [turn("suspended", rows)], [["echo"]], tools=[gate.tool])

    settled = result.output[1].value
    assert settled.count("false") == 3
    assert "nested_tool_failed" in settled
    assert gate.begun == []


@requirement("execution:worker:crash")
async def test_a_worker_that_dies_while_its_cell_waits_fails_the_run_and_cancels_its_calls(pool: WorkerPool) -> None:
    gate = Gate()
    rows = '[["call",1,"client:app:gate",{}],["timer",2,20]]'
    async with open_test_session(pool, toolbox([gate.tool])) as session:
        result = await session.exec({"code": script([turn("suspended", rows), ["exit", 9]])})
        await gate.until(begun=1, cancelled=1)

    assert "exited with status 9" in failed(result, ErrorCode.RUNTIME_UNAVAILABLE).error


@requirement("execution:snapshot:limit")
async def test_a_snapshot_larger_than_allowed_is_never_read(pool: WorkerPool) -> None:
    result = await exec_script(
        pool,
        [turn("suspended", '[["yield",1,null]]')],
        [["send", {"event": "snapshot"}, "s" * 5000]],
        limits={"max_snapshot_bytes": 1024},
    )

    assert "takes 5000 bytes" in failed(result, ErrorCode.SNAPSHOT_LIMIT_EXCEEDED).error


async def test_an_engine_that_says_it_is_missing_is_runtime_unavailable() -> None:
    last_words = (["send", {"event": "fatal", "error": "quickjs.wasm is damaged"}, ""], ["exit", 1])
    workers = WorkerPool(1, spawn=spawner(*last_words))
    try:
        async with open_test_session(workers, toolbox()) as session:
            result = await session.exec({"code": "return 1"})
    finally:
        await workers.close()

    assert failed(result, ErrorCode.RUNTIME_UNAVAILABLE).error == "quickjs.wasm is damaged"
