"""Rows of the SQLite tables and the values of the port, both ways."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from codemode.core.errors import ErrorCode
from codemode.core.limits import Limits
from codemode.core.types import PendingCall
from codemode.store.owner import Owner
from codemode.store.port import OpenCall, RunRecord

RUN_COLUMNS = (
    "run_id, session, agent_id, agent_run_id, state, language, manifest, limits, "
    "created_ms, ended_ms, expires_ms, reason, code, error"
)
CALL_COLUMNS = "call_id, method, target, tool_id, input, state, owner_pid, owner_started, due_ms"


def build_record(row: Sequence[Any], pending: Iterable[PendingCall] = ()) -> RunRecord:
    """Return the run that a row of `RUN_COLUMNS` holds."""
    *head, limits, created_ms, ended_ms, expires_ms, reason, code, error = row
    times = (created_ms, ended_ms, expires_ms)
    return RunRecord._make(
        (*head, parse_limits(limits), *times, reason, tuple(pending), ErrorCode(code) if code else None, error)
    )


def build_call(row: Sequence[Any]) -> OpenCall:
    """Return the call that a row of `CALL_COLUMNS` holds."""
    *head, pid, started, due_ms = row
    return OpenCall._make((*head, build_owner(pid, started), due_ms))


def build_pending(call: OpenCall) -> PendingCall:
    """Return what a `waiting` result shows of an unanswered call."""
    asked = call.state == "awaiting_approval"
    return PendingCall(str(call.id), call.method, call.tool_id, "awaiting_approval" if asked else "running")


def build_owner(pid: int | None, started: str) -> Owner | None:
    """Return the owner in two columns, or None where they are null."""
    return None if pid is None else Owner(pid, started)


def encode_call(run_id: str, call: OpenCall) -> tuple[Any, ...]:
    """Return the run's id and a row of `CALL_COLUMNS`."""
    *head, owner, due_ms = call
    return (run_id, *head, *(owner or (None, None)), due_ms)


@lru_cache(maxsize=64)  # the runs of a session were made with the same few
def encode_limits(limits: Limits) -> str:
    """Return the limits as JSON text."""
    return json.dumps(limits._asdict())


@lru_cache(maxsize=64)  # as above
def parse_limits(text: str) -> Limits:
    """Return the limits that `encode_limits` wrote."""
    return Limits(**json.loads(text))
