"""`exec` and `wait` through real workers: what a caller gets, in every way a cell can go."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.errors import ErrorCode, InvalidInput
from codemode.core.events import ExecStarted
from codemode.core.limits import KILL_GRACE_MS, MAX_ERROR_BYTES, Limits
from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from codemode.hooks import Hook
from codemode.policy import Policy
from codemode.session import Identity, Session
from codemode.store.memory import MemoryStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import Gate, open_test_session, tool, toolbox

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("no_kill")]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(2)
    yield workers
    await workers.close()


SHORT = {"timeout_ms": 400}  # long enough for a first turn on a busy machine


async def add(n: int = 0) -> int:
    return n + 1


async def fail(**rest: Any) -> None:
    raise ValueError("the tool is unhappy")


def completed(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


def waiting(result: CodeModeResult) -> Waiting:
    assert isinstance(result, Waiting), result
    return result


def failed(result: CodeModeResult) -> Failed:
    assert isinstance(result, Failed), result
    return result


def texts(result: CodeModeResult) -> list[Any]:
    return [item.value for item in result.output]


async def cell(session: Session, code: str, **more: Any) -> CodeModeResult:
    return await session.exec({"code": code, **more})


async def begin(session: Session, code: str) -> tuple[asyncio.Task[CodeModeResult], str]:
    """Start a cell; return once its run has an id."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    session.listen(lambda event: started.done() or started.set_result(event.run_id))
    return asyncio.ensure_future(cell(session, code)), await started


async def wait(session: Session, run_id: str | None, **more: Any) -> CodeModeResult:
    return await session.wait({"runId": run_id}, **more)


# ---- requests are served inline ----


@requirement("execution:drain:inline", "bridge:call:plain-value")
async def test_sequential_calls_of_instant_tools_complete_in_one_exec(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("add", add)])) as session:
        result = await cell(session, "let n = 0; while (n < 5) n = await tools.add({n}); return n")

    assert completed(result) == 5
    assert result.telemetry["callCount"] == 5


@requirement("execution:calls:started-together")
async def test_calls_of_one_turn_are_open_at_the_same_time(pool: WorkerPool) -> None:
    gate = Gate()

    async def open_all() -> str:
        for key in "ab":
            gate.open(key.upper(), key)
        return "done"

    async with open_test_session(pool, toolbox([gate.tool, tool("open_all", open_all)])) as session:
        result = await cell(
            session, "return await Promise.all([tools.gate({key:'a'}), tools.gate({key:'b'}), tools.open_all()])"
        )

    assert completed(result) == ["A", "B", "done"]
    assert [begun["key"] for begun in gate.begun] == ["a", "b"]


@requirement("execution:drain:completion-order")
async def test_a_race_is_won_by_whoever_is_first(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool])) as session:
        going = asyncio.ensure_future(
            cell(session, "return await Promise.race([tools.gate({key:'slow'}), tools.gate({key:'fast'})])")
        )
        await gate.until(begun=2)
        gate.open("fast", "fast")
        gate.open("slow", "slow")

        assert completed(await going) == "fast"


@requirement("execution:calls:unawaited")
async def test_a_call_that_nobody_awaits_still_runs_and_is_awaited(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("add", add)])) as session:
        result = await cell(session, "tools.add({n: 1}).then((n) => text('got ' + n)); return 'value'")

    assert (completed(result), texts(result)) == ("value", ["got 2"])


async def test_search_and_describe_are_answered_and_counted(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("add", add)])) as session:
        result = await cell(
            session, "const [hit] = await tools.search('add'); return (await tools.describe(hit.id)).parameters"
        )

    assert completed(result) == {"type": "object"}
    assert (result.telemetry["searchCount"], result.telemetry["describeCount"]) == (1, 1)


