"""A process that is killed around each step in the life of a run: nothing runs twice, nothing is lost or stuck."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.composition import Setup, session_over
from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.cells import BOUND_S
from tests.support.sessions import tool, toolbox

ROOT = Path(__file__).parents[2]
STEPS = {
    "call": ("create", "suspend", "claim", "unclaim", "settle", "claim", "begin_delivery", "finish"),
    "approval": ("create", "suspend", "claim", "dispatch", "settle", "begin_delivery", "finish"),
}
LOST = "the process died"  # the VM went with it: the run has failed, and says so
INTERRUPTED = "the call was interrupted"
ASKED = "the call waits for a person as before"
ANSWERED = "the call's answer"
AFTERWARDS = {  # life → what a person finds when the process is gone: before and after each of its steps
    "call": (
        ("no run", LOST),
        (LOST, INTERRUPTED),
        (INTERRUPTED, INTERRUPTED),
        (INTERRUPTED, INTERRUPTED),
        (INTERRUPTED, ANSWERED),
        (ANSWERED, ANSWERED),
        (ANSWERED, LOST),
        (LOST, "completed"),
    ),
    "approval": (
        ("no run", LOST),
        (LOST, ASKED),
        (ASKED, ASKED),
        (ASKED, INTERRUPTED),
        (INTERRUPTED, ANSWERED),
        (ANSWERED, LOST),
        (LOST, "completed"),
    ),
}
WALK = [
    (life, step, moment, found)
    for life, steps in AFTERWARDS.items()
    for step, both in enumerate(steps, 1)
    for moment, found in zip(("before", "after"), both, strict=True)
]


def live_and_die(folder: Path, life: str, step: int, moment: str) -> str:
    """Let a process live until it is killed; return the step that it came to."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.faulty_life", str(folder), life, str(step), moment],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return ended.stdout.strip()


async def look_after(store: SqliteStore, begun: Path) -> str:
    """Do what a person does who comes afterwards; return what there was."""

    async def once() -> str:
        with begun.open("a") as lines:
            lines.write("once\n")
        return "done once"

    store.sweep()
    runs = store.runs("default")
    if not runs:
        return "no run"
    if runs[0].state == "completed":
        return "completed"
    pool = WorkerPool(1)
    box = toolbox([tool("once", once, approval="ask")], limits={"timeout_ms": 60_000})
    try:
        async with session_over(box, Setup(), pool, store) as session:
            first = await session.wait({"runId": runs[0].run_id})
            if not isinstance(first, Waiting):
                return _outcome(first)
            assert [call.state for call in first.pending] == ["awaiting_approval"]
            last = await session.wait({"runId": first.run_id}, {first.pending[0].id: True})
            assert _outcome(last) == ANSWERED
            return ASKED
    finally:
        await pool.close()


def _outcome(result: CodeModeResult) -> str:
    match result:
        case Failed(error=error) if "died" in error:
            return LOST
        case Completed(value="done once"):
            return ANSWERED
        case Completed(value=str(value)) if "interrupted" in value and "may have taken effect" in value:
            return INTERRUPTED
    raise AssertionError(result)


@requirement("session:faults:walk")
@pytest.mark.timeout(4 * BOUND_S)
@pytest.mark.parametrize(("life", "step", "moment", "found"), WALK)
async def test_a_process_killed_at_any_step_leaves_what_the_contract_says(
    tmp_path: Path, life: str, step: int, moment: str, found: str
) -> None:
    assert live_and_die(tmp_path, life, step, moment) == STEPS[life][step - 1]
    store, begun = SqliteStore(Database(tmp_path / "runs.db")), tmp_path / "begun"
    try:
        assert await look_after(store, begun) == found
        store.sweep()
        assert all(run.state in ("completed", "failed") for run in store.runs("default"))
    finally:
        store.close()
    assert not begun.exists() or begun.read_text() == "once\n"
