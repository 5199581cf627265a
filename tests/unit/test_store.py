"""What every store promises, on each implementation: the suite that a networked store would have to pass too."""

import re
import uuid
from functools import partial

import pytest

from codemode.core.errors import (
    Aborted,
    ErrorCode,
    Internal,
    InvalidInput,
    RuntimeUnavailable,
    SnapshotExpired,
    SnapshotLimit,
)
from codemode.core.events import CallSettled, RunEnded, SnapshotEvent, TurnMeasured, WaitStarted
from codemode.core.limits import MAX_LIVE_SUSPENDED_RUNS, Limits
from codemode.runs import TRANSITIONS
from codemode.store.database import Database
from codemode.store.memory import MemoryStore
from codemode.store.owner import this_process
from codemode.store.port import Caller, Inbox
from codemode.store.sqlite import SqliteStore
from tests.requirements import requirement
from tests.support.stores import DEAD, ME, SCOPE_TEXT, TTL_SECONDS, Clock, answer, new_run, open_call, suspension


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, clock, tmp_path):
    if request.param == "memory":
        made = MemoryStore(clock)
    else:
        made = SqliteStore(Database(tmp_path / "state" / "codemode.db"), clock)
    yield made
    made.close()


def suspended(store, *calls, **changes):
    """Return the id of a run that waits with these calls open."""
    run_id = store.create(new_run(**changes))
    store.suspend(suspension(run_id, calls))
    return run_id


def state_of(store, run_id):
    return store.get(run_id, ME).state


def in_state(store, clock, state):
    """Return the id of a run in a state, reached only by the store's verbs."""
    run_id = store.create(new_run())
    if state == "waiting":
        store.suspend(suspension(run_id))
    elif state == "expired":
        store.suspend(suspension(run_id))
        clock.seconds += TTL_SECONDS
        store.sweep()
    elif state != "running":
        store.finish(run_id, state)
    assert state_of(store, run_id) == state
    return run_id


# --- runs -----------------------------------------------------------------------------


@requirement("runs:ids:random")
def test_a_new_run_is_running_under_a_random_id(store):
    """Contract 3: `cm_` and a random UUID."""
    run_id = store.create(new_run())

    assert uuid.UUID(run_id.removeprefix("cm_")).version == 4
    assert uuid.UUID(run_id.removeprefix("cm_")).variant == uuid.RFC_4122
    assert state_of(store, run_id) == "running"
    assert store.create(new_run()) != run_id


@requirement("runs:record:complete")
def test_a_claimed_run_comes_with_all_that_it_was_suspended_with(store, clock):
    """Contract 5: manifest path, limits, catalog entries; the session's own notes; the snapshot and its build."""
    limits = Limits(timeout_ms=500, snapshot_ttl_seconds=60)
    run_id = store.create(new_run(limits=limits, language="typescript"))
    given = suspension(run_id, [open_call(1), open_call(2, method="timer", tool_id=None, owner=None, due_ms=5.5)])
    store.suspend(given)

    claimed = store.claim(run_id, ME, this_process())

    assert claimed.run.manifest == "/work/codemode.toml"
    assert claimed.run.limits == limits
    assert (claimed.run.language, claimed.run.agent_run_id, claimed.run.state) == (
        "typescript",
        "agent-run-1",
        "running",
    )
    assert claimed.run.created_ms == clock.seconds * 1000
    assert (claimed.snapshot, claimed.build) == (given.snapshot, "build-1")
    assert claimed.calls == given.calls
    assert (claimed.scope, claimed.scope_text, claimed.carry) == ("scope-1", SCOPE_TEXT, {"lastId": 7})


@requirement("runs:list:newest-first")
def test_a_session_lists_its_runs_newest_first_with_the_finished_ones(store, clock):
    """Contract 12; the order is that of creation, even if the clock went backwards."""
    first, second, third = (in_state(store, clock, state) for state in ("completed", "failed", "running"))
    clock.seconds -= 3600
    fourth = store.create(new_run())
    store.create(new_run(session="other"))

    assert [run.run_id for run in store.runs("default")] == [fourth, third, second, first]
    assert [run.state for run in store.runs("default")] == ["running", "running", "failed", "completed"]