@requirement("bridge:call:rejection", "bridge:call:resolved-on-host", "bridge:describe:rejects")
@pytest.mark.parametrize(
    ("call", "tool_id", "message"),
    [
        ("tools.fail({})", "client:app:fail", "the tool is unhappy"),
        ("tools.call('client:app:none')", "client:app:none", "no tool is called"),
        ("tools.describe('nothing')", "nothing", "no tool is called"),
        ("tools.strict({n: 'x'})", "client:app:strict", "not valid"),
    ],
)
async def test_a_rejection_is_a_plain_error(pool: WorkerPool, call: str, tool_id: str, message: str) -> None:
    strict = tool("strict", add, parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
    async with open_test_session(pool, toolbox([tool("fail", fail), strict])) as session:
        value = completed(
            await cell(
                session,
                f"try {{ await {call} }} catch (e) {{ return [e.constructor === Error, e.name, e.code, e.toolId, "
                "e.message, Object.keys(e)] }",
            )
        )

    assert value[:4] == [True, "Error", "nested_tool_failed", tool_id]
    assert message in value[4]
    assert value[5] == []


async def test_a_rejection_that_nobody_catches_fails_the_run_with_its_code(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("fail", fail)])) as session:
        result = failed(await cell(session, "\nawait tools.fail({})"))

    assert (result.code, result.phase, result.dispatched) == (ErrorCode.NESTED_TOOL_FAILED, "bridge", True)
    assert result.error == "Error: the tool is unhappy (cell.js:2:13)"


@requirement("execution:failed:dispatches-nothing", "session:result:dispatched")
async def test_a_turn_that_fails_dispatches_nothing(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool])) as session:
        result = failed(await cell(session, "tools.gate({}); throw new TypeError('no')"))

    assert (result.error, result.code, result.phase) == ("TypeError: no (cell.js:1:27)", None, "guest")
    assert not result.dispatched
    assert gate.begun == []


async def test_an_uncaught_call_beyond_the_cap_dispatches_nothing(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits={"max_pending_tool_calls": 2})) as session:
        result = failed(await cell(session, "await Promise.all([1, 2, 3].map(() => tools.gate({})))"))

    assert (result.code, result.dispatched) == (ErrorCode.TOO_MANY_PENDING_TOOL_CALLS, False)
    assert gate.begun == []


# ---- time ----


@requirement("execution:timeout:loop")
async def test_a_loop_ends_at_the_deadline_with_its_output(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"timeout_ms": 200})) as session:
        result = failed(await cell(session, "text('before'); while (true) {}"))
        after = completed(await session.exec({"code": "return 'fine'"}, Limits()))

    assert (result.code, texts(result), after) == (ErrorCode.TIMEOUT, ["before"], "fine")


@requirement("execution:timeout:kill", "execution:deadline:after-setup")
async def test_a_builtin_that_never_looks_up_costs_its_worker_and_nothing_else(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codemode.supervisor.worker.KILL_GRACE_MS", KILL_GRACE_MS)
    async with open_test_session(pool, toolbox(limits={"timeout_ms": 200})) as session:
        result = failed(await cell(session, "text('lost'); 'a'.repeat(2e7).indexOf('a'.repeat(1e7) + 'b')"))
        after = completed(await session.exec({"code": "return 'fine'"}, Limits()))

    assert result.code is ErrorCode.TIMEOUT
    assert "output of this turn is lost" in result.error
    assert (texts(result), after) == ([], "fine")


@requirement("execution:waiting:deadline", "execution:drain:one-deadline")
async def test_a_call_that_is_open_at_the_deadline_makes_the_run_wait(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT)) as session:
        result = waiting(await cell(session, "text('one'); const v = await tools.gate({}); text('two'); return v"))
        gate.open("late")
        end = await wait(session, result.run_id)

    assert [entry.to_json() for entry in result.pending] == [
        {"id": "1", "method": "call", "toolId": "client:app:gate", "state": "running"}
    ]
    assert (result.reason, texts(result)) == ("pending_tools", ["one"])
    assert (completed(end), texts(end), end.run_id) == ("late", ["two"], result.run_id)
    assert len(gate.begun) == 1


