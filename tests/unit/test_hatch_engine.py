"""The engine's specialiser, on a toy interpreter of the same shape: what it computes must not change."""

import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import wasmtime
from wasmtime import Engine, Func, FuncType, Instance, Memory, Module, Store, ValType

import hatch_engine
from codemode.sandbox.image import load_asset
from hatch_build import SPECIALISER, AssetsError, _specialise
from hatch_engine import specialise
from tests.requirements import requirement

ENGINE = Engine()
TARGETS = 130
CONTEXT, RUNTIME, PROGRAM, TABLE, VALUES = 1024, 2048, 4096, 8192, 16384
COUNTDOWN, POLLS_EVERY = 292, 7
OBJECTS = 8
COUNTED, NUMBER = -1 << 32, 0  # the tags of a value with a reference count and of one without
FREED, TRACED = 64, 68  # addresses of two counters
STOP = 255  # the opcode that no target has
RANDOM_PROGRAMS = 200

COUNT = "i32.const {at} i32.const {at} i32.load i32.const 1 i32.add i32.store"
TRACE = """
    local.get 0 i32.load offset=8 i32.load8_u offset=761 i32.const 128 i32.and
    if call $trace end"""
FREE_RT = f"""
  (func $free_rt (param i32 i64) (local i32 i32 i32)
    global.get 0 i32.const 16 i32.sub local.tee 4 global.set 0
    block
      local.get 1 i64.const -38654705664 i64.lt_u br_if 0
      local.get 1 i32.wrap_i64 local.tee 2 i32.const 4 i32.sub local.tee 3 local.get 3 i32.load
      local.tee 3 i32.const 1 i32.sub i32.store local.get 3 i32.const 1 i32.gt_s br_if 0
      {COUNT.format(at=FREED)}
    end
    local.get 4 i32.const 16 i32.add global.set 0)"""
WORKERS = f"""
  (func $trace {COUNT.format(at=TRACED)})
  (func $free (param i32 i64) local.get 0 i32.load offset=8 local.get 1 call $free_rt)
  (func $set_value (param i32 i32 i64) (local i64)
    local.get 1 i64.load local.set 3 local.get 1 local.get 2 i64.store local.get 0 local.get 3 call $free)
  (func $poll (param i32) (result i32) (local i32)
    local.get 0 local.get 0 i32.load offset={COUNTDOWN} local.tee 1 i32.const 1 i32.sub i32.store offset={COUNTDOWN}
    local.get 1 i32.const 1 i32.le_s
    if (result i32) local.get 0 i32.const {POLLS_EVERY} i32.store offset={COUNTDOWN} call $interrupt
    else i32.const 0 end)"""


def target(number: int) -> str:
    """Return what one of the interpreter's targets does: add to the sum, then free, set, poll, or nothing."""
    slot = VALUES + 8 * (number % 40)
    work = (
        f"local.get 0 i32.const {slot} i64.load call $free",
        f"local.get 0 i32.const {slot} i32.const {slot + 8} i64.load call $set_value",
        "local.get 0 call $poll if local.get 2 return end",
        "i64.const 5 drop f64.const 0.5 drop f32.const 2 drop",
    )[number % 4]
    return f"local.get 2 i32.const 31 i32.mul i32.const {number} i32.add local.set 2 {work} {TRACE} br $next"


def table() -> list[int]:
    """Return where each opcode goes: two of them to numbers that no target has."""
    return [2 + opcode * 7 % TARGETS for opcode in range(254)] + [1, TARGETS + 2]


def engine(extra: str = "", free_rt: str = FREE_RT, trace: str = TRACE) -> bytes:
    """Return the toy: a sum over a program's opcodes, with the work that each of them asks for."""
    labels = " ".join(f"$t{number}" for number in range(TARGETS))
    opened = "".join(f"(block $t{number} " for number in reversed(range(TARGETS)))
    bodies = "".join(f") {target(number)}\n" for number in range(TARGETS))
    data = "".join(f"\\{byte:02x}" for byte in struct.pack("<256I", *table()))
    text = f"""(module
      (import "env" "interrupt" (func $interrupt (result i32)))
      (memory (export "memory") 1) (global (mut i32) (i32.const 65536))
      {free_rt} {WORKERS} {extra}
      (func (export "run") (param i32 i32) (result i32) (local i32 i32)
        (loop $next (block $default
          {opened}
            local.get 1 i32.load8_u local.set 3 local.get 1 i32.const 1 i32.add local.set 1
            local.get 3 i32.const 2 i32.shl i32.load offset={TABLE} i32.const 2 i32.sub
            br_table {labels} $default
          {bodies}
        ))
        local.get 2)
      (data (i32.const {TABLE}) "{data}"))"""
    return bytes(wasmtime.wat2wasm(text.replace(TRACE, trace)))


class Outcome(NamedTuple):
    """All that a run can be told by."""

    result: int
    memory: bytes
    polls: list[tuple[int, int]]  # the counter of frees, and of the number of the poll, at each poll


@cache
def compiled(wasm: bytes) -> Module:
    return Module(ENGINE, wasm)