def test_a_waiting_run_lists_what_it_waits_for(store):
    """Issue 5: approvals are listed in `codemode runs`."""
    calls = (open_call(1), open_call(2, state="awaiting_approval", owner=None), open_call(3))
    run_id = suspended(store, *calls)
    store.settle(run_id, answer(3))

    shown = store.runs("default")[0].to_json()

    assert shown["state"] == "waiting"
    assert shown["pendingToolCalls"] == [
        {"id": "1", "method": "call", "toolId": "client:app:quote", "state": "running"},
        {"id": "2", "method": "call", "toolId": "client:app:quote", "state": "awaiting_approval"},
    ]
    assert shown["expiresMs"] == store.get(run_id, ME).expires_ms
    assert store.claim(run_id, ME, this_process()).run.pending == ()
    assert store.get(run_id, ME).pending == ()


def test_a_failed_run_shows_why_and_nothing_that_does_not_apply(store, clock):
    """One record for people and for `--json`."""
    run_id = store.create(new_run(manifest=None))
    clock.seconds += 2
    store.finish(run_id, "failed", ErrorCode.TIMEOUT, "it took 500 ms \ud800")

    record = store.get(run_id, ME)

    assert record.to_json() == {
        "runId": run_id, "state": "failed", "session": "default", "agentId": "main", "agentRunId": "agent-run-1",
        "language": "javascript", "createdMs": record.created_ms, "endedMs": record.created_ms + 2000,
        "code": "timeout", "error": "it took 500 ms \ufffd",
    }  # fmt: skip


# --- states ---------------------------------------------------------------------------

VERBS = {
    "suspend": (lambda store, run: store.suspend(suspension(run)), {"running": "waiting"}),
    "claim": (lambda store, run: store.claim(run, ME, this_process()), {"waiting": "running"}),
    "begin_delivery": (lambda store, run: store.begin_delivery(run), {"running": "running"}),
    "complete": (lambda store, run: store.finish(run, "completed"), {"running": "completed"}),
    "fail": (lambda store, run: store.finish(run, "failed"), {"running": "failed", "waiting": "failed"}),
    "finish as aborted": (
        lambda store, run: store.finish(run, "aborted"),
        {"running": "aborted", "waiting": "aborted"},
    ),
    "abort": (lambda store, run: store.abort(run, ME), {"running": "running", "waiting": "aborted"}),
    "unclaim": (lambda store, run: store.unclaim(run), {}),
    "sweep": (lambda store, run: store.sweep(), {state: state for state in TRANSITIONS}),
}


@requirement("runs:states:illegal", "runs:states:table")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", TRANSITIONS)
def test_each_verb_in_each_state_moves_the_run_as_the_table_says_or_changes_nothing(store, clock, state, verb):
    """Contract 4: an illegal transition raises and changes nothing."""
    act, outcome = VERBS[verb]
    run_id = in_state(store, clock, state)
    before = (store.get(run_id, ME), store.events(run_id))

    if state in outcome:
        act(store, run_id)
        assert state_of(store, run_id) == outcome[state]
    else:
        with pytest.raises((Internal, InvalidInput, SnapshotExpired, Aborted)):
            act(store, run_id)
        assert (store.get(run_id, ME), store.events(run_id)) == before


def test_a_verb_for_a_run_that_never_was_is_a_fault_of_ours(store):
    """Only a session that created a run has its verbs."""
    with pytest.raises(Internal, match="no run cm_nowhere"):
        store.finish("cm_nowhere", "completed")


def test_a_change_that_fails_leaves_its_events_unwritten_too(store, clock):
    """Events are written with the change or not at all."""
    run_id = in_state(store, clock, "completed")

    with pytest.raises(Internal):
        store.suspend(suspension(run_id, [open_call(1)]), [TurnMeasured(run_id, 1.0, 2.0)])

    assert store.events(run_id) == []
    assert store.inbox(run_id) == Inbox((), 0)