@requirement("execution:timers:host-backed")
async def test_timers_fire_in_their_order_and_a_cleared_one_keeps_nothing_waiting(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        result = await cell(
            session,
            "const never = setTimeout(() => text('never'), 1e8); setTimeout(() => text('b'), 40);"
            "setTimeout(() => { text('a'); clearTimeout(never) }, 10); return 1",
        )

    assert (completed(result), texts(result)) == (1, ["a", "b"])


@requirement("execution:timers:host-backed", "execution:waiting:deadline")
async def test_a_timer_survives_a_suspension(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits=SHORT)) as session:
        result = waiting(await cell(session, "await new Promise((r) => setTimeout(r, 900)); return 'rang'"))
        end = await wait(session, result.run_id, timeout_ms=5000)

    assert [entry.method for entry in result.pending] == ["timer"]
    assert completed(end) == "rang"


@requirement("execution:yield:rests", "session:result:new-output", "session:result:run-id")
async def test_each_yield_gives_what_is_new(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        first = waiting(await cell(session, "text('a'); await yield_control('tea'); text('b'); await yield_control()"))
        second = waiting(await wait(session, first.run_id))
        third = await wait(session, first.run_id)

    assert [first.reason, second.reason] == ["yield", "yield"]
    assert [texts(first), texts(second), texts(third)] == [["a"], ["b"], []]
    assert {first.run_id, second.run_id, third.run_id} == {first.run_id}
    assert completed(third) is None


async def test_a_yield_beside_an_open_call_does_not_end_the_exec(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox([tool("add", add)])) as session:
        result = waiting(await cell(session, "tools.add({n: 1}).then(text); await yield_control(); return 9"))
        end = await wait(session, result.run_id)

    assert (texts(result), completed(end)) == (["2"], 9)


async def test_a_promise_that_nothing_can_settle_fails_at_once(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        result = failed(await cell(session, "await new Promise(() => {})"))

    assert "nothing can settle" in result.error


@requirement("session:wait:nothing-new", "session:wait:own-timeout")
async def test_a_wait_that_delivers_nothing_leaves_the_run_as_it_was(pool: WorkerPool) -> None:
    gate, store = Gate(), MemoryStore()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT), store) as session:
        first = waiting(await cell(session, "return await tools.gate({})"))
        before = store.runs("default")[0]
        again = waiting(await wait(session, first.run_id, timeout_ms=400))
        after = store.runs("default")[0]
        gate.open(7)

        assert again.pending == first.pending
        assert (before.state, before.expires_ms) == (after.state, after.expires_ms)
        assert again.telemetry["snapshots"]["taken"] == 1
        assert completed(await wait(session, first.run_id)) == 7


@requirement("session:late:stored", "session:late:carried-on")
async def test_what_settles_while_the_run_waits_is_there_for_the_next_wait(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT)) as session:
        result = waiting(await cell(session, "return await tools.gate({})"))
        gate.open({"price": 5})
        await session.settled()

        assert completed(await wait(session, result.run_id)) == {"price": 5}


async def test_a_run_can_wait_many_times_with_calls_old_and_new(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT)) as session:
        result = await cell(
            session,
            "const old = tools.gate({key: 'old'}); const seen = [];"
            "for (const key of ['x', 'y', 'z']) seen.push(await tools.gate({key})); return [...seen, await old]",
        )
        for key in ("x", "y", "z", "old"):
            pending = waiting(result).pending
            assert "1" in [entry.id for entry in pending]
            gate.open(key.upper(), key)
            result = await wait(session, waiting(result).run_id, timeout_ms=400)

    assert completed(result) == ["X", "Y", "Z", "OLD"]
    assert [begun["key"] for begun in gate.begun] == ["old", "x", "y", "z"]


@requirement("session:wait:second-refused")
async def test_a_second_wait_at_the_same_time_is_refused_and_the_first_goes_on(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT)) as session:
        run_id = waiting(await cell(session, "return await tools.gate({})")).run_id
        first = asyncio.ensure_future(wait(session, run_id, timeout_ms=10_000))
        await asyncio.sleep(0)
        second = failed(await wait(session, run_id))
        gate.open(3)

        assert second.code is ErrorCode.INVALID_INPUT
        assert completed(await first) == 3


