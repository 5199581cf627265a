"""The vocabulary: frames, the JSON adapter, names, redaction, limits, results."""

import contextlib
import dataclasses
import datetime as dt
import enum
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode.core import events
from codemode.core.errors import CodeModeError, ErrorCode
from codemode.core.jsonsafe import NotJson, adapt, clean_escapes, clean_text, to_text
from codemode.core.jsontext import build_encoder
from codemode.core.limits import LIMITS, Clamp, Limits, clamp_limits
from codemode.core.names import (
    camel_case,
    did_you_mean,
    is_identifier,
    is_reserved_property,
    nearest,
    safe_name,
    unique_names,
)
from codemode.core.protocol import (
    HEADER_BYTES,
    Deliver,
    Drop,
    ProtocolError,
    Resume,
    Start,
    TakeSnapshot,
    encode_frame,
    encode_request,
    encode_settlements,
    parse_header,
    parse_lengths,
    parse_request,
    parse_turn,
)
from codemode.core.redact import MASK, Redactor
from codemode.core.types import (
    BridgeCall,
    BridgeReply,
    Completed,
    Failed,
    OutputItem,
    PendingCall,
    Waiting,
)
from tests.requirements import requirement

# ---- frames ----

REQUESTS = [
    Start("return 'ü'", "typescript", 10.5, 1, 2, 3, 4, "digest", b"scope"),
    Resume(1.0, 2, b"snap\0shot", b"[]"),
    Deliver(1.0, b"[[1,true,{}]]"),
    TakeSnapshot(1 << 20, keep=True),
    Drop(),
]


@requirement("protocol:frames:round-trip")
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda value: type(value).__name__)
def test_a_request_that_is_encoded_and_parsed_is_the_same(request_: Any) -> None:
    frame = encode_request(request_)
    header, blob = parse_lengths(frame[:HEADER_BYTES])
    head = frame[HEADER_BYTES : HEADER_BYTES + header]
    assert parse_request(parse_header(head), frame[HEADER_BYTES + header :]) == request_
    assert len(frame) == HEADER_BYTES + header + blob


