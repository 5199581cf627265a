"""The compiled module and the boot images: build, cache, verify.

An `Image` is the whole memory of a VM at rest with its script evaluated; a new VM starts by
copying it. Images and native code live in the user's cache, one file each: a digest, then
the bytes. A file that does not verify is rebuilt, never loaded: of 25 artefacts with
flipped bytes, 21 crashed the process that deserialised them unverified.
"""

import hashlib
import json
import mmap
import os
import platform
import stat
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from codemode.core.errors import RuntimeUnavailable
from codemode.core.limits import GUEST_STACK_BYTES
from codemode.sandbox.exports import Exports
from codemode.sandbox.leftovers import PREFIXES, UNFINISHED, note_use
from codemode.sandbox.wasm import Instance, Machine, NoGuest, TrapError, native_library

_ENGINE = "quickjs.wasm"
_OURS = ("prelude.js", "difference.wat")  # files of `guest` that are shipped as they are
_FORMAT = "2"  # raise it when the layout of an image or of a snapshot changes
_BUILD_MEMORY_BYTES = 128 << 20
_DIGEST_BYTES = 32
_PAGE_BYTES = 4096
_SMALLEST_PIECE_BYTES = 32
_TEXT_BYTES = 16_384  # scratch for short texts, so that most turns allocate nothing
_SCRATCH_BYTES = 64 + _TEXT_BYTES
_IMAGE_HEAD = struct.Struct(">I")


class Image(NamedTuple):
    """A VM at rest: its memory, registers and the handles of its entry points.

    `scratch` is the address of a buffer of ours: 64 bytes for numbers, then short texts.
    `spans` are the parts of the memory that hold anything, as `nonzero_spans` gives them.
    """

    memory: bytes
    stack_pointer: int
    runtime: int
    context: int
    entries: tuple[int, ...]
    scratch: int
    spans: tuple[tuple[int, bytes], ...]

    @property
    def text_at(self) -> int:
        """Where a short text may be written."""
        return self.scratch + 64

    @property
    def text_room(self) -> int:
        """How many bytes a short text may have."""
        return _TEXT_BYTES


def nonzero_spans(memory: bytes) -> tuple[tuple[int, bytes], ...]:
    """Return `(address, bytes)` for each run of pages that are not all zero.

    A fresh instance is zero already: two thirds of an image need not be copied.
    """
    zero = bytes(_PAGE_BYTES)
    spans: list[tuple[int, bytes]] = []
    start: int | None = None
    for at in range(0, len(memory), _PAGE_BYTES):
        blank = memory[at : at + _PAGE_BYTES] == zero
        if not blank and start is None:
            start = at
        elif blank and start is not None:
            spans.append((start, memory[start:at]))
            start = None
    if start is not None:
        spans.append((start, memory[start:]))
    return tuple(spans)


class Asset(NamedTuple):
    """One file that the package ships, with its digest."""

    data: bytes
    digest: str


def load_asset(name: str) -> Asset:
    """Read a file of `sandbox/assets` or `sandbox/guest`.

    Raises:
        RuntimeUnavailable: It is missing or unreadable.
    """
    package = files("codemode.sandbox")
    path = package / ("guest" if name in _OURS else "assets") / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuntimeUnavailable(
            f"the engine's file {name} cannot be read ({error.strerror or error}); "
            "reinstall codemode, or run `python hatch_build.py` in a source checkout"
        ) from error
    return Asset(data, hashlib.sha256(data).hexdigest())


class Workshop:
    """Gives the machine and the images, from the cache where it can."""

    def __init__(self, cache: Path | None) -> None:
        """Use this cache folder, or none at all."""
        self._cache = cache
        self._wasm = load_asset(_ENGINE)
        self._machines: dict[str, Machine] = {}

    @property
    def build(self) -> str:
        """The digest that a snapshot must match: wasm, prelude, what compares memories, and format."""
        digests = (self._wasm.digest, *(load_asset(name).digest for name in _OURS), _FORMAT)
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()

    def machine(self, name: str = _ENGINE) -> Machine:
        """Return a compiled module, of the engine where no other is named.

        Raises:
            RuntimeUnavailable: Its file is missing or damaged.
        """
        if name not in self._machines:
            asset = self._wasm if name == _ENGINE else load_asset(name)
            key = f"module-{self._key(asset.digest)}"
            cached = self._read(key)
            loaded = None if cached is None else Machine.load(cached)
            self._machines[name] = loaded or Machine.compile(asset.data, name)
            if loaded is None:
                self._write(key, self._machines[name].serialize())
        return self._machines[name]

    def image(self, name: str, entries: str = "") -> Image:
        """Return the boot image of a script.

        Args:
            name: The asset that is evaluated.
            entries: A JavaScript expression for the array of entry points; without one it is
                the script's own completion value.
        """
        return self.reserve(name, entries)()

    def reserve(self, name: str, entries: str = "") -> Callable[[], Image]:
        """Make sure that an image can be loaded later, when no file can be opened any more."""
        script = load_asset(name)
        machine = self.machine()
        key = f"image-{self._key(self._wasm.digest, script.digest, entries)}"
        cached = self._use(key)
        if cached is None:
            image = build_image(machine, script.data, entries)
            self._write(key, _encode_image(image))
            return lambda: image

        def load() -> Image:
            body = _verified(cached)
            return build_image(machine, script.data, entries) if body is None else _parse_image(body)

        return load

    def audit(self) -> list[tuple[str, int, str]]:
        """Return `(file, bytes, state)` for each cached file: `verified`, `damaged` or `not trusted`.

        What is not verified is never loaded, and made anew where it is needed.
        """
        if self._cache is None or not self._cache.is_dir():
            return []
        files = sorted(file for file in self._cache.iterdir() if file.name.startswith(PREFIXES))
        return [(file.name, file.stat().st_size, self._state_of(file.name)) for file in files]

    def _state_of(self, key: str) -> str:
        mapped = self._map(key)
        if mapped is None:
            return "not trusted"
        return "damaged" if _verified(mapped) is None else "verified"

    def _key(self, *parts: str) -> str:
        library = native_library()
        seed = " ".join((*parts, _FORMAT, library, platform.machine(), platform.system()))
        return hashlib.sha256(seed.encode()).hexdigest()[:32]

    def _read(self, key: str) -> bytes | None:
        mapped = self._use(key)
        return None if mapped is None else _verified(mapped)

    def _use(self, key: str) -> mmap.mmap | None:
        mapped = self._map(key)
        if mapped is not None and self._cache is not None:
            note_use(self._cache / key)
        return mapped

    def _map(self, key: str) -> mmap.mmap | None:
        """Map a cached file if it is ours and nobody else can write it."""
        if self._cache is None:
            return None
        try:
            with (self._cache / key).open("rb") as file:
                status = os.fstat(file.fileno())
                foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
                if foreign or stat.S_IMODE(status.st_mode) & 0o022:
                    return None
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None

    def _write(self, key: str, body: bytes) -> None:
        if self._cache is None:
            return
        with suppress(OSError):  # a cache that cannot be written costs time, nothing else
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=self._cache)
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(self._cache / key)