def run(wasm: bytes, program: bytes, stop_at: int = 1 << 30, flags: int = 0) -> Outcome:
    """Run a program in a fresh toy whose values are numbers and objects in turn."""
    store = Store(ENGINE)
    polls: list[tuple[int, int]] = []
    memory: Memory

    def read_u32(address: int) -> int:
        return struct.unpack("<I", memory.read(store, address, address + 4))[0]

    def interrupt() -> int:
        polls.append((read_u32(FREED), len(polls)))
        return int(len(polls) >= stop_at)

    imported = Func(store, FuncType([], [ValType.i32()]), interrupt)
    exports: Any = Instance(store, compiled(wasm), [imported]).exports(store)
    memory = exports["memory"]
    memory.write(store, struct.pack("<I", RUNTIME), CONTEXT + 8)
    memory.write(store, struct.pack("<I", POLLS_EVERY), CONTEXT + COUNTDOWN)
    memory.write(store, bytes([flags]), RUNTIME + 761)
    memory.write(store, program, PROGRAM)
    for slot in range(42):
        place = VALUES + 1024 + 16 * (slot % OBJECTS)
        memory.write(store, struct.pack("<I", 3), place - 4)  # its reference count
        value = COUNTED | place if slot % 2 else NUMBER | slot
        memory.write(store, struct.pack("<q", value), VALUES + 8 * slot)
    result = exports["run"](store, CONTEXT, PROGRAM)
    return Outcome(result, bytes(memory.read(store, 0, memory.data_len(store))), polls)


@pytest.fixture(scope="module")
def plain() -> bytes:
    return engine()


@pytest.fixture(scope="module")
def fast(plain: bytes) -> bytes:
    return specialise(plain)


def test_every_opcode_does_what_it_did(plain: bytes, fast: bytes) -> None:
    for opcode in range(256):
        program = bytes([opcode] * 9 + [STOP])
        assert run(fast, program) == run(plain, program), opcode


@requirement("packaging:engine:same")
def test_programs_compute_free_and_poll_as_before(plain: bytes, fast: bytes) -> None:
    """The result, every byte of the memory, and what had been freed at each poll are the same."""
    dice = random.Random(1)
    freed = polled = 0
    for _ in range(RANDOM_PROGRAMS):
        program = bytes([*dice.choices(range(254), k=dice.randrange(200)), STOP])
        stop_at = dice.randrange(1, 9)
        before, after = run(plain, program, stop_at), run(fast, program, stop_at)
        assert after == before
        freed += struct.unpack_from("<I", before.memory, FREED)[0]
        polled += len(before.polls)

    assert freed > RANDOM_PROGRAMS
    assert polled > RANDOM_PROGRAMS


def test_the_dump_flags_are_asked_no_more(plain: bytes, fast: bytes) -> None:
    program = bytes([1, 2, 3, STOP])

    def traced(wasm: bytes) -> int:
        return struct.unpack_from("<I", run(wasm, program, flags=128).memory, TRACED)[0]

    assert traced(plain) == 3
    assert traced(fast) == 0


def test_what_is_specialised_already_is_refused(fast: bytes) -> None:
    with pytest.raises(ValueError, match="an interpreter that tests its dump flags is there 0 times, not once"):
        specialise(fast)


CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a function twice": (
        lambda: engine(extra=FREE_RT.replace("$free_rt", "$other")),
        "JS_FreeValueRT is there 2 times, not once",
    ),
    "a function that differs": (
        lambda: engine(free_rt=FREE_RT.replace("i32.const 16 i32.sub", "i32.const 32 i32.sub")),
        "JS_FreeValueRT is there 0 times, not once",
    ),
    "a test with an else": (
        lambda: engine(trace=TRACE.replace("call $trace", "call $trace else call $trace")),
        "a test of the dump flags has an else",
    ),
    "another import": (
        lambda: bytes(wasmtime.wat2wasm('(module (import "e" "m" (memory 1)) (func) (data (i32.const 0) "a"))')),
        "it imports something that is not a function",
    ),
    "no data": (lambda: bytes(wasmtime.wat2wasm('(module (import "e" "f" (func)) (func))')), "it has no section 11"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_engine_of_another_shape_is_refused_by_what_is_wrong(name: str) -> None:
    make, message = CASES[name]

    with pytest.raises(ValueError, match=f"^{message}$"):
        specialise(make())


def test_an_instruction_that_is_not_known_is_refused() -> None:
    wasm = engine(extra="(func (drop (i32x4.splat (i32.const 1))))")
    module = hatch_engine._Module(wasm)
    vector = next(number for number, body in module.bodies.items() if b"\xfd\x11" in body)

    with pytest.raises(ValueError, match="instruction 0xfd is not known"):
        module.read(vector)


def test_the_shipped_engine_is_read_and_written_without_a_change() -> None:
    """Every instruction of its 1,700 functions is understood: taken apart and put together, it is the same file."""
    wasm = load_asset("quickjs.wasm").data
    module = hatch_engine._Module(wasm)

    assert module.encode() == wasm
    for number, body in module.bodies.items():
        assert hatch_engine._body(*module.read(number)) == body


@requirement("packaging:engine:specialised")
def test_the_shipped_engine_is_the_specialised_one() -> None:
    with pytest.raises(ValueError, match="an interpreter that tests its dump flags is there 0 times"):
        specialise(load_asset("quickjs.wasm").data)


@requirement("packaging:engine:refused")
def test_a_build_with_an_unknown_engine_ends_with_one_sentence(tmp_path: Path, plain: bytes, fast: bytes) -> None:
    package = tmp_path / "node_modules/quickjs-wasi"
    package.mkdir(parents=True)
    (tmp_path / SPECIALISER.name).write_bytes((Path(__file__).parents[2] / SPECIALISER).read_bytes())

    (package / "quickjs.wasm").write_bytes(plain)
    _specialise(tmp_path)
    assert (tmp_path / "quickjs.wasm").read_bytes() == fast

    (package / "quickjs.wasm").write_bytes(fast)
    with pytest.raises(AssetsError) as caught:
        _specialise(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("cannot build the guest's assets: quickjs.wasm of quickjs-wasi is not the engine")
    assert message.endswith("an interpreter that tests its dump flags is there 0 times, not once")
