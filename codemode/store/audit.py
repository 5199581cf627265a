"""What `doctor` looks at in a store on disk: its place, modes, schema, soundness, and how much it holds."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from codemode.store.database import Database


class StoreFacts(NamedTuple):
    """A store as it lies on disk; modes are those of the file and its folder, `0o600` and `0o700` when right.

    fault: What SQLite finds wrong in the file; "" where it is sound.
    runs: How many runs are in each state.
    bytes: Of the file and its log.
    """

    path: Path
    file_mode: int
    folder_mode: int
    schema: int
    journal: str
    fault: str
    runs: Mapping[str, int]
    bytes: int


def audit_store(path: Path) -> StoreFacts:
    """Open a store, creating it where it is missing, and look at it.

    Raises:
        InvalidConfig: The place cannot be used.
        RuntimeUnavailable: What lies there is locked, damaged, or of another version.

    Contract: doctor:store:facts
    """
    database = Database(path)
    try:
        verdict = database.rows("PRAGMA quick_check(1)")[0][0]
        return StoreFacts(
            path=path,
            file_mode=stat.S_IMODE(path.stat().st_mode),
            folder_mode=stat.S_IMODE(path.parent.stat().st_mode),
            schema=database.rows("PRAGMA user_version")[0][0],
            journal=database.rows("PRAGMA journal_mode")[0][0],
            fault="" if verdict == "ok" else verdict,
            runs=dict(database.rows("SELECT state, count(*) FROM runs GROUP BY state ORDER BY state")),
            bytes=sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")),
        )
    finally:
        database.close()
