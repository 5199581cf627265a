"""The frames between a host and its worker: encode, decode, validate.

One request in, one turn-ending event out. A frame is two big-endian 32-bit lengths, a JSON
header and a blob; the blob carries what is large or binary (snapshots, rows, settlements,
the scope), so nothing is escaped twice. Both sides decode with the functions below. What
comes from the worker may have been written by hostile code that broke out of its VM, so
`parse_turn` accepts exactly the grammar of rows and nothing else.

Rows are what a cell recorded, in call order, one JSON array for each:

    ["text", text] ["json", value] ["omitted", bytes] ["value", value]
    ["call", id, toolId, input] ["namespace", id, path, input]
    ["search", id, query, limit|null] ["describe", id, toolId]
    ["timer", id, ms] ["yield", id, reason|null] ["cancel", id]

Settlements are one JSON array of `[id, ok, value]`, in the order in which they settled.
"""

import json
import re
import struct
from collections.abc import Iterable
from typing import Literal, NamedTuple, cast

from codemode.core.errors import ErrorCode, Phase
from codemode.core.jsontext import build_encoder
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_FRAME_BYTES, MAX_OTHER_PENDING
from codemode.core.types import BridgeCall, BridgeMethod, BridgeReply, GuestFailure, Json, Language, OutputItem, TurnEnd

_HEADER = struct.Struct(">II")
HEADER_BYTES = _HEADER.size
_encode = build_encoder(ascii_only=True, allow_nan=True)
_decode = json.JSONDecoder().decode
_prove = build_encoder(ascii_only=False)
_SUSPECT = re.compile(rb"\\u[dD]|[eE]\+?\d{3}|\d{300}|NaN|Infinity")  # may be what JSON in UTF-8 cannot say
_SMALL_BYTES = 4096  # below it a search is cheaper than encoding again
_MAX_ID = 2**53


class ProtocolError(Exception):
    """A frame that the other side had no right to send; the connection is over."""


class Start(NamedTuple):
    """Run a new cell.

    `scope` is the digest of the guest's globals; the blob is their text, or empty when the
    worker holds that scope already. With `keep` the source is a global script, run in the VM
    of the snapshot `base` (empty: a fresh one), and the VM stays when the cell has ended.
    """

    source: str
    language: Language
    budget_ms: float
    memory_limit_bytes: int
    max_output_bytes: int
    max_pending_tool_calls: int
    seed: int
    scope: str
    scope_text: bytes = b""
    keep: bool = False
    base: bytes = b""


class Resume(NamedTuple):
    """Restore a snapshot and deliver what settled since."""

    budget_ms: float
    memory_limit_bytes: int
    snapshot: bytes
    settled: bytes


class Deliver(NamedTuple):
    """Deliver settlements to the VM that the worker still holds."""

    budget_ms: float
    settled: bytes


class TakeSnapshot(NamedTuple):
    """Serialise the VM at rest and give it up, unless `keep`; `fits` in the answer says if `max_bytes` held it."""

    max_bytes: int
    keep: bool = False


class Inspect(NamedTuple):
    """Ask the syntax parser about a text; the VM that the worker holds is not touched."""

    source: str
    wants: list[str]
    budget_ms: float


class Drop(NamedTuple):
    """Give up the VM."""


Request = Start | Resume | Deliver | TakeSnapshot | Inspect | Drop
_REQUESTS: dict[str, type[Request]] = {
    "start": Start,
    "resume": Resume,
    "deliver": Deliver,
    "snapshot": TakeSnapshot,
    "inspect": Inspect,
    "drop": Drop,
}
_OPS = {kind: op for op, kind in _REQUESTS.items()}
_FIELDS = {  # kind → its fields, each with whether it travels in the blob
    kind: tuple((name, wanted is bytes) for name, wanted in kind.__annotations__.items()) for kind in _OPS
}


def encode_frame(header: dict[str, Json], blob: bytes = b"") -> bytes:
    """Return one frame, ready to be written."""
    head = _encode(header).encode()
    return _HEADER.pack(len(head), len(blob)) + head + blob


