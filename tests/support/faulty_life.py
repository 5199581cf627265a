"""The life of one run in a process that is killed at a chosen step of its store; started by the fault walk.

    python -m tests.support.faulty_life FOLDER STEP before|after

A step is one call of a verb that moves the run. The cell calls a tool that appends a line to
`FOLDER/begun` and answers at once after a suspension; the process goes through exec, waiting,
the settling of the call, wait and completion, unless it is killed on the way.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.support.sessions import open_test_session, tool, toolbox

VERBS = ("create", "suspend", "claim", "unclaim", "begin_delivery", "settle", "finish")
CELL = "const v = await tools.once({}).catch((e) => e.message); text('went on'); return v"


class FaultyStore(SqliteStore):
    """Kills its process around the n-th verb that writes."""

    def __init__(self, folder: Path, step: int, moment: str) -> None:
        super().__init__(Database(folder / "runs.db"))
        self._left = step
        self._moment = moment
        for name in VERBS:
            setattr(self, name, self._wrap(name, getattr(self, name)))

    def _wrap(self, name: str, verb: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._moment == "before":
                self._die(name)
            answer = verb(*arguments, **more)
            if self._left == 0:
                self._die(name)
            return answer

        return call

    def _die(self, name: str) -> None:
        print(name, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


async def live(folder: Path, step: int, moment: str) -> None:
    go_on = asyncio.Event()

    async def once() -> str:
        with (folder / "begun").open("a") as begun:
            begun.write("once\n")
        await go_on.wait()
        return "done once"

    pool, store = WorkerPool(1), FaultyStore(folder, step, moment)
    async with open_test_session(pool, toolbox([tool("once", once)], limits={"timeout_ms": 400}), store) as session:
        result: Any = await session.exec({"code": CELL})
        (folder / "run").write_text(result.run_id)
        result = await session.wait({"runId": result.run_id}, timeout_ms=100)
        go_on.set()
        await session.settled()
        result = await session.wait({"runId": result.run_id}, timeout_ms=10_000)
        assert result.value == "done once", result
    await pool.close()
    print("lived", flush=True)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
