"""Snapshots: the difference of a VM's memory from its boot image, framed and verified.

    magic and format · build digest · digest of the rest · sizes · zlib of (JSON head, pieces)

A piece is 256 KiB of memory: a bitmap that says which of its grains follow, and those grains. A
grain is 1 KiB, stored as its exclusive-or with the same grain of the image: what merely moved a
counter packs to almost nothing. A cell that holds 200 small objects takes 17 kB; storing grains
as they are took 58 kB, and 256-byte grains saved 4 % at twice the work. The head holds registers,
handles and what the cell needs to go on.

Both ways go piece by piece, so that a worker needs no second copy of a large memory; restored is
only what differs from the image, which a new VM holds already. Nothing is trusted before the
digest agrees, and nothing is unpacked beyond the limit of the run.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from codemode.core.errors import MemoryLimit, SnapshotRestore
from codemode.core.limits import STORE_HEADROOM_BYTES
from codemode.core.types import Json

GRAIN_BYTES = 1024
PIECE_BYTES = 256 * GRAIN_BYTES
_BLOCK_BYTES = 16 * GRAIN_BYTES  # compared as one before its grains are: most blocks are alike
_BLANK = bytes(GRAIN_BYTES)
_MAGIC = b"CMSNAP\x002"
_HEAD = struct.Struct(">8s32s32sII")  # magic, build, digest, head size, memory size
_BODY_AT = _HEAD.size - 8


class Memory(NamedTuple):
    """A whole memory: its size, and its bytes in consecutive pieces of `PIECE_BYTES`."""

    size: int
    pieces: Iterable[bytes]


class Changes(NamedTuple):
    """What makes a memory from its boot image: its size, and `(address, bytes)` for each grain that differs."""

    size: int
    grains: Iterable[tuple[int, bytes]]


Base = Sequence[bytes]  # the memory of a boot image, in pieces


def split(memory: bytes) -> Base:
    """Return a memory in pieces of `PIECE_BYTES`."""
    return tuple(memory[at : at + PIECE_BYTES] for at in range(0, len(memory), PIECE_BYTES))


def encode_snapshot(build: str, base: Base, memory: Memory, head: dict[str, Json], max_bytes: int) -> bytes | None:
    """Return the bytes to be stored, or None as soon as they are more than `max_bytes`.

    Args:
        build: Digest of the engine build (hexadecimal).
        base: The memory of the boot image that the VM started from.
        memory: The VM's memory, at rest.
        head: What its owner needs to go on.
        max_bytes: What may be stored.
    """
    head_text = json.dumps(head, separators=(",", ":")).encode()
    packer = zlib.compressobj(1)
    parts = [struct.pack(">II", len(head_text), memory.size), packer.compress(head_text)]
    room = max_bytes - _BODY_AT - sum(map(len, parts))
    for number, piece in enumerate(memory.pieces):
        parts.append(packer.compress(_difference(_base_piece(base, number, len(piece)), piece)))
        room -= len(parts[-1])
        if room < 0:
            return None
    body = b"".join([*parts, packer.flush()])
    data = _MAGIC + bytes.fromhex(build) + hashlib.sha256(body).digest() + body
    return data if len(data) <= max_bytes else None


def parse_snapshot(build: str, base: Base, data: bytes, memory_limit_bytes: int) -> tuple[Changes, dict[str, Json]]:
    """Return what `encode_snapshot` wrote, and its head; the changes are unpacked while they are read.

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
    return Changes(memory_size, _changed_grains(unpacked, base, memory_size)), head


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


def _changed_grains(unpacked: _Unpacked, base: Base, memory_size: int) -> Iterator[tuple[int, bytes]]:
    for number, start in enumerate(range(0, memory_size, PIECE_BYTES)):
        size = min(PIECE_BYTES, memory_size - start)
        bits = int.from_bytes(unpacked.read(_bitmap_size(size)), "little")
        if not bits:
            continue
        before = _base_piece(base, number, size)
        changed = [at for index, at in enumerate(range(0, size, GRAIN_BYTES)) if bits >> index & 1]
        grains = unpacked.read(len(changed) * GRAIN_BYTES)
        for index, at in enumerate(changed):
            grain = grains[index * GRAIN_BYTES : (index + 1) * GRAIN_BYTES]
            yield start + at, _exclusive_or(grain, before[at : at + GRAIN_BYTES])


def _base_piece(base: Base, number: int, size: int) -> bytes:
    piece = base[number] if number < len(base) else b""
    return piece if len(piece) == size else piece[:size].ljust(size, b"\0")


def _bitmap_size(size: int) -> int:
    return -(-size // GRAIN_BYTES // 8)


def _difference(before: bytes, piece: bytes) -> bytes:
    """Return a bitmap of the grains that differ, and those grains, exclusive-or'ed with the base's."""
    bits = 0
    grains: list[bytes] = []
    if piece == before:
        return bytes(_bitmap_size(len(piece)))
    for block in range(0, len(piece), _BLOCK_BYTES):
        if piece[block : block + _BLOCK_BYTES] == before[block : block + _BLOCK_BYTES]:
            continue
        for at in range(block, min(block + _BLOCK_BYTES, len(piece)), GRAIN_BYTES):
            grain, other = piece[at : at + GRAIN_BYTES], before[at : at + GRAIN_BYTES]
            if grain != other:
                bits |= 1 << at // GRAIN_BYTES
                grains.append(_exclusive_or(grain, other))
    return bits.to_bytes(_bitmap_size(len(piece)), "little") + b"".join(grains)


def _exclusive_or(grain: bytes, other: bytes) -> bytes:
    if other == _BLANK:  # what the image has not touched is most of what a cell fills
        return grain
    mixed = int.from_bytes(grain, "little") ^ int.from_bytes(other, "little")
    return mixed.to_bytes(len(grain), "little")
