"""The pure parts of a live run: what is counted, what is open, what is told."""

import asyncio
import time

import pytest

from codemode.bridge import Bridge
from codemode.catalog import build_catalog
from codemode.core.errors import OutputLimit, RuntimeUnavailable, TooManyPendingCalls
from codemode.core.events import CallStarted, ExecStarted, RunEnded, TurnMeasured, to_lines
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_OTHER_PENDING, Limits
from codemode.core.redact import Redactor
from codemode.core.types import BridgeCall, BridgeReply, OutputItem, RunContext, TurnEnd
from codemode.executor import Executor
from codemode.live.carrier import Carrier
from codemode.live.journal import Journal
from codemode.live.output import Output
from codemode.live.requests import Requests
from codemode.live.service import Service, Surroundings
from codemode.policy import Policy
from codemode.store.memory import MemoryStore
from codemode.store.port import OpenCall
from tests.requirements import requirement


def texts(*values: str, state: str = "suspended", **more) -> TurnEnd:
    return TurnEnd(state, output=tuple(OutputItem("text", value) for value in values), **more)


# ---- output ----


def test_outputs_within_the_limit_are_handed_out_once() -> None:
    output = Output(1000)
    output.admit(texts("one"))
    output.admit(texts("two"))

    assert [item.value for item in output.take()] == ["one", "two"]
    assert output.take() == ()


@requirement("output:limit:cumulative")
def test_output_is_counted_over_turns_and_over_processes() -> None:
    first = Output(100)
    first.admit(texts("x" * 40))
    second = Output(100)
    second.used, second.left_out = first.used, first.left_out
    with pytest.raises(OutputLimit, match="maxOutputBytes"):
        second.admit(texts("y" * 40))


@requirement("output:limit:cumulative")
def test_the_value_counts_too() -> None:
    output = Output(100)
    output.admit(texts("x" * 40))
    with pytest.raises(OutputLimit, match="42 bytes were left out"):
        output.admit(TurnEnd("completed", value="y" * 40))


@requirement("output:limit:prefix")
@pytest.mark.parametrize("letter", ["x", "é", "😀", '"', "\n"])
def test_the_prefix_that_fits_is_kept_and_cut_between_characters(letter: str) -> None:
    output = Output(200)
    with pytest.raises(OutputLimit):
        output.admit(texts(letter * 300, "never seen"))
    (kept,) = output.take()
    shown = len(f'{{"type":"text","text":{__import__("json").dumps(kept.value, ensure_ascii=False)}}}'.encode())

    assert set(kept.value) == {letter}
    assert 190 < shown < 200


@requirement("output:limit:says-left-out")
def test_what_the_guest_left_out_is_said_as_well() -> None:
    output = Output(1000)
    with pytest.raises(OutputLimit, match="5000 bytes were left out"):
        output.admit(texts("short", omitted_bytes=5000))


def test_a_json_item_that_does_not_fit_is_left_out_whole() -> None:
    output = Output(100)
    with pytest.raises(OutputLimit):
        output.admit(TurnEnd("suspended", output=(OutputItem("json", ["x" * 200]),)))

    assert output.take() == ()


def test_a_turn_that_failed_keeps_its_own_failure() -> None:
    output = Output(100)
    output.admit(texts("x" * 500, state="failed"))

    assert len(output.take()[0].value) < 100


@pytest.mark.parametrize("value", [float("nan"), "\ud800", [float("inf")]])
def test_a_worker_that_sends_what_is_not_json_is_not_believed(value: object) -> None:
    with pytest.raises(RuntimeUnavailable, match="not JSON"):
        Output(100).admit(TurnEnd("completed", value=value))


# ---- requests ----


def call(id_: int, method: str = "call") -> BridgeCall:
    return BridgeCall(id_, method, "client:app:x", {})


def reply(id_: int, text: str = "null") -> BridgeReply:
    return BridgeReply(id_, True, text)


def test_replies_are_delivered_in_the_order_in_which_they_came() -> None:
    requests = Requests(16)
    requests.admit([call(1), call(2), call(3)])
    for id_ in (3, 1):
        assert requests.settle(reply(id_))
    batch = requests.batch()
    requests.delivered(batch)

    assert [settled.id for settled in batch] == [3, 1]
    assert list(requests.open) == [2]
    assert requests.last_id == 3


