"""The life of one run in a process that is killed at a chosen step of its store; started by the fault walk.

    python -m tests.support.faulty_life FOLDER call|approval STEP before|after

A step is one call of a verb that moves the run. The cell calls a tool that appends a line to
`FOLDER/begun`. In the life of a `call` it answers only after the run was suspended, and the process
goes through exec, waiting, a wait with nothing to deliver, the settling of the call, a wait and
completion. In that of an `approval` the first wait approves the call, and everything follows from
that. Nothing depends on how fast the machine is: the tool itself lets the deadline pass.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from codemode.composition import Setup, session_over
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.support.sessions import tool, toolbox

VERBS = ("create", "suspend", "claim", "unclaim", "begin_delivery", "dispatch", "settle", "finish")
DEADLINE_MS = 60_000
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


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved on."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


async def live(folder: Path, life: str, step: int, moment: str) -> None:
    go_on = asyncio.Event()
    loop: Any = asyncio.get_running_loop()

    async def once() -> str:
        with (folder / "begun").open("a") as begun:
            begun.write("once\n")
        if life == "call":
            loop.ahead_s += DEADLINE_MS / 1000
            await go_on.wait()
        return "done once"

    pool, store = WorkerPool(1), FaultyStore(folder, step, moment)
    box = toolbox(
        [tool("once", once, approval="ask" if life == "approval" else "never")], limits={"timeout_ms": DEADLINE_MS}
    )
    async with session_over(box, Setup(), pool, store) as session:
        result: Any = await session.exec({"code": CELL})
        assert result.reason == "pending_tools", result
        if life == "approval":
            result = await session.wait({"runId": result.run_id}, {result.pending[0].id: True})
        else:
            result = await session.wait({"runId": result.run_id}, timeout_ms=100)
            go_on.set()
            await session.settled()
            result = await session.wait({"runId": result.run_id})
        assert result.value == "done once", result
    await pool.close()
    print("lived", flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(live(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
