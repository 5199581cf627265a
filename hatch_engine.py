"""Specialises the interpreter inside `quickjs.wasm`: the same program, without what the build left in its way.

The package's build asks before each bytecode whether to print it, and calls functions where
a native build inlines their first test. `specialise` rewrites four things; what the engine
computes, when it asks `host_interrupt` and what it allocates stay as they were:

1. *trace*: the interpreter's tests of the dump flags. Only the export `JS_SetDumpFlags` sets
   them, which nothing here calls.
2. *dispatch*: a computed `goto` became a load from a constant table of numbers and a branch by
   that number. One branch by the opcode goes to the same places.
3. *free*: `JS_FreeValueRT` makes room on the stack before it sees that a value needs no
   freeing. What only looks at the value and counts down happens before.
4. *inline*: the interpreter tests for itself what nearly always ends `JS_FreeValue`,
   `set_value` and the countdown to the next interrupt poll, and calls them for the rest.

Functions are found by their instructions, never by their number. An engine in which one is
missing, or there twice, is refused.
"""

import struct
from collections.abc import Iterator, Sequence

_TYPES, _IMPORTS, _FUNCTIONS, _CODE, _DATA = 1, 2, 3, 10, 11
_I32, _I64 = b"\x7f", b"\x7e"
_OPCODES = 256
_MANY = 100  # trace tests, or targets of a branch, that only an interpreter has
_BLOCK_TYPES = {"void": b"\x40", "i32": _I32}
# a value at or above it, as an unsigned number, is a pointer with a reference count
_COUNTED = -38654705664

_WORDS = {
    "block": 0x02, "loop": 0x03, "if": 0x04, "else": 0x05, "end": 0x0B, "br_if": 0x0D, "br_table": 0x0E,
    "call": 0x10, "drop": 0x1A, "local.get": 0x20, "local.set": 0x21, "local.tee": 0x22,
    "global.get": 0x23, "global.set": 0x24, "i32.load": 0x28, "i64.load": 0x29, "i32.load8_u": 0x2D,
    "i32.store": 0x36, "i64.store": 0x37, "i32.const": 0x41, "i64.const": 0x42, "i32.gt_s": 0x4A,
    "i32.le_s": 0x4C, "i64.lt_u": 0x54, "i64.ge_u": 0x5A, "i32.sub": 0x6B, "i32.and": 0x71, "i32.shl": 0x74,
    "i32.wrap_i64": 0xA7,
}  # fmt: skip
_OPENS = {_WORDS["block"], _WORDS["loop"], _WORDS["if"]}
# how many numbers follow an opcode; `br_table`, the floats and the prefix 0xfc are read apart
_OPERANDS = (
    dict.fromkeys((0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, 0xD1, *range(0x45, 0xC5)), 0)
    | dict.fromkeys((*range(0x02, 0x05), 0x0C, 0x0D, 0x10, *range(0x20, 0x27), 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2), 1)
    | dict.fromkeys((0x11, *range(0x28, 0x3F)), 2)
)
_BULK_OPERANDS = {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}  # after the prefix 0xfc

# ---- what is looked for, and what takes its place ----

_TRACE = "i32.load8_u 0 761; i32.const 128; i32.and; if void"
_FREE_RT_STARTS = f"""
    global.get 0; i32.const 16; i32.sub; local.tee 4; global.set 0; block void
    local.get 1; i64.const {_COUNTED}; i64.lt_u; br_if 0
    local.get 1; i32.wrap_i64; local.tee 2; i32.const 4; i32.sub; local.tee 3; local.get 3; i32.load 2 0
    local.tee 3; i32.const 1; i32.sub; i32.store 2 0; local.get 3; i32.const 1; i32.gt_s; br_if 0"""
_FREE_RT = f"""
    local.get 1; i64.const {_COUNTED}; i64.ge_u; if void
      local.get 1; i32.wrap_i64; i32.const 4; i32.sub; local.tee 2; i32.load 2 0; local.tee 3; i32.const 1; i32.gt_s
      if void; local.get 2; local.get 3; i32.const 1; i32.sub; i32.store 2 0
      else; local.get 0; local.get 1; call {{whole}}; end
    end; end"""
