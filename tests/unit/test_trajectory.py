"""The trajectory: every run, call, wait and suspended span, whatever became of it."""

import json

import pytest

from codemode.core.events import (
    CallParked,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecStarted,
    RunEnded,
    SnapshotEvent,
    TurnMeasured,
    WaitStarted,
)
from codemode.trajectory import FORMAT_VERSION, Call, Run, Suspended, Trajectory, Wait, fold, to_json, to_jsonl
from tests.requirements import requirement

RUN = "cm_1"
QUOTE = "client:app:quote"
BEGIN = ExecStarted(RUN, 1.0, "agent-run-1", "javascript", "return 1", 3, {"client": 3}, ["exec", "wait"])

# A cell that made two calls; the first was answered at once, the second after a wait.
STORY = [
    BEGIN,
    CallStarted(RUN, 2.0, 1, "call", QUOTE, {"to": "Oslo"}),
    CallStarted(RUN, 2.0, 2, "namespace", "mcp:shop:slow", {}),
    CallProgress(RUN, 3.0, 1, {"done": 1}),
    CallProgress(RUN, 3.5, 1, {"done": 2}),
    CallSettled(RUN, 4.0, 1, "ok", 20, None),
    TurnMeasured(RUN, 5.0, 1.5, [1]),
    SnapshotEvent(RUN, 6.0, "taken", 20_000),
    RunEnded(RUN, 6.5, "waiting", None, None, 5.5),
    CallSettled(RUN, 50.0, 2, "error", 0, "the shop is closed"),
    WaitStarted(RUN, 100.0, "wait-1"),
    SnapshotEvent(RUN, 101.0, "restored", 20_000),
    TurnMeasured(RUN, 102.0, 0.5, [2], "wait-1"),
    RunEnded(RUN, 103.0, "completed", None, None, 3.0),
]
TREE = Run(
    run_id=RUN,
    agent_run_id="agent-run-1",
    language="javascript",
    source="return 1",
    state="completed",
    start_ms=1.0,
    end_ms=103.0,
    duration_ms=8.5,
    guest_ms=2.0,
    calls=(
        Call(1, "call", QUOTE, "ok", 2.0, 4.0, {"to": "Oslo"}, 20, None, "exec", 2),
        Call(2, "namespace", "mcp:shop:slow", "error", 2.0, 50.0, {}, 0, "the shop is closed", "wait-1"),
    ),
    waits=(Wait("wait-1", 100.0, 103.0),),
    suspended=(Suspended(6.0, 20_000, "restored", 101.0),),
)


@requirement("trajectory:tree:complete", "trajectory:tree:deliverer", "trajectory:tree:suspended")
def test_a_whole_story_becomes_a_tree_of_its_calls_waits_and_suspended_spans():
    """Contract 10: under the exec also what a wait delivered; the exec delivered the other."""
    assert fold(STORY) == Trajectory((TREE,))


def test_nothing_happened_gives_an_empty_trajectory():
    """A session without a run."""
    assert fold([]) == Trajectory(())


@requirement("trajectory:tree:failures")
@pytest.mark.parametrize("count", range(1, len(STORY)))
def test_wherever_the_story_breaks_off_there_is_a_tree_of_what_is_known(count):
    """Contract 10: each prefix folds; what is there of a call agrees with the whole story's."""
    [run] = fold(STORY[:count]).runs

    assert run.run_id == RUN
    assert [call.id for call in run.calls] == [call.id for call in TREE.calls][: len(run.calls)]
    for call, whole in zip(run.calls, TREE.calls, strict=False):
        assert call.tool_id == whole.tool_id
        assert call.state in ("running", whole.state)


@requirement("trajectory:tree:failures")
@pytest.mark.parametrize("state", ["failed", "aborted", "expired"])
def test_calls_that_the_end_of_a_run_left_open_were_interrupted(state):
    """A process that died, a timeout, an abort: what they did is not known."""
    events = [
        BEGIN,
        STORY[1],
        CallParked(RUN, 2.0, 2, "call", QUOTE, {}),
        RunEnded(RUN, 3.0, state, "timeout", "late", 2.0),
    ]

    [run] = fold(events).runs

    assert [call.state for call in run.calls] == ["interrupted", "interrupted"]
    assert (run.state, run.code, run.error, run.end_ms) == (state, "timeout", "late", 3.0)


def test_a_call_of_a_waiting_run_is_still_running_and_the_run_has_not_ended():
    """Its process may carry it on."""
    [run] = fold(STORY[:9]).runs

    assert (run.state, run.end_ms) == ("waiting", None)
    assert [call.state for call in run.calls] == ["ok", "running"]
    assert run.suspended == (Suspended(6.0, 20_000),)


