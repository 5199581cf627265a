"""Carries out the nested calls of one run, as tasks, also while the run is suspended.

A carrier outlives the live run that started its calls: once the run waits, somebody else
receives what they settle to. A call is started at most once; stopping cancels all.
"""

import asyncio
from functools import partial
from typing import Any, Protocol

from codemode.bridge import Bridge, Target, reject
from codemode.core.deadline import close_deaf
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

    def broke(self, call: BridgeCall, error: Exception) -> None:
        """Learn of a fault of ours in carrying out a call."""


class Nobody:
    """Receives for a run that has ended."""

    def settled(self, reply: BridgeReply) -> None:
        """Pay no heed."""

    def parked(self, call: BridgeCall, asked: ApprovalNeeded) -> None:
        """Pay no heed."""

    def broke(self, call: BridgeCall, error: Exception) -> None:
        """Pay no heed."""


class Carrier:
    """The calls of one run that this process has in flight; `receiver` is told what comes of them."""

    def __init__(self, context: RunContext) -> None:
        """Begin idle; `context` is what tools learn of the run."""
        self.receiver: Receiver = Nobody()
        self._stopped = False
        self._context = context._replace(aborted=lambda: self._stopped)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()

    @property
    def is_idle(self) -> bool:
        """Whether no call is in flight."""
        return not self._tasks

    def start(self, bridge: Bridge, call: BridgeCall, target: Target, approved: bool = False) -> None:
        """Begin to carry out a call."""
        self._tasks[call.id] = self._loop.create_task(self._carry(bridge, call, target, approved), name="nested call")

    def cancel(self) -> None:
        """Cancel all calls and tell nobody: the run has ended. Their tools see `aborted` at once.

        Contract: session:abort:cancels-calls
        """
        self.receiver = Nobody()
        self._cancel()

    async def interrupt(self) -> None:
        """Cancel all calls, let the receiver know that they were interrupted, and wait for their ends."""
        self._cancel()
        await self.join()

    async def join(self) -> None:
        """Wait until all calls have ended, but not for long: a tool that refuses to is closed."""
        if self._tasks:
            _, deaf = await asyncio.wait(self._tasks.values(), timeout=CALL_EXIT_MS / 1000)
            for task in deaf:
                close_deaf(task)

    def _cancel(self) -> None:
        self._stopped = True
        for call_id, task in self._tasks.items():
            task.add_done_callback(partial(self._on_cancelled, call_id))
            task.cancel()

    def _on_cancelled(self, call_id: int, task: "asyncio.Task[Any]") -> None:
        ended = task.cancelled() or task.exception() is not None  # the latter where it had to be closed
        if ended and call_id in self._tasks:  # it may have been cancelled twice
            message = "the call was interrupted: its process was stopped. It may have taken effect"
            self._leave(call_id).settled(reject(call_id, NestedToolFailed(message)))

    async def _carry(self, bridge: Bridge, call: BridgeCall, target: Target, approved: bool) -> None:
        try:
            outcome = await bridge.carry_out(call, target, self._context.calling(str(call.id)), approved)
        except NestedToolFailed as error:
            self._leave(call.id).settled(reject(call.id, error))
        except ApprovalNeeded as asked:
            self._leave(call.id).parked(call, asked)
        except Exception as error:  # noqa: BLE001  # a fault of ours: the run ends with it, and says so
            self._leave(call.id).broke(call, error)
        else:
            self._leave(call.id).settled(BridgeReply(call.id, True, outcome.text))

    def _leave(self, call_id: int) -> Receiver:
        del self._tasks[call_id]
        return self.receiver
