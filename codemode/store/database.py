"""One SQLite file shared by several processes: open it safely, write in transactions, speak plainly.

What the tables mean is not known here. No exception of sqlite3 leaves this file. A place that
cannot be used (no folder, not writable, not theirs) is `InvalidConfig`, found when it is
opened: only a person can set that right. Whatever happens to the file itself, then or later
(locked, damaged, full, of a newer version), is `RuntimeUnavailable`: no setting is wrong.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codemode.core.errors import Aborted, InvalidConfig, InvalidInput, RuntimeUnavailable
from codemode.store.schema import ENDED_INDEX, SCHEMA, SCHEMA_VERSION

BUSY_MS = 5000  # how long a write waits for another process's; those take some ms at worst
_RETRY_SECONDS = 0.005  # creating the tables takes less
_WAL_KEPT_BYTES = 16 << 20  # a large snapshot must not leave its size behind in the log for ever
_OLDEST_SQLITE = (3, 37, 0)  # STRICT tables; RETURNING came with 3.35


class Database:
    """A connection with transactions, whose failures are sentences."""

    def __init__(self, path: Path | None, busy_ms: int = BUSY_MS) -> None:
        """Open the file, creating folder (0700), file (0600) and tables where they are missing.

        Args:
            path: None for one that lives in memory and ends with the process.
            busy_ms: How long a write waits for another process.

        Raises:
            InvalidConfig: The place cannot be used.
            RuntimeUnavailable: What lies there is locked, damaged, or of a newer version.
        """
        self._path = path
        self._where = str(path) if path else "in memory"
        self._busy_ms = busy_ms
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise RuntimeUnavailable(f"the store needs SQLite 3.37 or later; this Python has {sqlite3.sqlite_version}")
        if path is not None:
            _prepare_file(path)
        with self._plainly():
            self._connection = sqlite3.connect(path or ":memory:", timeout=busy_ms / 1000, isolation_level=None)
        try:
            self._set_up()
        except BaseException:
            self._connection.close()
            raise

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, a transaction of its own unless within `write`, and return its rows."""
        with self._plainly():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Run one statement and return its only row."""
        found = self.rows(sql, *values)
        return found[0] if found else None

    def change(self, sql: str, *values: Any) -> int:
        """Run one statement and return how many rows it changed."""
        with self._plainly():
            return self._connection.execute(sql, values).rowcount

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        with self._plainly():
            self._connection.executemany(sql, rows)

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[None]:
        """Make what happens inside one transaction: all of it, or nothing if an exception leaves it.

        Args:
            durable: On disk before this returns, even if the power fails. Without it a crash of
                the machine may lose the newest transactions, never a part of one.
        """
        with self._plainly():
            if durable:
                self._connection.execute("PRAGMA synchronous = FULL")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    self._connection.execute("PRAGMA synchronous = NORMAL")

    def compact(self) -> None:
        """Give pages that are free back to the disk.

        Raises:
            RuntimeUnavailable: Others are at work, or there is no room for the copy that this takes.
        """
        self.change("VACUUM")
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def size_bytes(self) -> int:
        """Return what the file and what SQLite keeps beside it take; 0 in memory."""
        if self._path is None:
            return 0
        return sum(file.stat().st_size for file in self._path.parent.glob(f"{self._path.name}*"))

    def close(self) -> None:
        """Close the connection; afterwards everything raises `Aborted`."""
        self._connection.close()

    def _set_up(self) -> None:
        version = self._version()
        if version == 0:
            self._create_tables()
        elif version < SCHEMA_VERSION:
            self._upgrade()
        elif version > SCHEMA_VERSION:
            raise RuntimeUnavailable(
                f"the store {self._where} was written by a later version of codemode (schema {version}; this one "
                f"knows {SCHEMA_VERSION}): upgrade codemode, or set CODEMODE_STATE_DIR to a new folder"
            )
        self.change(ENDED_INDEX)
        self.change("PRAGMA synchronous = NORMAL")
        self.change(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
        self.change("PRAGMA secure_delete = ON")  # a snapshot that is gone leaves nothing of the cell in the file

    def _create_tables(self) -> None:
        self._switch_to_wal()
        with self.write():
            if self._version() == 0:  # another process may have been faster
                for statement in SCHEMA:
                    self.change(statement)
                self.change(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _upgrade(self) -> None:
        from codemode.store.upgrade import upgrade  # once in the life of a store

        with self.write():
            if self._version() < SCHEMA_VERSION:  # another process may have been faster
                upgrade(self)
                self.change(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _switch_to_wal(self) -> None:
        """Change the journal, waiting here for another process that does so: SQLite does not wait for this lock."""
        deadline = time.monotonic() + self._busy_ms / 1000
        with self._plainly():
            while True:
                try:
                    self._connection.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(_RETRY_SECONDS)
                else:
                    return

    def _version(self) -> int:
        version: int = self.rows("PRAGMA user_version")[0][0]
        return version

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explain(error, self._where) from error
        except UnicodeEncodeError as error:  # a lone surrogate, from a command line that is not UTF-8
            raise InvalidInput("ids and names must be valid Unicode text") from error


_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def _explain(error: sqlite3.Error, where: str) -> RuntimeUnavailable | Aborted:
    """Return the sentence for a failure of SQLite."""
    name = getattr(error, "sqlite_errorname", "")  # absent where the sqlite3 module itself complains
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return Aborted("the store was closed: its session has ended")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return RuntimeUnavailable(f"the store {where} is locked by another process; try again, or end that process")
    if name.startswith(_UNWRITABLE):
        return RuntimeUnavailable(
            f"the store {where} can no longer be written: make its folder and disk writable again"
        )
    if name.startswith(_DAMAGE):
        return RuntimeUnavailable(f"the store {where} is damaged ({error}): move the file away, and a new one is made")
    if name == "SQLITE_FULL":
        return RuntimeUnavailable(f"the disk of the store {where} is full: make room, and try again")
    return RuntimeUnavailable(f"the store {where} failed: {error} ({name or type(error).__name__})")


def _prepare_file(path: Path) -> None:
    """Make folder and file with their modes, or refuse a file that somebody else could have put there.

    The file is never opened here once it exists: closing it would drop the locks that another
    connection of this process holds on it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            _check_file(path)
    except OSError as error:
        raise InvalidConfig(
            f"the store {path} cannot be created ({error.strerror}); set CODEMODE_STATE_DIR to a folder you can write"
        ) from error


def _check_file(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise InvalidConfig(f"the store {path} is not a file of yours; set CODEMODE_STATE_DIR") from None
    if stat.S_IMODE(found.st_mode) != 0o600:
        path.chmod(0o600)
    if not os.access(path.parent, os.W_OK | os.X_OK):  # SQLite keeps its log beside the file
        raise InvalidConfig(
            f"the folder of the store {path} is not writable; make it so, or set CODEMODE_STATE_DIR to one that is"
        ) from None
