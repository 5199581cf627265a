"""The QuickJS adapter: one VM, its values, its job queue and its limits.

A `Vm` starts as a copy of a boot image. Values are handles: addresses in its memory that
its owner frees, or keeps across a snapshot. Timeout and memory are decided here, by what
the host knows, never by what an evaluation returned: promise machinery can swallow the
engine's own interrupt.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from codemode.core.limits import GUEST_STACK_BYTES, STORE_HEADROOM_BYTES
from codemode.sandbox.difference import Difference
from codemode.sandbox.image import Image, scrub
from codemode.sandbox.snapshot import Changes
from codemode.sandbox.wasm import Instance, Machine

EVAL_GLOBAL = 0
EVAL_COMPILE_ONLY = 32
EVAL_ASYNC = 128

PENDING, FULFILLED, REJECTED = 0, 1, 2
_USUAL = (
    "qjs_new_string",
    "qjs_free_value",
    "qjs_call",
    "malloc",
    "qjs_eval",
    "free",
    "qjs_execute_pending_job",
    "qjs_promise_state",
    "qjs_promise_result",
    "qjs_get_string_len",
    "qjs_free_cstring",
)
EXCEPTION_TAG = 6  # the upper half of the 64-bit value behind a handle

_RESERVE_BYTES = 4 << 20  # above the guest's limit, while our own entry points run
_ARGUMENTS_AT = 16  # offset in the scratch buffer; there is room for twelve handles


class TurnInterrupted(Exception):
    """The deadline passed while guest code ran; no further job may run in this turn."""


class OutOfMemory(Exception):
    """The guest reached its memory limit; the VM is good for `take` only."""


class ThrownValue(Exception):
    """Guest code threw; `handle` is the value, owned by whoever catches this."""

    def __init__(self, handle: int) -> None:
        """Keep the handle."""
        super().__init__("guest code threw")
        self.handle = handle


class Rejection(NamedTuple):
    """A promise that nobody handles yet, with its reason: two handles that we own."""

    promise: int
    reason: int


class Registers(NamedTuple):
    """What belongs to a VM beside its memory."""

    stack_pointer: int
    runtime: int
    context: int


class Vm:
    """One QuickJS VM: evaluate, call, run jobs, read and write texts."""

    def __init__(self, machine: Machine, image: Image, memory_limit_bytes: int) -> None:
        """Copy the boot image into a new instance.

        Raises:
            MemoryError: The image is larger than the limit allows.
        """
        self.image = image
        self.entries = image.entries
        self.memory_limit_bytes = memory_limit_bytes
        self.interrupted = False
        self.out_of_memory = False
        self.rejections: dict[int, Rejection] = {}
        self._deadline = float("inf")
        self._ours = False  # our own entry point runs: it is short and must not be interrupted
        self._raw_rejections: list[tuple[int, int, bool]] = []
        self._instance = Instance(machine, self, memory_limit_bytes + STORE_HEADROOM_BYTES)
        self._wasm = self._instance.exports
        try:
            self._instance.grow_to(len(image.memory))
            for address, data in image.spans:  # the rest is zero, as a new memory is
                self._instance.write(address, data)
        except BaseException:
            self._instance.close()
            raise
        self._enter_state(Registers(image.stack_pointer, image.runtime, image.context))
        self._undefined = self._wasm.qjs_get_undefined()

    def become(self, changes: Changes, difference: Difference, registers: Registers) -> None:
        """Take over the memory of another VM of the same image; nothing may have run here.

        Raises:
            MemoryError: It is larger than the limit allows.
            SnapshotRestore: The changes are not well formed.
        """
        self._instance.grow_to(changes.size)
        for at, size, found in changes.pieces:
            difference.put(self._instance, at, size, found)
        self._enter_state(registers)

    # ---- limits ----

    def arm(self, deadline: float) -> None:
        """Set the moment (of `time.monotonic`) at which guest code is interrupted."""
        self._deadline = deadline
        self._instance.enter()

    def bind_usual(self) -> None:
        """Look up beforehand the exports that every cell calls."""
        for name in _USUAL:
            getattr(self._wasm, name)

    def rest(self) -> None:
        """Let the engine's polls go to the VM that had them before."""
        self._instance.leave()

    def should_stop(self) -> bool:
        """Answer the engine's poll; once it was answered with yes, the turn is over."""
        if self._ours or time.monotonic() < self._deadline:
            return False
        self.interrupted = True
        return True

    def note_rejection(self, promise: int, reason: int, handled: bool) -> None:
        """Queue what the engine reports; it is sorted between two jobs, not inside of one."""
        self._raw_rejections.append((promise, reason, handled))

    def check(self) -> None:
        """Raise if a limit was reached, whatever the guest made of it.

        Raises:
            TurnInterrupted: The deadline passed.
            OutOfMemory: The memory limit was reached.
        """
        if self._raw_rejections and not self.interrupted:
            self._sort_rejections()
        if self.interrupted:
            raise TurnInterrupted
        if self.out_of_memory:
            raise OutOfMemory

    # ---- values ----

    def new_text(self, data: bytes) -> int:
        """Return a handle to a JavaScript string of these UTF-8 bytes.

        Raises:
            ThrownValue: There is no memory for it.
        """
        if len(data) <= self.image.text_room:
            self._instance.write(self.image.text_at, data)
            return self._checked(self._wasm.qjs_new_string(self.image.text_at, len(data)))
        address = self._allocate(data)
        handle = self._wasm.qjs_new_string(address, len(data))
        self._wasm.free(address)
        return self._checked(handle)

    def read_text(self, handle: int) -> bytes:
        """Return the UTF-8 (WTF-8 for lone surrogates) bytes of a value's string form, and free it."""
        text = self._wasm.qjs_get_string_len(handle, self.image.scratch)
        self.free(handle)
        if text == 0:
            self._throw()
        size = self._instance.read_u32(self.image.scratch)
        data = self._instance.read(text, size)
        self._wasm.qjs_free_cstring(text)
        return data

    def free(self, handle: int) -> None:
        """Give up a handle."""
        self._wasm.qjs_free_value(handle)

    def identity(self, handle: int) -> int:
        """Return the address of the object behind a handle: equal for equal objects."""
        return self._wasm.qjs_get_value_ptr(handle)

    # ---- running guest code ----

    def evaluate(self, source: bytes, filename: str, flags: int) -> int:
        """Evaluate or compile a script and return the value's handle.

        Raises:
            ThrownValue: It threw, or does not parse.
            TurnInterrupted: The deadline passed.
            OutOfMemory: The memory limit was reached.
        """
        address = self._allocate(source + b"\0" + filename.encode() + b"\0")
        handle = self._wasm.qjs_eval(address, len(source), address + len(source) + 1, flags)
        self._wasm.free(address)
        return self._checked(handle)

    def call(self, function: int, *arguments: int) -> int:
        """Call a function and return the result's handle; the arguments stay the caller's.

        Raises:
            ThrownValue: It threw.
            TurnInterrupted: The deadline passed.
            OutOfMemory: The memory limit was reached.
        """
        return self._checked(self._invoke(function, arguments))

    def call_ours(self, function: int, *arguments: int) -> int:
        """Call an entry point that runs no guest code: it has a reserve of memory and no deadline.

        Raises:
            ThrownValue: It threw, which only exhausted memory can cause.
        """
        self._ours = True
        if self.out_of_memory:
            self._wasm.qjs_set_memory_limit(self.memory_limit_bytes + _RESERVE_BYTES)
        try:
            handle = self._invoke(function, arguments)
            if self.is_exception(handle):
                raise ThrownValue(self._wasm.qjs_get_exception())
            return handle
        finally:
            self._ours = False

    def drain(self) -> None:
        """Run jobs until none is left.

        Raises:
            ThrownValue: A job that is no promise's threw: a microtask, a finalizer. No further job ran.
            TurnInterrupted: The deadline passed; no further job ran.
            OutOfMemory: The memory limit was reached; no further job ran.
        """
        self.check()
        execute_job = self._wasm.qjs_execute_pending_job
        while True:
            status = execute_job()
            if status < 0:
                self._throw()
            if self.interrupted or self._raw_rejections:
                self.check()
            if status == 0:
                return

    def promise_state(self, promise: int) -> int:
        """Return PENDING, FULFILLED or REJECTED."""
        return self._wasm.qjs_promise_state(promise)

    def promise_result(self, promise: int) -> int:
        """Return a handle to the value or reason of a settled promise."""
        return self._wasm.qjs_promise_result(promise)

    # ---- the whole ----

    def registers(self) -> Registers:
        """Return what a snapshot needs beside the memory."""
        wasm = self._wasm
        return Registers(self._instance.stack_pointer, wasm.qjs_get_runtime_ptr(), wasm.qjs_get_context_ptr())

    def scrub(self) -> None:
        """Collect garbage and fill free memory with zeros, so that a snapshot holds only what lives."""
        scrub(self._instance, self.memory_limit_bytes + STORE_HEADROOM_BYTES)

    def changed(self, difference: Difference) -> Callable[[int, int], bytes]:
        """Return what gives the difference from the image of the piece at an address, of a size."""
        return partial(difference.find, self._instance)

    def memory_bytes(self) -> int:
        """Return how large the memory has grown; it never shrinks."""
        return self._instance.memory_bytes()

    def reset_stack(self) -> None:
        """Make short calls possible after a trap."""
        self._instance.stack_pointer = self.image.stack_pointer

    def close(self) -> None:
        """Free the VM."""
        self._instance.close()

    # ---- inside ----

    def _enter_state(self, registers: Registers) -> None:
        wasm = self._wasm
        wasm.qjs_set_runtime_and_context(registers.runtime, registers.context)
        self._instance.stack_pointer = registers.stack_pointer
        wasm.qjs_set_max_stack_size(GUEST_STACK_BYTES)
        wasm.qjs_set_memory_limit(self.memory_limit_bytes)

    def _allocate(self, data: bytes) -> int:
        address = self._wasm.malloc(len(data))
        if address == 0:
            self.out_of_memory = True
            raise OutOfMemory
        self._instance.write(address, data)
        return address

    def _invoke(self, function: int, arguments: tuple[int, ...]) -> int:
        slots = at = self.image.scratch + _ARGUMENTS_AT
        for argument in arguments:
            self._instance.write_u32(at, argument)
            at += 4
        return self._wasm.qjs_call(function, self._undefined, len(arguments), slots)

    def is_exception(self, handle: int) -> bool:
        """Say whether a value is the engine's mark for "an exception is pending".

        Read from the value's tag: the export that tells the same costs ten times as much, at each step.
        """
        return self._instance.read_u32(handle + 4) == EXCEPTION_TAG

    def _checked(self, handle: int) -> int:
        if self.is_exception(handle):
            self._throw()
        if self._raw_rejections or self.interrupted or self.out_of_memory:
            self.check()
        return handle

    def _throw(self) -> None:
        thrown = self._wasm.qjs_get_exception()
        if self._wasm.qjs_is_uncatchable_error(thrown):
            self._note_fatal(thrown)
            self.check()
        self.check()
        raise ThrownValue(thrown)

    def _note_fatal(self, thrown: int) -> None:
        if not self.interrupted:
            self.out_of_memory = True
        self.free(thrown)

    def _sort_rejections(self) -> None:
        queued, self._raw_rejections = self._raw_rejections, []
        for promise, reason, handled in queued:
            if self.should_stop():  # a cell can reject a hundred thousand promises in a moment
                return
            identity = self.identity(promise)
            known = self.rejections.pop(identity, None)
            if known is not None:
                self.free(known.promise)
                self.free(known.reason)
            if handled:
                self.free(promise)
                self.free(reason)
                continue
            if self._wasm.qjs_is_uncatchable_error(reason) and not self.interrupted:
                self.out_of_memory = True
            self.rejections[identity] = Rejection(promise, reason)


class Stock:
    """Copies of one image; the next one can be made ahead, in time that nobody waits for."""

    def __init__(self, machine: Machine, image: Image) -> None:
        """Begin without a spare."""
        self._machine = machine
        self._image = image
        self._spare: Vm | None = None

    def make_ready(self, memory_limit_bytes: int) -> None:
        """Make the copy that `take` returns, if it is not there: 0.5 to 1 ms."""
        if self._spare is None:
            self._spare = Vm(self._machine, self._image, memory_limit_bytes)
            self._spare.bind_usual()
            self._spare.rest()

    def take(self, memory_limit_bytes: int) -> Vm:
        """Return a VM in which nothing has run.

        Raises:
            MemoryError: The image is larger than the limit allows.
        """
        spare, self._spare = self._spare, None
        if spare is not None and spare.memory_limit_bytes == memory_limit_bytes:
            return spare
        if spare is not None:
            spare.close()
        return Vm(self._machine, self._image, memory_limit_bytes)
