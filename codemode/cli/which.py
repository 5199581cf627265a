"""Which run a command means: the store that knows them, and the one that is meant where none is named."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from codemode.core.errors import InvalidInput

if TYPE_CHECKING:
    from codemode.store.port import RunRecord, Store

_MAX_NAMED = 5  # runs that an error names


@contextmanager
def open_store() -> "Iterator[Store]":
    """Open the user's store and bring it up to date: what expired or died meanwhile is shown as such."""
    from codemode.store.sqlite import SqliteStore  # sqlite3 is not needed to refuse a wrong command line

    store = SqliteStore()
    try:
        store.sweep()
        yield store
    finally:
        store.close()


def choose_latest(store: "Store", session: str) -> str:
    """Return the newest run of a session.

    Raises:
        InvalidInput: It has none.

    Contract: cli:runs:unnamed
    """
    records = store.runs(session)
    if not records:
        raise InvalidInput(f"session \"{session}\" has no runs yet; codemode run -e 'return 1' makes one")
    return records[0].run_id


def choose_waiting(store: "Store", session: str) -> str:
    """Return the only run of a session that waits.

    Raises:
        InvalidInput: None waits, or several do; the message names these.

    Contract: cli:runs:unnamed
    """
    waiting = [record for record in store.runs(session) if record.state == "waiting"]
    if len(waiting) == 1:
        return waiting[0].run_id
    if not waiting:
        raise InvalidInput(f'no run of session "{session}" waits; {listing_command(session)} lists those that it has')
    raise InvalidInput(f'{len(waiting)} runs of session "{session}" wait; name one of them: {_named(waiting)}')


def refuse_unnamed_abort(store: "Store", session: str) -> InvalidInput:
    """Return the error of an abort that names no run: what cannot be undone is never guessed.

    Contract: cli:runs:unnamed
    """
    alive = [record for record in store.runs(session) if record.state in ("waiting", "running")]
    if not alive:
        return InvalidInput(f'no run of session "{session}" waits or runs, so there is none to abort')
    return InvalidInput(f"which run is to be aborted? Name one of these: {_named(alive)}")


def listing_command(session: str) -> str:
    """Return the command that lists the runs of a session."""
    return "codemode runs" if session == "default" else f"codemode runs --session {quote(session)}"


def _named(records: "Sequence[RunRecord]") -> str:
    from codemode.render.words import age

    now = time.time() * 1000
    shown = [
        f"{record.run_id} ({record.state}, {age(max(now - record.created_ms, 0.0))} old)"
        for record in records[:_MAX_NAMED]
    ]
    more = f" and {len(records) - _MAX_NAMED} more" if len(records) > _MAX_NAMED else ""
    return ", ".join(shown) + more