# ---- approvals ----


@requirement("execution:waiting:approval")
async def test_an_open_approval_ends_the_exec_once_nothing_else_runs(pool: WorkerPool) -> None:
    ask = tool("ask", add, approval="ask")
    async with open_test_session(pool, toolbox([ask, tool("add", add)])) as session:
        result = waiting(
            await cell(session, "const a = tools.ask({n: 1}); text(await tools.add({n: 5})); return await a")
        )
        again = waiting(await wait(session, result.run_id))

    assert texts(result) == ["6"]
    assert [(entry.id, entry.state) for entry in result.pending] == [("1", "awaiting_approval")]
    assert again.pending == result.pending


@requirement("execution:approvals:decided-once")
async def test_an_approved_call_runs_once_and_a_denied_one_rejects(pool: WorkerPool) -> None:
    gate = Gate("ask")
    gate.tool = gate.tool._replace(approval="ask")
    async with open_test_session(pool, toolbox([gate.tool])) as session:
        result = waiting(
            await cell(
                session,
                "const seen = await Promise.allSettled([tools.ask({key: 'y'}), tools.ask({key: 'n'})]);"
                "return seen.map((one) => one.value ?? one.reason.message)",
            )
        )
        gate.open("yes", "y")
        end = await wait(session, result.run_id, decisions={"1": True, "2": False})

    assert completed(end) == ["yes", "client:app:ask was not approved"]
    assert [begun["key"] for begun in gate.begun] == ["y"]


@requirement("execution:approvals:decided-once")
async def test_a_decision_on_a_call_that_awaits_none_changes_nothing(pool: WorkerPool) -> None:
    ask = tool("ask", add, approval="ask")
    async with open_test_session(pool, toolbox([ask])) as session:
        run_id = waiting(await cell(session, "return await tools.ask({n: 1})")).run_id
        refused = failed(await wait(session, run_id, decisions={"1": True, "9": True}))

        assert (refused.code, refused.run_id) == (ErrorCode.INVALID_INPUT, run_id)
        assert '"9" awaits no approval; those that do: 1' in refused.error
        assert completed(await wait(session, run_id, decisions={"1": True})) == 2


@requirement("execution:approvals:denied-alone")
async def test_without_a_person_an_approval_is_denied_at_once(pool: WorkerPool) -> None:
    ask = tool("ask", add, approval="ask")
    async with open_test_session(pool, toolbox([ask]), may_ask=False) as session:
        result = failed(await cell(session, "return await tools.ask({n: 1})"))

    assert (result.code, result.dispatched) == (ErrorCode.NESTED_TOOL_FAILED, False)
    assert "needs approval; nobody can be asked here" in result.error


# ---- results that fail ----


@requirement("session:errors:never-raised")
@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({}, ErrorCode.INVALID_INPUT),
        (None, ErrorCode.INVALID_INPUT),
        ({"code": " ", "command": None}, ErrorCode.INVALID_INPUT),
        ({"code": "1", "command": "2"}, ErrorCode.INVALID_INPUT),
        ({"code": "ls -la"}, ErrorCode.INVALID_INPUT),
        ({"code": "1", "language": "cobol"}, ErrorCode.UNSUPPORTED_LANGUAGE),
    ],
)
async def test_bad_arguments_are_a_failed_result_without_a_run(pool: WorkerPool, raw: Any, code: ErrorCode) -> None:
    store = MemoryStore()
    async with open_test_session(pool, toolbox(), store) as session:
        result = failed(await session.exec(raw))

    assert (result.code, result.phase, result.run_id, result.dispatched) == (code, "input", None, False)
    assert store.runs("default") == ()