def _verified(mapped: mmap.mmap) -> bytes | None:
    digest, body = mapped[:_DIGEST_BYTES], mapped[_DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None


def build_image(machine: Machine, script: bytes, entries: str = "") -> Image:
    """Boot an engine, evaluate the script and return the VM at rest.

    Raises:
        RuntimeUnavailable: The script does not evaluate to an array of entry points.
    """
    instance = Instance(machine, NoGuest(), _BUILD_MEMORY_BYTES)
    wasm = instance.exports
    try:
        wasm._initialize()  # noqa: SLF001 the name that WASI gives it
        if wasm.qjs_init() != 0:
            raise RuntimeUnavailable("the engine does not start: qjs_init failed; reinstall codemode")
        wasm.qjs_set_max_stack_size(GUEST_STACK_BYTES)
        wasm.qjs_set_interrupt_handler(1)
        wasm.qjs_set_promise_rejection_handler(1)
        value = _evaluate(wasm, instance.write, script)
        if entries:
            wasm.qjs_free_value(value)
            value = _evaluate(wasm, instance.write, entries.encode())
        handles = _collect_entries(wasm, value)
        scratch = wasm.malloc(_SCRATCH_BYTES)
        scrub(instance, _BUILD_MEMORY_BYTES)
        memory = instance.read(0, instance.memory_bytes())
        return Image(
            memory=memory,
            stack_pointer=instance.stack_pointer,
            runtime=wasm.qjs_get_runtime_ptr(),
            context=wasm.qjs_get_context_ptr(),
            entries=handles,
            scratch=scratch,
            spans=nonzero_spans(memory),
        )
    except TrapError as error:
        raise RuntimeUnavailable(f"the engine does not start ({error}); reinstall codemode") from error
    finally:
        instance.close()


def scrub(instance: Instance, limit_bytes: int) -> None:
    """Collect garbage and fill free memory with zeros, so that a copy holds only what lives.

    Allocates everything that is free, without growing the memory, largest pieces first.

    Args:
        instance: A VM at rest.
        limit_bytes: The memory limit to return to.
    """
    instance.exports.qjs_run_gc()
    size = instance.memory_bytes()
    instance.limit_memory(size)
    taken: list[int] = []
    while size >= _SMALLEST_PIECE_BYTES:
        address = instance.exports.calloc(1, size)
        if address:
            taken.append(address)
        else:
            size //= 2
    for address in reversed(taken):
        instance.exports.free(address)
    instance.limit_memory(limit_bytes)


def _evaluate(wasm: Exports, write: Callable[[int, bytes], None], script: bytes) -> int:
    address = wasm.malloc(len(script) + 16)
    write(address, script + b"\0codemode\0")
    value = wasm.qjs_eval(address, len(script), address + len(script) + 1, 0)
    wasm.free(address)
    if wasm.qjs_is_exception(value):
        raise RuntimeUnavailable("a script of the engine does not evaluate; reinstall codemode")
    return value


def _collect_entries(wasm: Exports, array: int) -> tuple[int, ...]:
    handles: list[int] = []
    while True:
        item = wasm.qjs_get_prop_uint32(array, len(handles))
        if not wasm.qjs_is_function(item):
            wasm.qjs_free_value(item)
            return tuple(handles)
        handles.append(item)


def _encode_image(image: Image) -> bytes:
    fields = image._asdict() | {"memory": None, "spans": None}
    head = json.dumps(fields).encode()
    return _IMAGE_HEAD.pack(len(head)) + head + image.memory


def _parse_image(data: bytes) -> Image:
    (size,) = _IMAGE_HEAD.unpack_from(data)
    start = _IMAGE_HEAD.size + size
    fields = json.loads(data[_IMAGE_HEAD.size : start])
    memory = data[start:]
    fields |= {"entries": tuple(fields["entries"])}
    return Image(**fields | {"memory": memory, "spans": nonzero_spans(memory)})
