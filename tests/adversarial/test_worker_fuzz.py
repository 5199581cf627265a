"""Fuzzing the wall both ways: bytes to the host's wire, rows to its parser, requests to a real worker.

`CODEMODE_FUZZ=50 pytest tests/adversarial/test_worker_fuzz.py` takes fifty times as many examples.
"""

import asyncio
import hashlib
import json
import math
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codemode.core.errors import CodeModeError, RuntimeUnavailable
from codemode.core.limits import MAX_HEADER_BYTES
from codemode.core.protocol import HEADER_BYTES, ProtocolError, Resume, Start, encode_frame, encode_request, parse_turn
from codemode.core.types import TurnEnd
from codemode.supervisor.pool import WorkerPool
from codemode.supervisor.spawn import spawn, spawn_worker
from codemode.supervisor.wire import Overdue, TooLarge, Wire
from tests.requirements import requirement

T = TypeVar("T")
MAX_BYTES = 1000  # that the host allows in these answers
PATIENCE_S = 60
SCOPE = json.dumps({"tools": "[]", "names": "{}", "mcp": "null", "files": "[]", "namespaces": "[]"}).encode()
TIMES = int(os.environ.get("CODEMODE_FUZZ", "1"))  # more of everything, and other examples each time


def fuzz(examples: int) -> settings:
    quiet = list(HealthCheck)
    return settings(deadline=None, max_examples=examples * TIMES, suppress_health_check=quiet, derandomize=TIMES == 1)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_S))