@requirement("session:errors:debug")
@pytest.mark.parametrize("debug", ["", "1"])
async def test_a_fault_of_ours_shows_where_it_is_only_to_who_asks(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], debug: str
) -> None:
    async def fail(*_: Any) -> None:
        raise KeyError("hunter2-hunter2")

    monkeypatch.setenv("CODEMODE_DEBUG", debug)
    monkeypatch.setattr("codemode.session.admit_cell", fail)
    async with open_test_session(pool, toolbox()) as session:
        session.parts.around.redactor.learn(["hunter2-hunter2"])
        result = failed(await cell(session, "1"))
    told = capsys.readouterr().err

    assert (result.code, result.error) == (ErrorCode.INTERNAL_ERROR, "KeyError: '[redacted]'")
    assert ("Traceback" in told, "KeyError: '[redacted]'" in told) == (bool(debug), bool(debug))


@requirement("session:errors:cut")
async def test_a_long_error_is_cut(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        result = failed(await cell(session, "throw new Error('é'.repeat(20000))"))

    assert MAX_ERROR_BYTES - 8 < len(result.error.encode()) <= MAX_ERROR_BYTES


@requirement("session:errors:redacted")
async def test_an_error_shows_no_secret(pool: WorkerPool) -> None:
    box = toolbox([tool("fail", fail)], secrets=["hunter2-hunter2"])
    async with open_test_session(pool, box) as session:
        result = failed(await cell(session, "throw new Error('it is ' + 'hunter2-' + 'hunter2')"))

    assert "hunter2" not in result.error


@requirement("output:limit:prefix", "output:limit:says-left-out")
async def test_the_output_limit_keeps_a_prefix(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"max_output_bytes": 1024})) as session:
        result = failed(await cell(session, "text('a'); text('b'.repeat(5000)); return 1"))

    assert result.code is ErrorCode.OUTPUT_LIMIT_EXCEEDED
    assert texts(result)[0] == "a"
    assert 900 < len(texts(result)[1]) < 1024
    assert "bytes were left out" in result.error


@requirement("output:limit:cumulative")
async def test_output_is_counted_across_a_suspension(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"max_output_bytes": 1024})) as session:
        first = waiting(await cell(session, "text('a'.repeat(600)); await yield_control(); text('b'.repeat(600))"))
        second = failed(await wait(session, first.run_id))

    assert second.code is ErrorCode.OUTPUT_LIMIT_EXCEEDED
    assert 300 < len(texts(second)[0]) < 424


@requirement("execution:snapshot:limit")
async def test_a_cell_that_holds_too_much_cannot_be_suspended(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox(limits={"max_snapshot_bytes": 1024})) as session:
        result = failed(await cell(session, "text('kept'); await yield_control()"))
        after = completed(await cell(session, "return 'fine'"))

    assert (result.code, result.phase) == (ErrorCode.SNAPSHOT_LIMIT_EXCEEDED, "runtime")
    assert (texts(result), after) == (["kept"], "fine")


@requirement("session:wait:refused-alike")
async def test_unknown_finished_and_foreign_runs_are_refused_alike(pool: WorkerPool) -> None:
    store = MemoryStore()
    async with (
        open_test_session(pool, toolbox(), store, Identity(agent_run_id="mine")) as session,
        open_test_session(pool, toolbox(), store, Identity(agent_run_id="theirs")) as other_run,
        open_test_session(pool, toolbox(), store, Identity("elsewhere")) as other_session,
        open_test_session(pool, toolbox(), store, Identity(agent_id="someone")) as other_agent,
    ):
        finished = await cell(session, "return 1")
        run_id = waiting(await cell(session, "await yield_control()")).run_id
        refusals = [
            failed(await wait(who, id_)).error.replace(id_, "ID")
            for who, id_ in (
                (session, "cm_00000000-0000-4000-8000-000000000000"),
                (session, finished.run_id),
                (other_run, run_id),
                (other_session, run_id),
                (other_agent, run_id),
            )
        ]

        assert len(set(refusals)) == 1
        assert completed(await wait(session, run_id)) is None


# ---- ends from outside ----


