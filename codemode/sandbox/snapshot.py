"""Snapshots: the difference of a VM's memory from its boot image, framed and verified.

    magic and format · build digest · digest of the rest · sizes · zlib of (JSON head, pieces)

A piece is what differs in 256 KiB of memory, as `guest/difference.wat` writes it: exclusive-or'ed
with the image, since what merely moved a counter then packs to almost nothing. A cell that holds
200 small objects takes 16 kB. The head holds registers, handles and what the cell needs to go on.

Both ways go piece by piece, so that a worker needs no second copy of a large memory; restored is
only what differs from the image, which a new VM holds already. Nothing is trusted before the
digest agrees, and nothing is unpacked beyond the limit of the run.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from codemode.core.errors import MemoryLimit, SnapshotRestore
from codemode.core.limits import STORE_HEADROOM_BYTES
from codemode.core.types import Json
from codemode.sandbox.difference import MAX_RECORDS_BYTES, PIECE_BYTES

_MAGIC = b"CMSNAP\x003"
_NAME_BYTES = 7  # then the format; each is of other builds, so that the build tells what is wrong
_HEAD = struct.Struct(">8s32s32sII")  # magic, build, digest, head size, memory size
_BODY_AT = _HEAD.size - 8
_LENGTH = struct.Struct("<I")
_ALIKE = _LENGTH.pack(0)  # what differs where nothing does


class Changes(NamedTuple):
    """What makes a memory from its boot image: its size, and `(address, size, difference)` of each changed piece."""

    size: int
    pieces: Iterable[tuple[int, int, bytes]]


def encode_snapshot(
    build: str, memory_size: int, find: Callable[[int, int], bytes], head: dict[str, Json], max_bytes: int
) -> bytes | None:
    """Return the bytes to be stored, or None as soon as they are more than `max_bytes`.

    Args:
        build: Digest of the engine build (hexadecimal).
        memory_size: The bytes of the VM's memory, which is at rest.
        find: Gives what differs from the boot image in the piece at an address, of a size.
        head: What its owner needs to go on.
        max_bytes: What may be stored.
    """
    head_text = json.dumps(head, separators=(",", ":")).encode()
    packer = zlib.compressobj(1)
    parts = [struct.pack(">II", len(head_text), memory_size), packer.compress(head_text)]
    room = max_bytes - _BODY_AT - sum(map(len, parts))
    for at, size in _pieces(memory_size):
        parts.append(packer.compress(find(at, size)))
        room -= len(parts[-1])
        if room < 0:
            return None
    body = b"".join([*parts, packer.flush()])
    data = _MAGIC + bytes.fromhex(build) + hashlib.sha256(body).digest() + body
    return data if len(data) <= max_bytes else None


def parse_snapshot(build: str, data: bytes, memory_limit_bytes: int) -> tuple[Changes, dict[str, Json]]:
    """Return what `encode_snapshot` wrote, and its head; the changes are unpacked while they are read.

    Raises:
        SnapshotRestore: It is damaged, truncated, or of another build of the engine.
        MemoryLimit: Its memory is larger than the run may have.
    """
    if len(data) < _HEAD.size or data[:_NAME_BYTES] != _MAGIC[:_NAME_BYTES]:
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
    return Changes(memory_size, _changed_pieces(unpacked, memory_size)), head


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


def _changed_pieces(unpacked: _Unpacked, memory_size: int) -> Iterator[tuple[int, int, bytes]]:
    for at, size in _pieces(memory_size):
        length = unpacked.read(_LENGTH.size)
        if length != _ALIKE:
            yield at, size, length + unpacked.read(min(_LENGTH.unpack(length)[0], MAX_RECORDS_BYTES))


def _pieces(memory_size: int) -> Iterator[tuple[int, int]]:
    """Yield the address and the size of each piece of a memory."""
    for at in range(0, memory_size, PIECE_BYTES):
        yield at, min(PIECE_BYTES, memory_size - at)
