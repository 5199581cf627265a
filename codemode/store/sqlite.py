"""The store in SQLite: one file in the user's state folder, shared by all their processes.

Each verb is one transaction. Those after which a nested call must never run again, or a
snapshot never be lost (suspend, claim, begin_delivery, dispatch, settle, abort), are on disk
before they return. The beginning and the end of a run are not: a run that a power cut takes
back to `running` is found to have lost its process, which it has.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from codemode.core.errors import (
    Aborted,
    CodeModeError,
    ErrorCode,
    Internal,
    InvalidInput,
    RuntimeUnavailable,
    SnapshotExpired,
    SnapshotLimit,
)
from codemode.core.events import Entry, Event
from codemode.core.limits import MAX_LIVE_SUSPENDED_RUNS, PRUNE_BATCH, PRUNE_MS
from codemode.core.types import BridgeReply, Json
from codemode.runs import RunState, step
from codemode.store import calls, log, moves, retention, rows
from codemode.store.database import Database
from codemode.store.moves import Ending, RunRow
from codemode.store.owner import Owner, is_alive
from codemode.store.place import state_dir
from codemode.store.port import Caller, Claimed, FinalState, Inbox, NewRun, Pruned, RunRecord, Store, Suspension

FILE_NAME = "codemode.db"
_THEIRS = "run_id = ? AND session = ? AND agent_id = ? AND coalesce(?, agent_run_id) = agent_run_id"
_CREATE = """
    INSERT INTO runs (run_id, session, agent_id, agent_run_id, state, language, manifest, limits,
        owner_pid, owner_started, created_ms)
    VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)"""
_CLAIM = f"""
    UPDATE runs SET state = 'running', owner_pid = ?, owner_started = ?
    WHERE {_THEIRS} AND state = 'waiting' AND expires_ms > ?
    RETURNING {rows.RUN_COLUMNS}, scope, carry"""
_SUSPEND = """
    UPDATE runs SET state = 'waiting', owner_pid = NULL, owner_started = NULL,
        expires_ms = ?, reason = ?, scope = ?, carry = ?
    WHERE run_id = ?"""
_HELD_SLOTS = """
    SELECT count(*) FROM runs
    WHERE ended_ms IS NULL AND session = ?
        AND (state = 'waiting' AND expires_ms > ? OR state = 'running' AND expires_ms IS NOT NULL)"""
_DUE = """
    SELECT run_id, state, owner_pid, owner_started FROM runs
    WHERE ended_ms IS NULL AND (state = 'running' OR state = 'waiting' AND expires_ms <= ?)"""


class SqliteStore(Store):
    """The store on disk; `port.py` says what each verb promises."""

    def __init__(self, database: Database | None = None, now: Callable[[], float] = time.time) -> None:
        """Serve a database, or the user's own.

        Args:
            database: None opens `codemode.db` in the state folder, creating it where it is missing.
            now: The clock that owns creation times and expiry, in Unix seconds.
        """
        self._db = Database(state_dir() / FILE_NAME) if database is None else database
        self._now = now

    def create(self, new: NewRun) -> str:
        """Begin a run.

        Contract: runs:ids:random
        """
        run_id = f"cm_{_random_uuid()}"
        self._db.change(
            _CREATE, run_id, new.session, new.agent_id, new.agent_run_id, new.language, new.manifest,
            rows.encode_limits(new.limits), *new.owner, self._now_ms(),
        )  # fmt: skip
        return run_id

    def append(self, run_id: str, events: Sequence[Entry]) -> None:
        """Add events to a run's log."""
        log.append(self._db, run_id, events)

    def suspend(self, suspension: Suspension, events: Sequence[Entry] = ()) -> None:
        """Move a run from `running` to `waiting` with all that it needs to go on.

        Contract: runs:slots:sixty-four, runs:ttl:last-suspension, runs:calls:settled-meanwhile
        """
        with self._db.write(durable=True):
            row = self._workable(suspension.run_id)
            step(row.state, "waiting")
            self._hold_slot(row)
            expires_ms = self._expiry(row)
            calls.keep_calls(self._db, suspension)
            self._keep_snapshot(suspension)
            self._db.change(
                _SUSPEND, expires_ms, suspension.reason, suspension.scope, json.dumps(suspension.carry), row.run_id
            )
            log.append(self._db, row.run_id, events)

    def claim(self, run_id: str, caller: Caller, owner: Owner) -> Claimed:
        """Move a run from `waiting` to `running` for one owner.

        Contract: runs:claims:one-wins, runs:claims:same-message
        """
        while True:  # again only where the run came back between the attempt and the look at it
            with self._db.write(durable=True):
                found = self._db.row(_CLAIM, *owner, run_id, *caller, self._now_ms())
                if found is not None:
                    return self._load(found)
                refusal = self._refusal(run_id, caller)
            if refusal is not None:
                raise refusal

    def unclaim(self, run_id: str, carry: Json = None, events: Sequence[Entry] = ()) -> None:
        """Give a claimed run back, to which nothing was delivered.

        Contract: runs:ttl:not-renewed
        """
        with self._db.write(durable=True):
            row = self._workable(run_id)
            if not moves.has_snapshot(self._db, run_id):
                raise Internal(f"{run_id} cannot wait again: something was delivered to it")
            moves.put_back(self._db, row)
            if carry is not None:
                self._db.change("UPDATE runs SET carry = ? WHERE run_id = ?", json.dumps(carry), run_id)
            log.append(self._db, run_id, events)

    def begin_delivery(self, run_id: str, events: Sequence[Entry] = ()) -> None:
        """Discard the snapshot of a claimed run.

        Contract: runs:snapshots:once
        """
        with self._db.write(durable=True):
            row = self._workable(run_id)
            if row.state != "running":
                raise Internal(f"{run_id} is {row.state}: nothing can be delivered to it")
            self._db.change("DELETE FROM snapshots WHERE run_id = ?", run_id)
            log.append(self._db, run_id, events)

    def dispatch(self, run_id: str, call_id: int, owner: Owner) -> bool:
        """Record that an approved call starts now.

        Contract: runs:calls:dispatched-once
        """
        with self._db.write(durable=True):
            return calls.dispatch(self._db, run_id, call_id, owner)

    def settle(self, run_id: str, reply: BridgeReply, events: Sequence[Entry] = ()) -> bool:
        """Put a call's answer into the inbox of its run.

        Contract: runs:calls:settled-once
        """
        with self._db.write(durable=True):
            settled = calls.answer(self._db, run_id, reply)
            if settled:
                log.append(self._db, run_id, events)
            return settled

    def inbox(self, run_id: str, after: int = 0) -> Inbox:
        """Return the answers that came after a position, interrupting calls whose process died.

        Contract: runs:calls:interrupted, runs:inbox:order
        """
        orphans = calls.read_orphans(self._db, run_id)
        if orphans:
            with self._db.write(durable=True):
                calls.interrupt(self._db, run_id, orphans, self._now_ms())
        return calls.read_inbox(self._db, run_id, after)

    def finish(
        self,
        run_id: str,
        state: FinalState,
        code: ErrorCode | None = None,
        error: str | None = None,
        events: Sequence[Entry] = (),
    ) -> None:
        """End a running run."""
        with self._db.write():
            moves.end(self._db, moves.read_row(self._db, run_id), Ending(state, self._now_ms(), code, error))
            log.append(self._db, run_id, events)

    def abort(self, run_id: str, caller: Caller) -> RunState:
        """End a waiting run, or ask the process that runs it to end it.

        Contract: runs:abort:waiting, runs:abort:running
        """
        with self._db.write(durable=True):
            row = self._mended(run_id, caller)
            if row is not None and row.state == "waiting":
                moves.abort(self._db, row, self._now_ms())
                return "aborted"
            if row is not None and row.state == "running":
                self._db.change("UPDATE runs SET abort_asked = 1 WHERE run_id = ?", run_id)
                return "running"
        raise _unknown(run_id)

    def must_stop(self, run_id: str) -> bool:
        """Say whether work for this run should end."""
        found = self._db.row("SELECT abort_asked OR ended_ms IS NOT NULL FROM runs WHERE run_id = ?", run_id)
        return found is None or bool(found[0])

    def get(self, run_id: str, caller: Caller) -> RunRecord:
        """Return one run of the caller's."""
        found = self._records(_THEIRS, run_id, *caller)
        if not found:
            raise _unknown(run_id)
        return found[0]

    def runs(self, session: str) -> tuple[RunRecord, ...]:
        """Return all runs of a session, newest first."""
        return self._records("session = ?", session)

    def events(self, run_id: str) -> list[Event]:
        """Return the log of one run."""
        return log.read(self._db, "run_id = ?", run_id)

    def agent_run_events(self, agent_run_id: str) -> list[Event]:
        """Return the logs of all runs of one agent run, as one."""
        return log.read(self._db, "agent_run_id = ?", agent_run_id)

    def sweep(self) -> list[Event]:
        """Expire what is too old, find the runs of dead processes, and remove what need not be kept.

        Contract: runs:ttl:swept
        """
        events: list[Event] = []
        for run_id, state, *owner in self._db.rows(_DUE, self._now_ms()):
            if state == "waiting" or not is_alive(Owner(*owner)):
                with self._db.write(durable=True):
                    events += moves.mend(self._db, run_id, self._now_ms())
        until = time.monotonic() + PRUNE_MS / 1000
        while retention.prune_kept_too_long(self._db, self._now_ms()) == PRUNE_BATCH and time.monotonic() < until:
            pass
        return events

    def prune(self, session: str, min_age_ms: float) -> Pruned:
        """Remove the runs of a session that ended at least so long ago, and make the file smaller.

        Contract: runs:retention:now
        """
        before_ms, before_bytes, count = self._now_ms() - min_age_ms, self._db.size_bytes(), 0
        while found := retention.prune_ended(self._db, session, before_ms):
            count += found
        if count == 0:
            return Pruned(0, 0)
        with suppress(RuntimeUnavailable):  # others are at work, or the disk is full: the room is used again
            self._db.compact()
        return Pruned(count, max(before_bytes - self._db.size_bytes(), 0))

    def close(self) -> None:
        """Close the file; what is in it stays."""
        self._db.close()

    def _now_ms(self) -> float:
        return self._now() * 1000

    def _workable(self, run_id: str) -> RunRow:
        row = moves.read_row(self._db, run_id)
        if row.abort_asked:
            raise Aborted(moves.ABORTED)
        return row

    def _hold_slot(self, row: RunRow) -> None:
        if row.expires_ms is not None:
            return  # it holds one since its first suspension
        held = self._db.rows(_HELD_SLOTS, row.session, self._now_ms())[0][0]
        if held >= MAX_LIVE_SUSPENDED_RUNS:
            raise SnapshotLimit(
                f'{held} runs of session "{row.session}" are suspended, the most that may be: '
                "wait for one of them, or abort one"
            )

    def _expiry(self, row: RunRow) -> float:
        if row.expires_ms is not None and moves.has_snapshot(self._db, row.run_id):
            return row.expires_ms  # nothing was delivered since
        return self._now_ms() + row.ttl_ms

    def _keep_snapshot(self, suspension: Suspension) -> None:
        run_id, snapshot, build = suspension[:3]
        self._db.change("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", run_id, build, snapshot)
        scope = suspension.scope
        if self._db.row("SELECT 1 FROM scopes WHERE digest = ?", scope) is None:  # it may be megabytes
            self._db.change("INSERT INTO scopes VALUES (?, ?)", scope, suspension.scope_text)

    def _load(self, found: tuple[Any, ...]) -> Claimed:
        *run, scope, carry = found
        run_id = run[0]
        build, snapshot = self._db.rows("SELECT build, data FROM snapshots WHERE run_id = ?", run_id)[0]
        return Claimed(
            run=rows.build_record(run),
            snapshot=snapshot,
            build=build,
            calls=calls.read_calls(self._db, run_id),
            scope=scope,
            scope_text=self._db.rows("SELECT data FROM scopes WHERE digest = ?", scope)[0][0],
            carry=json.loads(carry),
        )

    def _refusal(self, run_id: str, caller: Caller) -> CodeModeError | None:
        """Say why a run could not be claimed; None if it can be now."""
        row = self._mended(run_id, caller)
        match row and row.state:
            case "waiting":
                return None
            case "running":
                return InvalidInput(f"run {run_id} is running: its `exec`, or another `wait`, has not returned yet")
            case "expired":
                return SnapshotExpired(moves.EXPIRED)
            case "aborted":
                return Aborted(moves.ABORTED)
            case "failed" if row and row.unsaid:
                self._db.change("UPDATE runs SET unsaid = 0 WHERE run_id = ?", run_id)
                return RuntimeUnavailable(row.error)
            case _:
                return _unknown(run_id)

    def _mended(self, run_id: str, caller: Caller) -> RunRow | None:
        """Return a run of the caller's in the state that it really has."""
        if self._db.row(f"SELECT 1 FROM runs WHERE {_THEIRS}", run_id, *caller) is None:
            return None
        moves.mend(self._db, run_id, self._now_ms())
        return moves.read_row(self._db, run_id)

    def _records(self, where: str, *values: str | None) -> tuple[RunRecord, ...]:
        pending = calls.read_pending(self._db, where, *values)
        found = self._db.rows(f"SELECT {rows.RUN_COLUMNS} FROM runs WHERE {where} ORDER BY seq DESC", *values)
        return tuple(rows.build_record(row, pending.get(row[0], ())) for row in found)


def _random_uuid() -> str:
    """Return a random UUID (version 4), without the 4 ms that importing `uuid` takes."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _unknown(run_id: str) -> InvalidInput:
    """Return the one message for unknown, finished and foreign runs: a caller must not learn which ids exist."""
    return InvalidInput(f"no run {run_id[:60]!r} waits here: it is unknown, finished, or of another session")
