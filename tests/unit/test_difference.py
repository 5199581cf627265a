"""What differs between a memory and its boot image: found, put back, and refused where it is malformed."""

import hashlib
import random
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode.core.errors import SnapshotRestore
from codemode.sandbox.difference import MAX_RECORDS_BYTES, PIECE_BYTES, Difference
from codemode.sandbox.image import Workshop
from codemode.sandbox.wasm import Instance, Machine, NoGuest, TrapError
from tests.requirements import requirement
from tests.support.guest import Guest

PAGE = 1 << 16
IMAGE = random.Random(7).randbytes(PIECE_BYTES + PAGE)  # the second piece is not whole
SIZE = 3 * PIECE_BYTES  # of a VM that grew beyond its image
Edits = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Workshop(tmp_path_factory.mktemp("cache")).machine("difference.wat")


@pytest.fixture(scope="module")
def difference(machine: Machine) -> Difference:
    return Difference(machine, IMAGE)


@pytest.fixture
def memories(machine: Machine) -> Iterator[tuple[Instance, Instance]]:
    """Two memories as VMs have them after their start: the image, and nothing after it."""
    pair = Instance(machine, NoGuest(), 2 * SIZE), Instance(machine, NoGuest(), 2 * SIZE)
    for memory in pair:
        memory.grow_to(SIZE)
    yield pair
    for memory in pair:
        memory.close()


def reset(memory: Instance) -> None:
    memory.write(0, IMAGE.ljust(SIZE, b"\0"))


def moved(difference: Difference, source: Instance, target: Instance) -> int:
    """Carry what differs over, and return how many bytes that were."""
    total = 0
    for at in range(0, SIZE, PIECE_BYTES):
        found = difference.find(source, at, PIECE_BYTES)
        assert found[:4] == struct.pack("<I", len(found) - 4)
        difference.put(target, at, PIECE_BYTES, found)
        total += len(found)
    return total


@requirement("sandbox:snapshot:round-trip")
@given(
    edits=st.lists(
        st.tuples(st.integers(0, SIZE - 600), st.one_of(st.binary(max_size=600), st.binary(min_size=1, max_size=1))),
        max_size=40,
    )
)
def test_a_memory_made_of_the_image_and_what_differs_is_that_memory(
    machine: Machine, difference: Difference, edits: Edits
) -> None:
    source, target = Instance(machine, NoGuest(), 2 * SIZE), Instance(machine, NoGuest(), 2 * SIZE)
    for memory in (source, target):
        memory.grow_to(SIZE)
        reset(memory)
    for at, data in edits:
        source.write(at, data)

    size = moved(difference, source, target)

    assert target.read(0, SIZE) == source.read(0, SIZE)
    assert size <= 12 + sum(4 + 2 * (len(data) + 16) + 4 * 12 for _, data in edits)
    source.close()
    target.close()


def test_where_nothing_differs_nothing_is_kept(difference: Difference, memories: tuple[Instance, Instance]) -> None:
    for memory in memories:
        reset(memory)

    assert moved(difference, *memories) == 3 * 4


def test_a_memory_that_is_all_different_is_carried_whole(
    difference: Difference, memories: tuple[Instance, Instance]
) -> None:
    source, target = memories
    source.write(0, bytes(byte ^ 0xFF for byte in IMAGE.ljust(SIZE, b"\0")))
    reset(target)

    assert moved(difference, source, target) == 3 * (4 + MAX_RECORDS_BYTES)
    assert target.read(0, SIZE) == source.read(0, SIZE)


@requirement("sandbox:snapshot:refused")
@pytest.mark.parametrize(
    "found",
    [
        struct.pack("<I", 5) + b"short",
        struct.pack("<IIQ", 12, 512, 1),  # a grain beyond the piece
        struct.pack("<IIQ", 12, 0xFFFFFFFF, 1),
        struct.pack("<IIQ", 12, 0, 1),  # a word less than it says
        struct.pack("<IIQQ", 20, 511, 0, 7),  # a word more
        struct.pack("<I", MAX_RECORDS_BYTES + 1) + bytes(MAX_RECORDS_BYTES),
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<IIQ", 12, 3, 0xFFFFFFFFFFFFFFFF) * 2,
    ],
)
def test_what_is_malformed_is_refused_and_the_image_stays(
    difference: Difference, memories: tuple[Instance, Instance], found: bytes
) -> None:
    """A snapshot is a file: its digest shows that it is whole, not who wrote it."""
    source, target = memories
    reset(target)

    with pytest.raises(SnapshotRestore, match="malformed"):
        difference.put(target, 0, PIECE_BYTES, found)

    assert target.read(0, SIZE) == IMAGE.ljust(SIZE, b"\0")
    reset(source)
    assert moved(difference, source, target) == 3 * 4


@requirement("sandbox:snapshot:refused")
@given(found=st.binary(max_size=200))
def test_no_bytes_reach_anything_but_the_piece(machine: Machine, difference: Difference, found: bytes) -> None:
    target = Instance(machine, NoGuest(), 2 * SIZE)
    target.grow_to(SIZE)
    reset(target)

    with suppress(SnapshotRestore, TrapError):
        difference.put(target, 0, PIECE_BYTES, found)

    assert target.read(PIECE_BYTES, SIZE - PIECE_BYTES) == IMAGE.ljust(SIZE, b"\0")[PIECE_BYTES:]
    reset(target)
    assert difference.find(target, 0, PIECE_BYTES) == bytes(4)
    target.close()


@requirement("sandbox:snapshot:refused")
def test_a_snapshot_that_somebody_wrote_with_a_good_digest_is_refused_or_is_a_memory(tmp_path: Path) -> None:
    """Each of its bytes before packing, turned over: an error of ours, never a crash."""
    guest = Guest(tmp_path)
    guest.start("await tools.add({})")
    good = guest.snapshot()
    body = bytearray(zlib.decompress(good[80:]))
    head_size = struct.unpack(">I", good[72:76])[0]
    for at in range(head_size, head_size + 400, 7):
        forged = bytearray(body)
        forged[at] ^= 0xFF
        packed = good[72:80] + zlib.compress(bytes(forged), 1)
        end = guest.resume(sealed(good, packed), (1, True, 1))
        assert end.state == "completed" or end.failure is not None
    assert guest.resume(good, (1, True, 1)).state == "completed"


def sealed(good: bytes, body: bytes) -> bytes:
    return good[:40] + hashlib.sha256(body).digest() + body
