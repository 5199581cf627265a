"""WebAssembly through wasmtime's C API: the only file that knows it.

`Machine` is the compiled guest engine with its host imports on one linker, made once per
process. `Instance` is one instantiation with a memory of its own. Calls go through
`wasmtime_func_call_unchecked`: a tenth of the price of `wasmtime.Func`, with the caller
answering for the types; `sandbox/exports.py` is where it does.

The six `env` imports are answered here or by the `Host` that the running instance belongs
to; the WASI ones give time and randomness and refuse everything else. None opens anything.
"""

import ctypes
import os
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NoReturn, Protocol

import wasmtime
from wasmtime import FuncType, Linker, Module, Store, ValType
from wasmtime import _ffi as ffi

from codemode.core.errors import RuntimeUnavailable
from codemode.core.limits import WASM_STACK_BYTES
from codemode.sandbox.exports import EXPORTS, SHAPES, SLOT_WORDS, Bound, Exports

PAGE_BYTES = 65_536
_WASI = "wasi_snapshot_preview1"
_BADF = 8  # WASI: no such descriptor
_pointer = ctypes.c_void_p
# Without argument types of its own, and without giving up the interpreter lock: 0.8 µs, not 3.6.
_call_unchecked = ctypes.PYFUNCTYPE(_pointer, _pointer, _pointer, _pointer, ctypes.c_size_t, _pointer)(
    ("wasmtime_func_call_unchecked", ffi.dll)
)


def native_library() -> str:
    """Return what tells one build of wasmtime from another: native code is bound to it."""
    status = ffi.filename.stat()
    return f"{ffi.filename.name} {status.st_size} {status.st_mtime_ns}"


class TrapError(Exception):
    """The wasm code trapped: its stack or an assertion of the engine gave way.

    The instance may still answer simple calls once its stack pointer is reset, but no more
    guest code may run in it.
    """


class Host(Protocol):
    """What a running instance asks of its owner."""

    def should_stop(self) -> bool:
        """Say whether the guest must be interrupted now. Polled every 10,000 operations or so."""

    def note_rejection(self, promise: int, reason: int, handled: bool) -> None:
        """Take over two value handles of a promise that was rejected, or handled after all."""


def build_engine() -> wasmtime.Engine:
    """Return an engine whose native stack bears deep recursion of the interpreter."""
    config = wasmtime.Config()
    config.max_wasm_stack = WASM_STACK_BYTES
    config.memory_may_move = False  # its address is asked for once, not at every access
    config.memory_init_cow = False  # it would make a memory file, which a locked worker cannot
    # Without it wasmtime refuses a wasm stack of this size; the Python class has no setter.
    ffi.dll.wasmtime_config_async_stack_size_set(config.ptr(), ctypes.c_uint64(WASM_STACK_BYTES))
    return wasmtime.Engine(config)


class NoGuest:
    """The host of an instance that runs only our own code."""

    def should_stop(self) -> bool:
        """Let it run."""
        return False

    def note_rejection(self, promise: int, reason: int, handled: bool) -> None:
        """Keep nothing: our code leaves no promise behind."""