# --- suspension: slots, time to live, scopes ----------------------------------------------


@requirement("runs:slots:sixty-four")
def test_the_sixty_fifth_suspended_run_of_a_session_is_refused_and_goes_on_running(store):
    """Contract 2. Another session has slots of its own."""
    for _ in range(MAX_LIVE_SUSPENDED_RUNS):
        suspended(store)
    late = store.create(new_run())

    with pytest.raises(SnapshotLimit, match="64 runs"):
        store.suspend(suspension(late))

    assert state_of(store, late) == "running"
    suspended(store, session="other")


@requirement("runs:slots:kept")
def test_a_run_that_resumes_and_suspends_again_keeps_its_slot(store):
    """Contract 2: neither does it need a second one, nor can another take its place meanwhile."""
    first, *_ = [suspended(store) for _ in range(MAX_LIVE_SUSPENDED_RUNS)]
    store.claim(first, ME, this_process())
    store.begin_delivery(first)

    with pytest.raises(SnapshotLimit):
        suspended(store)
    store.suspend(suspension(first))

    assert state_of(store, first) == "waiting"


@requirement("runs:slots:freed")
@pytest.mark.parametrize("ending", ["finish", "abort", "expire"])
def test_a_run_that_ends_frees_its_slot(store, clock, ending):
    """Contract 4; a run that is too old holds none, swept or not."""
    ids = [suspended(store) for _ in range(MAX_LIVE_SUSPENDED_RUNS)]
    if ending == "finish":
        store.claim(ids[0], ME, this_process())
        store.finish(ids[0], "completed")
    elif ending == "abort":
        store.abort(ids[0], ME)
    else:
        clock.seconds += TTL_SECONDS

    assert state_of(store, suspended(store)) == "waiting"


@requirement("runs:ttl:last-suspension")
def test_the_time_to_live_counts_from_the_last_suspension(store, clock):
    """Contract 4."""
    run_id = suspended(store)
    clock.seconds += TTL_SECONDS - 1
    store.claim(run_id, ME, this_process())
    store.begin_delivery(run_id)
    store.suspend(suspension(run_id))
    clock.seconds += TTL_SECONDS - 1

    assert store.claim(run_id, ME, this_process()).run.state == "running"


@requirement("runs:ttl:not-renewed")
@pytest.mark.parametrize("give_back", ["unclaim", "suspend"])
def test_a_wait_that_delivered_nothing_does_not_renew_the_time_to_live(store, clock, give_back):
    """Contract 4: the VM was not run since, so its suspension is the old one."""
    run_id = suspended(store)
    expires_ms = store.get(run_id, ME).expires_ms
    clock.seconds += 60
    store.claim(run_id, ME, this_process())

    if give_back == "unclaim":
        store.unclaim(run_id)
    else:
        store.suspend(suspension(run_id))

    assert store.get(run_id, ME).expires_ms == expires_ms


@requirement("runs:ttl:expires", "runs:snapshots:discarded")
def test_a_wait_that_comes_too_late_is_told_so_each_time(store, clock):
    """Contract 4: snapshot_expired, whether or not a sweep came first."""
    run_id = suspended(store)
    clock.seconds += TTL_SECONDS

    for _ in range(2):
        with pytest.raises(SnapshotExpired, match="snapshotTtlSeconds"):
            store.claim(run_id, ME, this_process())

    assert state_of(store, run_id) == "expired"
    assert store.sweep() == []


@requirement("runs:ttl:swept")
def test_a_sweep_expires_what_is_too_old_and_logs_it(store, clock):
    """Contract 4; the log says how large the snapshot was."""
    old = suspended(store)
    clock.seconds += 1
    young = suspended(store)
    clock.seconds += TTL_SECONDS - 1

    events = store.sweep()

    at_ms = clock.seconds * 1000
    assert events == [
        SnapshotEvent(old, at_ms, "expired", 64),
        RunEnded(old, at_ms, "expired", "snapshot_expired", store.get(old, ME).error, 0.0),
    ]
    assert store.events(old) == events
    assert (state_of(store, old), state_of(store, young)) == ("expired", "waiting")


