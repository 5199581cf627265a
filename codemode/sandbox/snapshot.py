"""Snapshots: the difference of a VM's memory from its boot image, framed and verified.

    magic and format · build digest · digest of the rest · sizes · zlib of (JSON head, pieces)

A piece is 256 KiB of memory: a bitmap that says which of its grains follow, and those grains. A
grain is 1 KiB, stored as its exclusive-or with the same grain of the image: what merely moved a
counter packs to almost nothing. A cell that holds 200 small objects takes 17 kB; storing grains
as they are took 58 kB, and 256-byte grains saved 4 % at twice the work. The head holds registers,
handles and what the cell needs to go on.

Both ways go piece by piece, so that a worker needs no second copy of a large memory. Nothing is
trusted before the digest agrees, and nothing is unpacked beyond the limit of the run.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codemode.core.errors import MemoryLimit, SnapshotRestore
from codemode.core.limits import STORE_HEADROOM_BYTES
from codemode.core.types import Json

GRAIN_BYTES = 1024
PIECE_BYTES = 256 * GRAIN_BYTES
_MAGIC = b"CMSNAP\x002"
_HEAD = struct.Struct(">8s32s32sII")  # magic, build, digest, head size, memory size
_BODY_AT = _HEAD.size - 8


class Memory(NamedTuple):
    """A whole memory: its size, and its bytes in consecutive pieces of `PIECE_BYTES`."""

    size: int
    pieces: Iterable[bytes]


class Snapshot(NamedTuple):
    """A VM at rest: its memory and what its owner wrote into the head."""

    memory: Memory
    head: dict[str, Json]


def encode_snapshot(build: str, base: bytes, snapshot: Snapshot, max_bytes: int) -> bytes | None:
    """Return the bytes to be stored, or None as soon as they are more than `max_bytes`.

    Args:
        build: Digest of the engine build (hexadecimal).
        base: The memory of the boot image that the VM started from.
        snapshot: The VM.
        max_bytes: What may be stored.
    """
    head = json.dumps(snapshot.head, separators=(",", ":")).encode()
    packer = zlib.compressobj(1)
    parts = [struct.pack(">II", len(head), snapshot.memory.size), packer.compress(head)]
    room = max_bytes - _BODY_AT - sum(map(len, parts))
    for number, piece in enumerate(snapshot.memory.pieces):
        parts.append(packer.compress(_difference(_base_piece(base, number, len(piece)), piece)))
        room -= len(parts[-1])
        if room < 0:
            return None
    body = b"".join([*parts, packer.flush()])
    data = _MAGIC + bytes.fromhex(build) + hashlib.sha256(body).digest() + body
    return data if len(data) <= max_bytes else None


def parse_snapshot(build: str, base: bytes, data: bytes, memory_limit_bytes: int) -> Snapshot:
    """Return the VM that `encode_snapshot` wrote; its memory is unpacked while it is read.

    Raises:
        SnapshotRestore: It is damaged, truncated, or of another build of the engine.
        MemoryLimit: Its memory is larger than the run may have.
    """
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise SnapshotRestore("the snapshot is truncated or none of ours; the run cannot be resumed")
    _, written_by, digest, head_size, memory_size = _HEAD.unpack_from(data)
    if written_by.hex() != build:
        raise SnapshotRestore(
            f"the snapshot was taken by engine build {written_by.hex()[:12]}, this is {build[:12]}; "
            "resume it with the version of codemode that suspended it"
        )
    if hashlib.sha256(memoryview(data)[_BODY_AT:]).digest() != digest:
        raise SnapshotRestore("the snapshot is damaged (its digest does not match); the run cannot be resumed")
    if memory_size > memory_limit_bytes + STORE_HEADROOM_BYTES:
        raise MemoryLimit(f"the suspended cell holds {memory_size} bytes; memoryLimitBytes is {memory_limit_bytes}")
    unpacked = _Unpacked(data)
    head = json.loads(unpacked.read(head_size))
    return Snapshot(Memory(memory_size, _pieces(unpacked, base, memory_size)), head)


class _Unpacked:
    """Reads what was packed, no more at once than was asked for."""

    def __init__(self, data: bytes) -> None:
        self._unpacker = zlib.decompressobj()
        self._packed = data[_HEAD.size :]

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes.

        Raises:
            SnapshotRestore: There are fewer.
        """
        found = b""
        try:
            while len(found) < size:
                more = self._unpacker.decompress(self._packed, size - len(found))
                self._packed = self._unpacker.unconsumed_tail
                if not more:
                    raise SnapshotRestore("the snapshot ends too soon; the run cannot be resumed")
                found += more
        except zlib.error as error:
            raise SnapshotRestore(f"the snapshot does not unpack ({error}); the run cannot be resumed") from error
        return found


def _pieces(unpacked: _Unpacked, base: bytes, memory_size: int) -> Iterator[bytes]:
    for number, at in enumerate(range(0, memory_size, PIECE_BYTES)):
        size = min(PIECE_BYTES, memory_size - at)
        bits = int.from_bytes(unpacked.read(_bitmap_size(size)), "little")
        before = _base_piece(base, number, size)
        yield _apply(before, bits, unpacked) if bits else before


def _base_piece(base: bytes, number: int, size: int) -> bytes:
    at = number * PIECE_BYTES
    return base[at : at + size].ljust(size, b"\0")


def _bitmap_size(size: int) -> int:
    return -(-size // GRAIN_BYTES // 8)


def _difference(before: bytes, piece: bytes) -> bytes:
    """Return a bitmap of the grains that differ, and those grains, exclusive-or'ed with the base's."""
    bits = 0
    ours: list[bytes] = []
    theirs: list[bytes] = []
    if piece != before:
        for index, at in enumerate(range(0, len(piece), GRAIN_BYTES)):
            grain, other = piece[at : at + GRAIN_BYTES], before[at : at + GRAIN_BYTES]
            if grain != other:
                bits |= 1 << index
                ours.append(grain)
                theirs.append(other)
    return bits.to_bytes(_bitmap_size(len(piece)), "little") + _exclusive_or(b"".join(ours), b"".join(theirs))


def _apply(before: bytes, bits: int, unpacked: _Unpacked) -> bytes:
    """Return the piece whose difference from the base this is."""
    piece = bytearray(before)
    changed = [at for index, at in enumerate(range(0, len(before), GRAIN_BYTES)) if bits >> index & 1]
    grains = _exclusive_or(
        unpacked.read(len(changed) * GRAIN_BYTES), b"".join(before[at : at + GRAIN_BYTES] for at in changed)
    )
    for number, at in enumerate(changed):
        piece[at : at + GRAIN_BYTES] = grains[number * GRAIN_BYTES : (number + 1) * GRAIN_BYTES]
    return bytes(piece)


def _exclusive_or(left: bytes, right: bytes) -> bytes:
    mixed = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
    return mixed.to_bytes(len(left), "little")
