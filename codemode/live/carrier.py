"""Carries out the nested calls of one run, as tasks, also while the run is suspended.

A carrier outlives the live run that started its calls: once the run waits, somebody else
receives what they settle to. A call is started at most once; stopping cancels all.
"""

import asyncio
from functools import partial
from typing import Protocol

from codemode.bridge import Bridge, Target, reject
from codemode.core.errors import NestedToolFailed
from codemode.core.limits import CALL_EXIT_MS
from codemode.core.types import BridgeCall, BridgeReply, RunContext
from codemode.executor import ApprovalNeeded


class Receiver(Protocol):
    """Who is told what came of a call; all three are called from the event loop."""

    def settled(self, reply: BridgeReply) -> None:
        """Take the reply of a call."""

    def parked(self, call: BridgeCall, asked: ApprovalNeeded) -> None:
        """Learn that a person must decide before the call runs."""

    def broke(self, call: BridgeCall, error: BaseException) -> None:
        """Learn of a fault of ours in carrying out a call."""


class Carrier:
    """The calls of one run that this process has in flight; `receiver` is told, or nobody when None."""

    def __init__(self, context: RunContext) -> None:
        """Begin idle; `context` is what tools learn of the run."""
        self.receiver: Receiver | None = None
        self._stopped = False
        self._context = context._replace(aborted=lambda: self._stopped)
        self._tasks: dict[int, asyncio.Task[BridgeReply]] = {}
        self._loop = asyncio.get_running_loop()

    @property
    def is_idle(self) -> bool:
        """Whether no call is in flight."""
        return not self._tasks

    def start(self, bridge: Bridge, call: BridgeCall, target: Target, approved: bool = False) -> None:
        """Begin to carry out a call."""
        context = self._context._replace(call_id=str(call.id))
        task = self._loop.create_task(bridge.carry_out(call, target, context, approved))
        self._tasks[call.id] = task
        task.add_done_callback(partial(self._on_done, call, target))

    def cancel(self) -> None:
        """Cancel all calls and tell nobody: the run has ended. Their tools see `aborted` at once.

        Contract: session:abort:cancels-calls
        """
        self.receiver = None
        self._cancel()

    async def interrupt(self) -> None:
        """Cancel all calls, let the receiver know that they were interrupted, and wait for their ends."""
        self._cancel()
        await self.join()

    async def join(self) -> None:
        """Wait until all calls have ended, but not for long: a tool may refuse to."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=CALL_EXIT_MS / 1000)

    def _cancel(self) -> None:
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()

    def _on_done(self, call: BridgeCall, target: Target, task: asyncio.Task[BridgeReply]) -> None:
        del self._tasks[call.id]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self.receiver is None:
            return
        if error is None:
            self.receiver.settled(task.result())
        elif isinstance(error, ApprovalNeeded):
            self.receiver.parked(call, error)
        elif isinstance(error, asyncio.CancelledError):
            self.receiver.settled(reject(call.id, _interrupted(target)))
        else:
            self.receiver.broke(call, error)


def _interrupted(target: Target) -> NestedToolFailed:
    tool_id = target.tool.id
    return NestedToolFailed(f"{tool_id} was interrupted: its process was stopped. It may have taken effect", tool_id)
