"""Limits that hold: each program of issue 3's list, and each bound at its edge, in a live session."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.errors import ErrorCode
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_LIVE_SUSPENDED_RUNS
from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from codemode.session import Session
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import Gate, open_test_session, tool, toolbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
DEADLINE_MS = 500
FAR_LATER_S = 40  # a busy machine may be slow; a limit that does not hold would take a minute or for ever
TIMEOUT, MEMORY, OUTPUT = ErrorCode.TIMEOUT, ErrorCode.MEMORY_LIMIT_EXCEEDED, ErrorCode.OUTPUT_LIMIT_EXCEEDED

TIME = {
    "bytecode": "for (;;);",
    "regex": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "indexOf on 20 MB": "const a = 'a'.repeat(1e7); (a + a).indexOf(a + 'b')",
    "a billion holes joined": "new Array(1e9) + ''",
    "sorting a million": "for (;;) Array.from({ length: 1e6 }, (_, n) => (n * 7919) % 1000003).sort()",
    "stringify": "const o = Array.from({ length: 3e5 }, (_, n) => ({ n })); for (;;) JSON.stringify(o)",
    "a promise chain": "const spin = () => Promise.resolve().then(spin); await spin()",
    "a getter while encoding": "return { get a() { for (;;); } }",
    "an executor whose rejection is caught": "new Promise(() => { for (;;); }).catch(() => {}); return 1",
}  # what never ends by itself
SPACE = {
    "objects": "const a = []; for (;;) a.push({})",
    "strings": "const a = []; for (let n = 0; ; n += 1) a.push('x'.repeat(1e5) + n)",
    "one string": "let s = 'x'; for (;;) s += s",
    "typed arrays": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "array buffers": "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))",
    "a map": "const m = new Map(); for (let n = 0; ; n += 1) m.set(n, { n })",
}
FULL = (  # nothing that a packer's window would find again
    "const b = new Uint8Array({size} << 20); for (let n = 0; n < 65536; n += 1) b[n] = Math.random() * 256; "
    "for (let n = 65536; n < b.length; n *= 2) b.copyWithin(n, 0, n); "
)
PROCESS_MIB = 128  # what a worker may take above the cell's limit: Python, engine, parsers, frames


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(1)
    await workers.warm()
    yield workers
    await workers.close()


async def run(session: Session, code: str) -> CodeModeResult:
    return await session.exec({"code": code})


def failed(result: CodeModeResult) -> Failed:
    assert isinstance(result, Failed), result
    return result


def waiting(result: CodeModeResult) -> Waiting:
    assert isinstance(result, Waiting), result
    return result


def completed(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


def texts(result: CodeModeResult) -> list[Any]:
    return [item.value for item in result.output]


# ---- programs that never end, and that eat ----


@requirement("limits:programs:end")
@pytest.mark.parametrize("program", TIME.values(), ids=TIME.keys())
async def test_what_never_ends_is_ended_while_the_host_goes_on(pool: WorkerPool, program: str) -> None:
    box = toolbox(limits={"timeout_ms": DEADLINE_MS, "memory_limit_bytes": 512 << 20})  # time is to end it
    async with open_test_session(pool, box) as session:
        began = time.monotonic()
        going = asyncio.ensure_future(run(session, f"text('kept');\n{program}"))
        ticks = 0
        while not going.done():
            await asyncio.wait({going}, timeout=0.01)
            ticks += 1
        result, took_s = failed(going.result()), time.monotonic() - began
        patient = box.config.limits._replace(timeout_ms=30_000)  # a killed worker's successor has to start
        after = await session.exec({"code": "return 'fine'"}, patient)

    assert result.code is TIMEOUT
    assert texts(result) == ["kept"] or "output of this turn is lost" in result.error
    assert took_s < DEADLINE_MS / 1000 + FAR_LATER_S
    assert ticks > 1  # had the host computed, it would have looked once, afterwards
    assert completed(after) == "fine"


@requirement("limits:programs:end", "limits:memory:process")
@pytest.mark.parametrize("program", SPACE.values(), ids=SPACE.keys())
async def test_what_eats_memory_is_ended_and_its_worker_serves_on(pool: WorkerPool, program: str) -> None:
    async with open_test_session(pool, toolbox(limits={"timeout_ms": 30_000})) as session:
        result = failed(await run(session, f"text('kept'); try {{ {program} }} catch {{ text('caught') }}"))
        after = await run(session, "return 'fine'")

    assert (result.code, texts(result)) == (MEMORY, ["kept"])
    assert completed(after) == "fine"


@requirement("limits:memory:process", "limits:memory:snapshot")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "program",
    [
        *SPACE.values(),
        "const f = (n) => [n].map(f); f(1)",
        "JSON.parse('['.repeat(1e6))",
        "for (let n = 0; n < 16; n += 1) tools.nothing({ a: 'x'.repeat(5e5) })",
        "text('x'.repeat(1e7)); return 'y'.repeat(1e7)",
        "return Array.from({ length: 1e6 }, (_, n) => n)",
        FULL.format(size=40) + "await yield_control(); return b.length",
        FULL.format(size=8) + "await yield_control(); return b.length",
        f"require; return [{'{a: 1},' * 20_000}]",
    ],
    ids=lambda program: program[:40],
)
async def test_a_workers_memory_stays_below_the_limit_and_a_constant(program: str) -> None:
    """The peak that the kernel noted of a worker that served this cell and nothing else."""
    workers = WorkerPool(1)
    try:
        worker = await workers.acquire()
        pid = worker._wire._child.pid
        workers.release(worker)
        box = toolbox([tool("nothing", _nothing)], limits={"timeout_ms": 30_000})
        async with open_test_session(workers, box) as session:
            result = await run(session, program)
            if isinstance(result, Waiting):
                completed(await session.wait({"runId": result.run_id}))
        peak = peak_kib(pid)
    finally:
        await workers.close()

    assert peak < (64 + PROCESS_MIB) * 1024


def peak_kib(pid: int) -> int:
    """Return the most resident memory that a process ever had."""
    return int(Path(f"/proc/{pid}/status").read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0])


async def _nothing(**given: Any) -> None:
    return None


# ---- output ----


@requirement("limits:output:resumes", "limits:output:valid-json")
@pytest.mark.parametrize("letter", ["x", "é", "木", "🌳", '"', "\\n"])
async def test_output_is_counted_over_all_resumes_and_cut_on_a_code_point(pool: WorkerPool, letter: str) -> None:
    code = f"for (let n = 0; n < 9; n += 1) {{ text('{letter}'.repeat(100)); await yield_control() }}"
    async with open_test_session(pool, toolbox(limits={"max_output_bytes": 1024})) as session:
        result, seen = await run(session, code), []
        while isinstance(result, Waiting):
            seen += texts(result)
            result = await session.wait({"runId": result.run_id})
    seen += texts(failed(result))
    said = json.dumps(result.to_json(), ensure_ascii=False).encode()

    assert result.code is OUTPUT
    assert len(seen) > 1
    assert set("".join(seen)) == set(letter.replace("\\n", "\n"))
    assert sum(len(json.dumps({"type": "text", "text": text}, ensure_ascii=False).encode()) for text in seen) > 900
    assert json.loads(said)["output"] == [{"type": "text", "text": text} for text in texts(result)]


@requirement("limits:output:resumes")
async def test_a_value_after_a_resume_counts_with_what_was_put_out_before(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"max_output_bytes": 1024})) as session:
        first = waiting(await run(session, "text('x'.repeat(600)); await yield_control(); return 'y'.repeat(600)"))
        result = failed(await session.wait({"runId": first.run_id}))

    assert (result.code, result.output) == (OUTPUT, ())
    assert "602 bytes were left out" in result.error


# ---- runs, calls, arguments, results, snapshots ----


@requirement("limits:runs:sixty-four")
async def test_sixty_four_runs_may_wait_and_one_that_suspends_again_keeps_its_slot(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        two = "text('a'); await yield_control(); text('b'); await yield_control(); return 'end'"
        runs = [waiting(await run(session, two)).run_id for _ in range(MAX_LIVE_SUSPENDED_RUNS)]
        refused = failed(await run(session, two))
        again = waiting(await session.wait({"runId": runs[0]}))
        still = failed(await run(session, two))
        end = await session.wait({"runId": runs[0]})
        freed = await run(session, two)

    assert (refused.code, texts(refused), refused.phase) == (ErrorCode.SNAPSHOT_LIMIT_EXCEEDED, ["a"], "runtime")
    assert "64" in refused.error
    assert (texts(again), still.code) == (["b"], ErrorCode.SNAPSHOT_LIMIT_EXCEEDED)
    assert completed(end) == "end"
    assert isinstance(freed, Waiting)


@requirement("limits:calls:over-turns")
async def test_calls_of_earlier_turns_count_toward_the_cap(pool: WorkerPool) -> None:
    gate = Gate()
    code = "const open = tools.gate({key: 'a'}); await tools.search('x'); await tools.gate({key: 'b'})"
    async with open_test_session(pool, toolbox([gate.tool], limits={"max_pending_tool_calls": 1})) as session:
        result = failed(await run(session, code))
        await gate.until(cancelled=1)

    assert (result.code, result.phase, result.dispatched) == (ErrorCode.TOO_MANY_PENDING_TOOL_CALLS, "bridge", True)
    assert [begun["key"] for begun in gate.begun] == ["a"]


@requirement("bridge:arguments:bounded")
@pytest.mark.parametrize(
    ("letters", "fits"),
    [("'x'.repeat(8 * 1048576 - 200)", True), ("'x'.repeat(8 * 1048576)", False), ("'é'.repeat(5e6)", False)],
    ids=["just below", "just above", "below in characters, above in bytes"],
)
async def test_arguments_are_bounded_in_bytes(pool: WorkerPool, letters: str, fits: bool) -> None:
    gate = Gate()
    gate.open("taken")
    code = f"try {{ return await tools.gate({{ a: {letters} }}) }} catch (e) {{ return [e.code, e.message] }}"
    async with open_test_session(pool, toolbox([gate.tool], limits={"timeout_ms": 30_000})) as session:
        value = completed(await run(session, code))

    assert len(gate.begun) == fits
    if fits:
        assert value == "taken"
    else:
        assert value[0] == "nested_tool_failed"
        assert str(MAX_BRIDGE_BYTES) in value[1]


@requirement("bridge:arguments:bounded")
async def test_the_arguments_of_one_turn_share_the_bound_and_the_rest_goes_on(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("nothing", _nothing)], limits={"timeout_ms": 30_000})) as session:
        each = "[1, 2, 3, 4].map(() => tools.nothing({ a: 'é'.repeat(1.5e6) }))"
        code = f"return (await Promise.allSettled({each})).map((one) => one.status)"
        value = completed(await run(session, code))

    assert value == ["fulfilled", "fulfilled", "rejected", "rejected"]


@requirement("limits:results:bounded")
async def test_a_result_for_which_the_cell_has_no_memory_is_its_memory_limit(pool: WorkerPool) -> None:
    async def large(size: int, letter: str = "x") -> str:
        return letter * size

    box = toolbox([tool("large", large)], limits={"memory_limit_bytes": MIB, "timeout_ms": 30_000})
    async with open_test_session(pool, box) as session:
        small = await run(session, "return (await tools.large({ size: 1000 })).length")
        result = failed(await run(session, "try { await tools.large({ size: 4e6 }) } catch { text('caught') }"))
        over = await run(session, "return await tools.large({ size: 4500000, letter: 'é' }).catch((e) => e.message)")

    assert completed(small) == 1000
    assert (result.code, texts(result)) == (MEMORY, [])
    assert "9000002 bytes" in completed(over)


@requirement("limits:snapshot:keeps-worker")
async def test_a_suspension_that_is_too_large_keeps_its_output_and_its_worker(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"max_snapshot_bytes": MIB, "timeout_ms": 30_000})) as session:
        before = await pool.acquire()
        pool.release(before)
        result = failed(await run(session, "text('kept'); " + FULL.format(size=4) + "await yield_control(); b"))
        after = await pool.acquire()
        pool.release(after)

    assert (result.code, result.phase, texts(result)) == (ErrorCode.SNAPSHOT_LIMIT_EXCEEDED, "runtime", ["kept"])
    assert "more than 1048576 bytes" in result.error
    assert after is before


# ---- order across a suspension ----


@requirement("limits:races:suspended")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Promise.race([a, b, c])", "B"),
        ("Promise.any([bad, a, b, c])", "B"),
        ("Promise.allSettled([a, b, c]).then((all) => [...all.map((one) => one.value), ...seen])", list("ABCbac")),
    ],
)
async def test_what_settles_while_the_run_waits_is_seen_in_its_order(
    pool: WorkerPool, expression: str, value: Any
) -> None:
    gate = Gate()
    code = f"""
        const seen = [];
        const [a, b, c] = ['a', 'b', 'c'].map((key) => {{
          const call = tools.gate({{ key }});
          call.then(() => seen.push(key));
          return call;
        }});
        const bad = tools.call('client:app:nothing-of-the-kind');
        bad.catch(() => {{}});
        const winner = {expression};
        await yield_control();
        return await winner;"""
    async with open_test_session(pool, toolbox([gate.tool], limits={"timeout_ms": 1000})) as session:
        first = waiting(await run(session, code))
        gate.open("B", "b")
        gate.open("A", "a")
        gate.open("C", "c")
        await session.settled()
        result = await session.wait({"runId": first.run_id}, timeout_ms=20_000)

    assert completed(result) == value


@requirement("limits:timers:suspended")
async def test_timers_that_are_due_while_the_run_waits_fire_in_the_order_of_their_moments(pool: WorkerPool) -> None:
    code = """
        setTimeout(() => text('late'), 320);
        setTimeout(() => text('early'), 300);
        await new Promise((done) => setTimeout(done, 340));
        return 'end';"""
    async with open_test_session(pool, toolbox(limits={"timeout_ms": 200})) as session:
        first = waiting(await run(session, code))
        result = await session.wait({"runId": first.run_id}, timeout_ms=20_000)

    assert (completed(result), texts(result)) == ("end", ["early", "late"])
