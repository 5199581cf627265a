"""How a run moves inside one transaction: its end, its expiry, its rescue from a dead process.

The verbs of `sqlite.py` open the transaction and call these. Where a run changes without its
owner (expired, aborted, lost) there is nobody else to log it, so those events are made here.
"""

from typing import Any, Literal, NamedTuple

from codemode.core.errors import ErrorCode, Internal
from codemode.core.events import Event, RunEnded, SnapshotEvent
from codemode.core.jsonsafe import clean_text
from codemode.runs import RunState, step
from codemode.store import log
from codemode.store.database import Database
from codemode.store.owner import Owner, is_alive
from codemode.store.rows import build_owner, parse_limits

ABORTED = "the run was aborted"
EXPIRED = "the run was suspended for longer than its snapshotTtlSeconds"
_ROW = """
    SELECT run_id, session, state, abort_asked, expires_ms, scope, limits, error, unsaid, owner_pid, owner_started
    FROM runs WHERE run_id = ?"""
_END = "UPDATE runs SET state = ?, ended_ms = ?, code = ?, error = ?, carry = NULL WHERE run_id = ?"
_UNUSED_SCOPE = "digest = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE ended_ms IS NULL AND scope = digest)"


class RunRow(NamedTuple):
    """What decides where a run may go."""

    run_id: str
    session: str
    state: RunState
    abort_asked: int
    expires_ms: float | None
    scope: str | None
    limits: str
    error: str | None
    unsaid: int
    owner: Owner | None

    @property
    def ttl_ms(self) -> int:
        """How long the run may be suspended."""
        return parse_limits(self.limits).snapshot_ttl_seconds * 1000


class Ending(NamedTuple):
    """How, when and why a run ends."""

    state: RunState
    at_ms: float
    code: ErrorCode | None = None
    error: str | None = None


def read_row(db: Database, run_id: str) -> RunRow:
    """Return a run that is known to exist.

    Raises:
        Internal: It does not.
    """
    found: tuple[Any, ...] | None = db.row(_ROW, run_id)
    if found is None:
        raise Internal(f"no run {run_id} is in the store")
    return RunRow._make((*found[:-2], build_owner(*found[-2:])))


def has_snapshot(db: Database, run_id: str) -> bool:
    """Say whether nothing was delivered to a run since its last suspension."""
    return db.row("SELECT 1 FROM snapshots WHERE run_id = ?", run_id) is not None


def end(db: Database, row: RunRow, ending: Ending) -> None:
    """Move a run to a final state; its snapshot, calls and slot go, its log stays.

    Contract: runs:snapshots:discarded, runs:slots:freed
    """
    step(row.state, ending.state)
    error = None if ending.error is None else clean_text(ending.error)
    db.change(_END, ending.state, ending.at_ms, ending.code, error, row.run_id)
    if row.expires_ms is not None:  # only a run that was suspended once has left more than its row
        db.change("DELETE FROM snapshots WHERE run_id = ?", row.run_id)
        db.change("DELETE FROM calls WHERE run_id = ?", row.run_id)
        db.change(f"DELETE FROM scopes WHERE {_UNUSED_SCOPE}", row.scope)


def abort(db: Database, row: RunRow, at_ms: float) -> list[Event]:
    """End a suspended run that nobody wants any more; return what was logged."""
    return _end_suspended(db, row, Ending("aborted", at_ms, ErrorCode.ABORTED, ABORTED), "discarded")


def put_back(db: Database, row: RunRow) -> None:
    """Let a claimed run, to which nothing was delivered, wait again; its expiry stays what it was."""
    step(row.state, "waiting")
    db.change("UPDATE runs SET state = 'waiting', owner_pid = NULL, owner_started = NULL WHERE run_id = ?", row.run_id)


def mend(db: Database, run_id: str, at_ms: float) -> list[Event]:
    """Bring a run to the state that it has once dead processes and the clock are heeded; return what was logged.

    Contract: runs:ttl:expires, runs:owners:rescued, runs:owners:lost
    """
    events: list[Event] = []
    row = read_row(db, run_id)
    if row.state == "running" and row.owner is not None and not is_alive(row.owner):
        events = _rescue(db, row, row.owner, at_ms)
        row = read_row(db, run_id)
    if row.state == "waiting" and row.expires_ms is not None and row.expires_ms <= at_ms:
        ending = Ending("expired", at_ms, ErrorCode.SNAPSHOT_EXPIRED, EXPIRED)
        events += _end_suspended(db, row, ending, "expired")
    return events


def _rescue(db: Database, row: RunRow, owner: Owner, at_ms: float) -> list[Event]:
    """Take a run from its dead owner.

    Its snapshot is there until something was delivered: then nothing is lost, and it waits
    again. Otherwise calls of it may have run that nobody knows of: it has failed, and `unsaid`
    remembers to tell whoever waits for it.
    """
    if not has_snapshot(db, row.run_id):
        error = f"the process that ran this run (pid {owner.pid}) died; its calls may have taken effect"
        db.change("UPDATE runs SET unsaid = 1 WHERE run_id = ?", row.run_id)
        return _end_and_log(db, row, Ending("failed", at_ms, ErrorCode.RUNTIME_UNAVAILABLE, error))
    if row.abort_asked:
        return abort(db, row, at_ms)
    put_back(db, row)
    return []


def _end_suspended(db: Database, row: RunRow, ending: Ending, change: Literal["expired", "discarded"]) -> list[Event]:
    size = db.rows("SELECT length(data) FROM snapshots WHERE run_id = ?", row.run_id)[0][0]
    return _end_and_log(db, row, ending, SnapshotEvent(row.run_id, ending.at_ms, change, size))


def _end_and_log(db: Database, row: RunRow, ending: Ending, *before: Event) -> list[Event]:
    end(db, row, ending)
    events = [*before, RunEnded(row.run_id, ending.at_ms, ending.state, ending.code, ending.error, 0.0)]
    log.append(db, row.run_id, events)
    return events