def test_a_call_that_waited_for_a_person_shows_first_that_and_then_how_it_went():
    """The time of a call is that of the tool, not of the person."""
    parked = CallParked(RUN, 2.0, 1, "call", QUOTE, {"to": "Oslo"}, "it is far")
    rest = [CallStarted(RUN, 60.0, 1, "call", QUOTE, {"to": "Oslo"}), CallSettled(RUN, 61.0, 1, "ok", 5, None)]

    assert fold([BEGIN, parked]).runs[0].calls == (
        Call(1, "call", QUOTE, "awaiting_approval", input={"to": "Oslo"}, reason="it is far"),
    )
    assert fold([BEGIN, parked, *rest]).runs[0].calls == (
        Call(1, "call", QUOTE, "ok", 60.0, 61.0, {"to": "Oslo"}, 5, reason="it is far"),
    )


def test_a_call_that_was_refused_is_in_the_tree_with_its_tool():
    """It settled without having started, so it has no start and no input."""
    [run] = fold([BEGIN, CallSettled(RUN, 2.0, 1, "denied", 0, "not available", QUOTE)]).runs

    assert run.calls == (Call(1, None, QUOTE, "denied", end_ms=2.0, error="not available"),)


def test_two_waits_and_two_suspensions_stay_apart():
    """The first wait delivered nothing and gave the run back."""
    events = [
        *STORY[:9],
        WaitStarted(RUN, 20.0, "wait-0"), RunEnded(RUN, 30.0, "waiting", None, None, 10.0),
        *STORY[9:13],
        SnapshotEvent(RUN, 102.0, "taken", 21_000), RunEnded(RUN, 102.5, "waiting", None, None, 2.5),
        SnapshotEvent(RUN, 900.0, "expired", 21_000), RunEnded(RUN, 900.0, "expired", "snapshot_expired", "old", 0.0),
    ]  # fmt: skip

    [run] = fold(events).runs

    assert run.waits == (Wait("wait-0", 20.0, 30.0), Wait("wait-1", 100.0, 102.5))
    assert run.suspended == (Suspended(6.0, 20_000, "restored", 101.0), Suspended(102.0, 21_000, "expired", 900.0))
    assert run.state == "expired"


def test_the_end_of_a_snapshot_that_nobody_saw_taken_changes_nothing():
    """A log may begin late: the tree shows what it knows."""
    assert fold([STORY[11]]).runs == (Run(RUN),)


def test_runs_stand_side_by_side_in_the_order_in_which_they_began():
    """Their events may be interleaved."""
    other = BEGIN._replace(run_id="cm_2")
    events = [BEGIN, other, STORY[1], STORY[1]._replace(run_id="cm_2", call_id=7)]

    first, second = fold(events).runs

    assert (first.run_id, second.run_id) == ("cm_1", "cm_2")
    assert ([call.id for call in first.calls], [call.id for call in second.calls]) == ([1], [7])


@requirement("trajectory:export:versioned")
def test_the_json_export_is_one_document_with_a_version():
    """Contract 10; every field is there, in camelCase."""
    document = to_json(fold(STORY))

    [run] = document.pop("runs")
    assert document == {"version": FORMAT_VERSION}
    assert run == {
        "runId": RUN, "agentRunId": "agent-run-1", "language": "javascript", "source": "return 1",
        "state": "completed", "code": None, "error": None, "startMs": 1.0, "endMs": 103.0,
        "durationMs": 8.5, "guestMs": 2.0,
        "waits": [{"id": "wait-1", "startMs": 100.0, "endMs": 103.0}],
        "suspended": [{"startMs": 6.0, "bytes": 20_000, "end": "restored", "endMs": 101.0}],
        "calls": [
            {
                "id": 1, "method": "call", "toolId": QUOTE, "state": "ok", "startMs": 2.0, "endMs": 4.0,
                "input": {"to": "Oslo"}, "resultBytes": 20, "error": None, "deliverer": "exec", "updates": 2,
                "reason": None,
            },
            {
                "id": 2, "method": "namespace", "toolId": "mcp:shop:slow", "state": "error", "startMs": 2.0,
                "endMs": 50.0, "input": {}, "resultBytes": 0, "error": "the shop is closed",
                "deliverer": "wait-1", "updates": 0, "reason": None,
            },
        ],
    }  # fmt: skip


@requirement("trajectory:export:versioned")
def test_the_json_lines_export_has_a_line_for_each_node_with_version_type_and_run():
    """Contract 10: parents first, and each line can be read alone."""
    lines = [json.loads(line) for line in to_jsonl(fold(STORY))]

    assert [line["type"] for line in lines] == ["run", "wait", "suspended", "call", "call"]
    assert {line["version"] for line in lines} == {FORMAT_VERSION}
    assert {line["runId"] for line in lines} == {RUN}
    [run] = to_json(fold(STORY))["runs"]
    assert [{"version": 1, "type": "call", "runId": RUN} | call for call in run["calls"]] == lines[3:]


def test_a_line_stays_a_line_whatever_the_cell_holds():
    """Line ends, separators and lone surrogates of hostile text are escaped."""
    [line] = to_jsonl(fold([BEGIN._replace(source="a\n\u2028\ud800")]))

    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line)["source"] == "a\n\u2028\ud800"
