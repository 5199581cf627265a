"""The one way any tool runs."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import decimal
import json

import pytest

from codemode.core.errors import ErrorCode, NestedToolFailed
from codemode.core.events import CallProgress, CallSettled, CallStarted
from codemode.core.limits import MAX_BRIDGE_BYTES
from codemode.core.redact import Redactor
from codemode.executor import ApprovalNeeded, Executor
from codemode.hooks import Hook
from codemode.policy import Policy
from tests.requirements import requirement
from tests.support.tools import make_context, make_tool

CONTEXT = make_context()
NUMBERED = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


def executor(policy=None, hooks=(), emit=None, secrets=()) -> Executor:
    return Executor(Redactor(secrets), policy, hooks, emit)


def raising(error: BaseException):
    async def invoke(given, context):
        raise error

    return invoke


def returning(value):
    async def invoke(given, context):
        return value

    return invoke


async def failure(runner: Executor, tool, given=None, **options) -> NestedToolFailed:
    with pytest.raises(NestedToolFailed) as caught:
        await runner.call(tool, given, CONTEXT, **options)
    assert caught.value.code is ErrorCode.NESTED_TOOL_FAILED
    assert caught.value.tool_id == tool.id
    return caught.value


@requirement("executor:input:null-is-empty")
@pytest.mark.parametrize(("given", "seen"), [(None, {}), ({}, {}), ({"n": 1}, {"n": 1})])
async def test_no_input_means_an_empty_object(given, seen):
    outcome = await executor().call(make_tool(), given, CONTEXT)

    assert json.loads(outcome.text) == seen


@requirement("executor:result:adapted")
async def test_a_result_goes_through_the_adapter():
    @dataclasses.dataclass
    class Price:
        cents: decimal.Decimal
        of: tuple

    outcome = await executor().call(make_tool(invoke=returning(Price(decimal.Decimal("1.50"), (1, None)))), {}, CONTEXT)

    assert outcome.text == '{"cents":"1.50","of":[1,null]}'


@requirement("executor:result:adapted")
@pytest.mark.parametrize(
    ("value", "words"),
    [(b"\0", "value is binary (bytes)"), (object(), "value is a object, which has no JSON form")],
)
async def test_what_the_adapter_refuses_rejects(value, words):
    error = await failure(executor(), make_tool(invoke=returning(value)))

    assert str(error).startswith(f"client:app:echo returned no JSON: {words}")


@requirement("executor:result:bounded")
async def test_a_result_over_the_bound_rejects_with_size_and_bound():
    fits = await executor().call(make_tool(invoke=returning("x" * (MAX_BRIDGE_BYTES - 2))), {}, CONTEXT)
    error = await failure(executor(), make_tool(invoke=returning("é" * (MAX_BRIDGE_BYTES // 2))))

    assert len(fits.text) == MAX_BRIDGE_BYTES
    assert str(error) == ("client:app:echo returned 8388610 bytes of JSON; at most 8388608 cross. Ask it for less.")


@requirement("executor:schema:path-and-rule")
@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"n": "1"}, "input.n: '1' is not of type 'integer' (rule: type)"),
        ([1], "input: [1] is not of type 'object' (rule: type)"),
        ("text", "input: 'text' is not of type 'object' (rule: type)"),
    ],
)
async def test_an_input_that_is_not_valid_rejects_before_anything_runs(given, fault):
    error = await failure(executor(), make_tool(invoke=raising(AssertionError("it ran")), parameters=NUMBERED), given)

    assert str(error) == f"the input of client:app:echo is not valid: {fault}"


async def test_an_input_must_be_an_object_whatever_the_schema_says():
    error = await failure(executor(), make_tool(parameters={}), [1])

    assert str(error).endswith("is not valid: input: it must be an object, found list")


@requirement("executor:errors:plain")
async def test_a_tools_exception_becomes_its_redacted_text():
    boom = ValueError("no order 7; token hunter2-hunter2 at /home/ada/x")
    runner = Executor(Redactor(["hunter2-hunter2"], [("/home/ada", "~")]))

    error = await failure(runner, make_tool(invoke=raising(boom)))

    assert str(error) == "no order 7; token [redacted] at ~/x"
    assert error.__cause__ is boom


class Mute(Exception):
    """One whose own text is broken."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@requirement("executor:errors:words")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError(), "it failed with ValueError, without a message"),
        (Mute(), "it failed with Mute, without a message"),
        (KeyError("DESK_URL"), "KeyError: 'DESK_URL'"),
        (ExceptionGroup("in a TaskGroup", [ValueError("no order 7"), ExceptionGroup("x", [KeyError("a")])]),
         "no order 7; KeyError: 'a'"),
        (ExceptionGroup("all alike", [ValueError("down"), ValueError("down")]), "down"),
    ],
)  # fmt: skip
async def test_an_exception_that_says_little_is_told_by_what_it_is(error, words):
    assert str(await failure(executor(), make_tool(invoke=raising(error)))) == words


