"""Telemetry: what each event adds, and nothing else."""

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
from codemode.store.memory import MemoryStore
from codemode.telemetry import Telemetry, fold
from tests.requirements import requirement
from tests.support.stores import new_run

RUN = "cm_1"
NOTHING = {
    "visibleTools": [],
    "catalogSize": 0,
    "sources": {"openclaw": 0, "plugin": 0, "mcp": 0, "client": 0},
    "execCount": 0,
    "waitCount": 0,
    "searchCount": 0,
    "describeCount": 0,
    "callCount": 0,
    "nestedToolIds": [],
    "limitFailures": {"timeout": 0, "memory": 0, "snapshot": 0, "output": 0},
    "snapshots": {"taken": 0, "restored": 0, "expired": 0, "discarded": 0, "lastBytes": 0},
    "durationMs": 0.0,
    "guestMs": 0.0,
}


def begun(run_id=RUN, size=3, **sources):
    return ExecStarted(run_id, 1.0, "agent-run-1", "javascript", "return 1", size, sources, ["exec", "wait"])


def started(call_id, method="call", tool_id="client:app:quote", run_id=RUN):
    return CallStarted(run_id, 2.0, call_id, method, tool_id, {"to": "Oslo"})


def ended(state="completed", code=None, duration_ms=4.0, run_id=RUN):
    return RunEnded(run_id, 9.0, state, code, None, duration_ms)


@requirement("telemetry:shape:fields")
def test_all_fields_are_there_before_anything_happened():
    """Contract 10, spelled as there."""
    assert fold([]) == NOTHING


def test_an_exec_says_what_is_visible_and_what_the_catalog_holds():
    """Sources that have nothing stay at zero."""
    assert fold([begun(size=5, mcp=2, client=3)]) == NOTHING | {
        "visibleTools": ["exec", "wait"],
        "catalogSize": 5,
        "sources": {"openclaw": 0, "plugin": 0, "mcp": 2, "client": 3},
        "execCount": 1,
    }


@requirement("telemetry:calls:executed")
def test_each_method_is_counted_under_its_own_name_and_timers_under_none():
    """A namespace call is a nested call; searches, describes, timers and yields are none."""
    methods = ["search", "describe", "describe", "call", "namespace", "timer", "yield"]
    events = [
        started(n, method, "mcp:a:b" if method == "namespace" else "client:app:quote")
        for n, method in enumerate(methods)
    ]

    found = fold(events)

    assert (found["searchCount"], found["describeCount"], found["callCount"]) == (1, 2, 2)
    assert found["nestedToolIds"] == ["client:app:quote", "mcp:a:b"]


@requirement("telemetry:calls:executed")
def test_a_call_that_was_refused_or_waits_for_a_person_was_not_executed():
    """It settles without having started."""
    events = [
        CallSettled(RUN, 2.0, 1, "denied", 0, "denied", "client:app:quote"),
        CallSettled(RUN, 2.0, 2, "error", 0, "the input is not valid", "client:app:quote"),
        CallParked(RUN, 2.0, 3, "call", "client:app:quote", {}),
    ]

    assert fold(events) == NOTHING


def test_each_tool_is_named_once_in_the_order_of_its_first_call():
    """However often it is called."""
    events = [started(n, tool_id=tool_id) for n, tool_id in enumerate(["b", "a", "b", "c", "a"])]

    assert fold(events)["nestedToolIds"] == ["b", "a", "c"]
    assert fold(events)["callCount"] == 5


@requirement("telemetry:limits:counted")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("timeout", "timeout"),
        ("memory_limit_exceeded", "memory"),
        ("snapshot_limit_exceeded", "snapshot"),
        ("output_limit_exceeded", "output"),
    ],
)
def test_a_failure_by_a_limit_is_counted_under_its_kind(code, kind):
    """Contract 10."""
    assert fold([ended("failed", code, 0.0)])["limitFailures"] == NOTHING["limitFailures"] | {kind: 1}


@pytest.mark.parametrize("code", [None, "aborted", "nested_tool_failed", "too_many_pending_tool_calls"])
def test_another_failure_is_no_limit_failure(code):
    """The four kinds are all there are."""
    assert fold([ended("failed", code, 0.0)]) == NOTHING


@requirement("telemetry:snapshots:counted")
def test_snapshots_are_counted_by_what_became_of_them_and_the_last_one_taken_is_measured():
    """lastBytes is the stored size of the newest snapshot, wherever it ended."""
    changes = [("taken", 100), ("restored", 100), ("taken", 70), ("discarded", 70), ("taken", 90), ("expired", 90)]

    found = fold([SnapshotEvent(RUN, 1.0, change, size) for change, size in changes])

    assert found["snapshots"] == {"taken": 3, "restored": 1, "expired": 1, "discarded": 1, "lastBytes": 90}


def test_times_add_up_over_turns_and_over_execs_and_waits():
    """durationMs is the caller's waiting, guestMs the cell's computing."""
    events = [
        TurnMeasured(RUN, 1.0, 0.1),
        TurnMeasured(RUN, 2.0, 0.2),
        ended("waiting", duration_ms=0.7),
        ended(duration_ms=0.1),
    ]

    found = fold(events)

    assert (found["durationMs"], found["guestMs"]) == (0.8, 0.3)


@requirement("telemetry:scope:agent-run")
def test_the_runs_of_one_agent_run_are_counted_together():
    """Contract 10; the catalog is that of the newest exec."""
    events = [
        begun("cm_1", size=3, client=3), started(1, run_id="cm_1"), ended("waiting", run_id="cm_1"),
        begun("cm_2", size=4, client=2, plugin=2), started(1, run_id="cm_2"), ended(run_id="cm_2"),
        WaitStarted("cm_1", 9.0, "wait-1"), TurnMeasured("cm_1", 9.0, 0.0, [1], "wait-1"), ended(run_id="cm_1"),
    ]  # fmt: skip

    found = fold(events)

    assert (found["execCount"], found["waitCount"], found["callCount"], found["durationMs"]) == (2, 1, 2, 12.0)
    assert (found["catalogSize"], found["sources"]["client"], found["sources"]["plugin"]) == (4, 2, 2)


@requirement("telemetry:process:same-figures")
def test_a_new_process_that_folds_the_log_counts_what_the_live_session_counted():
    """Issue 5: one stream; how it came makes no difference."""
    store, live = MemoryStore(), Telemetry()
    run_id = store.create(new_run())
    happened = [
        begun(run_id, client=3), started(1, run_id=run_id), CallProgress(run_id, 2.0, 1, {"done": 1}),
        CallSettled(run_id, 3.0, 1, "ok", 20, None),
        SnapshotEvent(run_id, 4.0, "taken", 20_000), TurnMeasured(run_id, 4.0, 1.25, [1]),
        ended("waiting", run_id=run_id),
    ]  # fmt: skip
    for event in happened:
        live.add(event)
    store.append(run_id, happened[:3])
    store.append(run_id, happened[3:])

    assert fold(store.agent_run_events("agent-run-1")) == live.to_json()
    store.close()


def test_what_was_handed_out_does_not_change_with_later_events():
    """Each result carries the figures of its moment."""
    live = Telemetry()
    live.add(begun(client=1))
    first = live.to_json()
    live.add(started(1))
    live.add(begun(plugin=1))

    assert first == NOTHING | {
        "visibleTools": ["exec", "wait"], "catalogSize": 3, "execCount": 1,
        "sources": {"openclaw": 0, "plugin": 0, "mcp": 0, "client": 1},
    }  # fmt: skip
