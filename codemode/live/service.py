"""How the requests of a live run are served: started together, settled each at its time.

Searches and describes are answered at once, a thousand of them in slices; timers by the loop's
clock, calls by the carrier; approvals wait for a person. What the store knows settles in its inbox, which is looked at
here. Called by the live run; `changed` tells it to look again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from codemode.bridge import Bridge, Target, reject
from codemode.core.errors import CodeModeError, Internal, InvalidInput, NestedToolFailed
from codemode.core.events import CallParked, CallSettled, CallStarted
from codemode.core.redact import Redactor
from codemode.core.types import BridgeCall, BridgeReply
from codemode.executor import ApprovalNeeded
from codemode.live.carrier import Carrier
from codemode.live.journal import Journal
from codemode.live.requests import NESTED, Request, Requests
from codemode.store.owner import this_process
from codemode.store.port import OpenCall, Store

_SLICE_S = 0.02  # so long searches are answered in one go; then deadlines and other runs have their turn


class Surroundings(NamedTuple):
    """What all live runs of a session share; `may_ask` says whether a person can decide."""

    store: Store
    journal: Journal
    redactor: Redactor
    may_ask: bool = True


class Service:
    """Serves the requests of one run.

    `fault` is why it cannot go on, once serving it broke; `approved` are the tools of which a person
    approved every call.
    """

    def __init__(self, run_id: str, bridge: Bridge, carrier: Carrier, requests: Requests, around: Surroundings) -> None:
        """Become the receiver of the carrier."""
        self.changed: Callable[[], None] = lambda: None
        self.fault: CodeModeError | None = None
        self.approved: set[str] = set()
        self._run_id = run_id
        self._bridge = bridge
        self.carrier = carrier
        self._requests = requests
        self._around = around
        self._inbox_position = 0
        self._loop = asyncio.get_running_loop()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self.has_time: Callable[[], bool] = lambda: True  # for searches, before the deadline
        self._lookups: deque[Request] = deque()
        self._is_serving = False
        carrier.receiver = self

    # ---- starting ----

    def start(self, calls: Sequence[BridgeCall], cancelled: Iterable[int]) -> None:
        """Start what one turn recorded, all of it or nothing.

        Raises:
            TooManyPendingCalls: It was nothing.

        Contract: execution:calls:started-together, execution:searches:sliced
        """
        for request in self._requests.admit(calls):
            self._start(request)
        for call_id in cancelled:
            self._requests.cancel(call_id)
            if timer := self._timers.pop(call_id, None):
                timer.cancel()
        if not self._is_serving:
            self._serve_lookups()

    def restore(self, recorded: Iterable[OpenCall]) -> None:
        """Open again what was open at the suspension.

        Yields settle, timers go on, the inbox is looked at, and searches that found no time before are answered.
        """
        self._requests.restore(recorded)
        for request in tuple(self._requests.open.values()):
            if request.call.method == "yield":
                self._settle_here(BridgeReply(request.call.id, True, "null"))
            elif request.call.method == "timer":
                self._arm(request)
            elif request.call.method not in NESTED:
                self._lookups.append(request)
        self.check_inbox()
        self._serve_lookups()

    def _start(self, request: Request) -> None:
        method = request.call.method
        if method in NESTED:
            self._start_nested(request)
        elif method == "timer":
            request.due_ms = _now_ms() + request.call.payload
            self._arm(request)
        elif method != "yield":
            self._lookups.append(request)

    def _start_nested(self, request: Request) -> None:
        call = request.call
        try:
            target = self._bridge.resolve(call)
        except NestedToolFailed as error:
            self._refuse(call, error, "error")
            return
        request.tool_id, request.owner = target.tool.id, this_process()
        self.carrier.start(self._bridge, call, target)

    def _serve_lookups(self) -> None:
        """Answer searches and describes for the length of a slice, and the rest of them later, while there is time."""
        until = time.monotonic() + _SLICE_S
        while self._lookups and self.has_time():
            request = self._lookups.popleft()
            if request.reply is None:
                self._look_up(request.call)
            if time.monotonic() >= until:
                break
        self._is_serving = bool(self._lookups) and self.has_time()
        if self._is_serving:
            self._loop.call_soon(self._at_leisure, self._serve_lookups)

    def _look_up(self, call: BridgeCall) -> None:
        around = self._around
        shown = around.redactor.value({"query": call.target, "limit": call.payload})
        around.journal.record(CallStarted(self._run_id, _now_ms(), call.id, call.method, None, shown))
        reply = self._bridge.look_up(call)
        state: Literal["ok", "error"] = "ok" if reply.ok else "error"
        around.journal.record(CallSettled(self._run_id, _now_ms(), call.id, state, len(reply.text), None))
        self._settle_here(reply)

    def _arm(self, request: Request) -> None:
        """Settle a timer at its moment; where the clock was set back meanwhile, after its whole time once more.

        Contract: execution:timers:host-backed
        """
        delay_s = min(max((request.due_ms or 0) - _now_ms(), 0), request.call.payload) / 1000
        reply = BridgeReply(request.call.id, True, "null")
        self._timers[request.call.id] = self._loop.call_later(delay_s, self._settle_here, reply)

    # ---- settling ----

    def settled(self, reply: BridgeReply) -> None:
        """Take the reply of a call; one that the store knows goes through its inbox."""
        request = self._requests.open.get(reply.id)
        if request is None or not request.stored:
            self._settle_here(reply)
            return
        journal = self._around.journal
        try:
            self._around.store.settle(self._run_id, reply, journal.unwritten(self._run_id))
            journal.mark_written(self._run_id)
            self.check_inbox()
        except CodeModeError as error:  # the store has failed, or the run was aborted: the run ends with it
            self.fault = error
            self.changed()

    def parked(self, call: BridgeCall, asked: ApprovalNeeded) -> None:
        """Let a call wait for a person, unless one has approved its tool; refuse it where there is none.

        Contract: execution:approvals:denied-alone, approvals:always:run
        """
        tool, around = asked.tool, self._around
        if tool.id in self.approved:
            self.carrier.start(self._bridge, call, Target(tool, asked.input), approved=True)
            return
        shown, why = around.redactor.value(asked.input), around.redactor.value(asked.reason)
        around.journal.record(CallParked(self._run_id, _now_ms(), call.id, call.method, tool.id, shown, why))
        if not around.may_ask:
            self._refuse(call, NestedToolFailed(f"{tool.id} needs approval; nobody can be asked here", tool.id))
            return
        request = self._requests.open[call.id]
        request.state, request.target, request.owner = "awaiting_approval", Target(tool, asked.input), None
        self.changed()

    def broke(self, call: BridgeCall, error: Exception) -> None:
        """Note a fault of ours; the run ends with it."""
        self.fault = Internal(f"request {call.id} broke: {type(error).__name__}: {error}")
        self.changed()

    def look(self) -> None:
        """Check the inbox from a timer."""
        self._at_leisure(self.check_inbox)

    def _at_leisure(self, task: Callable[[], None]) -> None:
        """Do something from the loop, where nobody would catch an error: the run ends with it."""
        try:
            task()
        except CodeModeError as error:
            self.fault = error
            self.changed()

    def check_inbox(self) -> None:
        """Take over what the store has got for this run since the last look.

        Raises:
            RuntimeUnavailable: The store has failed.
        """
        found = self._around.store.inbox(self._run_id, self._inbox_position)
        self._inbox_position = found.position
        for reply in found.replies:
            self._requests.settle(reply)
        self.changed()

    @property
    def awaits_others(self) -> bool:
        """Whether another process carries a call of this run."""
        mine = (None, this_process())
        return any(request.owner not in mine and not request.reply for request in self._requests.open.values())

    def _settle_here(self, reply: BridgeReply) -> None:
        if self._requests.settle(reply):
            self.changed()

    def _refuse(self, call: BridgeCall, error: NestedToolFailed, state: Literal["error", "denied"] = "denied") -> None:
        around = self._around
        text, shown_id = around.redactor.text(error.message), error.tool_id and around.redactor.text(error.tool_id)
        around.journal.record(CallSettled(self._run_id, _now_ms(), call.id, state, 0, text, shown_id))
        self.settled(reject(call.id, NestedToolFailed(text, error.tool_id)))

    # ---- approvals ----

    def decide(self, decisions: Mapping[str, bool], always: bool = False) -> None:
        """Let approved calls run, with the input that was shown, and refuse the others.

        With `always` their tools are approved for the rest of the run, and so are their calls that wait.

        Raises:
            InvalidInput: One of the calls awaits no approval; nothing was decided.

        Contract: execution:approvals:decided-once, approvals:always:run
        """
        opened = self._requests.open.items()
        awaiting = {str(call_id): request for call_id, request in opened if request.state == "awaiting_approval"}
        for call_id in decisions:
            if call_id not in awaiting:
                known = ", ".join(awaiting) or "none of this run"
                raise InvalidInput(f'call "{call_id[:40]}" awaits no approval; those that do: {known}')
        if always:
            self.approved |= {awaiting[call_id].tool_id or "" for call_id, approved in decisions.items() if approved}
            implied = {call_id: True for call_id, request in awaiting.items() if request.tool_id in self.approved}
            decisions = implied | dict(decisions)
        for call_id, approved in decisions.items():
            self._decide(awaiting[call_id], approved)

    def _decide(self, request: Request, approved: bool) -> None:
        tool_id, call = request.tool_id or "", request.call
        if not approved:
            self._refuse(call, NestedToolFailed(f"{tool_id} was not approved", tool_id))
            return
        try:
            target = self._bridge.recall(tool_id, call.payload)
        except NestedToolFailed as error:
            self._refuse(call, error, "error")
            return
        if self._around.store.dispatch(self._run_id, call.id, this_process()):
            request.state, request.owner = "running", this_process()
            self.carrier.start(self._bridge, call, target, approved=True)

    # ---- ending ----

    def cancel(self) -> None:
        """Cancel the calls in flight and all timers."""
        self.carrier.cancel()
        self.close()

    def close(self) -> None:
        """Let go of timers: the run has ended, or it rests in the store."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._lookups.clear()


def _now_ms() -> float:
    return time.time() * 1000
