"""How long ended runs stay in a store, and that nothing else ever goes."""

import os
import sqlite3
from itertools import count

import pytest

from codemode.core.errors import InvalidInput
from codemode.core.events import TurnMeasured
from codemode.core.limits import KEEP_ENDED_DAYS, PRUNE_BATCH
from codemode.store import retention
from codemode.store.database import Database
from codemode.store.memory import MemoryStore
from codemode.store.owner import this_process
from codemode.store.port import Pruned
from codemode.store.sqlite import SqliteStore
from tests.requirements import requirement
from tests.support.stores import ME, Clock, new_run, suspension

DAY = 86_400
MONTH = (KEEP_ENDED_DAYS + 1) * DAY
AGENT_RUNS = count()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "codemode.db"


@pytest.fixture(params=["memory", "sqlite"])
def store(request, clock, path):
    made = MemoryStore(clock) if request.param == "memory" else SqliteStore(Database(path), clock)
    yield made
    made.close()


def begun(store, **changes):
    """Return the id of a run with a log, in an agent run of its own."""
    run_id = store.create(new_run(**({"agent_run_id": f"agent-run-{next(AGENT_RUNS)}"} | changes)))
    store.append(run_id, [TurnMeasured(run_id, 1.0, 2.0)])
    return run_id


def ended(store, **changes):
    run_id = begun(store, **changes)
    store.finish(run_id, "completed")
    return run_id


def ids(store, session="default"):
    return [run.run_id for run in store.runs(session)]


def logged(store):
    """Return the runs that have anything in the log."""
    return {run_id for (run_id,) in store._db.rows("SELECT DISTINCT run_id FROM events")}


# --- by the sweep -------------------------------------------------------------------------


@requirement("runs:retention:age")
def test_a_sweep_removes_a_run_that_ended_a_month_ago_with_its_log(store, clock):
    """Issue 5: what is kept is bounded; whoever asks for it then is told what they are told of any unknown run."""
    old = ended(store)
    clock.seconds += MONTH
    recent = ended(store)

    assert store.sweep() == []

    assert ids(store) == [recent]
    assert logged(store) == {recent}
    assert store.events(old) == []
    with pytest.raises(InvalidInput, match="unknown, finished, or of another session"):
        store.get(old, ME)


@requirement("runs:retention:age")
def test_a_run_stays_for_the_whole_month_counted_from_its_end(store, clock):
    """However long ago it began."""
    run_id = begun(store)
    clock.seconds += MONTH
    store.finish(run_id, "failed")
    clock.seconds += KEEP_ENDED_DAYS * DAY - 1
    store.sweep()
    assert ids(store) == [run_id]

    clock.seconds += 1
    store.sweep()

    assert ids(store) == []


@requirement("runs:retention:live")
@pytest.mark.parametrize("state", ["running", "waiting", "claimed"])
def test_a_run_that_has_not_ended_is_never_removed_nor_are_the_figures_of_its_agent_run(store, clock, state):
    """Its telemetry counts the ended runs of the same agent run; a living process may run for months."""
    before, other = ended(store, agent_run_id="long"), ended(store)
    clock.seconds += MONTH
    live = begun(store, agent_run_id="long")
    if state != "running":
        store.suspend(suspension(live))
    if state == "claimed":
        store.claim(live, ME, this_process())

    store.sweep()
    assert store.prune("default", 0) == Pruned(0, 0)

    assert ids(store) == [live, before]
    assert logged(store) == {live, before}
    assert other not in ids(store)
    assert len(store.agent_run_events("long")) == 2


@requirement("runs:retention:count")
def test_beyond_the_newest_ten_thousand_ended_runs_the_oldest_go(store, monkeypatch):
    """A busy store, or a program that lives for weeks with one in memory, is bounded too."""
    monkeypatch.setattr(retention, "_BEYOND", retention._BEYOND.replace(str(retention.KEEP_ENDED_RUNS), "3"))
    waits = begun(store)
    store.suspend(suspension(waits))
    runs = [ended(store) for _ in range(5)]

    store.sweep()

    assert ids(store) == [*reversed(runs[2:]), waits]
    assert logged(store) == {waits, *runs[2:]}