def parse_lengths(raw: bytes) -> tuple[int, int]:
    """Return the lengths of header and blob, refusing frames beyond the bound.

    Raises:
        ProtocolError: The lengths are absurd.
    """
    head, blob = _HEADER.unpack(raw)
    if head > MAX_FRAME_BYTES or blob > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame announces {head} + {blob} bytes; the bound is {MAX_FRAME_BYTES}")
    return head, blob


def parse_header(raw: bytes) -> dict[str, Json]:
    """Return the JSON object of a frame's header.

    Raises:
        ProtocolError: It is not a JSON object.
    """
    try:
        header = _decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame's header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ProtocolError("a frame's header is not an object")
    return header


def encode_request(request: Request) -> bytes:
    """Return the frame of a request; its bytes fields travel in the blob."""
    kind = type(request)
    header: dict[str, Json] = {"op": _OPS[kind]}
    blobs: list[bytes] = []
    for (name, is_blob), value in zip(_FIELDS[kind], request, strict=True):
        if is_blob and isinstance(value, bytes):
            header[name] = len(value)
            blobs.append(value)
        else:
            header[name] = value
    return encode_frame(header, b"".join(blobs))


def parse_request(header: dict[str, Json], blob: bytes) -> Request:
    """Return the request that `encode_request` wrote.

    Raises:
        ProtocolError: The header names no request, or its fields do not fit.
    """
    kind = _REQUESTS.get(str(header.get("op")))
    if kind is None or header.keys() != {"op", *kind._fields}:
        raise ProtocolError(f"no request has this header: {sorted(header)}")
    offset = 0
    values: list[Json] = []
    for name, is_blob in _FIELDS[kind]:
        value = header[name]
        if is_blob:
            if not isinstance(value, int) or not 0 <= value <= len(blob) - offset:
                raise ProtocolError(f"{name} is not in the blob")
            values.append(blob[offset : offset + value])
            offset += value
        else:
            values.append(value)
    return kind(*values)


def encode_settlements(replies: Iterable[BridgeReply]) -> bytes:
    """Return the settlements of one delivery as one JSON text, in the given order."""
    rows = (f"[{reply.id},{'true' if reply.ok else 'false'},{reply.text}]" for reply in replies)
    return f"[{','.join(rows)}]".encode()


def parse_turn(header: dict[str, Json], rows: bytes, last_id: int) -> TurnEnd:
    """Return the validated end of a turn.

    Args:
        header: `{"event": "turn", "state", "guestMs", "error"?, "code"?, "phase"?}`.
        rows: The queue's JSON text.
        last_id: The highest request id seen so far in this run; new ids are larger and grow.

    Raises:
        ProtocolError: Anything but the grammar at the top of this file.
    """
    state = header.get("state")
    guest_ms = header.get("guestMs")
    if state not in ("suspended", "completed", "failed") or not isinstance(guest_ms, (int, float)):
        raise ProtocolError("a turn ended without a state or a time")
    if not 0 <= guest_ms < _MAX_ID:
        raise ProtocolError(f"a turn took {guest_ms} ms")
    reader = _RowReader(last_id)
    for row in _parse_rows(rows):
        reader.read(row)
    if len(rows) > MAX_BRIDGE_BYTES:
        reader.measure()
    return TurnEnd(
        state=cast("Literal['suspended', 'completed', 'failed']", state),
        calls=tuple(reader.calls),
        cancelled=tuple(reader.cancelled),
        output=tuple(reader.output),
        omitted_bytes=reader.omitted,
        value=reader.value,
        failure=_parse_failure(header) if state == "failed" else None,
        guest_ms=float(guest_ms),
        kept=header.get("kept") is True,
    )


def _parse_rows(rows: bytes) -> list[Json]:
    """Return the rows, which hold nothing that JSON in UTF-8 cannot say: no NaN, no lone surrogate."""
    try:
        queue = _decode(rows.decode())
        if len(rows) > _SMALL_BYTES or _SUSPECT.search(rows):
            _prove(queue).encode()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the rows of a turn are not JSON: {error}") from error
    if not isinstance(queue, list):
        raise ProtocolError("the rows of a turn are not an array")
    return queue


