"""The store of one process: for tests, and for programs whose runs need not outlive them.

The same tables in SQLite's own memory rather than a second set of rules: what a test proves
of one store holds for the other, and a change that fails is rolled back here too.
"""

import time
from collections.abc import Callable

from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore


class MemoryStore(SqliteStore):
    """A store that ends with its process; closing it aborts its open runs.

    Contract: runs:store:memory-close
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        """Begin empty; `now` is the clock in Unix seconds."""
        super().__init__(Database(None), now)
