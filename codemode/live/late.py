"""Receives the calls of a run that waits: what they settle to goes into the store's inbox."""

from collections.abc import Callable
from contextlib import suppress

from codemode.bridge import reject
from codemode.core.errors import NestedToolFailed, RuntimeUnavailable
from codemode.core.types import BridgeCall, BridgeReply
from codemode.executor import ApprovalNeeded
from codemode.live.carrier import Carrier
from codemode.live.service import Surroundings


class Late:
    """The part that this process still has in a suspended run: calls in flight, until they settle."""

    def __init__(self, run_id: str, carrier: Carrier, around: Surroundings, on_idle: Callable[[str], None]) -> None:
        """Become the receiver of the carrier; `on_idle` is called when all is in the store."""
        self.carrier = carrier
        self._run_id = run_id
        self._around = around
        self._on_idle = on_idle
        self._unstored: list[BridgeReply] = []
        carrier.receiver = self

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight and nothing is still to be stored."""
        return self.carrier.is_idle and not self._unstored

    def settled(self, reply: BridgeReply) -> None:
        """Store a reply for whoever waits next.

        Contract: session:late:stored
        """
        self._unstored.append(reply)
        with suppress(RuntimeUnavailable):  # a full disk may have room again: kept, and tried later
            self.store()

    def parked(self, call: BridgeCall, asked: ApprovalNeeded) -> None:
        """Refuse what asks for a person so late that its run waits already."""
        tool_id = asked.tool.id
        self.settled(reject(call.id, NestedToolFailed(f"{tool_id} asked for approval after its run waited", tool_id)))

    def broke(self, call: BridgeCall, error: Exception) -> None:
        """Reject a call that broke in our hands."""
        self.settled(reject(call.id, NestedToolFailed(f"request {call.id} broke: {type(error).__name__}")))

    def store(self) -> None:
        """Store what is not stored yet.

        Raises:
            RuntimeUnavailable: The store cannot take it now.
        """
        journal = self._around.journal
        while self._unstored:
            self._around.store.settle(self._run_id, self._unstored[0], journal.unwritten(self._run_id))
            journal.mark_written(self._run_id)
            del self._unstored[0]
        if self.carrier.is_idle:
            self._on_idle(self._run_id)
