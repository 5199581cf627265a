"""Calls in flight: who is told what, also when nobody listens, the store fails or all is cancelled."""

import asyncio
from typing import Any

import pytest

from codemode.bridge import Bridge
from codemode.core.errors import RuntimeUnavailable
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import BridgeCall, BridgeReply, RunContext
from codemode.executor import ApprovalNeeded, Executor
from codemode.live.carrier import Carrier
from codemode.live.journal import Journal
from codemode.live.late import Late
from codemode.live.service import Surroundings
from tests.requirements import requirement
from tests.support.sessions import Gate, tool, toolbox

CONTEXT = RunContext("main", "default", "", "cm_x", "ar_x")


class Told:
    """A receiver that remembers."""

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.moved = asyncio.Event()

    def settled(self, reply: BridgeReply) -> None:
        self._take(reply)

    def parked(self, call: BridgeCall, asked: ApprovalNeeded) -> None:
        self._take(("parked", call.id, asked.tool.id))

    def broke(self, call: BridgeCall, error: Exception) -> None:
        self._take(("broke", call.id, type(error).__name__))

    def _take(self, item: Any) -> None:
        self.news.append(item)
        self.moved.set()


class FullStore:
    """A store whose disk is full until `room` is set."""

    def __init__(self) -> None:
        self.room = False
        self.settled: list[BridgeReply] = []

    def settle(self, run_id: str, reply: BridgeReply, events: Any = ()) -> bool:
        if not self.room:
            raise RuntimeUnavailable("the disk is full")
        self.settled.append(reply)
        return True


def start(carrier: Carrier, gate: Gate, key: str = "", call_id: int = 1) -> None:
    box = toolbox([gate.tool])
    bridge = Bridge(box.catalog, Executor(box.redactor), Limits())
    call = BridgeCall(call_id, "call", gate.tool.id, {"key": key})
    carrier.start(bridge, call, bridge.resolve(call))


async def test_the_receiver_of_the_moment_is_told() -> None:
    carrier, gate, first, second = Carrier(CONTEXT), Gate(), Told(), Told()
    carrier.receiver = first
    start(carrier, gate, "a", 1)
    start(carrier, gate, "b", 2)
    await gate.until(begun=2)
    gate.open("A", "a")
    await first.moved.wait()
    carrier.receiver = second
    gate.open("B", "b")
    await second.moved.wait()

    assert first.news == [BridgeReply(1, True, '"A"')]
    assert second.news == [BridgeReply(2, True, '"B"')]
    assert carrier.is_idle


async def test_a_call_that_asks_is_parked_and_one_that_breaks_is_told() -> None:
    carrier, told = Carrier(CONTEXT), Told()
    carrier.receiver = told
    gate = Gate()
    gate.tool = gate.tool._replace(approval="ask")
    start(carrier, gate)
    await told.moved.wait()

    assert told.news == [("parked", 1, "client:app:gate")]
    assert carrier.is_idle


async def test_a_fault_of_ours_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(*rest: Any, **more: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(Executor, "call", break_down)
    carrier, told = Carrier(CONTEXT), Told()
    carrier.receiver = told
    start(carrier, Gate())
    await told.moved.wait()

    assert told.news == [("broke", 1, "KeyError")]


@requirement("session:abort:cancels-calls")
async def test_cancelling_stops_all_calls_and_tells_nobody() -> None:
    seen: list[bool] = []

    async def wait_for_ever(given: Any, context: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(context.aborted())

    carrier, told, gate = Carrier(CONTEXT), Told(), Gate()
    carrier.receiver = told
    gate.tool = tool("gate", _unused, invoke=wait_for_ever)
    start(carrier, gate)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    carrier.cancel()
    carrier.cancel()
    await carrier.join()

    assert (told.news, seen, carrier.is_idle) == ([], [True], True)


async def test_a_call_that_is_cancelled_before_its_first_step_is_over_too() -> None:
    carrier, gate = Carrier(CONTEXT), Gate()
    start(carrier, gate)
    carrier.cancel()
    await carrier.join()
    await asyncio.sleep(0)

    assert (gate.begun, carrier.is_idle) == ([], True)


@requirement("session:close:calls-interrupted")
async def test_interrupting_tells_of_each_call_that_it_may_have_taken_effect() -> None:
    carrier, told, gate = Carrier(CONTEXT), Told(), Gate()
    carrier.receiver = told
    start(carrier, gate)
    await gate.until(begun=1)
    await carrier.interrupt()

    (reply,) = told.news
    assert (reply.id, reply.ok) == (1, False)
    assert "interrupted" in reply.text
    assert "may have taken effect" in reply.text


async def test_a_tool_that_will_not_end_does_not_hold_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemode.live.carrier.CALL_EXIT_MS", 20)
    release = asyncio.Event()

    async def stubborn(given: Any, context: RunContext) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    carrier, told, gate = Carrier(CONTEXT), Told(), Gate()
    carrier.receiver = told
    gate.tool = tool("gate", _unused, invoke=stubborn)
    start(carrier, gate)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await carrier.interrupt()
    await told.moved.wait()

    assert carrier.is_idle
    assert "the call was interrupted" in told.news[0].text


@requirement("session:late:stored")
async def test_a_late_reply_that_the_store_cannot_take_is_kept_and_stored_later() -> None:
    carrier, gate, store, idle = Carrier(CONTEXT), Gate(), FullStore(), []
    late = Late("cm_x", carrier, Surroundings(store, Journal(), Redactor()), idle.append)
    start(carrier, gate)
    await gate.until(begun=1)
    gate.open("late")
    await carrier.join()

    assert (store.settled, late.is_idle, idle) == ([], False, [])
    store.room = True
    late.store()
    assert (store.settled, late.is_idle, idle) == ([BridgeReply(1, True, '"late"')], True, ["cm_x"])


async def test_a_late_call_that_asks_or_breaks_is_rejected() -> None:
    carrier, store = Carrier(CONTEXT), FullStore()
    store.room = True
    late = Late("cm_x", carrier, Surroundings(store, Journal(), Redactor()), lambda run_id: None)
    call, gate = BridgeCall(1, "call", "x", {}), Gate()
    late.parked(call, ApprovalNeeded(gate.tool, {}, "why not"))
    late.broke(BridgeCall(2, "call", "x", {}), KeyError("a bug"))

    assert [(reply.id, reply.ok) for reply in store.settled] == [(1, False), (2, False)]
    assert "after its run waited" in store.settled[0].text


async def _unused(**given: Any) -> None:
    raise AssertionError