_CODES = {code.value: code for code in ErrorCode}
_PHASES = ("input", "transform", "guest", "bridge", "runtime")


def _parse_failure(header: dict[str, Json]) -> GuestFailure:
    error, code, phase = header.get("error"), header.get("code"), header.get("phase")
    if not isinstance(error, str) or phase not in _PHASES or (code is not None and code not in _CODES):
        raise ProtocolError("a turn failed without a valid error, code or phase")
    if not error.isascii() and error != error.encode("utf-8", "replace").decode():
        raise ProtocolError("the error of a turn is no text")
    return GuestFailure(error, _CODES[code] if code is not None else None, cast("Phase", phase))


class _RowReader:
    """Collects the rows of one turn, refusing each that is not in the grammar."""

    def __init__(self, last_id: int) -> None:
        self.last_id = last_id
        self.calls: list[BridgeCall] = []
        self.cancelled: list[int] = []
        self.output: list[OutputItem] = []
        self.omitted = 0
        self.value: Json = None

    def read(self, row: Json) -> None:
        """Take one row.

        Raises:
            ProtocolError: It is not in the grammar.
        """
        if type(row) is list and len(row) > 1:  # the types are exact: a bool is no id, and JSON has no subclasses
            if len(row) == 4 and self._read_call(row):
                return
            if len(row) == 2 and self._read_output(row):
                return
            if self._read_other(row):
                return
        raise ProtocolError(f"a row is not in the grammar: {str(row)[:120]}")

    def _read_call(self, row: list[Json]) -> bool:
        method, id_, target, payload = row
        if method == "call" or method == "namespace":  # noqa: PLR1714 a set would have to hash what is no text
            is_call = type(id_) is int and type(target) is str and type(payload) is dict
        else:
            is_limit = payload is None or (type(payload) is int and payload > 0)
            is_call = method == "search" and type(id_) is int and type(target) is str and is_limit
        if is_call:
            self._request(id_, method, target, payload)
        return is_call

    def _read_output(self, row: list[Json]) -> bool:
        match row:
            case ["text", str(text)]:
                self.output.append(OutputItem("text", text))
            case ["json", value]:
                self.output.append(OutputItem("json", value))
            case ["value", value]:
                self.value = value
            case ["omitted", size] if type(size) is int and size >= 0:
                self.omitted = size
            case ["cancel", id_] if type(id_) is int:
                self.cancelled.append(id_)
            case _:
                return False
        return True

    def _read_other(self, row: list[Json]) -> bool:
        match row:
            case ["describe", id_, str(target)] if type(id_) is int:
                self._request(id_, "describe", target)
            case ["timer", id_, delay] if type(id_) is int and type(delay) in (int, float) and 0 <= delay < 2**31:
                self._request(id_, "timer", "", delay)
            case ["yield", id_, (str() | None) as reason] if type(id_) is int:
                self._request(id_, "yield", reason or "")
            case _:
                return False
        return True

    def _request(self, id_: int, method: BridgeMethod, target: str, payload: Json = None) -> None:
        if not self.last_id < id_ < _MAX_ID:
            raise ProtocolError(f"request {id_} comes after request {self.last_id}")
        if len(target) > MAX_BRIDGE_BYTES or len(self.calls) > MAX_OTHER_PENDING + 128:
            raise ProtocolError("a turn recorded more than the bridge takes")
        self.last_id = id_
        self.calls.append(BridgeCall(id_, method, target, payload))

    def measure(self) -> None:
        """Note which requests are beyond what the arguments of one turn may have together, as UTF-8."""
        total = 0
        for at, call in enumerate(self.calls):
            size = len(_prove([call.target, call.payload]).encode())
            if total + size > MAX_BRIDGE_BYTES:
                self.calls[at] = call._replace(payload=None, excess_bytes=size)
            else:
                total += size
