"""The event log: batches of events, in the order in which they were written."""

import json
from collections.abc import Sequence

from codemode.core.events import Event, event_from_json, to_json
from codemode.store.database import Database


def append(db: Database, run_id: str, events: Sequence[Event]) -> None:
    """Add events to a run's log as one row."""
    if events:
        batch = json.dumps([to_json(event) for event in events])
        db.change("INSERT INTO events (run_id, batch) VALUES (?, ?)", run_id, batch)


def read(db: Database, runs: str, *values: str) -> list[Event]:
    """Return the events of all runs that a condition on `runs` selects."""
    sql = f"SELECT batch FROM events JOIN runs USING (run_id) WHERE {runs} ORDER BY events.seq"
    return [event_from_json(row) for (batch,) in db.rows(sql, *values) for row in json.loads(batch)]
