"""The compiled module and the boot images: build, cache, verify.

An `Image` is the whole memory of a VM at rest with its script evaluated; a new VM starts by
copying it. Images and native code live in the user's cache, one file each: a digest, then
the bytes. A file that does not verify is rebuilt, never loaded: of 25 artefacts with
flipped bytes, 21 crashed the process that deserialised them unverified.
"""

import hashlib
import json
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
from codemode.sandbox.wasm import Instance, Machine, TrapError, native_library

_FORMAT = "1"  # raise it when the layout of an image or of a snapshot changes
_BUILD_MEMORY_BYTES = 128 << 20
_TEXT_BYTES = 16_384  # scratch for short texts, so that most turns allocate nothing
_SCRATCH_BYTES = 64 + _TEXT_BYTES
_IMAGE_HEAD = struct.Struct(">I")


class Image(NamedTuple):
    """A VM at rest: its memory, registers and the handles of its entry points.

    `scratch` is the address of a buffer of ours: 64 bytes for numbers, then short texts.
    """

    memory: bytes
    stack_pointer: int
    runtime: int
    context: int
    entries: tuple[int, ...]
    scratch: int

    @property
    def text_at(self) -> int:
        """Where a short text may be written."""
        return self.scratch + 64

    @property
    def text_room(self) -> int:
        """How many bytes a short text may have."""
        return _TEXT_BYTES


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
    path = package / ("guest" if name == "prelude.js" else "assets") / name
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
        self._wasm = load_asset("quickjs.wasm")
        self._machine: Machine | None = None

    @property
    def build(self) -> str:
        """The digest that a snapshot must match: wasm, prelude and format."""
        prelude = load_asset("prelude.js")
        return hashlib.sha256(f"{self._wasm.digest} {prelude.digest} {_FORMAT}".encode()).hexdigest()

    def machine(self) -> Machine:
        """Return the compiled engine.

        Raises:
            RuntimeUnavailable: The engine's bytes are damaged.
        """
        if self._machine is None:
            key = f"module-{self._key(self._wasm.digest)}"
            cached = self._read(key)
            if cached is not None:
                self._machine = Machine.load(cached)
            else:
                self._machine = Machine.compile(self._wasm.data)
                self._write(key, self._machine.serialize())
        return self._machine

    def image(self, name: str, entries: str = "") -> Image:
        """Return the boot image of a script.

        Args:
            name: The asset that is evaluated.
            entries: A JavaScript expression for the array of entry points; without one it is
                the script's own completion value.
        """
        script = load_asset(name)
        key = f"image-{self._key(self._wasm.digest, script.digest, entries)}"
        cached = self._read(key)
        if cached is not None:
            return _parse_image(cached)
        image = build_image(self.machine(), script.data, entries)
        self._write(key, _encode_image(image))
        return image

    def _key(self, *parts: str) -> str:
        library = native_library()
        seed = " ".join((*parts, _FORMAT, library, platform.machine(), platform.system()))
        return hashlib.sha256(seed.encode()).hexdigest()[:32]

    def _read(self, key: str) -> bytes | None:
        if self._cache is None:
            return None
        try:
            with (self._cache / key).open("rb") as file:
                status = os.fstat(file.fileno())
                foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
                if foreign or stat.S_IMODE(status.st_mode) & 0o022:
                    return None
                data = file.read()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        return body if hashlib.sha256(body).digest() == digest else None

    def _write(self, key: str, body: bytes) -> None:
        if self._cache is None:
            return
        with suppress(OSError):  # a cache that cannot be written costs time, nothing else
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._cache)
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(self._cache / key)


class _Builder:
    """The host of an instance that only evaluates our own scripts."""

    def should_stop(self) -> bool:
        return False

    def note_rejection(self, promise: int, reason: int, handled: bool) -> None:
        """Our scripts make no promises at start-up; nothing is kept."""


def build_image(machine: Machine, script: bytes, entries: str = "") -> Image:
    """Boot an engine, evaluate the script and return the VM at rest.

    Raises:
        RuntimeUnavailable: The script does not evaluate to an array of entry points.
    """
    instance = Instance(machine, _Builder(), _BUILD_MEMORY_BYTES)
    call = instance.call
    try:
        call("_initialize")
        if call("qjs_init") != 0:
            raise RuntimeUnavailable("the engine does not start: qjs_init failed; reinstall codemode")
        call("qjs_set_max_stack_size", GUEST_STACK_BYTES)
        call("qjs_set_interrupt_handler", 1)
        call("qjs_set_promise_rejection_handler", 1)
        value = _evaluate(call, instance.write, script)
        if entries:
            call("qjs_free_value", value)
            value = _evaluate(call, instance.write, entries.encode())
        handles = _collect_entries(call, value)
        scratch = call("malloc", _SCRATCH_BYTES)
        call("qjs_run_gc")
        return Image(
            memory=instance.read(0, instance.memory_bytes()),
            stack_pointer=instance.stack_pointer,
            runtime=call("qjs_get_runtime_ptr"),
            context=call("qjs_get_context_ptr"),
            entries=handles,
            scratch=scratch,
        )
    except TrapError as error:
        raise RuntimeUnavailable(f"the engine does not start ({error}); reinstall codemode") from error
    finally:
        instance.close()


def _evaluate(call: Callable[..., int], write: Callable[[int, bytes], None], script: bytes) -> int:
    address = call("malloc", len(script) + 16)
    write(address, script + b"\0codemode\0")
    value = call("qjs_eval", address, len(script), address + len(script) + 1, 0)
    call("free", address)
    if call("qjs_is_exception", value):
        raise RuntimeUnavailable("a script of the engine does not evaluate; reinstall codemode")
    return value


def _collect_entries(call: Callable[..., int], array: int) -> tuple[int, ...]:
    handles: list[int] = []
    while True:
        item = call("qjs_get_prop_uint32", array, len(handles))
        if not call("qjs_is_function", item):
            call("qjs_free_value", item)
            return tuple(handles)
        handles.append(item)


def _encode_image(image: Image) -> bytes:
    head = json.dumps(image._replace(memory=b"")._asdict() | {"memory": len(image.memory)}).encode()
    return _IMAGE_HEAD.pack(len(head)) + head + image.memory


def _parse_image(data: bytes) -> Image:
    (size,) = _IMAGE_HEAD.unpack_from(data)
    start = _IMAGE_HEAD.size + size
    fields = json.loads(data[_IMAGE_HEAD.size : start])
    return Image(**(fields | {"memory": data[start:], "entries": tuple(fields["entries"])}))