class Machine:
    """The compiled engine with its imports, ready to be instantiated in 20 microseconds.

    One instance runs at a time, so the imports find their owner in `running`.
    """

    def __init__(self, engine: wasmtime.Engine, module: Module) -> None:
        """Define the imports once; every instance shares them."""
        self.engine = engine
        self.module = module
        self.running: Instance | None = None
        self.linker = Linker(engine)
        self._define_imports()

    @classmethod
    def compile(cls, wasm: bytes, name: str) -> "Machine":
        """Compile a module, the engine in about 300 ms; `name` is its file.

        Raises:
            RuntimeUnavailable: They are damaged.
        """
        engine = build_engine()
        try:
            return cls(engine, Module(engine, wasm))
        except wasmtime.WasmtimeError as error:
            reason = str(error).splitlines()[0]
            raise RuntimeUnavailable(f"the engine's file {name} is damaged ({reason}); reinstall codemode") from error

    @classmethod
    def load(cls, artefact: bytes) -> "Machine | None":
        """Load what `serialize` gave, in 2.4 ms; the caller has verified every byte of it.

        Returns:
            None where it was compiled for an engine of another configuration.
        """
        engine = build_engine()
        try:
            return cls(engine, Module.deserialize(engine, artefact))
        except wasmtime.WasmtimeError:
            return None

    def serialize(self) -> bytes:
        """Return the native code, for `load` in another process of this machine."""
        return bytes(self.module.serialize())

    def _define_imports(self) -> None:
        i32, i64 = ValType.i32(), ValType.i64()
        imports: tuple[tuple[str, str, list[ValType], ValType | None, Callable[..., int | None]], ...] = (
            ("env", "host_interrupt", [], i32, self._interrupt),
            ("env", "host_promise_rejection", [i32] * 3, None, self._promise_rejection),
            ("env", "host_call", [i32] * 5, i32, lambda *_: 0),
            ("env", "host_get_timezone_offset", [i32] * 2, i32, lambda *_: 0),  # Date is UTC
            ("env", "host_module_normalize", [i32] * 2, i32, lambda *_: 0),
            ("env", "host_module_load", [i32] * 2, i32, lambda *_: 0),
            (_WASI, "clock_time_get", [i32, i64, i32], i32, self._clock),
            (_WASI, "random_get", [i32, i32], i32, self._random),
            (_WASI, "fd_write", [i32] * 4, i32, lambda *_: _BADF),
            (_WASI, "fd_close", [i32], i32, lambda *_: _BADF),
            (_WASI, "fd_fdstat_get", [i32] * 2, i32, lambda *_: _BADF),
            (_WASI, "fd_seek", [i32, i64, i32, i32], i32, lambda *_: _BADF),
        )
        for module, name, params, result, answer in imports:
            kind = FuncType(params, [] if result is None else [result])
            self.linker.define_func(module, name, kind, answer)

    def _interrupt(self) -> int:
        return 1 if self.running is None or self.running.host.should_stop() else 0

    def _promise_rejection(self, promise: int, reason: int, handled: int) -> None:
        if self.running is not None:
            self.running.host.note_rejection(promise, reason, handled != 0)

    def _clock(self, _clock: int, _precision: int, out: int) -> int:
        if self.running is not None:
            self.running.write(out, time.time_ns().to_bytes(8, "little"))
        return 0

    def _random(self, out: int, size: int) -> int:
        if self.running is not None:
            self.running.write(out, os.urandom(size))
        return 0