_FREE = "local.get 0; i32.load 2 8; local.get 1; call {free_rt}; end"
_SET_VALUE = """
    local.get 1; i64.load 3 0; local.set 3; local.get 1; local.get 2; i64.store 3 0
    local.get 0; local.get 3; call {free}; end"""
_POLL_STARTS = """
    local.get 0; local.get 0; i32.load 2 292; local.tee 1; i32.const 1; i32.sub; i32.store 2 292
    local.get 1; i32.const 1; i32.le_s; if i32"""
_INLINE_FREE = f"""
    local.tee {{old}}; i64.const {_COUNTED}; i64.ge_u
    if {{drop}}; local.get {{old}}; call {{free}}; else; drop; end"""
_INLINE_SET_VALUE = (
    """
    local.set {new}; local.tee {at}; i64.load 3 0; local.set {old}; local.get {at}; local.get {new}; i64.store 3 0
    local.get {old}"""
    + _INLINE_FREE
)
_INLINE_POLL = """
    local.tee {at}; i32.load 2 292; local.tee {left}; i32.const 1; i32.gt_s
    if i32; local.get {at}; local.get {left}; i32.const 1; i32.sub; i32.store 2 292; i32.const 0
    else; local.get {at}; call {poll}; end"""


def specialise(wasm: bytes) -> bytes:
    """Return the engine with its interpreter specialised.

    Raises:
        ValueError: It is not an engine that this was written for; the message says what is missing.
    """
    module = _Module(wasm)
    interpreter = _drop_traces(module)
    _branch_by_opcode(module, interpreter)
    free_rt = _find(module, "JS_FreeValueRT", _FREE_RT_STARTS)
    free = _find(module, "JS_FreeValue", _FREE.format(free_rt=free_rt))
    set_value = _find(module, "set_value", _SET_VALUE.format(free=free))
    poll = _find(module, "the countdown to a poll", _POLL_STARTS)
    whole = module.append_copy(free_rt)
    module.bodies[free_rt] = _body([_group(2, _I32)], _assemble(_FREE_RT.format(whole=whole)))
    _inline(module, interpreter, {"free": free, "set_value": set_value, "poll": poll})
    return module.encode()


def _find(module: "_Module", name: str, start: str) -> int:
    """Return the number of the one function whose instructions start so."""
    wanted = b"".join(_assemble(start))
    found = [number for number, body in module.bodies.items() if body.startswith(wanted, _split(body)[1])]
    if len(found) != 1:
        raise ValueError(f"{name} is there {len(found)} times, not once")
    return found[0]


def _drop_traces(module: "_Module") -> int:
    """Remove the interpreter's tests of the dump flags with what they guard; return its number."""
    trace = _assemble(_TRACE)
    found = [number for number, body in module.bodies.items() if body.count(b"".join(trace)) >= _MANY]
    if len(found) != 1:
        raise ValueError(f"an interpreter that tests its dump flags is there {len(found)} times, not once")
    groups, code = module.read(found[0])
    kept: list[bytes] = []
    at = 0
    while at < len(code):
        if code[at : at + len(trace)] == trace:
            at = _end_of_if(code, at + len(trace))
            _drop_loaded(kept)  # the address of the flags
        else:
            kept.append(code[at])
            at += 1
    module.bodies[found[0]] = _body(groups, kept)
    return found[0]


def _drop_loaded(code: list[bytes]) -> None:
    """Drop the value that the last instructions load, or do not load it at all where only a local is read for it."""
    if code[-1][0] == _WORDS["i32.load"]:
        code.pop()  # of the context, a live object: it cannot trap
    if code[-1][0] == _WORDS["local.get"]:
        code.pop()
    else:
        code.append(_word("drop"))


def _end_of_if(code: Sequence[bytes], at: int) -> int:
    """Return where the instructions go on after an `if` without `else` whose first one is at `at`."""
    depth = 1
    while depth:
        opcode = code[at][0]
        depth += (opcode in _OPENS) - (opcode == _WORDS["end"])
        if depth == 1 and opcode == _WORDS["else"]:
            raise ValueError("a test of the dump flags has an else")
        at += 1
    return at


