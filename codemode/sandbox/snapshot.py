"""Snapshots: the difference of a VM's memory from its boot image, framed and verified.

    magic · format · build digest · digest of the rest · sizes · JSON head · zlib of grains

A grain is 256 bytes: a cell that holds 200 small objects differs from the image in 20 kB of
grains, at 4 kB a grain it would be 50. The head holds registers, handles and what the cell
needs to go on; a bitmap says which grains follow. Nothing is trusted before the digest
agrees, and nothing is unpacked beyond the limit of the run.
"""

import hashlib
import json
import struct
import zlib
from typing import NamedTuple

from codemode.core.errors import MemoryLimit, SnapshotRestore
from codemode.core.limits import STORE_HEADROOM_BYTES
from codemode.core.types import Json

GRAIN_BYTES = 256
_BLOCK_BYTES = 4096
_MAGIC = b"CMSNAP\x001"
_HEAD = struct.Struct(">8s32s32sIII")  # magic, build, digest, head size, packed size, memory size


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
    packed = zlib.compress(bitmap + grains, 1)
    head = json.dumps(snapshot.head, separators=(",", ":")).encode()
    sizes = struct.pack(">III", len(head), len(packed), len(snapshot.memory))
    digest = hashlib.sha256(sizes + head + packed).digest()
    return _MAGIC + bytes.fromhex(build) + digest + sizes + head + packed


def parse_snapshot(build: str, base: bytes, data: bytes, memory_limit_bytes: int) -> Snapshot:
    """Return the VM that `encode_snapshot` wrote.

    Raises:
        SnapshotRestore: It is damaged, truncated, or of another build of the engine.
        MemoryLimit: Its memory is larger than the run may have.
    """
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise SnapshotRestore("the snapshot is truncated or none of ours; the run cannot be resumed")
    _, written_by, digest, head_size, packed_size, memory_size = _HEAD.unpack_from(data)
    if written_by.hex() != build:
        raise SnapshotRestore(
            f"the snapshot was taken by engine build {written_by.hex()[:12]}, this is {build[:12]}; "
            "resume it with the version of codemode that suspended it"
        )
    body = data[_HEAD.size :]
    sizes = data[_HEAD.size - 12 : _HEAD.size]
    if len(body) != head_size + packed_size or hashlib.sha256(sizes + body).digest() != digest:
        raise SnapshotRestore("the snapshot is damaged (its digest does not match); the run cannot be resumed")
    if memory_size > memory_limit_bytes + STORE_HEADROOM_BYTES:
        raise MemoryLimit(f"the suspended cell holds {memory_size} bytes; memoryLimitBytes is {memory_limit_bytes}")
    grain_count = -(-memory_size // GRAIN_BYTES)
    bitmap_size = -(-grain_count // 8)
    unpacked = zlib.decompressobj().decompress(body[head_size:], bitmap_size + memory_size + GRAIN_BYTES)
    memory = _apply(base, memory_size, unpacked[:bitmap_size], unpacked[bitmap_size:])
    return Snapshot(memory, json.loads(body[:head_size]))


def _difference(base: bytes, memory: bytes) -> tuple[bytes, bytes]:
    """Return a bitmap of the grains that differ, and those grains."""
    grain_count = -(-len(memory) // GRAIN_BYTES)
    bitmap = bytearray(-(-grain_count // 8))
    grains: list[bytes] = []
    zeros = bytes(_BLOCK_BYTES)
    for start in range(0, len(memory), _BLOCK_BYTES):
        block = memory[start : start + _BLOCK_BYTES]
        before = base[start : start + _BLOCK_BYTES].ljust(len(block), b"\0") if start < len(base) else zeros
        if block == before:
            continue
        for at in range(0, len(block), GRAIN_BYTES):
            grain = block[at : at + GRAIN_BYTES]
            if grain != before[at : at + GRAIN_BYTES]:
                index = (start + at) // GRAIN_BYTES
                bitmap[index >> 3] |= 1 << (index & 7)
                grains.append(grain)
    return bytes(bitmap), b"".join(grains)


def _apply(base: bytes, size: int, bitmap: bytes, grains: bytes) -> bytes:
    memory = bytearray(base[:size].ljust(size, b"\0"))
    offset = 0
    for byte_index, byte in enumerate(bitmap):
        if not byte:
            continue
        for bit in range(8):
            if byte >> bit & 1:
                at = (byte_index * 8 + bit) * GRAIN_BYTES
                memory[at : at + GRAIN_BYTES] = grains[offset : offset + GRAIN_BYTES]
                offset += GRAIN_BYTES
    if offset != len(grains) or len(memory) != size:
        raise SnapshotRestore("the snapshot's grains do not fit its memory; the run cannot be resumed")
    return bytes(memory)