@requirement("session:abort:live", "session:abort:cancels-calls")
async def test_aborting_a_live_run_ends_it_and_its_calls(pool: WorkerPool) -> None:
    gate, store = Gate(), MemoryStore()
    async with open_test_session(pool, toolbox([gate.tool]), store) as session:
        going = asyncio.ensure_future(cell(session, "text('begun'); await tools.gate({})"))
        await gate.until(begun=1)
        assert session.abort(store.runs("default")[0].run_id) == "running"
        result = failed(await going)
        await gate.until(cancelled=1)

    assert (result.code, result.dispatched, texts(result)) == (ErrorCode.ABORTED, True, ["begun"])
    assert store.runs("default")[0].state == "aborted"


@requirement("session:abort:live")
async def test_aborting_a_cell_that_computes_kills_its_worker(pool: WorkerPool) -> None:
    store = MemoryStore()
    async with open_test_session(pool, toolbox(), store) as session:
        going, run_id = await begin(session, "while (true) {}")
        session.abort(run_id)

        assert failed(await going).code is ErrorCode.ABORTED
        assert completed(await cell(session, "return 'fine'")) == "fine"


@requirement("session:abort:live")
@pytest.mark.parametrize(
    "step", ["await tools.search('x')", "await tools.instant({})", "await tools.call('nobody', {}).catch(() => {})"]
)
async def test_a_cell_that_asks_without_end_leaves_room_for_others(pool: WorkerPool, step: str) -> None:
    async def instant() -> None:
        """Answer before anything can happen in between."""

    async with open_test_session(pool, toolbox([tool("instant", instant)], limits={"timeout_ms": 60_000})) as session:
        going, run_id = await begin(session, f"for (;;) {step}")
        assert completed(await cell(session, "return 'beside it'")) == "beside it"
        session.abort(run_id)

        assert failed(await going).code is ErrorCode.ABORTED


async def test_of_runs_that_come_together_each_turn_of_the_loop_begins_one(pool: WorkerPool) -> None:
    loop, turns, began = asyncio.get_running_loop(), [0], []

    def count() -> None:
        turns[0] += 1
        if len(began) < 6:
            loop.call_soon(count)

    async with open_test_session(pool, toolbox()) as session:
        session.listen(lambda event: began.append(turns[0]) if isinstance(event, ExecStarted) else None)
        loop.call_soon(count)
        results = await asyncio.gather(*(cell(session, f"return {number}") for number in range(6)))

    assert [completed(result) for result in results] == list(range(6))
    assert len(set(began)) == 6


