"""A store that an earlier version wrote, brought to today's schema."""

import json

from codemode.core.types import Json
from codemode.store.database import Database


def upgrade(db: Database) -> None:
    """Take schema 1, whose log named the run in each line and had a line for each delivery, to schema 2.

    Contract: runs:store:older-schema
    """
    for seq, batch in db.rows("SELECT seq, batch FROM events"):
        lines = json.dumps([_line(*line) for line in json.loads(batch)], separators=(",", ":"))
        db.change("UPDATE events SET batch = ? WHERE seq = ?", lines[1:-1], seq)


def _line(name: str, _run_id: str, at_ms: float, *fields: Json) -> list[Json]:
    if name == "call_delivered":
        call_id, wait_id = fields
        return ["turn_measured", at_ms, 0, [call_id], wait_id]
    return [name, at_ms, *fields]
