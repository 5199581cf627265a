"""One store, several real processes: claims that race, owners that are killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.core.errors import InvalidInput, RuntimeUnavailable
from codemode.store.database import Database
from codemode.store.owner import Owner, this_process
from codemode.store.sqlite import SqliteStore
from tests.requirements import requirement
from tests.support.stores import ME, answer, new_run, open_call, suspension

ROOT = Path(__file__).parents[2]
PROLOGUE = """
import json, sys
from pathlib import Path
from codemode.core.errors import CodeModeError
from codemode.store.database import Database
from codemode.store.owner import this_process
from codemode.store.sqlite import SqliteStore
from tests.support.stores import ME, answer, new_run, open_call, suspension

def say(value):
    print(json.dumps(value), flush=True)

path = Path(sys.argv[1])
me = this_process()
"""
CLAIM_ALL = """
say("ready")
ids = json.loads(input())
store = SqliteStore(Database(path))
won = []
for run_id in ids:
    try:
        store.claim(run_id, ME, me)
        won.append(run_id)
    except CodeModeError as error:
        assert error.code == "invalid_input", error
say(won)
input()  # lives on: the runs of a dead process would be up for claim again
"""
OPEN_AT_ONCE = """
say("ready")
input()
store = SqliteStore(Database(path))
say(store.create(new_run()))
"""
STEPS = """
store = SqliteStore(Database(path))
run_id, last = json.loads(input())
for step in ("create", "suspend", "claim", "dispatch", "settle", "deliver", "suspend again"):
    if step == "create":
        run_id = store.create(new_run())
    elif step == "suspend":
        store.suspend(suspension(run_id, [open_call(1), open_call(2, state="awaiting_approval", owner=None)]))
    elif step == "claim":
        store.claim(run_id, ME, me)
    elif step == "dispatch":
        assert store.dispatch(run_id, 2, me)
    elif step == "settle":
        store.settle(run_id, answer(1, '"done"'))
    elif step == "deliver":
        store.begin_delivery(run_id)
    else:
        store.suspend(suspension(run_id, [open_call(2)]))
    if step == last:
        break
say(run_id)
input()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "codemode.db"


@pytest.fixture
def start(path):
    """Start real processes on the same store, and leave none behind."""
    started = []

    def begin(program):
        process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + program, path],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def store(path):
    made = SqliteStore(Database(path))
    yield made
    made.close()


def hear(process):
    return json.loads(process.stdout.readline())


def tell(process, value):
    process.stdin.write(json.dumps(value) + "\n")
    process.stdin.flush()


@requirement("runs:claims:one-wins")
def test_of_four_processes_that_claim_the_same_sixty_runs_each_run_goes_to_one(store, start):
    """Contract 5: one statement decides, so no two can both have seen `waiting`."""
    ids = [store.create(new_run()) for _ in range(60)]
    for run_id in ids:
        store.suspend(suspension(run_id))
    racers = [start(CLAIM_ALL) for _ in range(4)]
    assert [hear(racer) for racer in racers] == ["ready"] * 4

    for racer in racers:
        tell(racer, ids)
    won = [hear(racer) for racer in racers]

    assert sorted(run_id for each in won for run_id in each) == sorted(ids)


@requirement("runs:store:shared")
def test_processes_that_create_the_store_at_the_same_moment_all_use_it(path, start):
    """The first run ever on a machine may be several at once."""
    racers = [start(OPEN_AT_ONCE) for _ in range(5)]
    assert [hear(racer) for racer in racers] == ["ready"] * 5

    for racer in racers:
        tell(racer, None)
    ids = {hear(racer) for racer in racers}

    store = SqliteStore(Database(path))
    assert {run.run_id for run in store.runs("default")} == ids
    assert len(ids) == 5
    store.close()


# After which step its process is killed → state that the run is found in, ids answered with ok, and with a rejection.
KILLED_AFTER = {
    "create": ("failed", [], []),
    "suspend": ("waiting", [], [1]),
    "claim": ("waiting", [], [1]),
    "dispatch": ("waiting", [], [1, 2]),
    "settle": ("waiting", [1], [2]),
    "deliver": ("failed", [], []),
    "suspend again": ("waiting", [], [2]),
}


@requirement("runs:owners:rescued", "runs:owners:lost", "runs:calls:interrupted", "runs:calls:dispatched-once")
@pytest.mark.parametrize("step", KILLED_AFTER)
def test_a_kill_at_any_step_loses_no_answer_and_starts_no_call_again(store, start, step):
    """Contract 5, the fault walk of the store: each step is on disk when its verb returns."""
    state, answered, rejected = KILLED_AFTER[step]
    process = start(STEPS)
    tell(process, [None, step])
    run_id = hear(process)

    process.kill()
    process.wait()
    store.sweep()

    assert store.get(run_id, ME).state == state
    if state == "failed":
        with pytest.raises(RuntimeUnavailable, match="died"):
            store.claim(run_id, ME, this_process())
        return
    claimed = store.claim(run_id, ME, this_process())
    replies = store.inbox(run_id).replies
    assert [reply.id for reply in replies if reply.ok] == answered
    assert sorted(reply.id for reply in replies if not reply.ok) == rejected
    open_ids = {call.id for call in claimed.calls} - {reply.id for reply in replies}
    assert all(store.dispatch(run_id, call_id, this_process()) for call_id in open_ids)  # approvals: nothing had run
    assert not any(store.dispatch(run_id, reply.id, this_process()) for reply in replies)


def test_a_living_process_keeps_its_run_and_its_calls(store, start):
    """Nothing is taken from it, however long it takes."""
    process = start(STEPS)
    tell(process, [None, "claim"])
    run_id = hear(process)

    assert store.sweep() == []
    assert store.inbox(run_id).replies == ()
    with pytest.raises(InvalidInput, match="is running"):
        store.claim(run_id, ME, this_process())


@requirement("runs:abort:running")
def test_a_run_whose_process_dies_after_it_was_asked_to_stop_is_aborted(store, start):
    """It does not wait again: nobody wants it."""
    process = start(STEPS)
    tell(process, [None, "claim"])
    run_id = hear(process)
    assert store.abort(run_id, ME) == "running"

    process.kill()
    process.wait()
    store.sweep()

    assert store.get(run_id, ME).state == "aborted"


@requirement("runs:calls:settled-meanwhile")
def test_an_answer_that_another_process_writes_is_found_by_the_next_look(store, start):
    """The process that exited with `waiting` carries its calls on; the one that waits polls."""
    run_id = store.create(new_run())
    store.suspend(suspension(run_id, [open_call(1)]))
    store.claim(run_id, ME, this_process())
    assert store.inbox(run_id).replies == ()

    process = start("store = SqliteStore(Database(path)); say(store.settle(input(), answer(1, '\"from afar\"')))")
    process.stdin.write(run_id + "\n")
    process.stdin.flush()

    assert hear(process) is True
    assert store.inbox(run_id).replies == (answer(1, '"from afar"'),)


def test_an_owner_read_back_from_the_store_is_the_process_that_wrote_it(store, start):
    """Pid and start survive the row."""
    process = start(STEPS)
    tell(process, [None, "suspend"])
    run_id = hear(process)

    owner = store.claim(run_id, ME, this_process()).calls[0].owner

    assert isinstance(owner, Owner)
    assert owner.pid == process.pid