@pytest.mark.parametrize(
    ("header", "blob"),
    [
        ({}, b""),
        ({"op": "eval"}, b""),
        ({"op": "drop", "extra": 1}, b""),
        ({"op": "deliver", "budget_ms": 1, "settled": 9}, b"short"),
        ({"op": "deliver", "budget_ms": 1, "settled": -1}, b""),
        ({"op": "deliver", "budget_ms": 1, "settled": "x"}, b""),
    ],
)
def test_a_request_with_other_fields_is_refused(header: dict[str, Any], blob: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request(header, blob)


def test_absurd_lengths_and_headers_are_refused() -> None:
    with pytest.raises(ProtocolError, match="announces"):
        parse_lengths(b"\xff" * 8)
    for raw in (b"", b"[]", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(ProtocolError):
            parse_header(raw)


@requirement("protocol:frames:grammar")
def test_every_row_of_the_grammar_is_read() -> None:
    rows = [
        ["text", "t"], ["json", {"a": 1}], ["call", 3, "a:b:c", {"x": 1}], ["namespace", 4, "p", {"args": []}],
        ["search", 5, "q", None], ["search", 6, "q", 9], ["describe", 7, "id"], ["timer", 8, 1.5],
        ["yield", 9, None], ["yield", 10, "why"], ["cancel", 8], ["omitted", 12], ["value", [1]],
    ]  # fmt: skip
    end = parse_turn({"state": "suspended", "guestMs": 2}, json.dumps(rows).encode(), 2)
    assert end.output == (OutputItem("text", "t"), OutputItem("json", {"a": 1}))
    assert end.calls == (
        BridgeCall(3, "call", "a:b:c", {"x": 1}), BridgeCall(4, "namespace", "p", {"args": []}),
        BridgeCall(5, "search", "q", None), BridgeCall(6, "search", "q", 9), BridgeCall(7, "describe", "id"),
        BridgeCall(8, "timer", "", 1.5), BridgeCall(9, "yield", ""), BridgeCall(10, "yield", "why"),
    )  # fmt: skip
    assert (end.cancelled, end.omitted_bytes, end.value) == ((8,), 12, [1])


@requirement("protocol:frames:grammar")
@pytest.mark.parametrize(
    "rows",
    [
        "", "{}", "[1]", "[[]]", '[["text", 1]]', '[["call", "1", "x", {}]]', '[["call", 1, "x", []]]',
        '[["call", 0, "x", {}]]', '[["call", 2, "x", {}], ["call", 2, "x", {}]]', '[["call", true, "x", {}]]',
        '[["timer", 1, -1]]', '[["timer", 1, 1e99]]', '[["omitted", -1]]', '[["spawn", 1]]', "[" * 100_000,
        '[["describe", 1, 5]]', '[["search", 1, "q", "9"]]', '[["cancel", "x"]]',
    ],
)  # fmt: skip
def test_any_other_row_is_refused(rows: str) -> None:
    with pytest.raises(ProtocolError):
        parse_turn({"state": "suspended", "guestMs": 1}, rows.encode(), 0)


@pytest.mark.parametrize(
    "header",
    [
        {}, {"state": "done", "guestMs": 1}, {"state": "failed", "guestMs": 1}, {"state": "completed"},
        {"state": "failed", "guestMs": 1, "error": "x", "phase": "nowhere"},
        {"state": "failed", "guestMs": 1, "error": "x", "phase": "guest", "code": "oops"},
    ],
)  # fmt: skip
def test_a_turn_without_a_proper_end_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        parse_turn(header, b"[]", 0)


@requirement("protocol:frames:grammar")
@given(st.binary(max_size=200))
def test_no_bytes_from_a_worker_raise_anything_but_a_protocol_error(raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        parse_turn({"state": "completed", "guestMs": 1}, raw, 0)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.lists(st.lists(JSON_VALUES, max_size=5), max_size=5))
def test_no_rows_from_a_worker_raise_anything_but_a_protocol_error(rows: list[Any]) -> None:
    with contextlib.suppress(ProtocolError):
        parse_turn({"state": "suspended", "guestMs": 1}, json.dumps(rows).encode(), 0)


def test_settlements_keep_their_order_and_their_json() -> None:
    replies = [BridgeReply(2, True, '{"a":"ü"}'), BridgeReply(1, False, "null")]
    assert json.loads(encode_settlements(replies)) == [[2, True, {"a": "ü"}], [1, False, None]]
    frame = encode_frame({"event": "snapshot"}, b"\0\1")
    assert frame.endswith(b'{"event":"snapshot"}\0\1')


# ---- the JSON adapter ----


@dataclasses.dataclass
class Point:
    x: int
    tags: set[str]


class Colour(enum.Enum):
    RED = "red"


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"field": Decimal("1.50")}


@requirement("json:python:rules")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]), ({3}, [3]), (frozenset({3}), [3]), (Point(1, {"a"}), {"x": 1, "tags": ["a"]}),
        (Model(), {"field": "1.50"}), (Colour.RED, "red"), (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"), (Decimal("0.1"), "0.1"),
        (2**53, 2**53), (2**53 + 1, str(2**53 + 1)), (-(2**60), str(-(2**60))), (math.nan, None), (math.inf, None),
        (True, True), (None, None), ({1: "a", 2.5: "b"}, {"1": "a", "2.5": "b"}), ("a\ud800b", "a\ufffdb"),
        ("😀", "😀"),
    ],
)  # fmt: skip
def test_python_values_become_json(value: Any, expected: Any) -> None:
    assert adapt(value) == expected


@requirement("json:python:rules")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"x", "value is binary"), ({"a": [bytearray(b"x")]}, r"value\.a\[0\] is binary"),
        (object(), "is a object, which has no JSON form"), ({"f": print}, r"value\.f is a builtin"),
        ({(1, 2): 3}, "key of type tuple"), ({None: 3}, "key of type NoneType"),
    ],
)  # fmt: skip
def test_a_value_without_a_json_form_is_one_clear_error(value: Any, reason: str) -> None:
    with pytest.raises(NotJson, match=reason):
        adapt(value)


