"""Cells that live on, through a real session: what the REPL stands on."""

from pathlib import Path

import pytest

from codemode.composition import Setup, open_session
from codemode.core.types import Completed, Failed, Keep, Waiting
from tests.requirements import requirement


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))


@requirement("session:keep:state")
async def test_a_cell_goes_on_with_what_the_one_before_it_declared() -> None:
    async with open_session(Setup()) as session:
        first = await session.exec({"code": "const a = 5; let log = []"}, keep=Keep())
        assert isinstance(first, Completed)
        state = session.kept(first.run_id)
        assert session.kept(first.run_id) is None

        second = await session.exec({"code": "log.push(a); log"}, keep=Keep(state))
        again = await session.exec({"code": "log.push(a); log"}, keep=Keep(state))

        assert isinstance(second, Completed)
        assert isinstance(again, Completed)
        assert second.value == again.value == [5]  # the same state twice: this is what undo is


@requirement("session:keep:state")
async def test_a_kept_cell_that_waits_leaves_its_state_when_it_completes() -> None:
    async with open_session(Setup()) as session:
        waiting = await session.exec({"code": "await yield_control(); var n = 3; n"}, keep=Keep())
        assert isinstance(waiting, Waiting)
        assert session.kept(waiting.run_id) is None
        done = await session.wait({"runId": waiting.run_id})
        assert isinstance(done, Completed)
        after = await session.exec({"code": "n + 1"}, keep=Keep(session.kept(waiting.run_id)))
        assert isinstance(after, Completed)
        assert after.value == 4


@pytest.mark.usefixtures("no_kill")
@requirement("session:keep:state")
async def test_a_cell_cut_short_leaves_nothing_and_a_damaged_state_is_refused() -> None:
    async with open_session(Setup(limits={"timeout_ms": 200})) as session:
        cut = await session.exec({"code": "while (true) {}"}, keep=Keep())
        assert isinstance(cut, Failed)
        assert cut.run_id is not None
        assert session.kept(cut.run_id) is None
        refused = await session.exec({"code": "1"}, keep=Keep(b"nonsense"))
        assert isinstance(refused, Failed)
        assert refused.code == "snapshot_restore_failed"


async def test_a_model_cell_leaves_no_state() -> None:
    async with open_session(Setup()) as session:
        done = await session.exec({"code": "return 1"})
        assert isinstance(done, Completed)
        assert session.kept(done.run_id) is None
