"""The SQLite store as a file: where it lies, who may read it, what is left in it, and what happens when it is ill."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from codemode.core.errors import Aborted, ErrorCode, InvalidConfig, RuntimeUnavailable
from codemode.core.events import CallStarted, TurnMeasured
from codemode.store import calls
from codemode.store.database import Database
from codemode.store.owner import this_process
from codemode.store.schema import SCHEMA_VERSION
from codemode.store.sqlite import FILE_NAME, SqliteStore
from tests.requirements import requirement
from tests.support.stores import ME, SCOPE_TEXT, TTL_SECONDS, Clock, answer, new_run, open_call, suspension

NOBODY = 65534
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / FILE_NAME


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def db(path):
    made = Database(path, busy_ms=50)
    yield made
    made.close()


@pytest.fixture
def store(db, clock):
    return SqliteStore(db, clock)


def suspended(store, *calls):
    run_id = store.create(new_run())
    store.suspend(suspension(run_id, calls))
    return run_id


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# --- where it lies ------------------------------------------------------------------------


@requirement("runs:store:place")
def test_the_store_lies_where_the_environment_says(tmp_path, monkeypatch):
    """Contract 5, and the folder is made."""
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "a" / "b"))

    SqliteStore().close()

    assert (tmp_path / "a" / "b" / "codemode.db").is_file()


@requirement("runs:store:private")
def test_folder_and_files_are_the_users_alone_whatever_the_umask(path):
    """Contract 5: 0600, and what SQLite puts beside it too."""
    before = os.umask(0o000)
    try:
        db = Database(path)
        SqliteStore(db).create(new_run())
    finally:
        os.umask(before)

    assert mode(path.parent) == 0o700
    assert {each.name: mode(each) for each in path.parent.iterdir()} == {
        "codemode.db": 0o600, "codemode.db-wal": 0o600, "codemode.db-shm": 0o600,
    }  # fmt: skip
    db.close()


@requirement("runs:store:private")
def test_a_file_that_others_can_read_is_closed_to_them(path, db):
    """A copy made under a lax umask."""
    db.close()
    path.chmod(0o644)

    Database(path).close()

    assert mode(path) == 0o600


def test_a_folder_that_was_there_keeps_its_mode(tmp_path):
    """It may be shared for other reasons; the file in it is still private."""
    tmp_path.chmod(0o755)

    Database(tmp_path / FILE_NAME).close()

    assert mode(tmp_path) == 0o755


@requirement("runs:store:private")
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_file_of_ours_is_refused(tmp_path, kind):
    """Somebody else may have put it there for us to write into."""
    path, elsewhere = tmp_path / FILE_NAME, tmp_path / "elsewhere"
    if kind == "link":
        elsewhere.touch()
        path.symlink_to(elsewhere)
    else:
        path.mkdir()

    with pytest.raises(InvalidConfig, match="not a file of yours"):
        Database(path)


def test_opening_does_not_drop_the_locks_of_another_connection_of_this_process(path, db):
    """POSIX drops all locks of a process when it closes any descriptor of the file: sessions share a process."""
    with db.write():
        db.change("CREATE TABLE held (x)")
        with pytest.raises(RuntimeUnavailable, match="locked"), Database(path, busy_ms=20).write():
            pass
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0.02).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)

    assert "database is locked" in other.stderr


# --- what stays -----------------------------------------------------------------------------


def test_everything_is_there_after_the_file_was_closed_and_opened_again(path, clock):
    """Contract 5: runs survive their process."""
    first = SqliteStore(Database(path), clock)
    run_id = first.create(new_run())
    first.suspend(suspension(run_id, [open_call(1)]), [TurnMeasured(run_id, 1.0, 2.0)])
    before = first.get(run_id, ME)
    first.close()

    second = SqliteStore(Database(path), clock)

    assert second.get(run_id, ME) == before
    assert second.events(run_id) == [TurnMeasured(run_id, 1.0, 2.0)]
    assert second.claim(run_id, ME, this_process()).scope_text == SCOPE_TEXT
    second.close()


@requirement("runs:scopes:shared")
def test_a_scope_is_kept_once_for_all_runs_and_goes_with_the_last(store):
    """1,000 suspended runs must not hold 1,000 catalogs."""
    first, second = suspended(store), suspended(store)
    assert store._db.rows("SELECT digest FROM scopes") == [("scope-1",)]

    store.abort(first, ME)
    assert store.claim(second, ME, this_process()).scope_text == SCOPE_TEXT
    store.finish(second, "completed")

    assert store._db.rows("SELECT digest FROM scopes") == []


@requirement("runs:snapshots:discarded")
@pytest.mark.parametrize("leave", ["finish", "abort", "expire", "deliver"])
def test_whatever_leaves_waiting_for_good_leaves_no_snapshot_and_no_call(store, clock, leave):
    """Contract 4: always."""
    run_id = suspended(store, open_call(1))
    if leave in ("finish", "deliver"):
        store.claim(run_id, ME, this_process())
    if leave == "deliver":
        store.begin_delivery(run_id)
    elif leave == "finish":
        store.finish(run_id, "failed", ErrorCode.SNAPSHOT_RESTORE_FAILED, "damaged")
    elif leave == "abort":
        store.abort(run_id, ME)
    else:
        clock.seconds += TTL_SECONDS
        store.sweep()

    assert store._db.rows("SELECT run_id FROM snapshots") == []
    assert len(store._db.rows("SELECT run_id FROM calls")) == (1 if leave == "deliver" else 0)


# --- when it is ill ---------------------------------------------------------------------------


@requirement("runs:store:speaks")
def test_a_locked_store_is_said_after_the_time_that_a_writer_waits(path, store):
    """Another process holds it: the run that could not be made is simply not there."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(RuntimeUnavailable, match=r"is locked by another process; try again") as caught:
        store.create(new_run())
    assert isinstance(caught.value.__cause__, sqlite3.Error)

    holder.execute("ROLLBACK")
    holder.close()
    assert store.runs("default") == ()