def test_cycles_and_depth_are_named_and_shared_references_are_fine() -> None:
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    with pytest.raises(NotJson, match=r"value\[0\]\.again closes a cycle"):
        adapt(cycle)
    shared = {"n": 1}
    assert adapt([shared, shared]) == [{"n": 1}, {"n": 1}]
    deep: list[Any] = []
    for _ in range(101):
        deep = [deep]
    with pytest.raises(NotJson, match="deeper than 100"):
        adapt(deep)


@given(JSON_VALUES)
def test_plain_json_passes_unchanged_as_text(value: Any) -> None:
    cleaned = json.loads(json.dumps(value).encode().decode("utf-8"))
    text = to_text(cleaned)
    text.encode("utf-8")
    assert "\n" not in text
    if "\\ud" not in json.dumps(cleaned):
        assert json.loads(text) == cleaned


@pytest.mark.parametrize("ascii_only", [True, False])
@given(JSON_VALUES)
def test_an_encoder_made_once_writes_what_json_writes(ascii_only: bool, value: Any) -> None:
    assert build_encoder(ascii_only=ascii_only)(value) == json.dumps(
        value, ensure_ascii=ascii_only, separators=(",", ":")
    )


def test_an_encoder_refuses_nan_unless_allowed_and_does_without_the_c_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        build_encoder(ascii_only=False)(math.nan)
    assert build_encoder(ascii_only=True, allow_nan=True)([math.nan]) == "[NaN]"
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    assert build_encoder(ascii_only=False)({"a": ["ü", 1]}) == '{"a":["ü",1]}'


# ---- names ----


@requirement("names:ids:camel-case")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chrome-devtools", "chromeDevtools"), ("create_issue", "createIssue"), ("getURL", "getURL"),
        ("GitHub", "gitHub"),
        ("3d-view", "_3dView"), ("---", "tool"), ("", "tool"), ("日本", "tool"), ("a.b c", "aBC"),
    ],
)  # fmt: skip
def test_identifiers_are_camel_case(name: str, expected: str) -> None:
    assert camel_case(name, "tool") == expected


@pytest.mark.parametrize(("name", "expected"), [("a-b", "a_b"), ("1x", "_1x"), ("ü", "_"), ("$ok_", "$ok_")])
def test_safe_names_replace_what_is_no_identifier(name: str, expected: str) -> None:
    assert safe_name(name) == expected


def test_unique_names_number_those_that_come_later() -> None:
    assert unique_names([("a", "x"), ("b", "x"), ("c", "x2"), ("d", "$api")], ["$api"]) == {
        "a": "x", "b": "x2", "c": "x22", "d": "$api2",
    }  # fmt: skip


def test_near_names_help_and_far_ones_do_not() -> None:
    assert nearest("Serch", ["search", "describe"]) == ["search"]
    assert did_you_mean("zzzz", ["search"]) == ""
    assert is_identifier("Issues")
    assert not is_identifier("class")
    assert not is_identifier("a-b")
    assert is_reserved_property("then")
    assert is_reserved_property("__codemode_x")
    assert not is_reserved_property("lookup")


# ---- redaction ----


@requirement("redact:text:secrets")
@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("token hunter2-hunter2 used", "hunter2-hunter2"), ("Authorization: Bearer abcdefghij1234", "abcdefghij1234"),
        ("postgres://ada:pa55w0rd@db/x", "pa55w0rd"), ("key sk-proj-" + "a1b2" * 6, "a1b2a1b2"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_abc"), ("AKIAABCDEFGHIJKLMNOP", "AKIAABCD"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef", "eyJhbGci"), ("/home/ada/x", "/home/ada"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "abc"),
    ],
)  # fmt: skip
def test_secrets_never_leave_in_text(text: str, gone: str) -> None:
    redactor = Redactor(["hunter2-hunter2", "short"], [("/home/ada", "~")])
    assert gone not in redactor.text(text)