@requirement("session:abort:live")
async def test_aborting_a_cell_that_stands_in_line_for_a_worker_ends_it_at_once(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        held = [await pool.acquire(), await pool.acquire()]
        going, run_id = await begin(session, "return 1")
        session.abort(run_id)
        result = failed(await going)
        for worker in held:
            pool.release(worker)

    assert (result.code, result.dispatched) == (ErrorCode.ABORTED, False)


@requirement("session:abort:live")
async def test_aborting_a_wait_that_stands_in_line_for_a_worker_ends_it_at_once(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        run_id = waiting(await cell(session, "await yield_control()")).run_id
        held, asked = [await pool.acquire(), await pool.acquire()], asyncio.Event()
        held[0].on_wanted = asked.set
        going = asyncio.ensure_future(wait(session, run_id))
        await asked.wait()
        session.abort(run_id)
        result = failed(await going)
        for worker in held:
            pool.release(worker)

    assert result.code is ErrorCode.ABORTED


async def test_a_wait_for_which_no_worker_comes_free_leaves_the_run_waiting(pool: WorkerPool) -> None:
    async with open_test_session(pool, toolbox()) as session:
        run_id = waiting(await cell(session, "await yield_control(); return 5")).run_id
        held = [await pool.acquire(), await pool.acquire()]
        result = waiting(await wait(session, run_id, timeout_ms=100))
        for worker in held:
            pool.release(worker)

        assert result.telemetry["snapshots"]["restored"] == 0
        assert completed(await wait(session, run_id)) == 5


@requirement("session:abort:waiting", "session:abort:cancels-calls")
async def test_aborting_a_waiting_run_discards_it(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT)) as session:
        run_id = waiting(await cell(session, "await tools.gate({})")).run_id
        assert session.abort(run_id) == "aborted"
        await session.settled()
        await gate.until(cancelled=1)

        assert failed(await wait(session, run_id)).code is ErrorCode.ABORTED
        with pytest.raises(InvalidInput):
            session.abort("cm_unknown")


@requirement("session:abort:from-elsewhere")
@pytest.mark.parametrize("code", ["await tools.gate({})", "while (true) {}"])
async def test_a_run_is_aborted_through_the_store_by_another_session(pool: WorkerPool, code: str) -> None:
    gate, store = Gate(), MemoryStore()
    async with (
        open_test_session(pool, toolbox([gate.tool]), store) as session,
        open_test_session(pool, toolbox(), store) as elsewhere,
    ):
        going, run_id = await begin(session, code)
        assert elsewhere.abort(run_id) == "running"

        assert failed(await going).code is ErrorCode.ABORTED


@requirement("session:abort:cancelled-task")
async def test_a_cancelled_exec_leaves_an_aborted_run_and_a_free_worker(pool: WorkerPool) -> None:
    gate, store = Gate(), MemoryStore()
    async with open_test_session(pool, toolbox([gate.tool]), store) as session:
        going = asyncio.ensure_future(cell(session, "await tools.gate({})"))
        await gate.until(begun=1)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await gate.until(cancelled=1)

        assert store.runs("default")[0].state == "aborted"
        assert completed(await cell(session, "return 'fine'")) == "fine"


@requirement("session:close:live-aborted", "session:close:calls-interrupted")
async def test_closing_a_session_aborts_what_is_live_and_interrupts_what_waits(pool: WorkerPool) -> None:
    gate, store = Gate(), MemoryStore()
    box = toolbox([gate.tool], limits=SHORT)
    session_of_then = open_test_session(pool, box, store)
    session = await session_of_then.__aenter__()
    run_id = waiting(await cell(session, "return await tools.gate({key: 'w'}).catch((e) => e.message)")).run_id
    live = asyncio.ensure_future(session.exec({"code": "await tools.gate({key: 'l'})"}))
    await gate.until(begun=2)
    await session_of_then.__aexit__(None, None, None)

    assert failed(await live).code is ErrorCode.ABORTED
    async with open_test_session(pool, box, store) as later:
        assert "interrupted" in completed(await wait(later, run_id, timeout_ms=10_000))
    assert len(gate.begun) == 2


# ---- hooks, catalogs, many runs ----


@requirement("session:hooks:outer-exec")
async def test_hooks_see_the_outer_exec_and_may_block_it(pool: WorkerPool) -> None:
    seen: list[dict[str, Any]] = []

    async def refuse(event: dict[str, Any]) -> Any:
        seen.append(event)
        return {"block": "not on Sundays"}

    store = MemoryStore()
    async with open_test_session(pool, toolbox(hooks=[Hook("guard", refuse)]), store) as session:
        result = failed(await cell(session, "return 1", language="typescript"))

    assert (seen[0]["toolKind"], seen[0]["toolInputKind"]) == ("code_mode_exec", "typescript")
    assert seen[0]["input"] == {"code": "return 1", "command": "return 1", "language": "typescript"}
    assert seen[0]["context"]["runId"] == result.run_id
    assert (result.code, "not on Sundays" in result.error) == (ErrorCode.INVALID_INPUT, True)
    assert store.runs("default")[0].state == "failed"


@requirement("session:hooks:deadline")
async def test_a_hook_that_hangs_over_a_cell_is_left_at_the_deadline(pool: WorkerPool) -> None:
    """The cell has not run, and whoever called has a result."""

    async def hang(event: dict[str, Any]) -> Any:
        await asyncio.Event().wait()

    box = toolbox(hooks=[Hook("guard", hang, timeout_ms=3_600_000)])
    async with open_test_session(pool, box) as session:
        result = failed(await session.exec({"code": "return 1"}, limits=Limits(timeout_ms=200)))

    assert (result.code, result.dispatched) == (ErrorCode.TIMEOUT, False)
    assert result.error == "the deadline (timeoutMs) passed while a hook was asked; the cell was not run"


@requirement("session:hooks:outer-exec")
async def test_a_cell_cannot_wait_for_a_hook_that_asks(pool: WorkerPool) -> None:
    async def ask(event: dict[str, Any]) -> Any:
        return {"ask": "is this wise?"} if event["toolName"] == "exec" else None

    async with open_test_session(pool, toolbox(hooks=[Hook("guard", ask)])) as session:
        assert "is this wise?" in failed(await cell(session, "return 1")).error


@requirement("session:hooks:alias-mirrored")
@pytest.mark.parametrize(
    ("rewritten", "value"),
    [
        ({"code": "return 'c'"}, "c"),
        ({"command": "return 'd'"}, "d"),
        ({"code": "return 1", "command": "return 'd'"}, "d"),
        ({"code": "return 'c'", "command": "return 1"}, "c"),
        ({"language": "javascript"}, 1),
    ],
)
async def test_a_hook_that_rewrites_one_alias_rewrites_both(pool: WorkerPool, rewritten: Any, value: Any) -> None:
    async def rewrite(event: dict[str, Any]) -> Any:
        return {"input": rewritten}

    async with open_test_session(pool, toolbox(hooks=[Hook("rewriter", rewrite)])) as session:
        assert completed(await cell(session, "return 1")) == value


@requirement("session:wait:keeps-catalog", "bridge:recall:gone")
async def test_a_resumed_run_keeps_its_catalog_under_todays_policy(pool: WorkerPool) -> None:
    store = MemoryStore()
    then = toolbox([tool("kept", add), tool("gone", add), tool("denied", add), tool("asked", add, approval="ask")])
    now = toolbox([tool("kept", add), tool("denied", add), tool("new", add)], policy=Policy(deny=["*denied"]))
    async with open_test_session(pool, then, store) as session:
        run_id = waiting(
            await cell(
                session,
                "const asked = tools.asked({n: 1}).catch((e) => e.message); await yield_control();"
                "const ids = ['kept', 'gone', 'denied', 'new'].map((name) => 'client:app:' + name);"
                "const tried = await Promise.allSettled(ids.map((id) => tools.call(id, {n: 1})));"
                "return [ALL_TOOLS.length, tried.map((one) => one.value ?? one.reason.code), await asked]",
            )
        ).run_id
    async with open_test_session(pool, now, store) as session:
        value = completed(await wait(session, run_id, decisions={"1": True}))

    refused = "nested_tool_failed"
    assert value[:2] == [4, [2, refused, refused, refused]]
    assert "not available any more" in value[2]


@requirement("session:runs:independent", "execution:worker:parked")
async def test_more_runs_than_workers_all_complete_and_do_not_mix(pool: WorkerPool) -> None:
    gate = Gate()
    async with open_test_session(pool, toolbox([gate.tool])) as session:
        going = [
            asyncio.ensure_future(
                cell(session, f"globalThis.mine = {n}; text(mine); return [mine, await tools.gate({{key: '{n}'}})]")
            )
            for n in range(8)
        ]
        await gate.until(begun=8)
        for n in reversed(range(8)):
            gate.open(n * 10, str(n))
        results = await asyncio.gather(*going)

    assert [completed(result) for result in results] == [[n, n * 10] for n in range(8)]
    assert [texts(result) for result in results] == [[str(n)] for n in range(8)]


async def test_a_fault_of_ours_is_an_internal_error_and_not_a_crash(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*rest: Any, **more: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("codemode.executor.Executor.call", break_down)
    async with open_test_session(pool, toolbox([tool("add", add)])) as session:
        result = failed(await cell(session, "await tools.add({})"))

    assert (result.code, result.phase) == (ErrorCode.INTERNAL_ERROR, "runtime")
    assert "ZeroDivisionError: a bug" in result.error
