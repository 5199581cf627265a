"""The transcript: what it keeps, how it pairs calls with results, and what it shows of nested calls."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode import CodeMode, MockTool
from codemode.core.errors import InvalidInput
from codemode.core.events import Event, ExecStarted
from codemode.payload.messages import AssistantMessage, ChatRequest, Message, ToolResult, ToolUse, UserMessage
from codemode.payload.providers import PROVIDERS
from codemode.telemetry import fold as fold_telemetry
from codemode.trajectory import Call, Run, Trajectory
from codemode.transcript import FORMAT_VERSION, NestedUse, Transcript
from tests.requirements import requirement

ASK = UserMessage("What does it cost?")
FIRST, SECOND = ToolUse("t1", "exec", {"code": "return 1"}), ToolUse("t2", "exec", {"code": "return 2"})
WAIT = ToolUse("t3", "wait", {"runId": "cm_1"})
BOTH = AssistantMessage("Let me see.", (FIRST, SECOND))
ONE, TWO = ToolResult(FIRST, '{"status":"completed","value":1}'), ToolResult(SECOND, '{"status":"failed"}', failed=True)
WAITING = ToolResult(FIRST, '{"status":"waiting","runId":"cm_1"}')
QUOTE = "client:app:quote"


def transcript_of(*messages: Message) -> Transcript:
    transcript = Transcript()
    for message in messages:
        transcript = transcript.append(message)
    return transcript


def saved(transcript: Transcript) -> Transcript:
    """Write it down as text and read it again."""
    return Transcript.from_json(json.loads(json.dumps(transcript.to_json())))


# ---- calls and their results ----


@requirement("transcript:messages:paired")
def test_each_call_is_followed_by_its_result_in_the_order_of_the_calls():
    """Results may come in any order: cells of one turn can run side by side."""
    said = (ASK, BOTH, TWO, ONE, AssistantMessage("3."))

    assert transcript_of(*said).messages() == (ASK, BOTH, ONE, TWO, AssistantMessage("3."))


@requirement("transcript:messages:interrupted")
@pytest.mark.parametrize("after", [(), (UserMessage("Are you there?"),), (AssistantMessage("Hm."),)])
def test_a_call_without_a_result_gets_a_failed_one_wherever_the_conversation_broke_off(after):
    """No provider takes a call without its result; the text is a whole `CodeModeResult`."""
    *before, result = transcript_of(ASK, BOTH, ONE, *after).messages()[:4]

    assert before == [ASK, BOTH, ONE]
    assert (result.use, result.failed) == (SECOND, True)
    told = json.loads(result.text)
    assert "interrupted" in told.pop("error")
    assert told == {
        "status": "failed",
        "code": "aborted",
        "phase": "runtime",
        "dispatched": True,
        "output": [],
        "telemetry": fold_telemetry(()),
    }


@requirement("transcript:messages:interrupted")
def test_the_failed_result_names_the_run_where_it_is_known():
    """A model or a person can then ask for it."""
    result = transcript_of(BOTH, ONE).link("t2", "cm_2").messages()[-1]

    assert isinstance(result, ToolResult)
    assert json.loads(result.text)["runId"] == "cm_2"


@requirement("transcript:messages:interrupted")
def test_a_wait_without_a_result_gets_a_failed_one_too():
    """The page says both."""
    result = transcript_of(AssistantMessage("", (WAIT,))).messages()[-1]

    assert isinstance(result, ToolResult)
    assert (result.use, json.loads(result.text)["status"]) == (WAIT, "failed")


def test_a_call_that_is_open_can_still_be_answered_after_replay():
    """What is made up for a model is not kept."""
    broken = saved(transcript_of(ASK, BOTH, ONE))
    assert broken.messages()[-1] != TWO

    assert broken.append(TWO).messages() == (ASK, BOTH, ONE, TWO)


def test_a_transcript_does_not_change_when_one_is_grown_from_it():
    """A value: an earlier one can be kept."""
    earlier = transcript_of(ASK)
    earlier.append(BOTH)

    assert earlier.messages() == (ASK,)


@pytest.mark.parametrize(
    ("said", "wrong", "sentence"),
    [
        ((), ONE, 'no call "t1"'),
        ((ASK,), ONE, 'no call "t1"'),
        ((BOTH, UserMessage("So?")), ONE, 'no call "t1"'),
        ((BOTH, ONE), ONE, 'call "t1" has its result already'),
        ((BOTH,), ToolResult(WAIT, "{}"), 'no call "t3"'),
        ((), AssistantMessage("", (FIRST, FIRST)), "have the same id"),
    ],
)
def test_what_cannot_be_paired_is_refused(said, wrong, sentence):
    """Else a result would stand under another call, or under none."""
    with pytest.raises(InvalidInput, match=sentence):
        transcript_of(*said).append(wrong)


def test_calls_that_are_counted_anew_in_each_turn_are_kept_apart():
    """Gemini need not give ids; the adapter then counts `call_1` from the beginning in each answer."""
    turns = (BOTH, ONE, TWO, BOTH, ToolResult(FIRST, "[]"), ToolResult(SECOND, "{}"))

    assert transcript_of(*turns).messages() == turns


# ---- saved and read again ----

_TEXTS = st.text(max_size=20)
_JSON = st.recursive(st.none() | st.booleans() | st.integers() | _TEXTS, lambda inner: st.lists(inner, max_size=3))
_CALLS = st.lists(st.tuples(st.sampled_from(["exec", "wait"]), _JSON, st.none() | _TEXTS, st.booleans()), max_size=3)


@requirement("transcript:save:same")
@settings(deadline=None)
@given(st.lists(_TEXTS | st.tuples(_TEXTS, _CALLS), max_size=5))
def test_any_transcript_that_was_saved_is_the_same(turns: list[Any]):
    """Whatever was said, called and answered, also where calls were left open."""
    transcript = Transcript()
    for turn in turns:
        if isinstance(turn, str):
            transcript = transcript.append(UserMessage(turn))
            continue
        text, calls = turn
        uses = [ToolUse(f"t{number}", name, given) for number, (name, given, _, _) in enumerate(calls)]
        transcript = transcript.append(AssistantMessage(text, tuple(uses)))
        for use, (_, _, result, failed) in zip(uses, calls, strict=True):
            if use.name == "exec":
                transcript = transcript.link(use.id, f"cm_{use.id}")
            if result is not None:
                transcript = transcript.append(ToolResult(use, result, failed))

    assert saved(transcript) == transcript
    assert saved(transcript).messages() == transcript.messages()


def _with(**fields: Any) -> dict[str, Any]:
    """Return a saved transcript with one call, in which some fields are other ones."""
    document: Any = transcript_of(AssistantMessage("", (FIRST,))).to_json()
    document["turns"][0]["calls"][0] |= fields
    return document


@requirement("transcript:save:checked")
@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"turns": []},
        {"version": FORMAT_VERSION + 1, "turns": []},
        {"version": FORMAT_VERSION, "turns": {}},
        {"version": FORMAT_VERSION, "turns": [None]},
        {"version": FORMAT_VERSION, "turns": [{"role": "tool", "text": "", "calls": []}]},
        {"version": FORMAT_VERSION, "turns": [{"role": "user", "text": 7, "calls": []}]},
        {"version": FORMAT_VERSION, "turns": [{"role": "assistant", "text": "", "calls": [{"id": "t1"}]}]},
        {"version": FORMAT_VERSION, "turns": [{"role": "assistant", "text": "", "calls": ["t1"]}]},
        _with(id=1),
        _with(result={}),
        _with(failed=None),
        _with(runId=7),
        _with(signature=7),
    ],
)
def test_a_damaged_or_newer_transcript_is_refused(document):
    """Rather than read in part: a model would go on from something that was not said."""
    with pytest.raises(InvalidInput, match="transcript"):
        Transcript.from_json(document)


# ---- nested calls ----


def run_of(run_id: str, *calls: Call) -> Run:
    return Run(run_id, calls=calls)


@requirement("transcript:projection:parent")
def test_nested_calls_stand_under_the_exec_that_began_their_run():
    """Neither searches nor runs of somebody else; ids of calls are those of the trajectory."""
    transcript = transcript_of(BOTH, WAITING, TWO).link("t2", "cm_2").append(AssistantMessage("", (WAIT,)))
    slow = Call(3, "namespace", "mcp:shop:slow", "error", error="closed", deliverer="wait-1")
    trajectory = Trajectory(
        (
            run_of("cm_2", Call(1, "call", QUOTE, "denied", input={"to": "Rome"})),
            run_of("cm_9", Call(1, "call", QUOTE, "ok")),
            run_of(
                "cm_1", Call(1, "search"), Call(2, "call", QUOTE, "ok", input={"to": "Oslo"}, result_bytes=20), slow
            ),
        )
    )

    assert transcript.project(trajectory) == (
        NestedUse(ToolUse("t1/2", QUOTE, {"to": "Oslo"}), "ok", 20, None),
        NestedUse(ToolUse("t1/3", "mcp:shop:slow", None), "error", 0, "closed"),
        NestedUse(ToolUse("t2/1", QUOTE, {"to": "Rome"}), "denied", 0, None),
    )
    assert saved(transcript).project(trajectory) == transcript.project(trajectory)


@pytest.mark.parametrize("call_id", ["t3", "t9"])
def test_only_an_exec_of_the_last_turn_begins_a_run(call_id):
    """A wait goes on with one."""
    with pytest.raises(InvalidInput, match=call_id):
        transcript_of(AssistantMessage("", (WAIT,))).link(call_id, "cm_1")


def test_an_exec_begins_one_run():
    """A program that mixes up its calls is told, whoever spoke first."""
    with pytest.raises(InvalidInput, match="did not begin cm_2"):
        transcript_of(BOTH, WAITING).link("t1", "cm_2")
    with pytest.raises(InvalidInput, match="did not begin cm_1"):
        transcript_of(BOTH).link("t1", "cm_2").append(WAITING)


# ---- with real cells ----


class Program:
    """An agent's program: it keeps a transcript, and links each run as soon as it begins."""

    def __init__(self) -> None:
        self.transcript = transcript_of(ASK)
        self._current = ""

    def hear(self, event: Event) -> None:
        if isinstance(event, ExecStarted):
            self.transcript = self.transcript.link(self._current, event.run_id)

    async def carry_out(self, code_mode: CodeMode, use: ToolUse) -> dict[str, Any]:
        self._current = use.id
        self.transcript = self.transcript.append(AssistantMessage("", (use,)))
        result = await code_mode.answer(use)
        self.transcript = self.transcript.append(result)
        told: dict[str, Any] = json.loads(result.text)
        return told


