"""What hooks may say about a call."""

import asyncio
import contextlib

import pytest

from codemode.hooks import Hook, HookDecision, HookEvent, run_hooks
from tests.requirements import requirement
from tests.support.tools import make_context

EVENT = HookEvent("client:app:echo", "echo", {"n": 1}, make_context(sender="ada", channel="chat"))


def answering(answer, name="hook[0]") -> Hook:
    async def run(event):
        return answer(event) if callable(answer) else answer

    return Hook(name, run)


async def decide(*answers) -> HookDecision:
    return await run_hooks([answering(answer, f"hook[{at}]") for at, answer in enumerate(answers)], EVENT)


@pytest.mark.parametrize("answer", [None, {}, {"block": False}, {"ask": False, "block": None}])
async def test_a_hook_with_nothing_to_say_lets_the_call_pass(answer):
    assert await decide(answer) == HookDecision({"n": 1})


@requirement("hooks:answers:rewrite")
async def test_a_hook_rewrites_and_the_next_sees_it():
    decision = await decide(
        lambda event: {"input": {"n": event["input"]["n"] + 1}},
        lambda event: {"input": {"n": event["input"]["n"] * 10}},
    )

    assert decision == HookDecision({"n": 20})


@requirement("hooks:answers:block")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"block": "not on Sundays"}, "not on Sundays"),
        ({"block": True}, "blocked by the hook hook[0]"),
        ({"block": ""}, "blocked by the hook hook[0]"),
    ],
)
async def test_a_hook_blocks_with_a_reason_and_ends_the_row(answer, reason):
    def never(event):
        raise AssertionError("a later hook ran")

    assert await decide(answer, never) == HookDecision({"n": 1}, blocked=reason)


@requirement("hooks:answers:ask")
async def test_a_hook_asks_and_the_others_still_run():
    decision = await decide({"ask": "large sum"}, {"input": {"n": 2}}, {"ask": True})

    assert decision == HookDecision({"n": 2}, ask="large sum")
    assert (await decide({"ask": True})).ask == "hook[0]"


@requirement("hooks:failures:block")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("yes", 'the hook hook[0] answered "yes"; it may answer input, block or ask'),
        ([], "the hook hook[0] answered []; it may answer input, block or ask"),
        ({"allow": True}, 'the hook hook[0] answered {"allow": true}; it may answer input, block or ask'),
        (False, "the hook hook[0] answered false; it may answer input, block or ask"),
    ],
)
async def test_nonsense_blocks(answer, reason):
    assert (await decide(answer)).blocked == reason


@requirement("hooks:failures:block")
async def test_a_hook_that_fails_blocks():
    def fail(event):
        raise ConnectionError("no guard on duty")

    assert (await decide(fail)).blocked == "the hook hook[0] failed: no guard on duty"


@requirement("hooks:failures:block")
async def test_a_hook_that_hangs_blocks():
    hook = Hook("hook[0]", lambda event: asyncio.Event().wait(), timeout_ms=20)

    assert (await run_hooks([hook], EVENT)).blocked == "the hook hook[0] did not answer within 20 ms"


@requirement("hooks:failures:block")
@pytest.mark.parametrize("error", [asyncio.CancelledError(), TimeoutError("the guard's own"), KeyError("x")])
async def test_a_hook_that_ends_in_another_way_blocks(error):
    async def end(event):
        raise error

    blocked = (await run_hooks([Hook("hook[0]", end)], EVENT)).blocked

    assert blocked in {
        "the hook hook[0] cancelled itself",
        "the hook hook[0] failed: the guard's own",
        "the hook hook[0] failed: KeyError: 'x'",
    }


async def test_a_hook_is_cancelled_with_its_call():
    began, ended = asyncio.Event(), []

    async def wait(event):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(run_hooks([Hook("hook[0]", wait)], EVENT))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == [True]


@requirement("hooks:failures:block", "executor:timeout:unheeded")
async def test_a_hook_that_will_not_end_at_its_timeout_blocks_all_the_same(monkeypatch):
    monkeypatch.setattr("codemode.core.deadline.CALL_EXIT_MS", 20)
    release = asyncio.Event()

    async def stubborn(event):
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    decision = await run_hooks([Hook("hook[0]", stubborn, timeout_ms=20)], EVENT)
    release.set()

    assert decision.blocked == "the hook hook[0] did not answer within 20 ms"


@requirement("hooks:event:context")
async def test_a_hook_sees_tool_input_and_context():
    seen = []
    await decide(seen.append)

    assert seen == [
        {
            "event": "before_tool_call",
            "toolId": "client:app:echo",
            "toolName": "echo",
            "input": {"n": 1},
            "context": {
                "agentId": "main",
                "sessionKey": "default",
                "sessionId": "s-1",
                "runId": "cm_1",
                "agentRunId": "ar-1",
                "callId": "1",
                "sender": "ada",
                "channel": "chat",
                "config": {},
            },
        }
    ]


@requirement("hooks:event:context")
def test_kinds_are_in_the_event_only_where_the_host_set_them():
    outer = EVENT._replace(tool_kind="code_mode_exec", tool_input_kind="typescript").to_json()

    assert (outer["toolKind"], outer["toolInputKind"]) == ("code_mode_exec", "typescript")
    assert not {"toolKind", "toolInputKind"} & EVENT.to_json().keys()
