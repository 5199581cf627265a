"""The event log: batches of events, in the order in which they were written."""

from collections.abc import Sequence

from codemode.core.events import Entry, Event, from_lines, to_lines
from codemode.store.database import Database


def append(db: Database, run_id: str, entries: Sequence[Entry]) -> None:
    """Add entries to a run's log as one row."""
    if entries:
        lines = [entry if isinstance(entry, str) else to_lines((entry,)) for entry in entries]
        db.change("INSERT INTO events (run_id, batch) VALUES (?, ?)", run_id, ",".join(lines))


def read(db: Database, runs: str, *values: str) -> list[Event]:
    """Return the events of all runs that a condition on `runs` selects."""
    sql = f"SELECT run_id, batch FROM events JOIN runs USING (run_id) WHERE {runs} ORDER BY events.seq"
    return [event for run_id, batch in db.rows(sql, *values) for event in from_lines(run_id, batch)]
