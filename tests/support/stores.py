"""Runs, suspensions and clocks for tests of the store and of what stands on it."""

import os
from collections.abc import Iterable
from typing import Any

from codemode.core.limits import Limits
from codemode.core.types import BridgeReply
from codemode.store.owner import Owner, this_process
from codemode.store.port import Caller, NewRun, OpenCall, Suspension

TTL_SECONDS = 900
ME = Caller("default", "main")
DEAD = Owner(2**22 + 1, "some boot some namespace 12345")  # above Linux's largest pid
SCOPE_TEXT = b'{"tools":[{"id":"client:app:quote"}]}'


class Clock:
    """A clock that stands still until it is moved, in Unix seconds."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds


def new_run(owner: Owner | None = None, **changes: Any) -> NewRun:
    """Return a run of this process, changed where the test needs it."""
    run = NewRun(
        "default", "main", "agent-run-1", "javascript", "/work/codemode.toml", Limits(), owner or this_process()
    )
    return run._replace(**changes)


def open_call(call_id: int, **changes: Any) -> OpenCall:
    """Return a call that this process carries."""
    call = OpenCall(call_id, "call", "client:app:quote", "client:app:quote", '{"to":"Oslo"}', "running", this_process())
    return call._replace(**changes)


def suspension(run_id: str, calls: Iterable[OpenCall] = (), **changes: Any) -> Suspension:
    """Return what a session hands over when its cell is suspended with these calls."""
    made = Suspension(
        run_id, os.urandom(64), "build-1", "pending_tools", tuple(calls), (), "scope-1", SCOPE_TEXT, {"lastId": 7}
    )
    return made._replace(**changes)


def answer(call_id: int, text: str = "1", *, ok: bool = True) -> BridgeReply:
    """Return how a call settled."""
    return BridgeReply(call_id, ok, text)
