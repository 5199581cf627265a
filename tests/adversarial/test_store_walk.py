"""Random walks through the store's verbs beside a model that fits on one page.

The model knows what contract 5 promises: a call is dispatched once, an answer never changes
and is never lost while its run lives, a run that has ended stays as it is. Owners die at
random, clocks run on, and verbs come in orders that no session would choose.
"""

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from codemode.core.errors import CodeModeError
from codemode.runs import TRANSITIONS, has_ended
from codemode.store.memory import MemoryStore
from codemode.store.owner import this_process
from codemode.trajectory import fold
from tests.requirements import requirement
from tests.support.stores import DEAD, ME, Clock, answer, new_run, open_call, suspension

OWNERS = st.sampled_from([this_process(), this_process(), DEAD])
NOT_OPEN = 999  # a call that no run has


class StoreWalk(RuleBasedStateMachine):
    """Each rule is a verb; the invariants are the promises."""

    runs = Bundle("runs")

    @initialize()
    def open(self):
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.states = {}  # run → the state in which it was last seen
        self.open_calls = {}  # run → its open calls, each with its owner
        self.answers = {}  # (run, call) → the answer that was written first
        self.dispatched = set()
        self.last_id = 0

    def teardown(self):
        self.store.close()

    @rule(target=runs, owner=OWNERS)
    def create(self, owner):
        run_id = self.store.create(new_run(owner))
        self.states[run_id], self.open_calls[run_id] = "running", {}
        return run_id

    @rule(run_id=runs, keep=st.booleans(), fresh=st.lists(OWNERS, max_size=2), parked=st.booleans())
    def suspend(self, run_id, keep, fresh, parked):
        calls = dict(self.open_calls[run_id]) if keep else {}
        for owner in fresh:
            self.last_id += 1
            calls[self.last_id] = open_call(
                self.last_id, owner=None if parked else owner, state="awaiting_approval" if parked else "running"
            )
        with suppress(CodeModeError):
            self.store.suspend(suspension(run_id, calls.values()))
            for gone in set(self.open_calls[run_id]) - set(calls):
                self.answers.pop((run_id, gone), None)
            self.open_calls[run_id] = calls

    @rule(run_id=runs, owner=OWNERS)
    def claim(self, run_id, owner):
        with suppress(CodeModeError):
            claimed = self.store.claim(run_id, ME, owner)
            assert claimed.snapshot
            assert {call.id for call in claimed.calls} == set(self.open_calls[run_id])

    @rule(run_id=runs, verb=st.sampled_from(["unclaim", "begin_delivery"]))
    def go_on(self, run_id, verb):
        with suppress(CodeModeError):
            getattr(self.store, verb)(run_id)

    @rule(run_id=runs, data=st.data())
    def settle(self, run_id, data):
        call_id = data.draw(st.sampled_from([*self.open_calls[run_id], NOT_OPEN]))
        text = f'"{len(self.answers)}"'
        if self.store.settle(run_id, answer(call_id, text)):
            assert (run_id, call_id) not in self.answers, "a call settled twice"
            self.answers[run_id, call_id] = text

    @rule(run_id=runs, data=st.data())
    def dispatch(self, run_id, data):
        call_id = data.draw(st.sampled_from([*self.open_calls[run_id], NOT_OPEN]))
        if self.store.dispatch(run_id, call_id, this_process()):
            assert (run_id, call_id) not in self.dispatched, "a call was dispatched twice"
            assert (run_id, call_id) not in self.answers, "a settled call was dispatched"
            self.dispatched.add((run_id, call_id))

    @rule(run_id=runs, state=st.sampled_from(["completed", "failed", "aborted"]))
    def finish(self, run_id, state):
        with suppress(CodeModeError):
            self.store.finish(run_id, state)

    @rule(run_id=runs)
    def abort(self, run_id):
        with suppress(CodeModeError):
            self.store.abort(run_id, ME)

    @rule(seconds=st.integers(1, 600))
    def pass_time(self, seconds):
        self.clock.seconds += seconds

    @rule()
    def sweep(self):
        self.store.sweep()

    @invariant()
    def every_promise_holds(self):
        for record in self.store.runs("default"):
            run_id, before = record.run_id, self.states[record.run_id]
            assert record.state in _reachable(before), f"{before} went to {record.state}"
            self.states[run_id] = record.state
            self._answers_are_those_that_were_written_first(run_id)
            assert all(run.state in ("running", record.state) for run in fold(self.store.events(run_id)).runs)
        held = {run_id for (run_id,) in self.store._db.rows("SELECT run_id FROM snapshots")}
        assert {run_id for run_id, state in self.states.items() if state == "waiting"} <= held
        assert not any(has_ended(self.states[run_id]) for run_id in held)

    def _answers_are_those_that_were_written_first(self, run_id):
        found = {reply.id: reply.text for reply in self.store.inbox(run_id).replies}
        if has_ended(self.states[run_id]):
            assert found == {}
            return
        for call_id, call in self.open_calls[run_id].items():
            if call.owner == DEAD:
                self.answers.setdefault((run_id, call_id), found[call_id])
        assert found == {call_id: text for (run, call_id), text in self.answers.items() if run == run_id}


def _reachable(state):
    """Return the states to which some legal steps lead; one verb may take several, as from `running` over
    `waiting` to `expired`."""
    found = {state}
    for _ in TRANSITIONS:
        found |= {after for each in found for after in TRANSITIONS[each]}
    return found


@requirement("runs:calls:dispatched-once", "runs:calls:settled-once", "runs:states:illegal")
def test_no_order_of_verbs_breaks_a_promise_of_the_store():
    """Contract 5, tried in random orders with owners that die."""
    case = StoreWalk.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    case("runTest").runTest()