def test_a_request_settles_once() -> None:
    requests = Requests(16)
    requests.admit([call(1)])

    assert requests.settle(reply(1, "1"))
    assert not requests.settle(reply(1, "2"))
    assert not requests.settle(reply(9))
    assert requests.settled() == (reply(1, "1"),)


def test_one_delivery_holds_as_much_as_the_bridge_takes_and_at_least_one_reply() -> None:
    requests = Requests(16)
    requests.admit([call(1), call(2), call(3)])
    large = '"' + "x" * (MAX_BRIDGE_BYTES - 2) + '"'
    for id_, text in ((1, large), (2, "null"), (3, "null")):
        requests.settle(reply(id_, text))
    first = requests.batch()
    requests.delivered(first)

    assert [settled.id for settled in first] == [1]
    assert [settled.id for settled in requests.batch()] == [2, 3]


@requirement("execution:calls:capped-on-host")
def test_more_open_calls_than_allowed_open_none_of_the_turn() -> None:
    requests = Requests(2)
    requests.admit([call(1)])
    with pytest.raises(TooManyPendingCalls, match="3 nested calls"):
        requests.admit([call(2), call(3, "namespace")])

    assert list(requests.open) == [1]


def test_searches_timers_and_yields_have_a_bound_of_their_own() -> None:
    requests = Requests(1)
    requests.admit([call(id_, "timer") for id_ in range(1, MAX_OTHER_PENDING + 1)])
    with pytest.raises(TooManyPendingCalls, match="1025 other requests"):
        requests.admit([call(MAX_OTHER_PENDING + 1, "search")])


def serving(requests: Requests, store: MemoryStore) -> Service:
    """A service over an empty catalog."""
    context = RunContext("main", "default", "", "cm_1", "ar_1")
    bridge = Bridge(build_catalog((), Policy()), Executor(Redactor()), Limits())
    return Service("cm_1", bridge, Carrier(context), requests, Surroundings(store, Journal(), Redactor()))


@requirement("execution:searches:sliced")
async def test_searches_that_take_long_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand searches of one turn took seconds, in which neither a deadline nor another run was heeded."""
    monkeypatch.setattr("codemode.live.service._SLICE_S", 0)
    store, requests = MemoryStore(), Requests(16)
    service = serving(requests, store)
    service.start([BridgeCall(id_, "search", "order", None) for id_ in (1, 2, 3)], ())
    counts = []
    for _ in range(3):
        counts.append(len(requests.settled()))
        await asyncio.sleep(0)

    assert counts == [1, 2, 3]
    store.close()


@requirement("execution:searches:sliced")
async def test_however_many_turns_ask_one_slice_is_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that adds searches to those that wait must not make each pause longer."""
    monkeypatch.setattr("codemode.live.service._SLICE_S", 0)
    store, requests = MemoryStore(), Requests(16)
    service = serving(requests, store)
    for first in (1, 11, 21):
        service.start([BridgeCall(id_, "search", "order", None) for id_ in range(first, first + 10)], ())
    counts = []
    for _ in range(3):
        counts.append(len(requests.settled()))
        await asyncio.sleep(0)

    assert counts == [1, 2, 3]
    store.close()


