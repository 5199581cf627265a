"""Walls between cells: one worker serves them one after the other, and nothing of one is in the next."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import open_test_session, tool, toolbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEAVES = {
    "a global": ("globalThis.left = 1; var top = 2", "[typeof left, typeof top]", ["undefined"] * 2),
    "a prototype": ("Object.prototype.left = 1; Array.prototype.at = () => 'mine'", "[{}.left, [5].at(0)]", [None, 5]),
    "built-ins": (
        "JSON.stringify = () => 'mine'; Math.max = () => 'mine'; Date.now = () => 'mine'; delete globalThis.Map",
        "[JSON.stringify([1]), Math.max(1, 2), typeof Date.now(), typeof Map]",
        ["[1]", 2, "number", "function"],
    ),
    "a symbol": ("globalThis[Symbol.for('left')] = 1", "globalThis[Symbol.for('left')]", None),
    "regular expression state": ("/(left)/.exec('left')", "[RegExp.$1 ?? '', /x/g.lastIndex]", ["", 0]),
    "stack settings": ("Error.stackTraceLimit = 0", "new Error('x').stack.includes('cell.js')", True),
    "an open timer": ("setTimeout(() => text('left'), 0); throw 1", "1", 1),
    "an open call": ("tools.add({n: 1}).then(() => text('left')); throw 1", "1", 1),
    "an unhandled rejection": ("Promise.reject(new Error('left')); throw 1", "1", 1),
    "output that was never delivered": ("text('left'.repeat(1e5))", "1", 1),
    "properties of tools": ("tools.left = 1; ALL_TOOLS.left = 1; tools.add.left = 1; text.left = 1",
                            "[tools.left, ALL_TOOLS.left, tools.add.left, text.left].map((x) => typeof x)",
                            ["undefined"] * 4),
    "an endless loop": ("globalThis.left = 1; for (;;);", "typeof left", "undefined"),
    "a killed built-in": ("var left = 1; 'a'.repeat(2e7).indexOf('a'.repeat(1e7) + 'b')", "typeof left", "undefined"),
    "a full memory": ("globalThis.left = []; for (;;) left.push(new Array(100).fill(7))", "typeof left", "undefined"),
    "a deep stack": ("globalThis.left = 1; const f = (n) => [n].map(f); f(1)", "typeof left", "undefined"),
    "a refused source": ("globalThis.left = 1; import('fs')", "typeof left", "undefined"),
    "a run that waits": ("globalThis.left = 1; await yield_control()", "typeof left", "undefined"),
}  # fmt: skip
SECRET = "zebra-crossing"


async def add(n: int = 0) -> int:
    return n + 1


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(1)
    await workers.warm()
    yield workers
    await workers.close()


def completed(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


@requirement("isolation:worker:reused", "isolation:failure:next")
@pytest.mark.parametrize(("leave", "probe", "expected"), LEAVES.values(), ids=LEAVES.keys())
async def test_nothing_of_a_cell_is_in_the_next(pool: WorkerPool, leave: str, probe: str, expected: Any) -> None:
    box = toolbox([tool("add", add)], limits={"timeout_ms": 700, "memory_limit_bytes": 32 << 20})
    patient = box.config.limits._replace(timeout_ms=20_000)
    async with open_test_session(pool, box) as session:
        first = await session.exec({"code": f"{leave}\nreturn 0"})
        second = await session.exec({"code": f"return {probe}"}, patient)

    assert isinstance(first, Completed | Failed | Waiting)
    assert (completed(second), second.output) == (expected, ())


@requirement("isolation:worker:reused")
async def test_the_memory_of_a_cell_is_not_found_by_the_next(pool: WorkerPool) -> None:
    """All that the next one can allocate is zero."""
    async with open_test_session(pool, toolbox(limits={"timeout_ms": 30_000})) as session:
        fill = f"const a = []; for (let n = 0; n < 2e4; n += 1) a.push('{SECRET}' + n, new Uint8Array(500).fill(90)); "
        assert completed(await session.exec({"code": fill + "return a.length"})) == 40_000
        look = "const b = new Uint32Array(new ArrayBuffer(48 << 20)); return b.findIndex((word) => word !== 0)"
        assert completed(await session.exec({"code": look})) == -1


@requirement("isolation:catalog:session")
async def test_two_sessions_on_one_worker_have_their_own_tools_and_figures(pool: WorkerPool) -> None:
    called = "await tools.call('yours', {}).catch((e) => e.code)"
    probe = f"return [ALL_TOOLS.map((t) => t.name), 'mine' in tools, 'yours' in tools, {called}]"
    async with (
        open_test_session(pool, toolbox([tool("mine", add)])) as mine,
        open_test_session(pool, toolbox([tool("yours", add)])) as yours,
    ):
        for _ in range(2):
            first, second = await mine.exec({"code": probe}), await yours.exec({"code": probe})

    assert completed(first) == [["mine"], True, False, "nested_tool_failed"]
    assert completed(second) == [["yours"], False, True, 1]
    assert (first.telemetry["callCount"], second.telemetry["callCount"]) == (0, 2)
    assert (first.telemetry["nestedToolIds"], second.telemetry["nestedToolIds"]) == ([], ["client:app:yours"])


@requirement("isolation:random:run")
async def test_random_numbers_differ_from_run_to_run_and_go_on_after_a_resume(pool: WorkerPool) -> None:
    code = "const before = [Math.random(), Math.random()]; await yield_control(); return [...before, Math.random()]"
    drawn: list[float] = []
    async with open_test_session(pool, toolbox()) as session:
        for _ in range(4):
            first = await session.exec({"code": code})
            assert isinstance(first, Waiting)
            drawn += completed(await session.wait({"runId": first.run_id}))

    assert len(set(drawn)) == 12
    assert all(0 <= number < 1 for number in drawn)