def _branch_by_opcode(module: "_Module", interpreter: int) -> None:
    """Replace `table[opcode] - 2` and a branch by that number by a branch by the opcode itself."""
    groups, code = module.read(interpreter)
    before = _assemble("i32.const 2; i32.shl; i32.load 2 0; i32.const 2; i32.sub")
    shape = [word[:1] for word in before]
    for at in range(len(code) - len(shape)):
        branch, window = code[at + len(shape)], code[at : at + len(shape)]
        if branch[0] != _WORDS["br_table"] or [word[:1] for word in window] != shape:
            continue
        targets = _targets(branch)
        if len(targets) < _MANY or window[0] != before[0] or window[3] != before[3]:
            continue
        table = struct.unpack(f"<{_OPCODES}I", module.constant(_read(window[2], 2)[0], 4 * _OPCODES))
        direct = [targets[number - 2] if 2 <= number < len(targets) + 1 else targets[-1] for number in table]
        code[at : at + len(shape) + 1] = [
            _word("br_table") + _vector([_unsigned(n) for n in direct]) + _unsigned(targets[-1])
        ]
        module.bodies[interpreter] = _body(groups, code)
        return
    raise ValueError("the interpreter's dispatch is not where it was")


def _inline(module: "_Module", interpreter: int, numbers: dict[str, int]) -> None:
    """Replace the interpreter's calls by the tests that nearly always end them."""
    groups, code = module.read(interpreter)
    first = module.count_parameters(interpreter) + sum(_read(group, 0)[0] for group in groups)
    names = numbers | dict(zip(("old", "new", "at", "left"), range(first, first + 4), strict=True))
    names["drop"] = module.type_number(b"\x60\x01" + _I32 + b"\x00")
    inlined = {
        _word("call") + _unsigned(numbers[name]): _assemble(text.format(**names))
        for name, text in (("free", _INLINE_FREE), ("set_value", _INLINE_SET_VALUE), ("poll", _INLINE_POLL))
    }
    replaced = [word for each in code for word in inlined.get(each, [each])]
    module.bodies[interpreter] = _body([*groups, _group(2, _I64), _group(2, _I32)], replaced)


# ---- the format ----


class _Module:
    """A module's sections; its types, and its functions by number, are apart to be changed."""

    def __init__(self, wasm: bytes) -> None:
        self._head = wasm[:8]
        self._sections: list[tuple[int, bytes]] = []
        at = 8
        while at < len(wasm):
            size, start = _read(wasm, at + 1)
            self._sections.append((wasm[at], wasm[start : start + size]))
            at = start + size
        sections = dict(self._sections)
        if missing := {_TYPES, _IMPORTS, _FUNCTIONS, _CODE, _DATA} - sections.keys():
            raise ValueError(f"it has no section {min(missing)}")
        self._types = list(_read_types(sections[_TYPES]))
        self._type_of = dict(enumerate(_read_numbers(sections[_FUNCTIONS]), _count_imports(sections[_IMPORTS])))
        self._data = sections[_DATA]
        self.bodies = dict(zip(self._type_of, _read_blobs(sections[_CODE]), strict=True))

    def encode(self) -> bytes:
        """Return the module's bytes."""
        changed = {
            _TYPES: _vector(self._types),
            _FUNCTIONS: _vector([_unsigned(number) for number in self._type_of.values()]),
            _CODE: _vector([_unsigned(len(body)) + body for body in self.bodies.values()]),
        }
        written = ((number, changed.get(number, content)) for number, content in self._sections)
        return self._head + b"".join(bytes([number]) + _unsigned(len(text)) + text for number, text in written)

    def read(self, number: int) -> tuple[list[bytes], list[bytes]]:
        """Return a function's groups of locals, and its instructions."""
        body = self.bodies[number]
        groups, start = _split(body)
        return groups, list(_decode(body, start))

    def append_copy(self, number: int) -> int:
        """Add a function that is the same as another; return its number."""
        added = max(self.bodies) + 1
        self.bodies[added], self._type_of[added] = self.bodies[number], self._type_of[number]
        return added

    def count_parameters(self, number: int) -> int:
        """Return how many parameters a function has."""
        return self._types[self._type_of[number]][1]

    def type_number(self, wanted: bytes) -> int:
        """Return the number of a type, which is added if it is missing."""
        if wanted not in self._types:
            self._types.append(wanted)
        return self._types.index(wanted)

    def constant(self, address: int, size: int) -> bytes:
        """Return what the data segments put at an address of the fresh memory."""
        for start, content in _read_segments(self._data):
            if start <= address and address + size <= start + len(content):
                return content[address - start : address - start + size]
        raise ValueError(f"no data segment holds {size} bytes at {address}")


