"""How long an ended run stays: by its age, and by how many have begun since.

A run that waits or is live is never touched, nor is an ended one of the same agent run as such a
one, whose figures count it. Pages that become free are used again, so the file stops growing; only
`compact` makes it smaller.
"""

from codemode.core.limits import KEEP_ENDED_DAYS, KEEP_ENDED_RUNS, PRUNE_BATCH
from codemode.store.database import Database

_DAY_MS = 86_400_000
_IDLE = "agent_run_id NOT IN (SELECT agent_run_id FROM runs WHERE ended_ms IS NULL)"
_OF_AGE = f"""
    SELECT run_id FROM runs
    WHERE ended_ms <= ? AND coalesce(?, session) = session AND {_IDLE} ORDER BY ended_ms LIMIT {PRUNE_BATCH}"""
_BEYOND = f"""
    SELECT run_id FROM runs
    WHERE seq <= (SELECT max(seq) FROM runs) - {KEEP_ENDED_RUNS} AND ended_ms IS NOT NULL AND {_IDLE}
    ORDER BY seq LIMIT {PRUNE_BATCH}"""


def prune_kept_too_long(db: Database, now_ms: float) -> int:
    """Remove a batch of ended runs that need not be kept any longer; return how many.

    Contract: runs:retention:age, runs:retention:count, runs:retention:live
    """
    old = db.rows(_OF_AGE, now_ms - KEEP_ENDED_DAYS * _DAY_MS, None)
    return _remove(db, [run_id for (run_id,) in old or db.rows(_BEYOND)])


def prune_ended(db: Database, session: str, before_ms: float) -> int:
    """Remove a batch of a session's runs that ended up to then; return how many."""
    return _remove(db, [run_id for (run_id,) in db.rows(_OF_AGE, before_ms, session)])


def _remove(db: Database, run_ids: list[str]) -> int:
    if run_ids:
        rows = [(run_id,) for run_id in run_ids]
        with db.write():
            db.change_many("DELETE FROM events WHERE run_id = ?", rows)
            db.change_many("DELETE FROM runs WHERE run_id = ?", rows)
    return len(run_ids)
