"""The states of a run and every way from one to another, as literal data.

Everything that moves a run asks `step` first, whatever keeps the run. Two rules: a pair that
is not in `TRANSITIONS` raises and changes nothing, and a run that leaves `waiting` leaves
its snapshot behind. Who moves a run and when is not known here; the store and the session
decide that.
"""

from typing import Literal

from codemode.core.errors import Internal

RunState = Literal["running", "waiting", "completed", "failed", "expired", "aborted"]

TRANSITIONS: dict[RunState, tuple[RunState, ...]] = {
    "running": ("waiting", "completed", "failed", "aborted"),
    "waiting": ("running", "failed", "expired", "aborted"),
    "completed": (),
    "failed": (),
    "expired": (),
    "aborted": (),
}


def step(state: RunState, to: RunState) -> RunState:
    """Return the state a run moves to.

    Raises:
        Internal: The table has no such transition; nothing has changed.

    Contract: runs:states:table, runs:states:illegal
    """
    if to not in TRANSITIONS[state]:
        raise Internal(f'a run cannot go from "{state}" to "{to}"')
    return to


def has_ended(state: RunState) -> bool:
    """Say whether a run in this state stays in it for ever."""
    return not TRANSITIONS[state]