# --- claims ---------------------------------------------------------------------------------


@requirement("runs:claims:concurrent")
def test_a_second_wait_is_refused_and_the_first_goes_on(store):
    """Contract 3."""
    run_id = suspended(store)
    store.claim(run_id, ME, this_process())

    with pytest.raises(InvalidInput, match="is running"):
        store.claim(run_id, ME, this_process())

    store.begin_delivery(run_id)
    store.finish(run_id, "completed")
    assert state_of(store, run_id) == "completed"


@requirement("runs:claims:same-message")
def test_unknown_finished_and_foreign_runs_are_refused_alike(store, clock):
    """Contract 4: a caller must not learn which ids exist."""
    unknown = "cm_00000000-0000-4000-8000-000000000000"
    refused = [
        (unknown, ME),
        (in_state(store, clock, "completed"), ME),
        (in_state(store, clock, "failed"), ME),
        (suspended(store, session="other"), ME),
        (suspended(store, agent_id="other"), ME),
        (suspended(store, agent_run_id="other"), ME._replace(agent_run_id="agent-run-1")),
        (store.create(new_run(session="other")), ME),
    ]
    messages = set()
    for run_id, caller in refused:
        for ask in (partial(store.claim, owner=this_process()), store.abort):
            with pytest.raises(InvalidInput) as caught:
                ask(run_id, caller)
            messages.add(caught.value.message.replace(run_id, unknown))

    assert len(messages) == 1


def test_expiry_and_abort_of_a_foreign_run_are_not_told_either(store, clock):
    """Contract 4, of a run that its own caller would be told about."""
    gone = suspended(store)
    store.abort(gone, ME)
    stranger = Caller("other", "main")

    with pytest.raises(InvalidInput, match=re.escape(gone)):
        store.claim(gone, stranger, this_process())
    with pytest.raises(InvalidInput, match=re.escape(gone)):
        store.get(gone, stranger)
    with pytest.raises(Aborted):
        store.claim(gone, ME, this_process())


def test_a_command_line_continues_the_runs_own_agent_run(store):
    """Contract 1: the waits of a `codemode run` continue its agent run without knowing its id."""
    run_id = suspended(store, agent_run_id="some agent run")

    assert store.claim(run_id, ME, this_process()).run.agent_run_id == "some agent run"


@pytest.mark.parametrize("run_id", ["", "cm_\udcff", "'; DROP TABLE runs; --", "x" * 100_000, "cm_\x00"])
def test_a_nonsensical_id_is_invalid_input_with_a_short_message(store, run_id):
    """Contract 3: bad arguments are a failed result, never another error."""
    with pytest.raises(InvalidInput) as caught:
        store.claim(run_id, ME, this_process())

    assert len(caught.value.message) < 300


def test_a_wait_without_a_delivery_gives_the_run_back_as_it_was(store):
    """The next claimer finds the same snapshot, calls and notes, or the notes that replaced them."""
    run_id = suspended(store, open_call(1))
    first = store.claim(run_id, ME, this_process())
    store.unclaim(run_id, None, [WaitStarted(run_id, 1.0, "wait-1")])
    second = store.claim(run_id, ME, this_process())
    store.unclaim(run_id, {"always": ["client:app:quote"]})
    third = store.claim(run_id, ME, this_process())

    assert second == first
    assert third == first._replace(carry={"always": ["client:app:quote"]})
    assert store.events(run_id) == [WaitStarted(run_id, 1.0, "wait-1")]


@requirement("runs:snapshots:once")
def test_a_run_to_which_something_was_delivered_cannot_be_given_back(store):
    """Contract 5: restoring that snapshot again would run its calls again."""
    run_id = suspended(store)
    store.claim(run_id, ME, this_process())
    store.begin_delivery(run_id)

    with pytest.raises(Internal, match="something was delivered"):
        store.unclaim(run_id)

    assert state_of(store, run_id) == "running"