class Instance:
    """One instantiation: a store, a memory and the exports that the engine calls.

    Addresses and value handles are plain integers in its memory; they survive being copied
    into another instance, which is what makes snapshots work. Not usable after `close`.
    """

    def __init__(self, machine: Machine, host: Host, memory_limit_bytes: int) -> None:
        """Instantiate with a memory that can never grow beyond the limit."""
        self.machine = machine
        self.host = host
        self.exports = Exports(self._bind)
        self.store = Store(machine.engine)
        self.store.set_limits(memory_size=memory_limit_bytes)
        self._context = self.store._context()  # noqa: SLF001 the C API takes the raw pointer
        self._trap = (ctypes.c_size_t * 1)()  # where a call leaves the address of its trap
        self._kept: tuple[Any, ...] = ()  # ctypes values whose raw addresses the calls below hold
        self._outer: Instance | None = None  # a parser's instance runs while a cell's is alive
        self.enter()
        self._instance = machine.linker.instantiate(self.store, machine.module)._instance  # noqa: SLF001 as above
        self._memory = ctypes.byref(self._export("memory").of.memory)
        base = ctypes.cast(ffi.wasmtime_memory_data(self._context, self._memory), _pointer).value
        self._base = int(base or 0)  # a memory that grows stays where it is: see `build_engine`
        self._known_bytes = 0
        self._words: Any = ()  # the memory as far as it is known, as 32-bit numbers

    def enter(self) -> None:
        """Become the instance that the imports answer to, until it leaves."""
        if self.machine.running is not self:
            self._outer, self.machine.running = self.machine.running, self

    def leave(self) -> None:
        """Give the imports back to the instance that had them before."""
        if self.machine.running is self:
            self.machine.running = self._outer
        self._outer = None

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes out of the memory."""
        self._check(address, size)
        return ctypes.string_at(self._base + address, size)

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes into the memory."""
        self._check(address, len(data))
        ctypes.memmove(self._base + address, data, len(data))

    def copy(self, address: int, size: int, target: "Instance", to: int) -> None:
        """Copy bytes into the memory of another instance."""
        self._check(address, size)
        target._check(to, size)  # noqa: SLF001 of the same class
        ctypes.memmove(target._base + to, self._base + address, size)  # noqa: SLF001 as above

    def read_u32(self, address: int) -> int:
        """Return the unsigned 32-bit number at an address that is a multiple of four."""
        try:
            value: int = self._words[address >> 2]
        except IndexError:
            self._check(address, 4)
            value = self._words[address >> 2]
        return value

    def write_u32(self, address: int, value: int) -> None:
        """Write an unsigned 32-bit number to an address that is a multiple of four."""
        try:
            self._words[address >> 2] = value
        except IndexError:
            self._check(address, 4)
            self._words[address >> 2] = value

    def memory_bytes(self) -> int:
        """Return the present size of the memory."""
        return int(ffi.wasmtime_memory_data_size(self._context, self._memory))

    def grow_to(self, size: int) -> None:
        """Grow the memory to at least this size.

        Raises:
            MemoryError: The limit of this instance forbids it.
        """
        missing = -(-(size - self.memory_bytes()) // PAGE_BYTES)
        if missing > 0:
            before = ctypes.c_uint64()
            error = ffi.wasmtime_memory_grow(self._context, self._memory, missing, ctypes.byref(before))
            if error:
                ffi.wasmtime_error_delete(error)
                raise MemoryError(f"a memory of {size} bytes is beyond this instance's limit")

    def limit_memory(self, size: int) -> None:
        """Forbid growth beyond this size from now on."""
        self.store.set_limits(memory_size=size)

    @cached_property
    def _stack(self) -> Any:
        return ctypes.byref(self._export("__stack_pointer").of.global_)

    @property
    def stack_pointer(self) -> int:
        """The wasm stack pointer; it must be reset after a trap."""
        value = ffi.wasmtime_val_t()
        ffi.wasmtime_global_get(self._context, self._stack, ctypes.byref(value))
        return int(value.of.i32)

    @stack_pointer.setter
    def stack_pointer(self, value: int) -> None:
        raw = ffi.wasmtime_val_t(kind=ffi.WASMTIME_I32, of=ffi.wasmtime_valunion(i32=value))
        error = ffi.wasmtime_global_set(self._context, self._stack, ctypes.byref(raw))
        if error:
            ffi.wasmtime_error_delete(error)
            raise TrapError("the stack pointer cannot be set")

    def close(self) -> None:
        """Free the memory at once rather than at some collection."""
        self.leave()
        self.exports.forget()
        self.store.close()

    def _check(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self._known_bytes:
            self._known_bytes = self.memory_bytes()  # it may have grown since, and it never shrinks
            self._words = (ctypes.c_uint32 * (self._known_bytes // 4)).from_address(self._base)
            if address < 0 or size < 0 or address + size > self._known_bytes:
                raise TrapError(f"{size} bytes at {address} are outside of the memory")

    def _export(self, name: str) -> Any:
        item = ffi.wasmtime_extern_t()
        raw = name.encode()
        found = ffi.wasmtime_instance_export_get(
            self._context, ctypes.byref(self._instance), raw, len(raw), ctypes.byref(item)
        )
        if not found:
            raise TrapError(f"the engine has no export {name}")
        return item

    def _bind(self, name: str) -> Bound:
        func = self._export(name).of.func
        slots = max(EXPORTS[name], 1)
        words = (ctypes.c_int32 * (slots * SLOT_WORDS))()  # argument and result slots of 16 bytes, as plain words
        self._kept += (func, words)
        context = ctypes.cast(self._context, _pointer).value
        fixed = (context, ctypes.addressof(func), ctypes.addressof(words), slots, ctypes.addressof(self._trap))
        return SHAPES[EXPORTS[name]](partial(_call_unchecked, *fixed), words, self._trap, self._fail)

    def _fail(self, error: int | None) -> NoReturn:
        if error:
            failed = ctypes.cast(error, ctypes.POINTER(ffi.wasmtime_error_t))
            raise TrapError(str(wasmtime.WasmtimeError._from_ptr(failed)))  # noqa: SLF001 takes ownership
        raised = ctypes.cast(self._trap[0], ctypes.POINTER(ffi.wasm_trap_t))
        self._trap[0] = 0
        raise TrapError(wasmtime.Trap._from_ptr(raised).message.splitlines()[-1])  # noqa: SLF001 takes ownership