@requirement("runs:retention:age")
def test_many_old_runs_go_in_batches_until_none_is_left(store, clock):
    """A sweep does a batch at least, and goes on only for some milliseconds."""
    for _ in range(PRUNE_BATCH + 20):
        ended(store)
    clock.seconds += MONTH

    assert retention.prune_kept_too_long(store._db, clock.seconds * 1000) == PRUNE_BATCH
    assert len(ids(store)) == 20
    store.sweep()

    assert ids(store) == []
    assert logged(store) == set()


@requirement("runs:retention:age")
def test_a_clock_that_was_set_back_removes_nothing(store, clock):
    """A run that ended in what is the future now is as young as can be."""
    run_id = ended(store)
    clock.seconds -= 400 * DAY

    store.sweep()

    assert ids(store) == [run_id]


def test_the_room_of_removed_runs_is_used_again(clock, path):
    """The file of a store that is used at the same pace for ever stops growing."""
    store = SqliteStore(Database(path), clock)

    def month():
        for _ in range(60):
            run_id = store.create(new_run())
            store.suspend(suspension(run_id, snapshot=os.urandom(8000)), [TurnMeasured(run_id, 1.0, 2.0)] * 40)
            store.abort(run_id, ME)
        clock.seconds += MONTH
        store.sweep()
        store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size

    first = month()
    sizes = [month() for _ in range(4)]
    store.close()

    assert max(sizes) <= first * 1.1


def test_a_store_of_an_earlier_build_gets_what_it_lacks(clock, path):
    """It has no index by the end; nothing else tells the two apart."""
    SqliteStore(Database(path), clock).close()
    with sqlite3.connect(path) as earlier:
        earlier.execute("DROP INDEX runs_ended")
    earlier.close()

    store = SqliteStore(Database(path), clock)

    plan = store._db.rows(f"EXPLAIN QUERY PLAN {retention._OF_AGE}", 0, None)
    assert any("runs_ended" in step[-1] for step in plan)
    store.close()


# --- by hand ------------------------------------------------------------------------------


@requirement("runs:retention:now")
def test_a_person_removes_the_ended_runs_of_one_session_from_an_age_on(store, clock):
    """Those of another session are not named, so they stay."""
    old = [ended(store) for _ in range(PRUNE_BATCH + 3)]
    foreign = ended(store, session="other")
    clock.seconds += DAY
    recent = ended(store)

    assert store.prune("default", DAY * 1000).runs == len(old)

    assert ids(store) == [recent]
    assert ids(store, "other") == [foreign]
    assert store.prune("default", DAY * 1000) == Pruned(0, 0)
    assert store.prune("default", 0).runs == 1


@requirement("runs:retention:now")
def test_the_file_becomes_smaller_by_what_is_said(clock, path):
    """Nothing of the removed logs is left in it."""
    store = SqliteStore(Database(path), clock)
    for _ in range(200):
        run_id = ended(store)
        store.append(run_id, [TurnMeasured(run_id, 1.0, 2.0)] * 100)
    store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    before = sum(file.stat().st_size for file in path.parent.iterdir())

    pruned = store.prune("default", 0)

    after = sum(file.stat().st_size for file in path.parent.iterdir())
    assert pruned == Pruned(200, before - after)
    assert pruned.freed_bytes > before / 2
    store.close()
    assert b"turn_measured" not in path.read_bytes()


@requirement("runs:retention:now")
def test_while_others_read_runs_are_removed_although_the_file_keeps_its_size(clock, path):
    """The room is used again later; that is no reason to fail."""
    store = SqliteStore(Database(path, busy_ms=20), clock)
    ended(store)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runs").fetchone()

    pruned = store.prune("default", 0)

    assert pruned.runs == 1
    assert ids(store) == []
    reader.execute("COMMIT")
    reader.close()
    store.close()


@requirement("runs:retention:now")
def test_where_the_file_cannot_be_made_smaller_runs_are_removed_all_the_same(store, monkeypatch):
    """As on a full disk, which has no room for the copy that it takes."""
    ended(store)
    monkeypatch.setattr(store._db, "compact", lambda: store._db.rows("SELECT * FROM nowhere"))

    assert store.prune("default", 0).runs == 1
    assert ids(store) == []
