"""The calls of suspended runs inside one transaction: dispatch records and the inbox.

A row is written when its run is suspended with the call open, and goes when the run is
suspended again without it, or ends. Once answered (`position` is set) it never changes again.
"""

import json
from collections.abc import Sequence

from codemode.core.errors import ErrorCode
from codemode.core.events import CallSettled
from codemode.core.jsonsafe import clean_text
from codemode.core.types import BridgeReply, PendingCall
from codemode.store.database import Database
from codemode.store.log import append
from codemode.store.owner import Owner, is_alive
from codemode.store.port import Inbox, OpenCall, Suspension
from codemode.store.rows import CALL_COLUMNS, build_call, build_pending, encode_call

_OPEN = f"""
    INSERT INTO calls (run_id, {CALL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""
_CLOSE_OTHERS = "DELETE FROM calls WHERE run_id = ? AND call_id NOT IN (SELECT value FROM json_each(?))"
_DISPATCH = """
    UPDATE calls SET state = 'running', owner_pid = ?, owner_started = ?
    WHERE run_id = ? AND call_id = ? AND state = 'awaiting_approval'"""
_ANSWER = """
    UPDATE calls SET state = 'settled', ok = ?, answer = ?,
        position = (SELECT coalesce(max(position), 0) + 1 FROM calls WHERE run_id = ?)
    WHERE run_id = ? AND call_id = ? AND position IS NULL"""
_CARRIED = """
    SELECT call_id, tool_id, owner_pid, owner_started FROM calls
    WHERE run_id = ? AND state = 'running' AND owner_pid IS NOT NULL"""
_INBOX = "SELECT call_id, ok, answer, position FROM calls WHERE run_id = ? AND position > ? ORDER BY position"


def keep_calls(db: Database, suspension: Suspension) -> None:
    """Record what is open and what is settled; a record that exists already is the truer one.

    Contract: runs:calls:settled-meanwhile
    """
    run_id, calls = suspension.run_id, suspension.calls
    db.change(_CLOSE_OTHERS, run_id, json.dumps([call.id for call in calls]))
    db.change_many(_OPEN, [encode_call(run_id, call) for call in calls])
    for reply in suspension.settled:
        answer(db, run_id, reply)


def dispatch(db: Database, run_id: str, call_id: int, owner: Owner) -> bool:
    """Give an approved call to a process; False if it has one, or no longer needs one."""
    return db.change(_DISPATCH, *owner, run_id, call_id) == 1


def answer(db: Database, run_id: str, reply: BridgeReply) -> bool:
    """Put an answer into the inbox; False where no such call is open."""
    return db.change(_ANSWER, reply.ok, clean_text(reply.text), run_id, run_id, reply.id) == 1


def read_inbox(db: Database, run_id: str, after: int) -> Inbox:
    """Return the answers that came after a position, in the order in which they came."""
    found = db.rows(_INBOX, run_id, after)
    replies = tuple(BridgeReply(call_id, bool(ok), text) for call_id, ok, text, _ in found)
    return Inbox(replies, found[-1][-1] if found else after)


def read_calls(db: Database, run_id: str) -> tuple[OpenCall, ...]:
    """Return all calls that the guest still waits for, in the order in which it made them."""
    found = db.rows(f"SELECT {CALL_COLUMNS} FROM calls WHERE run_id = ? ORDER BY call_id", run_id)
    return tuple(build_call(row) for row in found)


def read_pending(db: Database, runs: str, *values: str | None) -> dict[str, list[PendingCall]]:
    """Return the unanswered calls of the waiting runs that a condition on `runs` selects, by run id."""
    waiting = f"SELECT run_id FROM runs WHERE ended_ms IS NULL AND state = 'waiting' AND {runs}"
    sql = f"SELECT run_id, {CALL_COLUMNS} FROM calls WHERE position IS NULL AND run_id IN ({waiting}) ORDER BY call_id"
    pending: dict[str, list[PendingCall]] = {}
    for run_id, *call in db.rows(sql, *values):
        pending.setdefault(run_id, []).append(build_pending(build_call(call)))
    return pending


def read_orphans(db: Database, run_id: str) -> list[tuple[int, str | None]]:
    """Return id and tool of each unanswered call whose process has died."""
    carried = [(call_id, tool_id, Owner(*owner)) for call_id, tool_id, *owner in db.rows(_CARRIED, run_id)]
    dead = {owner for owner in {owner for _, _, owner in carried} if not is_alive(owner)}
    return [(call_id, tool_id) for call_id, tool_id, owner in carried if owner in dead]


def interrupt(db: Database, run_id: str, orphans: Sequence[tuple[int, str | None]], at_ms: float) -> None:
    """Reject calls whose process died; one that it settled as its last deed keeps its answer.

    Contract: runs:calls:interrupted
    """
    for call_id, tool_id in orphans:
        message = (
            f"{tool_id} was interrupted: the process that carried the call out died. "
            "It may have taken effect, and is not called again"
        )
        error = {"name": "Error", "message": message, "code": ErrorCode.NESTED_TOOL_FAILED, "toolId": tool_id}
        reply = BridgeReply(call_id, ok=False, text=json.dumps(error))
        if answer(db, run_id, reply):
            append(db, run_id, [CallSettled(run_id, at_ms, call_id, "interrupted", 0, message, tool_id)])