def test_a_store_that_another_process_is_creating_is_waited_for_and_then_said(path):
    """Changing the journal is the one step for which SQLite itself does not wait."""
    path.parent.mkdir()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(RuntimeUnavailable, match="is locked"):
        Database(path, busy_ms=20)

    holder.execute("ROLLBACK")
    Database(path, busy_ms=20).close()
    holder.close()


@requirement("runs:store:speaks")
@pytest.mark.parametrize("damage", ["no database at all", "pages overwritten", "cut short"])
def test_a_damaged_store_is_said_with_its_place_and_what_to_do(path, damage):
    """Whatever way it is damaged, and at the latest when the damaged part is read."""
    store = SqliteStore(Database(path))
    for _ in range(50):
        suspended(store, open_call(1))
    store.close()
    content = path.read_bytes()
    if damage == "no database at all":
        path.write_bytes(b"these are not the bytes that you are looking for" * 100)
    elif damage == "pages overwritten":
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    else:
        path.write_bytes(content[: len(content) // 3])

    def use():
        opened = Database(path)
        try:
            used = SqliteStore(opened)
            used.runs("default")
            suspended(used, open_call(1))
        finally:
            opened.close()

    with pytest.raises(RuntimeUnavailable, match=r"codemode\.db is damaged .* move the file away"):
        use()


@requirement("runs:store:speaks")
def test_a_full_disk_is_said_and_the_run_is_as_it_was(store, db):
    """SQLite's own page limit gives the very error of a full disk."""
    run_id = store.create(new_run())
    db.rows("PRAGMA max_page_count = 40")

    with pytest.raises(RuntimeUnavailable, match="is full: make room"):
        store.suspend(suspension(run_id, [open_call(1)], snapshot=os.urandom(400_000)))

    db.rows("PRAGMA max_page_count = 1000000")
    assert store.get(run_id, ME).state == "running"
    store.suspend(suspension(run_id, [open_call(1)]))
    assert store.get(run_id, ME).state == "waiting"


@requirement("runs:store:speaks")
def test_a_store_that_becomes_unwritable_later_is_no_matter_of_configuration(store, db):
    """As when a disk is mounted again read-only: what was configured was right."""
    db.rows("PRAGMA query_only = 1")

    with pytest.raises(RuntimeUnavailable, match=r"can no longer be written"):
        store.create(new_run())

    db.rows("PRAGMA query_only = 0")


AS_NOBODY = """
import os, sys
from pathlib import Path
from codemode.core.errors import CodeModeError
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from tests.support.stores import new_run
run = new_run()
os.setgroups([]), os.setgid(65534), os.setuid(65534)  # after the imports: the interpreter may be root's alone
try:
    SqliteStore(Database(Path(sys.argv[1]))).create(run)
except CodeModeError as error:
    print(error.code, error, sep="\\n")
"""


@requirement("runs:store:speaks")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody whom permissions bind")
@pytest.mark.parametrize("obstacle", ["folder", "file in a read-only folder", "file of another user"])
def test_a_store_that_cannot_be_written_is_a_matter_of_configuration(obstacle):
    """Only a person can set that right, so it is invalid_config; a missing folder, an existing file, a foreign file."""
    base = Path(tempfile.mkdtemp())
    path = base / "state" / FILE_NAME
    if obstacle != "folder":
        SqliteStore(Database(path)).close()
        os.chown(path, NOBODY if obstacle.startswith("file in") else 0, 0)
        path.parent.chmod(0o555)
    base.chmod(0o555)

    command = [sys.executable, "-c", AS_NOBODY, path]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    base.chmod(0o700)
    shutil.rmtree(base)

    assert ran.stderr == ""
    code, message = ran.stdout.splitlines()
    assert code == ErrorCode.INVALID_CONFIG
    assert str(path) in message
    assert "CODEMODE_STATE_DIR" in message


def test_an_answer_that_came_between_the_look_and_the_interruption_stays(store, db):
    """A process settles a call as its last deed, while another has just seen that it died."""
    run_id = suspended(store, open_call(1))
    store.settle(run_id, answer(1, '"done"'))

    calls.interrupt(db, run_id, [(1, "client:app:quote")], 5.0)

    assert store.inbox(run_id).replies == (answer(1, '"done"'),)
    assert store.events(run_id) == []


@requirement("runs:store:speaks")
def test_a_state_folder_that_is_a_file_is_a_matter_of_configuration(tmp_path):
    """As when CODEMODE_STATE_DIR names a file."""
    (tmp_path / "state").touch()

    with pytest.raises(InvalidConfig, match=r"cannot be created \(.+\); set CODEMODE_STATE_DIR"):
        Database(tmp_path / "state" / FILE_NAME)


@requirement("runs:store:newer-schema")
def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(path, db):
    """An older codemode must not write into tables that it does not know."""
    db.rows(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = path.read_bytes()

    with pytest.raises(RuntimeUnavailable, match="upgrade codemode, or set CODEMODE_STATE_DIR"):
        Database(path)

    assert path.read_bytes() == before


@requirement("runs:store:older-schema")
def test_the_log_of_an_older_store_says_what_it_said(path, store, db):
    """Schema 1 named the run in each line, and wrote of each delivery by itself."""
    run_id = store.create(new_run())
    old = [["call_started", run_id, 1.5, 1, "call", "client:app:quote", {"to": "Ørje"}],
           ["call_delivered", run_id, 3.0, 1, "wait-1"], ["turn_measured", run_id, 3.0, 0.25]]  # fmt: skip
    db.change("INSERT INTO events (run_id, batch) VALUES (?, ?)", run_id, json.dumps(old))
    db.change("PRAGMA user_version = 1")
    db.close()

    today = Database(path)

    assert SqliteStore(today).events(run_id) == [
        CallStarted(run_id, 1.5, 1, "call", "client:app:quote", {"to": "Ørje"}),
        TurnMeasured(run_id, 3.0, 0, [1], "wait-1"),
        TurnMeasured(run_id, 3.0, 0.25),
    ]
    assert today.rows("PRAGMA user_version")[0][0] == SCHEMA_VERSION
    today.close()


def test_an_sqlite_that_is_too_old_is_said(monkeypatch):
    """Rather than a syntax error at the first claim."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 0))

    with pytest.raises(RuntimeUnavailable, match=r"needs SQLite 3\.37 or later"):
        Database(None)


def test_a_transaction_that_an_exception_leaves_is_undone(store, db):
    """A Ctrl-C between two statements of one verb too."""
    run_id = store.create(new_run())

    def interrupted():
        with db.write(durable=True):
            db.change("UPDATE runs SET state = 'waiting' WHERE run_id = ?", run_id)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert store.get(run_id, ME).state == "running"
    assert db.rows("PRAGMA synchronous") == [(1,)]


def test_a_durable_write_is_synced_and_others_are_not(db):
    """FULL is 2, NORMAL is 1: what must survive a power cut, and what may be found missing after one."""
    with db.write(durable=True):
        assert db.rows("PRAGMA synchronous") == [(2,)]
    with db.write():
        assert db.rows("PRAGMA synchronous") == [(1,)]


def test_no_exception_of_sqlite_leaves_a_store(store):
    """Engine exceptions stop at their adapter: even for a statement that is wrong."""
    with pytest.raises(RuntimeUnavailable, match="no such table") as caught:
        store._db.rows("SELECT * FROM nowhere")

    assert isinstance(caught.value.__cause__, sqlite3.Error)


def test_a_closed_store_says_that_its_session_has_ended(store):
    """Contract 4: ending a session."""
    store.close()

    with pytest.raises(Aborted, match="session has ended"):
        store.create(new_run())