@requirement("transcript:messages:paired", "transcript:projection:parent", "transcript:save:same")
async def test_exec_and_wait_are_kept_with_what_they_called_and_every_provider_takes_them():
    """Contract 10, with a completed cell, one that a wait went on with, and one that was no cell."""
    quote, program = MockTool("quote", returns={"cents": 99}), Program()
    async with CodeMode(tools=[quote], on_event=program.hear) as code_mode:
        await program.carry_out(code_mode, ToolUse("a", "exec", {"code": "tools.quote({to: 'Oslo', apiKey: 'k-1'})"}))
        await program.carry_out(code_mode, ToolUse("b", "exec", {"cod": "1"}))
        cell = "await yield_control(); await tools.search('quote'); return await tools.quote({to: 'Rome'})"
        run_id = (await program.carry_out(code_mode, ToolUse("c", "exec", {"code": cell})))["runId"]
        end = await program.carry_out(code_mode, ToolUse("d", "wait", {"runId": run_id}))
        kept = saved(program.transcript)
        bodies = [json.dumps(code_mode.payload(kind, ChatRequest("m", kept.messages(), ()))) for kind in PROVIDERS]
        nested = kept.project(code_mode.trace())

    assert end["value"] == {"cents": 99}
    assert [isinstance(message, ToolResult) for message in kept.messages()] == [False] + [False, True] * 4
    assert all(run_id in body for body in bodies)
    assert [(each.use.id.split("/")[0], each.use.name, each.state) for each in nested] == [
        ("a", QUOTE, "ok"),
        ("c", QUOTE, "ok"),
    ]
    assert nested[0].use.input["to"] == "Oslo"
    assert "k-1" not in json.dumps(nested)
    assert nested[0].result_bytes == len('{"cents":99}')


@requirement("transcript:messages:interrupted", "transcript:projection:parent")
async def test_a_call_that_was_interrupted_has_a_failed_result_and_shows_what_it_had_called():
    """The program gives up while a tool is at work: there is no result to append."""
    called, program = asyncio.Event(), Program()

    async def quote(to: str) -> None:
        """Never come back."""
        called.set()
        await asyncio.Event().wait()

    async with CodeMode(tools=[quote], on_event=program.hear) as code_mode:
        use = ToolUse("a", "exec", {"code": "await tools.quote({to: 'Oslo'})"})
        working = asyncio.create_task(program.carry_out(code_mode, use))
        await asyncio.wait_for(called.wait(), 60)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        kept = saved(program.transcript)
        [run], [nested] = code_mode.trace().runs, kept.project(code_mode.trace())

    result = kept.messages()[-1]
    assert isinstance(result, ToolResult)
    assert (json.loads(result.text)["status"], json.loads(result.text)["runId"]) == ("failed", run.run_id)
    assert (nested.use.name, nested.use.input, nested.state) == (QUOTE, {"to": "Oslo"}, "interrupted")