# --- calls and their answers --------------------------------------------------------------


@requirement("runs:calls:settled-once", "runs:inbox:order")
def test_answers_arrive_once_and_in_the_order_in_which_they_came(store):
    """Contracts 4 and 5."""
    run_id = suspended(store, open_call(1), open_call(2), open_call(3))

    assert store.settle(run_id, answer(3, '"third"'))
    assert store.settle(run_id, answer(1, '{"message":"no"}', ok=False), [TurnMeasured(run_id, 1.0, 2.0)])
    assert not store.settle(run_id, answer(3, '"again"'), [TurnMeasured(run_id, 3.0, 4.0)])
    assert not store.settle(run_id, answer(9))

    assert store.inbox(run_id) == Inbox((answer(3, '"third"'), answer(1, '{"message":"no"}', ok=False)), 2)
    assert store.events(run_id) == [TurnMeasured(run_id, 1.0, 2.0)]


@requirement("runs:inbox:order")
def test_the_inbox_gives_what_came_after_a_position(store):
    """A wait polls; what it has delivered does not come again."""
    run_id = suspended(store, open_call(1), open_call(2))
    store.claim(run_id, ME, this_process())
    assert store.inbox(run_id, 0) == Inbox((), 0)
    store.settle(run_id, answer(2))
    seen = store.inbox(run_id, 0)
    store.begin_delivery(run_id)
    store.settle(run_id, answer(1))

    assert seen.replies == (answer(2),)
    assert store.inbox(run_id, seen.position) == Inbox((answer(1),), 2)
    assert store.inbox(run_id, 2) == Inbox((), 2)


@requirement("runs:calls:settled-once")
@pytest.mark.parametrize("ending", ["completed", "failed", "aborted"])
def test_an_answer_to_a_run_that_has_ended_is_ignored(store, ending):
    """Contract 5: its process may still carry the call when the run is gone."""
    run_id = suspended(store, open_call(1))
    store.claim(run_id, ME, this_process())
    store.finish(run_id, ending)

    assert not store.settle(run_id, answer(1), [TurnMeasured(run_id, 1.0, 2.0)])
    assert store.events(run_id) == []


@requirement("runs:calls:settled-meanwhile")
def test_what_was_settled_while_the_run_went_on_is_there_after_it_suspends_again(store):
    """Contract 5: the owner of call 1 is another process; nobody polled between its answer and the suspension."""
    run_id = suspended(store, open_call(1), open_call(2))
    store.settle(run_id, answer(2))
    store.claim(run_id, ME, this_process())
    store.begin_delivery(run_id)
    store.settle(run_id, answer(1, '"just in time"'))
    store.suspend(suspension(run_id, [open_call(1), open_call(5)]))

    claimed = store.claim(run_id, ME, this_process())

    assert [(call.id, call.state) for call in claimed.calls] == [(1, "settled"), (5, "running")]
    assert store.inbox(run_id).replies == (answer(1, '"just in time"'),)


def test_answers_in_hand_at_the_suspension_go_into_the_inbox(store):
    """Settled too late to be delivered: they are the first that the next wait delivers."""
    run_id = store.create(new_run())
    store.suspend(suspension(run_id, [open_call(1), open_call(2)], settled=(answer(2, "22"), answer(1, "11"))))

    assert store.inbox(run_id).replies == (answer(2, "22"), answer(1, "11"))
    assert store.get(run_id, ME).pending == ()


@requirement("runs:calls:dispatched-once")
def test_an_approved_call_is_given_to_one_process_only(store):
    """Contract 5: the record is there before the tool starts, and no second start gets one."""
    run_id = suspended(store, open_call(1, state="awaiting_approval", owner=None), open_call(2))

    assert store.dispatch(run_id, 1, this_process())
    assert not store.dispatch(run_id, 1, this_process())
    assert not store.dispatch(run_id, 2, this_process())

    claimed = store.claim(run_id, ME, this_process())
    assert claimed.calls[0] == open_call(1)


