"""The requests that a guest still waits for: a table, a queue of what settled, and their bounds.

Pure: nothing here runs anything. A request is open from its row until its reply is taken for
delivery. A request that the store knows, because it was open when the run was suspended, settles
in the store's inbox and comes back from there; the others settle here.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Literal

from codemode.bridge import Target
from codemode.core.errors import TooManyPendingCalls
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_OTHER_PENDING
from codemode.core.types import BridgeCall, BridgeReply, PendingCall
from codemode.store.owner import Owner
from codemode.store.port import OpenCall, WaitReason

NESTED = ("call", "namespace")


class Request:
    """One open request.

    `target` is what a nested call came down to in this process, `owner` the process that carries
    it, `due_ms` (Unix) the moment of a timer, `stored` says that the store knows the request.
    """

    __slots__ = ("call", "due_ms", "owner", "reply", "state", "stored", "target", "tool_id")

    def __init__(self, call: BridgeCall) -> None:
        """Begin as `running`, unknown to the store."""
        self.call = call
        self.target: Target | None = None
        self.tool_id: str | None = None
        self.state: Literal["running", "awaiting_approval", "settled"] = "running"
        self.owner: Owner | None = None
        self.reply: BridgeReply | None = None
        self.due_ms: float | None = None
        self.stored = False

    @property
    def rests(self) -> bool:
        """Whether only a person, or the next `wait`, can settle it."""
        return self.state == "awaiting_approval" or (self.call.method == "yield" and self.state == "running")

    def to_pending(self) -> PendingCall:
        """Return the entry of a `waiting` result."""
        state = self.state if self.state == "awaiting_approval" else "running"
        return PendingCall(str(self.call.id), self.call.method, self.tool_id, state)

    def to_record(self) -> OpenCall:
        """Return what the store keeps; the input is the tool's where a person decides on it."""
        call, target = self.call, self.target
        decided = self.state == "awaiting_approval" and target is not None
        payload = target.input if decided and target else call.payload
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        return OpenCall(call.id, call.method, call.target, self.tool_id, text, self.state, self.owner, self.due_ms)


class Requests:
    """The open requests of one run; `last_id` is the highest id that it ever used."""

    def __init__(self, max_nested: int, last_id: int = 0) -> None:
        """Begin without any."""
        self.open: dict[int, Request] = {}
        self.last_id = last_id
        self._max_nested = max_nested
        self._nested = 0  # of those that are open
        self._settled: list[Request] = []

    def admit(self, calls: Sequence[BridgeCall]) -> list[Request]:
        """Open what a turn recorded.

        Raises:
            TooManyPendingCalls: More than the run may have open; none of them was opened.

        Contract: execution:calls:capped-on-host
        """
        nested = self._nested + sum(call.method in NESTED for call in calls)
        others = len(self.open) + len(calls) - nested
        if nested > self._max_nested or others > MAX_OTHER_PENDING:
            raise TooManyPendingCalls(
                f"{nested} nested calls and {others} other requests would be open at once; at most "
                f"{self._max_nested} (maxPendingToolCalls) and {MAX_OTHER_PENDING} may be"
            )
        opened = [Request(call) for call in calls]
        for request in opened:
            self.open[request.call.id] = request
            self.last_id = request.call.id
        self._nested = nested
        return opened

    def restore(self, recorded: Iterable[OpenCall]) -> None:
        """Open again what was open when the run was suspended."""
        for record in recorded:
            payload = json.loads(record.input)
            request = Request(BridgeCall(record.id, record.method, record.target, payload))
            request.tool_id, request.state = record.tool_id, record.state
            request.owner, request.due_ms, request.stored = record.owner, record.due_ms, True
            self.open[record.id] = request
            self._nested += record.method in NESTED

    def settle(self, reply: BridgeReply) -> bool:
        """Queue a reply for delivery; False where its request is not open, or has one already."""
        request = self.open.get(reply.id)
        if request is None or request.reply is not None:
            return False
        request.reply, request.state = reply, "settled"
        self._settled.append(request)
        return True

    def cancel(self, call_id: int) -> None:
        """Close a timer that the guest cleared."""
        request = self.open.get(call_id)
        if request is not None and request.call.method == "timer":
            del self.open[call_id]
            if request.reply is not None:
                self._settled.remove(request)

    @property
    def has_settled(self) -> bool:
        """Whether something can be delivered."""
        return bool(self._settled)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is open but what a person, or the next `wait`, settles."""
        return all(request.rests for request in self.open.values())

    @property
    def reason(self) -> WaitReason:
        """Why a run with these requests waits."""
        only_yields = all(request.call.method == "yield" for request in self.open.values())
        return "yield" if only_yields and not self._settled else "pending_tools"

    def settled(self) -> tuple[BridgeReply, ...]:
        """Return the replies that are queued, in the order in which they came."""
        return tuple(request.reply for request in self._settled if request.reply is not None)

    def delivered(self, replies: Sequence[BridgeReply]) -> list[BridgeCall]:
        """Close what the guest has been told, and return what it had asked."""
        calls = [self.open.pop(reply.id).call for reply in replies]
        self._nested -= sum(call.method in NESTED for call in calls)
        del self._settled[: len(replies)]
        return calls

    def batch(self) -> tuple[BridgeReply, ...]:
        """Return the queued replies that one delivery may hold: 8 MiB, or a single larger one."""
        replies = self.settled()
        size = 0
        for count, reply in enumerate(replies):
            size += len(reply.text)
            if count and size > MAX_BRIDGE_BYTES:
                return replies[:count]
        return replies