@requirement("execution:searches:sliced")
async def test_no_search_is_answered_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for the next `wait`; a flood of them overshot by half a second."""
    monkeypatch.setattr("codemode.live.service._SLICE_S", 0)
    store, requests = MemoryStore(), Requests(16)
    service = serving(requests, store)
    service.has_time = lambda: not requests.has_settled
    service.start([BridgeCall(id_, "search", "order", None) for id_ in (1, 2, 3)], ())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert [reply.id for reply in requests.settled()] == [1]
    store.close()


@requirement("execution:searches:sliced")
async def test_searches_that_found_no_time_before_a_suspension_are_answered_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("codemode.live.service._SLICE_S", 0)
    store, before, after = MemoryStore(), Requests(16), Requests(16)
    service = serving(before, store)
    service.start([BridgeCall(id_, "search", "order", None) for id_ in (1, 2)], ())
    service.close()
    await asyncio.sleep(0)
    (answered,) = before.settled()
    assert answered.id == 1

    serving(after, store).restore([before.open[2].to_record()])

    assert [reply.id for reply in after.settled()] == [2]
    store.close()


@requirement("execution:timers:host-backed")
@pytest.mark.timeout(60)
async def test_a_timer_of_a_run_whose_clock_was_set_back_meanwhile_does_not_last_that_much_longer() -> None:
    """Its moment is an hour away now, its length is 20 ms: it fires after that."""
    store, requests = MemoryStore(), Requests(16)
    service = serving(requests, store)
    fired = asyncio.Event()
    service.changed = lambda: requests.has_settled and fired.set()

    due_ms = time.time() * 1000 + 3_600_000
    service.restore([OpenCall(1, "timer", "", None, "20", "running", None, due_ms)])
    await fired.wait()

    assert requests.settled() == (BridgeReply(1, ok=True, text="null"),)
    service.close()
    store.close()


def test_only_timers_can_be_cancelled() -> None:
    requests = Requests(16)
    requests.admit([call(1, "timer"), call(2)])
    requests.settle(reply(1))
    for id_ in (1, 2, 77):
        requests.cancel(id_)

    assert list(requests.open) == [2]
    assert not requests.has_settled


def test_rest_and_its_reason_depend_on_what_is_open() -> None:
    requests = Requests(16)
    requests.admit([call(1, "yield")])
    assert (requests.at_rest, requests.reason) == (True, "yield")

    (asked,) = requests.admit([call(2)])
    assert not requests.at_rest
    asked.state = "awaiting_approval"
    assert (requests.at_rest, requests.reason) == (True, "pending_tools")

    requests.admit([call(3, "timer")])
    assert not requests.at_rest


def test_requests_survive_the_store() -> None:
    requests = Requests(16)
    timer, nested = requests.admit([call(1, "timer"), BridgeCall(2, "call", "x", {"a": [1]})])
    timer.due_ms, nested.tool_id = 1234.5, "client:app:x"
    again = Requests(16)
    again.restore(request.to_record() for request in requests.open.values())

    assert [request.call for request in again.open.values()] == [timer.call, nested.call]
    assert [request.due_ms for request in again.open.values()] == [1234.5, None]
    assert all(request.stored for request in again.open.values())
    assert again.open[2].to_record() == OpenCall(2, "call", "x", "client:app:x", '{"a":[1]}', "running")


# ---- journal ----


def started(run_id: str) -> ExecStarted:
    return ExecStarted(run_id, 1.0, "ar", "javascript", "", 0, {}, [])


def test_events_are_counted_told_and_kept_until_they_are_written() -> None:
    journal, heard = Journal(), []
    journal.listeners.append(heard.append)
    journal.follow("r1", "ar")
    journal.record(started("r1"))

    assert heard == [started("r1")]
    assert list(journal.unwritten("r1")) == [to_lines([started("r1")])]
    assert journal.telemetry("ar")["execCount"] == 1
    journal.mark_written("r1")
    assert list(journal.unwritten("r1")) == []


def test_events_wait_as_they_are_until_somebody_asks_or_a_turn_gives_time() -> None:
    journal = Journal()
    journal.follow("r1", "ar")
    journal.record(started("r1"))
    journal.keep_up("r1")
    journal.record(TurnMeasured("r1", 2.0, 0.5))

    assert list(journal.unwritten("r1")) == [to_lines([started("r1")]), to_lines([TurnMeasured("r1", 2.0, 0.5)])]
    assert (journal.telemetry("ar")["execCount"], journal.telemetry("ar")["guestMs"]) == (1, 0.5)


@requirement("session:telemetry:agent-run")
def test_figures_of_an_agent_run_add_up_over_its_runs_and_what_the_store_had() -> None:
    journal = Journal()
    journal.follow("r2", "ar", earlier=[started("r1")])
    journal.record(started("r2"))
    journal.follow("r3", "other")
    journal.record(started("r3"))

    assert journal.telemetry("ar")["execCount"] == 2
    assert journal.telemetry("nobody")["execCount"] == 0


@requirement("session:result:dispatched")
def test_only_nested_calls_count_as_dispatched() -> None:
    journal = Journal()
    journal.follow("r1", "ar")
    journal.record(CallStarted("r1", 1.0, 1, "search", None, {}))
    assert not journal.has_dispatched("r1")
    journal.record(CallStarted("r1", 1.0, 2, "namespace", "mcp:a:b", {}))
    assert journal.has_dispatched("r1")


def test_late_events_of_a_forgotten_run_are_dropped() -> None:
    journal = Journal()
    journal.follow("r1", "ar")
    journal.forget("r1")
    journal.record(RunEnded("r1", 1.0, "completed", None, None, 5.0))

    assert journal.telemetry("ar")["durationMs"] == 0
    assert list(journal.unwritten("r1")) == []
