"""What a remembered approval is and is not, seen from a session."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from codemode.core.types import Completed, Waiting
from codemode.hooks import Hook
from codemode.session import Identity, Session
from codemode.store.memory import MemoryStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import Gate, open_test_session, toolbox

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("no_kill")]
SHORT = {"timeout_ms": 400}
TWICE = "return [await tools.gate({key: 'a'}), await tools.gate({key: 'b'})]"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool(2)
    yield workers
    await workers.close()


def asking() -> Gate:
    gate = Gate()
    gate.tool = gate.tool._replace(approval="ask")
    return gate


async def begin(session: Session, cell: str = TWICE) -> Waiting:
    result = await session.exec({"code": cell})
    assert isinstance(result, Waiting), result
    return result


@requirement("approvals:always:run")
async def test_it_is_remembered_by_a_wait_to_which_nothing_was_delivered(pool: WorkerPool) -> None:
    """The tool is slower than the wait that approved it; a later session goes on."""
    gate, store = asking(), MemoryStore()
    async with open_test_session(pool, toolbox([gate.tool], limits=SHORT), store) as session:
        first = await begin(session)
        again = await session.wait({"runId": first.run_id}, {"1": True}, 400, always=True)
        assert isinstance(again, Waiting)
        assert [call.state for call in again.pending] == ["running"]
        for key in "ab":
            gate.open(key.upper(), key)
        await session.settled()
    async with open_test_session(pool, toolbox([gate.tool]), store) as later:
        end = await later.wait({"runId": first.run_id})

    assert isinstance(end, Completed), end
    assert end.value == ["A", "B"]
    assert [begun["key"] for begun in gate.begun] == ["a", "b"]


@requirement("approvals:always:run")
async def test_hooks_still_rewrite_and_block_what_is_approved(pool: WorkerPool) -> None:
    async def guard(event: dict[str, Any]) -> Any:
        key = event["input"].get("key")  # the outer exec has none
        if key is None:
            return None
        return {"block": "no more"} if key == "c" else {"input": {"key": key.upper()}}

    gate = asking()
    gate.open("one", "A")
    gate.open("two", "B")
    cell = "const got = []; for (const key of 'abc') got.push(await tools.gate({key}).catch(String)); return got"
    async with open_test_session(pool, toolbox([gate.tool], hooks=[Hook("guard", guard)])) as session:
        first = await begin(session, cell)
        end = await session.wait({"runId": first.run_id}, {"1": True}, always=True)

    assert isinstance(end, Completed), end
    assert end.value[:2] == ["one", "two"]
    assert "no more" in end.value[2]


@requirement("approvals:always:run")
async def test_it_is_of_its_run_and_not_of_its_session(pool: WorkerPool) -> None:
    gate = asking()
    for key in "ab":
        gate.open(key, key)
    async with open_test_session(pool, toolbox([gate.tool]), who=Identity("s")) as session:
        first, second = await begin(session), await begin(session)
        both = await asyncio.gather(
            session.wait({"runId": first.run_id}, {"1": True}, always=True),
            session.wait({"runId": second.run_id}, {"1": True}),
        )

    assert isinstance(both[0], Completed)
    assert isinstance(both[1], Waiting)