def _decode(body: bytes, at: int) -> Iterator[bytes]:
    """Yield each instruction from `at` on."""
    while at < len(body):
        start, opcode = at, body[at]
        at += 1
        if opcode == _WORDS["br_table"]:
            count, at = _read(body, at)
            numbers = count + 1
        elif opcode == 0xFC:
            kind, at = _read(body, at)
            numbers = _BULK_OPERANDS.get(kind, 0)
        elif opcode in (0x43, 0x44):  # a float's bytes
            numbers, at = 0, at + (4 if opcode == 0x43 else 8)
        elif opcode in _OPERANDS:
            numbers = _OPERANDS[opcode]
        else:
            raise ValueError(f"instruction {opcode:#x} is not known")
        for _ in range(numbers):
            at = _skip(body, at)
        yield body[start:at]


def _assemble(text: str) -> list[bytes]:
    """Return the instructions of a text: words with their numbers, ended by semicolons or lines."""
    code = []
    for line in text.replace("\n", ";").split(";"):
        if word := line.split():
            name, *operands = word
            write = _signed if name in {"if", "block"} or name.endswith(".const") else _unsigned
            numbers = (_BLOCK_TYPES.get(operand) or write(int(operand)) for operand in operands)
            code.append(_word(name) + b"".join(numbers))
    return code


def _word(name: str) -> bytes:
    return bytes([_WORDS[name]])


def _targets(branch: bytes) -> list[int]:
    """Return the labels of a `br_table`, the default last."""
    count, at = _read(branch, 1)
    targets = []
    for _ in range(count + 1):
        target, at = _read(branch, at)
        targets.append(target)
    return targets


def _body(groups: Sequence[bytes], code: Sequence[bytes]) -> bytes:
    return _vector(groups) + b"".join(code)


def _group(count: int, value_type: bytes) -> bytes:
    return _unsigned(count) + value_type


def _split(body: bytes) -> tuple[list[bytes], int]:
    """Return a function's groups of locals, and where its instructions start."""
    groups = []
    count, at = _read(body, 0)
    for _ in range(count):
        end = _skip(body, at) + 1
        groups.append(body[at:end])
        at = end
    return groups, at


def _count_imports(section: bytes) -> int:
    count, at = _read(section, 0)
    for _ in range(count):
        for _ in ("module", "name"):
            size, at = _read(section, at)
            at += size
        if section[at] != 0:
            raise ValueError("it imports something that is not a function")
        at = _skip(section, at + 1)
    return count


def _read_types(section: bytes) -> Iterator[bytes]:
    count, at = _read(section, 0)
    for _ in range(count):
        start, at = at, at + 1
        for _ in ("parameters", "results"):
            size, at = _read(section, at)
            at += size
        yield section[start:at]


def _read_numbers(section: bytes) -> Iterator[int]:
    count, at = _read(section, 0)
    for _ in range(count):
        number, at = _read(section, at)
        yield number


def _read_blobs(section: bytes) -> Iterator[bytes]:
    count, at = _read(section, 0)
    for _ in range(count):
        size, at = _read(section, at)
        yield section[at : at + size]
        at += size


def _read_segments(section: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield `(address, bytes)` of the data segments, each of which names an address."""
    count, at = _read(section, 0)
    for _ in range(count):
        if section[at : at + 2] != b"\x00\x41":
            raise ValueError("a data segment has no fixed address")
        address, at = _read(section, at + 2)  # below 2 GiB, so that its sign does not matter
        size, at = _read(section, at + 1)
        yield address, section[at : at + size]
        at += size


def _vector(parts: Sequence[bytes]) -> bytes:
    return _unsigned(len(parts)) + b"".join(parts)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned LEB128 number at `at`, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def _skip(data: bytes, at: int) -> int:
    return _read(data, at)[1]


def _unsigned(number: int) -> bytes:
    """Return the LEB128 form of a number that is not negative."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))


def _signed(number: int) -> bytes:
    """Return the signed LEB128 form of a number."""
    written = bytearray()
    while not -0x40 <= number < 0x40:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number & 0x7F))