def test_a_call_that_a_person_denied_settles_without_having_run(store):
    """Then it can no longer be dispatched."""
    run_id = suspended(store, open_call(1, state="awaiting_approval", owner=None))

    assert store.settle(run_id, answer(1, '{"message":"denied"}', ok=False))
    assert not store.dispatch(run_id, 1, this_process())


@requirement("runs:calls:interrupted")
def test_a_call_whose_process_died_rejects_and_says_what_may_have_happened(store, clock):
    """Contract 5: never re-run, never lost, never left pending."""
    run_id = suspended(store, open_call(1, owner=DEAD), open_call(2))

    found = store.inbox(run_id)

    assert [reply.id for reply in found.replies] == [1]
    assert not found.replies[0].ok
    for part in ('"code": "nested_tool_failed"', "interrupted", "may have taken effect", "client:app:quote"):
        assert part in found.replies[0].text
    assert store.inbox(run_id, found.position).replies == ()
    [event] = store.events(run_id)
    assert isinstance(event, CallSettled)
    assert event[:5] == (run_id, clock.seconds * 1000, 1, "interrupted", 0)
    assert event.tool_id == "client:app:quote"


@requirement("runs:calls:interrupted")
def test_what_a_process_settled_as_its_last_deed_is_not_interrupted(store):
    """The answer was there before the death was seen."""
    run_id = suspended(store, open_call(1, owner=DEAD))
    store.settle(run_id, answer(1, '"done"'))

    assert store.inbox(run_id).replies == (answer(1, '"done"'),)


@pytest.mark.parametrize("method", ["timer", "yield", "search"])
def test_what_any_process_can_answer_is_never_interrupted(store, method):
    """Timers and yields have no owner: nothing outside happened, so the claimer carries them on."""
    run_id = suspended(store, open_call(1, method=method, tool_id=None, owner=None))

    assert store.inbox(run_id) == Inbox((), 0)


# --- owners that die --------------------------------------------------------------------------


@requirement("runs:owners:rescued")
@pytest.mark.parametrize("found_by", ["claim", "sweep"])
def test_a_run_whose_claimer_died_before_it_delivered_waits_again_with_all_it_had(store, found_by):
    """Contract 5: nothing is lost, and its time to live is the old one."""
    run_id = suspended(store, open_call(1))
    store.settle(run_id, answer(1))
    expires_ms = store.get(run_id, ME).expires_ms
    first = store.claim(run_id, ME, DEAD)

    if found_by == "sweep":
        assert store.sweep() == []
        assert (state_of(store, run_id), store.get(run_id, ME).expires_ms) == ("waiting", expires_ms)

    assert store.claim(run_id, ME, this_process()) == first
    assert store.inbox(run_id).replies == (answer(1),)


@requirement("runs:owners:lost")
@pytest.mark.parametrize("found_by", ["claim", "sweep"])
def test_a_run_whose_process_died_after_it_delivered_has_failed_and_says_so_once(store, found_by):
    """Contract 5: it cannot be restored without running a call twice. Later it is a finished run."""
    run_id = suspended(store)
    store.claim(run_id, ME, DEAD)
    store.begin_delivery(run_id)
    if found_by == "sweep":
        [ended] = store.sweep()
        assert ended[2:4] == ("failed", "runtime_unavailable")

    with pytest.raises(RuntimeUnavailable, match=r"process that ran this run \(pid \d+\) died"):
        store.claim(run_id, ME, this_process())
    with pytest.raises(InvalidInput, match="unknown, finished"):
        store.claim(run_id, ME, this_process())

    assert store.get(run_id, ME).code == "runtime_unavailable"
    assert store.events(run_id)[-1].state == "failed"


