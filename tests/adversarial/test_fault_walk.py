"""A process that is killed around each step in the life of a run: nothing runs twice, nothing is lost or stuck."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codemode.core.types import Completed, Failed
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import open_test_session, tool, toolbox

ROOT = Path(__file__).parents[2]
STEPS = ("create", "suspend", "claim", "unclaim", "settle", "claim", "begin_delivery", "finish")
LOST = "the process died"  # the VM went with it: the run has failed, and says so
INTERRUPTED = "the call was interrupted"
ANSWERED = "the call's answer"
AFTERWARDS = {  # (step, moment) → what a person finds when the process is gone
    (1, "before"): "no run",
    (1, "after"): LOST,
    (2, "before"): LOST,
    (2, "after"): INTERRUPTED,
    (3, "before"): INTERRUPTED,
    (3, "after"): INTERRUPTED,
    (4, "before"): INTERRUPTED,
    (4, "after"): INTERRUPTED,
    (5, "before"): INTERRUPTED,
    (5, "after"): ANSWERED,
    (6, "before"): ANSWERED,
    (6, "after"): ANSWERED,
    (7, "before"): ANSWERED,
    (7, "after"): LOST,
    (8, "before"): LOST,
    (8, "after"): "completed",
}


def live_and_die(folder: Path, step: int, moment: str) -> str:
    """Let a process live until it is killed; return the step that it came to."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.faulty_life", str(folder), str(step), moment],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return ended.stdout.strip()


async def look_after(store: SqliteStore) -> str:
    """Do what a person does who comes afterwards; return what there was."""

    async def once() -> str:
        raise AssertionError("a call was made again")

    store.sweep()
    runs = store.runs("default")
    if not runs:
        return "no run"
    if runs[0].state == "completed":
        return "completed"
    pool = WorkerPool(1)
    try:
        async with open_test_session(pool, toolbox([tool("once", once)]), store) as session:
            return _outcome(await session.wait({"runId": runs[0].run_id}))
    finally:
        await pool.close()


def _outcome(result: Any) -> str:
    match result:
        case Failed(error=error) if "died" in error:
            return LOST
        case Completed(value="done once"):
            return ANSWERED
        case Completed(value=str(value)) if "interrupted" in value and "may have taken effect" in value:
            return INTERRUPTED
    raise AssertionError(result)


@requirement("session:faults:walk")
@pytest.mark.parametrize(("step", "moment"), AFTERWARDS.keys())
async def test_a_process_killed_at_any_step_leaves_what_the_contract_says(
    tmp_path: Path, step: int, moment: str
) -> None:
    assert live_and_die(tmp_path, step, moment) == STEPS[step - 1]
    store = SqliteStore(Database(tmp_path / "runs.db"))
    try:
        assert await look_after(store) == AFTERWARDS[step, moment]
        store.sweep()
        assert all(run.state in ("completed", "failed") for run in store.runs("default"))
    finally:
        store.close()
    begun = tmp_path / "begun"
    assert not begun.exists() or begun.read_text() == "once\n"