# ---- what a worker sends ----

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.sampled_from([10**300, 2**53, 2**63, -1, 0, 1e308, -0.0, math.nan, math.inf, -math.inf])
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=8)
    | st.sampled_from(["\ud800", "\udfff", "client:app:x", "NaN", "e999", "\\ud800"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    ["text", "json", "omitted", "value", "call", "namespace", "search", "describe", "timer", "yield", "cancel", "spawn"]
)
ROWS = st.lists(
    st.tuples(KINDS, st.integers(-1, 9) | SCALARS, st.text(max_size=4) | SCALARS, VALUES).map(list)
    | st.tuples(KINDS, VALUES).map(list)
    | st.tuples(KINDS, st.integers(1, 9), VALUES).map(list)
    | VALUES,
    max_size=5,
)
FRAMES = st.one_of(
    st.binary(max_size=40),
    st.builds(encode_frame, st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.binary(max_size=30)),
    st.builds(lambda frame, cut: frame[:cut], st.just(encode_frame({"event": "turn"}, b"[]")), st.integers(0, 30)),
    st.builds(lambda tail: encode_frame({"event": "turn"}, b"[]") + tail, st.binary(min_size=1, max_size=20)),
    st.builds(
        lambda head, blob, body: head.to_bytes(4, "big") + blob.to_bytes(4, "big") + body,
        st.integers(0, 2**32 - 1) | st.integers(0, 40),
        st.integers(0, 2**32 - 1) | st.integers(0, 40),
        st.binary(max_size=60),
    ),
)


async def _echo(sent: bytes) -> tuple[str, Any, str, int]:
    """Ask a process that answers with exactly these bytes; return the outcome and what became of it."""
    ends: list[None] = []
    wire = Wire(spawn(["/bin/cat"], {}), lambda: ends.append(None))
    try:
        wait_ms = 60 if _expected(sent) == {"Overdue"} else PATIENCE_S * 1000  # of what is to come it can be patient
        outcome, answer = "answer", await wire.exchange(sent, wait_ms, MAX_BYTES)
        fate = wire.fate
    except (Overdue, TooLarge, RuntimeUnavailable) as error:
        outcome, answer, fate = type(error).__name__, None, wire.fate
    finally:
        wire.kill("was stopped")
    return outcome, answer, fate, len(ends)


def _expected(sent: bytes) -> set[str]:
    """What may come of it, worked out from the grammar alone."""
    if len(sent) < HEADER_BYTES:
        return {"Overdue"}
    head, blob = int.from_bytes(sent[:4], "big"), int.from_bytes(sent[4:8], "big")
    if head > MAX_HEADER_BYTES or blob > 512 << 20:
        return {"RuntimeUnavailable"}
    if blob > MAX_BYTES:
        return {"TooLarge"}
    body = sent[HEADER_BYTES:]
    if len(body) < head + blob:
        return {"Overdue"}
    if len(body) > head + blob:
        return {"RuntimeUnavailable"}
    try:
        is_object = isinstance(json.loads(body[:head]), dict)
    except (ValueError, RecursionError):
        is_object = False
    return {"answer"} if is_object else {"RuntimeUnavailable"}


@requirement("fuzz:wire:bytes")
@fuzz(40)
@example(b"\xff" * 8)
@example((5).to_bytes(4, "big") + (2000).to_bytes(4, "big") + b"[1,2]")
@given(FRAMES)
def test_whatever_a_worker_sends_is_the_expected_frame_or_its_end(sent: bytes) -> None:
    outcome, answer, fate, ends = run(_echo(sent))

    assert outcome in _expected(sent)
    assert (fate == "") == (outcome == "answer")
    assert ends == 1
    if outcome == "answer":
        assert sent.endswith(answer[1])
        assert isinstance(answer[0], dict)


@requirement("fuzz:wire:bytes")
async def test_a_frame_that_nobody_asked_for_ends_the_worker() -> None:
    """A replayed answer, or one that comes before the question."""
    frame = encode_frame({"event": "turn"}, b"[]")
    ended = asyncio.Event()
    octal = "".join(rf"\{byte:03o}" for byte in frame)
    script = f"printf '{octal}'; cat"
    wire = Wire(spawn(["/bin/sh", "-c", script], {}), ended.set)
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()

    assert "nobody asked for" in wire.fate
    with pytest.raises(RuntimeUnavailable):
        await wire.exchange(frame, 1000, MAX_BYTES)


def _is_clean(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


@requirement("fuzz:rows:grammar")
@fuzz(300)
@example({"state": "completed", "guestMs": math.nan}, [["value", 1]], 0)
@example({"state": "suspended", "guestMs": 1}, [["call", 2**70, "x", {}]], 0)
@example({"state": "suspended", "guestMs": 1}, [["search", 1, "x", -5]], 0)
@example({"state": "suspended", "guestMs": 1}, [["call", 1, "\ud800", {}]], 0)
@example({"state": "suspended", "guestMs": 1}, [["call", 1, "x", {"a": math.nan}]], 0)
@example({"state": "failed", "guestMs": 1, "error": "\ud800", "phase": "guest"}, [], 0)
@given(
    st.fixed_dictionaries(
        {"state": st.sampled_from(["suspended", "completed", "failed"]) | VALUES, "guestMs": st.floats(0, 9) | SCALARS},
        optional={"error": SCALARS, "code": SCALARS, "phase": st.just("guest") | SCALARS, "kept": SCALARS},
    ),
    ROWS,
    st.integers(0, 5),
)
def test_what_passes_the_parser_is_what_the_grammar_says(header: dict[str, Any], rows: Any, last_id: int) -> None:
    try:
        end = parse_turn(header, json.dumps(rows).encode(), last_id)
    except ProtocolError:
        return

    ids = [last_id, *(call.id for call in end.calls)]
    assert ids == sorted(set(ids))
    assert ids[-1] < 2**53
    assert _is_clean([end.value, end.output, end.calls, end.guest_ms, end.failure, end.omitted_bytes])
    assert end.guest_ms >= 0
    for call in end.calls:
        assert call.method != "search" or call.payload is None or call.payload > 0
        assert call.method not in ("call", "namespace") or isinstance(call.payload, dict)


@requirement("fuzz:rows:grammar")
@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", "1" + "0" * 400 + ".0", "1" * 5000, "NaN", "-Infinity", '"\\ud800"']
)
@pytest.mark.parametrize("filler", ["", "x" * 5000])
def test_a_number_or_a_text_that_json_has_not_is_refused_wherever_it_stands(text: str, filler: str) -> None:
    raw = f'[["text","{filler}"],["call",1,"a:b:c",{{"deep":[{text}]}}]]'.encode()
    with pytest.raises(ProtocolError, match="not JSON"):
        parse_turn({"state": "suspended", "guestMs": 1}, raw, 0)


@requirement("fuzz:rows:grammar")
def test_texts_that_only_look_like_it_pass() -> None:
    raw = json.dumps([["text", "NaN \\ud800 page300 Infinity é"], ["value", 1e300]], ensure_ascii=False).encode()
    end = parse_turn({"state": "completed", "guestMs": 1}, raw, 0)

    assert (end.output[0].value, end.value) == ("NaN \\ud800 page300 Infinity é", 1e300)


# ---- what a host sends ----

OPS = st.sampled_from(["start", "deliver", "resume", "snapshot", "inspect", "drop", "exit"])
FIELDS = {
    "source": st.sampled_from(["return 1", "await yield_control()", "for (;;);", "import 'x'", "\ud800", ""]),
    "language": st.sampled_from(["javascript", "typescript", "ruby"]),
    "budget_ms": st.sampled_from([50.0, 0, -1, 1e308]).filter(lambda budget: budget <= 50),
    "memory_limit_bytes": st.sampled_from([8 << 20, 1, 0, -1, 2**70]),
    "max_output_bytes": st.sampled_from([1024, 0, -5]),
    "max_pending_tool_calls": st.integers(-1, 3),
    "seed": st.integers(-1, 2**130),
    "scope": st.sampled_from(["s", "", "other"]),
    "scope_text": st.sampled_from([len(SCOPE), 0, -1, 10**9]),
    "keep": st.booleans(),
    "base": st.sampled_from([0, 3, -1]),
    "settled": st.sampled_from([0, 2, len(SCOPE)]),
    "snapshot": st.sampled_from([0, 50]),
    "wants": st.lists(st.sampled_from(["names", "tokens", "nonsense"]), max_size=2),
    "max_bytes": st.integers(-1, 10**6),
}
GOOD = Start("return 1", "javascript", 50.0, 8 << 20, 1024, 1, 7, "s", SCOPE)
EVENTS = {"turn", "snapshot", "inspected", "dropped"}


def _with(name: str, value: Any) -> bytes:
    """A good start with one field that is not; its blobs stay."""
    fields = {k: len(v) if isinstance(v, bytes) else v for k, v in GOOD._asdict().items()}
    return encode_frame({"op": "start", **fields, name: value}, SCOPE)


REQUESTS = st.one_of(
    st.builds(
        encode_frame,
        st.fixed_dictionaries({"op": OPS}, optional=FIELDS),
        st.sampled_from([b"", SCOPE, b"[]", b"[[1,true,null]]", b"[[1", b"\0" * 60]),
    ),
    st.builds(_with, st.sampled_from(GOOD._fields), SCALARS),
    st.builds(lambda body: len(body).to_bytes(4, "big") + bytes(4) + body, st.binary(max_size=40)),
)  # fmt: skip


async def _ask_all(requests: list[bytes]) -> None:
    wire: Wire | None = None
    for request in requests:
        if wire is None or wire.fate:
            wire = Wire(spawn_worker(), lambda: None)
            await wire.exchange(b"", PATIENCE_S * 1000, 0)
        try:
            header, _ = await wire.exchange(request, PATIENCE_S * 1000, 1 << 20)
        except RuntimeUnavailable:
            assert "exited" in wire.fate
        else:
            assert header["event"] in EVENTS
    if wire is not None:
        wire.kill("was stopped")


@requirement("fuzz:worker:requests")
@fuzz(10)
@given(st.lists(REQUESTS, min_size=1, max_size=4))
def test_whatever_a_host_sends_a_worker_answers_once_or_ends(requests: list[bytes]) -> None:
    run(_ask_all([encode_request(GOOD), *requests]))


# ---- snapshots ----


async def _suspend(pool: WorkerPool) -> bytes:
    worker = await pool.acquire()
    source = "const kept = [1, 2, 3].map(String); await yield_control(); return kept.length"
    end = await worker.turn(GOOD._replace(source=source, budget_ms=5000.0), 0)
    assert end.state == "suspended"
    snapshot = await worker.snapshot(1 << 20)
    pool.release(worker)
    return snapshot


async def _resume(pool: WorkerPool, snapshot: bytes) -> TurnEnd | CodeModeError:
    worker = await pool.acquire()
    try:
        return await worker.turn(Resume(200.0, 8 << 20, snapshot, b"[[1,true,null]]"), 1)
    except CodeModeError as error:
        return error
    finally:
        worker.kill()
        pool.release(worker)


@requirement("fuzz:snapshot:bytes")
def test_a_snapshot_that_was_changed_anywhere_is_refused() -> None:
    async def work() -> None:
        pool = WorkerPool(1)
        try:
            snapshot = await _suspend(pool)
            worker = await pool.acquire()
            for at in range(0, len(snapshot), max(1, len(snapshot) // 60)):
                changed = snapshot[:at] + bytes([snapshot[at] ^ 0x55]) + snapshot[at + 1 :]
                end = await worker.turn(Resume(5000.0, 8 << 20, changed, b"[]"), 1)
                assert end.failure is not None
                assert end.failure.code == "snapshot_restore_failed"
            end = await worker.turn(Resume(5000.0, 8 << 20, snapshot, b"[[1,true,null]]"), 1)
            assert (end.state, end.value) == ("completed", 3)
        finally:
            await pool.close()

    run(work())


@requirement("fuzz:snapshot:bytes")
@fuzz(10)
@given(st.integers(80, 2000), st.integers(1, 255), st.booleans())
def test_a_forged_snapshot_harms_only_its_own_run(at: int, flip: int, is_cut: bool) -> None:
    """Who can write the store can write a right digest too; what comes of it stays in that worker."""

    async def work() -> None:
        pool = WorkerPool(1)
        try:
            data = bytearray(await _suspend(pool))
            data[at] ^= flip
            body = bytes(data[72:at] if is_cut else data[72:])
            forged = bytes(data[:40]) + hashlib.sha256(body).digest() + body
            outcome = await _resume(pool, forged)
            assert isinstance(outcome, TurnEnd | CodeModeError)
            worker = await pool.acquire()
            end = await worker.turn(GOOD._replace(budget_ms=5000.0), 0)
            assert end.value == 1
        finally:
            await pool.close()

    run(work())