async def test_a_very_long_error_is_cut():
    assert len(str(await failure(executor(), make_tool(invoke=raising(ValueError("x" * 100_000)))))) == 8192


@requirement("executor:errors:exit")
async def test_a_tool_that_cancels_itself_fails_and_stops_nothing():
    error = await failure(executor(), make_tool(invoke=raising(asyncio.CancelledError())))

    assert str(error) == "client:app:echo cancelled itself."


async def test_cancelling_a_call_cancels_the_tool():
    started, ended = asyncio.Event(), asyncio.Event()
    events = []

    async def hang(given, context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(executor(emit=events.append).call(make_tool(invoke=hang), {}, CONTEXT))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert events[-1].state == "interrupted"


@requirement("executor:timeout:named")
async def test_a_call_that_passes_its_timeout_rejects_and_names_it():
    async def hang(given, context):
        await asyncio.Event().wait()

    error = await failure(executor(), make_tool(invoke=hang, timeout_ms=20))

    assert str(error) == "client:app:echo did not answer within its timeoutMs of 20 ms."


@requirement("executor:timeout:unheeded")
@pytest.mark.parametrize("deaf_to", [asyncio.CancelledError, BaseException])
async def test_a_tool_that_will_not_end_at_its_timeout_is_closed_or_left_alone(monkeypatch, deaf_to):
    monkeypatch.setattr("codemode.core.deadline.CALL_EXIT_MS", 20)
    release, closed = asyncio.Event(), []

    async def stubborn(given, context):
        try:
            while not release.is_set():
                with contextlib.suppress(deaf_to):
                    await release.wait()
        finally:
            closed.append(True)

    error = await failure(executor(), make_tool(invoke=stubborn, timeout_ms=20))

    assert str(error) == "client:app:echo did not answer within its timeoutMs of 20 ms."
    assert closed == ([True] if deaf_to is asyncio.CancelledError else [])
    release.set()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others or not (await asyncio.wait(others, timeout=60))[1]


async def test_a_tool_that_heeds_its_timeout_has_ended_before_its_call_rejects():
    ended = []

    async def heed(given, context):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    await failure(executor(), make_tool(invoke=heed, timeout_ms=20))

    assert ended == ["cleaned up"]


async def test_a_tools_own_timeout_error_is_its_own_failure():
    error = await failure(executor(), make_tool(invoke=raising(TimeoutError("upstream")), timeout_ms=60_000))

    assert str(error) == "upstream"


async def test_a_tool_is_denied_by_policy_even_by_its_id():
    tool = make_tool(invoke=raising(AssertionError("it ran")))
    events = []

    error = await failure(executor(Policy(deny=["echo"]), emit=events.append), tool)

    assert str(error) == "client:app:echo is not available under the current policy."
    assert [(type(event), event.state, event.tool_id) for event in events] == [(CallSettled, "denied", tool.id)]


async def test_always_deny_refuses_also_what_was_approved():
    runner = executor(Policy(approvals=[("*", "always-deny")]))

    for approved in (False, True):
        error = await failure(runner, make_tool(), approved=approved)
        assert str(error) == "client:app:echo is always denied by its approval setting."


@requirement("executor:approval:parks")
async def test_a_call_that_needs_a_person_runs_only_when_approved():
    ran = []

    async def note(given, context):
        ran.append(given)

    tool = make_tool(invoke=note, approval="ask")
    runner = executor()

    with pytest.raises(ApprovalNeeded) as caught:
        await runner.call(tool, {"n": 1}, CONTEXT)
    assert ran == []
    assert (caught.value.tool, caught.value.input) == (tool, {"n": 1})
    assert str(caught.value) == "client:app:echo needs approval: its approval setting is ask"

    await runner.call(tool, caught.value.input, CONTEXT, approved=True)
    assert ran == [{"n": 1}]


def hook(answer, seen=None) -> Hook:
    async def run(event):
        if seen is not None:
            seen.append(event["input"])
        return answer

    return Hook("hook[0]", run)


@requirement("executor:order:policy-first")
async def test_policy_comes_before_hook_approval_and_schema():
    seen: list = []
    tool = make_tool(approval="ask", parameters=NUMBERED)

    await failure(executor(Policy(deny=["*"]), [hook(None, seen)]), tool, {"n": "bad"})

    assert seen == []


@requirement("executor:order:policy-first")
async def test_a_hook_comes_before_approval_and_approval_before_the_schema():
    tool = make_tool(approval="ask", parameters=NUMBERED)

    blocked = await failure(executor(hooks=[hook({"block": "no"})]), tool, {"n": "bad"})
    with pytest.raises(ApprovalNeeded) as parked:
        await executor(hooks=[hook({"input": {"n": "worse"}})]).call(tool, {"n": "bad"}, CONTEXT)

    assert str(blocked) == "client:app:echo was blocked: no"
    assert parked.value.input == {"n": "worse"}


@requirement("executor:order:policy-first")
async def test_what_a_hook_wrote_is_checked_and_run():
    tool = make_tool(parameters=NUMBERED)

    outcome = await executor(hooks=[hook({"input": {"n": 2}})]).call(tool, {"n": "bad"}, CONTEXT)
    error = await failure(executor(hooks=[hook({"input": {"n": "bad"}})]), tool, {"n": 1})

    assert outcome.text == '{"n":2}'
    assert "is not of type 'integer'" in str(error)


async def test_a_hook_sees_an_empty_object_where_there_was_no_input():
    seen: list = []

    await executor(hooks=[hook(None, seen)]).call(make_tool(), None, CONTEXT)

    assert seen == [{}]


@requirement("hooks:approved:not-again")
async def test_a_hook_that_asks_parks_and_does_not_ask_again():
    seen: list = []
    runner = executor(hooks=[hook({"ask": "large sum", "input": {"n": 5}}, seen)])

    with pytest.raises(ApprovalNeeded) as caught:
        await runner.call(make_tool(), {"n": 1}, CONTEXT)
    outcome = await runner.call(make_tool(), caught.value.input, CONTEXT, approved=True)

    assert caught.value.reason == "large sum"
    assert outcome.text == '{"n":5}'
    assert seen == [{"n": 1}]


async def test_the_reason_of_a_block_is_redacted():
    error = await failure(
        executor(hooks=[hook({"block": "hunter2-hunter2"})], secrets=["hunter2-hunter2"]), make_tool()
    )

    assert str(error) == "client:app:echo was blocked: [redacted]"


@requirement("executor:events:one-stream")
async def test_a_call_emits_start_progress_and_settlement_redacted():
    events: list = []

    async def work(given, context):
        context.progress({"done": 0.5, "token": "hunter2-hunter2"})
        await asyncio.sleep(0)
        return [1]

    tool = make_tool(invoke=work)
    runner = executor(emit=events.append)
    await runner.call(
        tool, {"password": "hunter2"}, make_context(call_id="7", report=runner.report), method="namespace"
    )

    started, progress, settled = events
    assert started == CallStarted("cm_1", started.at_ms, 7, "namespace", tool.id, {"password": "[redacted]"})
    assert progress == CallProgress("cm_1", progress.at_ms, 7, {"done": 0.5, "token": "[redacted]"})
    assert settled == CallSettled("cm_1", settled.at_ms, 7, "ok", 3, None)


@requirement("executor:progress:json")
async def test_progress_is_adapted_or_raises_where_it_was_told():
    events: list = []

    async def work(given, context):
        context.progress({"since": dt.date(2026, 1, 2), "of": (1, 2)})
        await asyncio.sleep(0)
        context.progress({"raw": b"bytes"})

    runner = executor(emit=events.append)
    with pytest.raises(NestedToolFailed, match=r"what progress\(\) was given is no JSON: value.raw is binary"):
        await runner.call(make_tool(invoke=work), {}, make_context(report=runner.report))

    assert [event.update for event in events if isinstance(event, CallProgress)] == [
        {"since": "2026-01-02", "of": [1, 2]}
    ]


@requirement("executor:input:json")
async def test_what_a_hook_makes_of_an_input_is_adapted_or_rejects():
    seen: list = []

    async def work(given, context):
        seen.append(given)

    tool = make_tool(invoke=work)
    await executor(hooks=[hook({"input": {"on": dt.date(2026, 1, 2)}})]).call(tool, {}, CONTEXT)
    error = await failure(executor(hooks=[hook({"input": {"raw": b"bytes"}})]), tool)

    assert seen == [{"on": "2026-01-02"}]
    assert str(error).startswith("the input of client:app:echo is no JSON: value.raw is binary")


@requirement("executor:events:one-stream")
async def test_a_failed_call_settles_with_its_words_and_a_refused_one_without_having_started():
    events: list = []
    runner = executor(emit=events.append)

    await failure(runner, make_tool(invoke=raising(ValueError("boom"))))
    await failure(runner, make_tool(parameters=NUMBERED), {"n": "bad"})

    assert [type(event) for event in events] == [CallStarted, CallSettled, CallSettled]
    assert (events[1].state, events[1].error, events[1].tool_id) == ("error", "boom", None)
    assert (events[2].state, events[2].tool_id) == ("error", "client:app:echo")


async def test_a_tool_of_the_same_id_with_another_schema_is_checked_by_its_own():
    runner = executor()

    await runner.call(make_tool(), {"n": "free"}, CONTEXT)
    await failure(runner, make_tool(parameters=NUMBERED), {"n": "free"})