@requirement("runs:owners:lost")
def test_an_exec_whose_process_died_has_failed(store):
    """It was never suspended, so there is nothing to go on with."""
    run_id = store.create(new_run(DEAD))

    assert [event.state for event in store.sweep()] == ["failed"]
    assert state_of(store, run_id) == "failed"


def test_a_rescued_run_that_is_too_old_expires_at_once(store, clock):
    """Both are true of it; the second is what its caller must hear."""
    run_id = suspended(store)
    store.claim(run_id, ME, DEAD)
    clock.seconds += TTL_SECONDS

    assert [type(event) for event in store.sweep()] == [SnapshotEvent, RunEnded]
    assert state_of(store, run_id) == "expired"


# --- abort ------------------------------------------------------------------------------------


@requirement("runs:abort:waiting", "runs:snapshots:discarded")
def test_aborting_a_waiting_run_ends_it_and_whoever_carries_its_calls_sees_it(store):
    """Contract 4."""
    run_id = suspended(store, open_call(1))
    assert not store.must_stop(run_id)

    assert store.abort(run_id, ME) == "aborted"

    assert store.must_stop(run_id)
    assert [type(event) for event in store.events(run_id)] == [SnapshotEvent, RunEnded]
    assert store.events(run_id)[0].change == "discarded"
    with pytest.raises(Aborted):
        store.claim(run_id, ME, this_process())


@requirement("runs:abort:running")
@pytest.mark.parametrize("next_verb", ["suspend", "unclaim", "begin_delivery"])
def test_aborting_a_running_run_is_seen_by_its_owner_whatever_it_does_next(store, next_verb):
    """Contract 4: only its owner can end it, and no other way is left open."""
    run_id = suspended(store)
    store.claim(run_id, ME, this_process())

    assert store.abort(run_id, ME) == "running"

    assert store.must_stop(run_id)
    with pytest.raises(Aborted):
        store.suspend(suspension(run_id)) if next_verb == "suspend" else getattr(store, next_verb)(run_id)
    store.finish(run_id, "aborted")
    assert state_of(store, run_id) == "aborted"


def test_aborting_a_run_whose_claimer_died_ends_it_at_once(store):
    """Nobody is left to be asked."""
    run_id = suspended(store)
    store.claim(run_id, ME, DEAD)

    assert store.abort(run_id, ME) == "aborted"


def test_work_for_a_run_that_nobody_knows_must_stop(store):
    """It cannot be delivered anywhere."""
    assert store.must_stop("cm_nowhere")


# --- log --------------------------------------------------------------------------------------


def test_the_log_gives_back_what_was_written_in_its_order(store):
    """Runs of one agent run read as one log; others stay out."""
    first, second = store.create(new_run()), store.create(new_run())
    other = store.create(new_run(agent_run_id="agent-run-2"))
    written = [TurnMeasured(run, at, 1.5) for run, at in [(first, 1.0), (second, 2.0), (first, 3.0)]]
    for event in written:
        store.append(event.run_id, [event])
    store.append(other, [TurnMeasured(other, 9.0, 9.0)])
    store.append(other, [])

    assert store.events(first) == [written[0], written[2]]
    assert store.agent_run_events("agent-run-1") == written


def test_every_kind_of_event_survives_the_log(store):
    """Text that is not well-formed too: it comes from tools."""
    run_id = store.create(new_run())
    settled = CallSettled(run_id, 1.25, 3, "error", 0, "na\u00efve \U0001f600 \ud800")
    changed = SnapshotEvent(run_id, 2.0, "taken", 30_000)
    store.append(run_id, [settled, changed])

    assert store.events(run_id) == [settled, changed]


# --- closing ------------------------------------------------------------------------------------


@requirement("runs:store:memory-close")
def test_closing_an_in_memory_store_aborts_its_open_runs():
    """Contract 5: whoever asks for one afterwards is told that it was aborted."""
    store = MemoryStore()
    run_id = suspended(store)
    store.close()

    with pytest.raises(Aborted, match="session has ended"):
        store.claim(run_id, ME, this_process())
    with pytest.raises(Aborted):
        store.must_stop(run_id)