def test_values_under_telling_keys_are_masked_and_the_rest_is_kept() -> None:
    redactor = Redactor()
    redactor.learn(["learned-secret"])
    value = {
        "apiKey": "x",
        "nested": [{"password": 5, "n": 1}],
        "note": "a learned-secret b",
        "flag": True,
        "token": False,
    }
    assert redactor.value(value) == {
        "apiKey": MASK, "nested": [{"password": MASK, "n": 1}], "note": f"a {MASK} b", "flag": True, "token": False,
    }  # fmt: skip
    assert redactor.text("short words stay") == "short words stay"


# ---- limits, errors, results, events ----


@requirement("limits:table:clamp")
def test_limits_are_clamped_and_the_clamps_reported() -> None:
    limits, clamps = clamp_limits({"timeout_ms": 5, "max_search_limit": 4, "search_default_limit": 9})
    assert (limits.timeout_ms, limits.max_search_limit, limits.search_default_limit) == (100, 4, 4)
    assert clamps == (Clamp("timeoutMs", 5, 100), Clamp("searchDefaultLimit", 9, 4))
    assert clamp_limits({"max_search_limit": 4})[1] == ()
    assert Limits().to_json() == {limit.alias: limit.default for limit in LIMITS}
    assert all(limit.low <= limit.default <= limit.high for limit in LIMITS)


def test_each_code_belongs_to_exactly_one_error() -> None:
    def leaves(kind: type[CodeModeError]) -> list[type[CodeModeError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]

    codes = [kind.code for kind in leaves(CodeModeError) if kind.code and kind.__module__ == "codemode.core.errors"]
    assert sorted(codes) == sorted(ErrorCode)


def test_results_are_spelled_as_the_contract_spells_them() -> None:
    item = OutputItem("text", "a")
    assert Completed("cm_1", 5, (item,), {}).to_json() == {
        "status": "completed", "value": 5, "output": [{"type": "text", "text": "a"}], "telemetry": {},
    }  # fmt: skip
    waiting = Waiting("cm_1", "pending_tools", (PendingCall("3", "call", "a:b:c", "running"),), (), {}).to_json()
    assert waiting["pendingToolCalls"] == [{"id": "3", "method": "call", "toolId": "a:b:c", "state": "running"}]
    failed = Failed("no", None, "guest", False, None, (OutputItem("json", [1]),), {}).to_json()
    assert failed == {
        "status": "failed", "error": "no", "phase": "guest", "dispatched": False,
        "output": [{"type": "json", "value": [1]}], "telemetry": {},
    }  # fmt: skip
    assert Failed("no", ErrorCode.TIMEOUT, "guest", True, "cm_1", (), {}).to_json()["code"] == "timeout"


def test_an_event_as_json_has_its_name_and_its_fields() -> None:
    assert events.to_json(events.WaitStarted("cm_1", 1.5, "wait_1")) == {
        "event": "wait_started", "run_id": "cm_1", "at_ms": 1.5, "wait_id": "wait_1",
    }  # fmt: skip


# ---- JSON text of others ----


@requirement("manifest:load:halves")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r'"half \ud800 a pair"', "half \ufffd a pair"),
        (r'"\uDFFF\uD800"', "\ufffd\ufffd"),
        (r'"\ud83d\ude00"', "\N{GRINNING FACE}"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\N{GRINNING FACE}"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
    ],
)
def test_an_escape_for_half_a_character_is_the_sign_for_none(text: str, meant: str) -> None:
    assert json.loads(clean_escapes(text)) == meant


@requirement("manifest:load:halves")
@given(st.text(st.sampled_from('\\"ud8Df0c/\ud800\udc00'), max_size=12))
def test_json_text_with_clean_escapes_says_the_same_without_halves(text: str) -> None:
    assert json.loads(clean_escapes(json.dumps(text))) == clean_text(text)


@given(st.text(max_size=30))
def test_what_is_no_json_does_not_become_some(text: str) -> None:
    def is_json(given: str) -> bool:
        try:
            json.loads(given)
        except ValueError:
            return False
        return True

    assert is_json(clean_escapes(text)) == is_json(text)
