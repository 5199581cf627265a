"""The state machine as a product: every state and every state after it."""

import itertools

import pytest

from codemode.core.errors import Internal
from codemode.runs import TRANSITIONS, has_ended, step
from tests.requirements import requirement

STATES = ("running", "waiting", "completed", "failed", "expired", "aborted")
LEGAL = {
    ("running", "waiting"), ("running", "completed"), ("running", "failed"), ("running", "aborted"),
    ("waiting", "running"), ("waiting", "failed"), ("waiting", "expired"), ("waiting", "aborted"),
}  # fmt: skip


@requirement("runs:states:table")
@pytest.mark.parametrize(("state", "to"), sorted(LEGAL))
def test_a_legal_step_leads_where_it_says(state, to):
    """The table as contract 4 has it, written out a second time."""
    assert step(state, to) == to


@requirement("runs:states:illegal")
@pytest.mark.parametrize(("state", "to"), sorted(set(itertools.product(STATES, STATES)) - LEGAL))
def test_every_other_step_raises_and_names_both_states(state, to):
    """Contract 4: no others."""
    with pytest.raises(Internal, match=f'"{state}" to "{to}"'):
        step(state, to)


def test_the_six_states_are_those_of_the_contract():
    """Contract 4 names them in this order."""
    assert tuple(TRANSITIONS) == STATES


def test_a_state_has_ended_exactly_when_nothing_follows_it():
    """Two states are alive; the rest are final."""
    assert [state for state in STATES if not has_ended(state)] == ["running", "waiting"]
