"""One cell in its VM: start it, deliver to it, take what it recorded, put it to rest.

A turn is: run guest code until nothing is left to do, then take the queue. It ends
suspended (requests are open) or completed, or raises one of our errors; `rows` holds what
was recorded in each case, so that output before a failure is kept.
"""

import json
import re
from contextlib import suppress
from typing import NamedTuple

from codemode.core.errors import (
    CodeModeError,
    ErrorCode,
    GuestError,
    MemoryLimit,
    NestedToolFailed,
    SnapshotRestore,
    TooManyPendingCalls,
    TurnTimeout,
)
from codemode.core.limits import MAX_ERROR_BYTES
from codemode.core.types import Json, Language
from codemode.sandbox.difference import Difference
from codemode.sandbox.engine import (
    EVAL_ASYNC,
    EVAL_COMPILE_ONLY,
    EVAL_GLOBAL,
    FULFILLED,
    REJECTED,
    OutOfMemory,
    Registers,
    Rejection,
    Stock,
    ThrownValue,
    TurnInterrupted,
    Vm,
)
from codemode.sandbox.image import Image
from codemode.sandbox.snapshot import encode_snapshot, parse_snapshot
from codemode.sandbox.toolchain import Fault, Place, Prepared, Toolchain
from codemode.sandbox.wasm import Machine, TrapError

_BEGIN, _TAKE, _DELIVER, _FINISH, _EXPLAIN, _FINISH_SCRIPT = range(6)
_NO_ROWS = b"[]"
_SMALL_CHARS = 1 << 16  # a text of the scope that costs nothing to give
_NAMED = {"tools": "ALL_TOOLS", "names": "tools", "mcp": "MCP", "files": "API"}
_DYNAMIC = re.compile(r"\\u|[tT]his|eval|Function|constructor")  # reaches a global without naming it
_ENDS = (ThrownValue, TurnInterrupted, OutOfMemory, TrapError, CodeModeError)  # how a turn is cut short
_NO_ROOM_FOR_REGEX = "SyntaxError: out of memory"  # its compiler asks for room in large steps, and calls it so
_POSITION = re.compile(r"\bcell\.(?:js|ts):(\d+):(\d+)")
_BRIDGE_ERRORS: dict[str, type[CodeModeError]] = {
    ErrorCode.NESTED_TOOL_FAILED: NestedToolFailed,
    ErrorCode.TOO_MANY_PENDING_TOOL_CALLS: TooManyPendingCalls,
}


class Engine(NamedTuple):
    """What every cell of a worker shares: compiled code, boot image, its copies, what compares with it, parsers."""

    machine: Machine
    image: Image
    stock: Stock
    difference: Difference
    toolchain: Toolchain
    build: str


class Scope(NamedTuple):
    """The guest's globals of one run, as the JSON texts that the prelude parses when touched."""

    tools: str
    names: str
    mcp: str
    files: str
    namespaces: str

    def globals(self) -> list[str]:
        """Return the names of the plugin namespaces, each a global of the guest."""
        return [entry["name"] for entry in json.loads(self.namespaces)]

    def for_source(self, source: str) -> "Scope":
        """Return the scope without the large texts that a source never names: empty, which the prelude reports.

        Ten thousand tools are a megabyte, and putting that into a VM takes longer than all the rest.
        A source that may reach a global without writing its name gets everything.

        Contract: sandbox:scope:named
        """
        if _DYNAMIC.search(source):
            return self
        texts = self._asdict()
        unused = {key: "" for key, name in _NAMED.items() if len(texts[key]) > _SMALL_CHARS and name not in source}
        return self._replace(**unused)


class Program(NamedTuple):
    """What a cell runs; with `keep` it is a global script, after which the VM stays."""

    source: str
    language: Language
    keep: bool = False


class Cell:
    """A cell and its VM. `rows` is what the last turn recorded, as the queue's JSON text."""

    def __init__(self, engine: Engine, vm: Vm) -> None:
        """Wrap a VM in which nothing of the author's has run."""
        self.rows = _NO_ROWS
        self._engine = engine
        self._vm = vm
        self._deadline = float("inf")
        self._prepared: Prepared | None = None
        self._main = 0  # the handle of the cell's own promise
        self._returned = False
        self._keeps = False
        self._is_fit = True  # no limit and no trap cut its work short

    @classmethod
    def create(cls, engine: Engine, memory_limit_bytes: int, base: bytes = b"") -> "Cell":
        """Make a cell in a fresh VM, or in that of the cell that left `base` behind.

        Raises:
            SnapshotRestore: The base is damaged or of another build.
            MemoryLimit: It holds more than the run may have.
        """
        if base:
            return cls.restore(engine, base, memory_limit_bytes)
        return cls(engine, engine.stock.take(memory_limit_bytes))

    @classmethod
    def restore(cls, engine: Engine, data: bytes, memory_limit_bytes: int) -> "Cell":
        """Make a cell from its snapshot.

        Raises:
            SnapshotRestore: The snapshot is damaged or of another build.
            MemoryLimit: It holds more than the run may have.
        """
        changes, head = parse_snapshot(engine.build, data, memory_limit_bytes)
        vm = engine.stock.take(memory_limit_bytes)
        try:
            vm.become(changes, engine.difference, Registers(*head["registers"]))
        except (MemoryError, TrapError) as error:
            vm.close()
            raise SnapshotRestore(f"the snapshot's memory cannot be restored: {error}") from error
        except SnapshotRestore:
            vm.close()
            raise
        vm.rejections = {identity: Rejection(promise, reason) for identity, promise, reason in head["rejections"]}
        cell = cls(engine, vm)
        cell._prepared = Prepared("", *head["prepared"])
        cell._main, cell._returned, cell._keeps = head["main"], head["returned"], head["keeps"]
        return cell

    @property
    def may_stay(self) -> bool:
        """Whether a later cell may go on in this VM."""
        return self._keeps and self._is_fit

    def start(self, program: Program, config: Json, scope: Scope, deadline: float) -> bool:
        """Run the cell's first turn; return whether it completed.

        Args:
            program: The author's text, and how to read it.
            config: `{"maxOutput", "maxCalls", "seed": [four 32-bit numbers]}`.
            scope: The guest's globals.
            deadline: Moment of `time.monotonic` at which guest code is interrupted.

        Raises:
            CodeModeError: The source was refused, or the cell failed.
        """
        self._begin_turn(deadline)
        try:
            toolchain = self._engine.toolchain
            prepare = toolchain.prepare_script if program.keep else toolchain.prepare
            prepared = prepare(program.source, program.language, self._compile, deadline)
            self._forget_predecessor()
            self._keeps, self._prepared = program.keep, prepared
            self._begin(config, scope if program.keep else scope.for_source(program.source))
            script = prepared.script.encode("utf-8", "surrogatepass")
            flags = EVAL_ASYNC if prepared.is_script else EVAL_GLOBAL
            self._main = self._vm.evaluate(script, prepared.filename, flags)
            return self._advance()
        except _ENDS as error:
            raise self._failure(error) from None

    def deliver(self, settlements: bytes, deadline: float) -> bool:
        """Deliver settlements, run what follows; return whether the cell completed.

        Raises:
            CodeModeError: The cell failed.
        """
        self._begin_turn(deadline)
        vm = self._vm
        try:
            text = vm.new_text(settlements)
            vm.free(vm.call(vm.entries[_DELIVER], text))
            vm.free(text)
            return self._advance()
        except _ENDS as error:
            raise self._failure(error) from None

    def snapshot(self, max_bytes: int) -> bytes | None:
        """Return the bytes from which `restore` makes this cell again, or None if they are more than `max_bytes`."""
        vm = self._vm
        vm.scrub()
        assert self._prepared is not None
        head = {
            "registers": vm.registers(),
            "main": self._main,
            "returned": self._returned,
            "keeps": self._keeps,
            "rejections": [(identity, *rejection) for identity, rejection in vm.rejections.items()],
            "prepared": self._prepared[1:],  # the script itself has run
        }
        find = vm.changed(self._engine.difference)
        return encode_snapshot(self._engine.build, vm.memory_bytes(), find, head, max_bytes)

    def close(self) -> None:
        """Free the VM."""
        self._vm.close()

    # ---- inside ----

    def _begin_turn(self, deadline: float) -> None:
        self.rows = _NO_ROWS
        self._deadline = deadline
        self._vm.arm(deadline)

    def _compile(self, script: str) -> Fault | None:
        """Ask the engine whether a script is well formed; nothing of it runs."""
        vm = self._vm
        try:
            vm.free(vm.evaluate(script.encode("utf-8", "surrogatepass"), "cell.js", EVAL_COMPILE_ONLY))
        except ThrownValue as thrown:
            fields = json.loads(vm.read_text(vm.call(vm.entries[_EXPLAIN], thrown.handle)))
            found = _POSITION.search(fields["stack"])
            return Fault(fields["message"], Place(int(found[1]), int(found[2])) if found else Place(1, 1))
        return None

    def _forget_predecessor(self) -> None:
        """Let go of what the cell that had this VM before left behind."""
        vm = self._vm
        for rejection in vm.rejections.values():
            vm.free(rejection.promise)
            vm.free(rejection.reason)
        vm.rejections.clear()
        if self._main:
            vm.free(self._main)
        self._main, self._returned = 0, False

    def _begin(self, config: Json, scope: Scope) -> None:
        vm = self._vm
        texts = (json.dumps(config | {"globals": scope.globals()}), *scope)
        handles = [vm.new_text(text.encode()) for text in texts]
        vm.free(vm.call(vm.entries[_BEGIN], *handles))
        for handle in handles:
            vm.free(handle)

    def _advance(self) -> bool:
        vm = self._vm
        vm.drain()
        if not self._returned:
            self._settle_main()
        open_requests = self._take()
        if vm.rejections:
            self._refuse_capped()
        if open_requests:
            return False
        if not self._returned:
            raise GuestError("the cell awaits a promise that nothing can settle any more: no call or timer is open")
        for identity, rejection in vm.rejections.items():
            if identity != vm.identity(self._main):
                raise self._explain(rejection.reason)
        return True

    def _settle_main(self) -> None:
        vm = self._vm
        state = vm.promise_state(self._main)
        if state == REJECTED:
            raise self._explain(vm.promise_result(self._main))
        if state == FULFILLED:
            value = vm.promise_result(self._main)
            self._returned = True
            is_script = self._prepared is not None and self._prepared.is_script
            vm.free(vm.call(vm.entries[_FINISH_SCRIPT if is_script else _FINISH], value))
            vm.free(value)
            vm.drain()

    def _take(self) -> int:
        """Move the queue into `rows` and return how many requests are open."""
        vm = self._vm
        taken = vm.read_text(vm.call_ours(vm.entries[_TAKE]))
        count, _, self.rows = taken.partition(b";")
        return int(count)

    def _refuse_capped(self) -> None:
        """Fail the turn if a call beyond the cap was not caught: nothing of it is dispatched."""
        for rejection in list(self._vm.rejections.values()):
            error = self._explain(rejection.reason)
            if isinstance(error, TooManyPendingCalls):
                raise error

    def _failure(self, error: Exception) -> CodeModeError:
        """Turn what the engine raised into our error, and keep the output of the turn."""
        if isinstance(error, ThrownValue):
            try:
                return self._keep_rows(self._explain(error.handle))
            except _ENDS as worse:  # a getter of what was thrown ran into a limit
                return self._failure(worse)
        if isinstance(error, CodeModeError):
            return self._keep_rows(error)
        self._is_fit = False
        if isinstance(error, TurnInterrupted):
            return self._keep_rows(TurnTimeout("the deadline (timeoutMs) passed while the cell was computing"))
        if isinstance(error, OutOfMemory):
            return self._keep_rows(self._memory_limit())
        self._vm.reset_stack()
        return self._keep_rows(GuestError(f"RangeError: the engine's stack is exhausted ({error})"))

    def _memory_limit(self) -> MemoryLimit:
        limit = self._vm.memory_limit_bytes
        return MemoryLimit(f"the cell needs more memory than it may have: memoryLimitBytes is {limit}")

    def _keep_rows(self, error: CodeModeError) -> CodeModeError:
        with suppress(ThrownValue, TrapError):
            if self.rows is _NO_ROWS:
                self._take()
        return error

    def _explain(self, thrown: int) -> CodeModeError:
        """Describe a thrown value; reading it may run guest code, within the deadline."""
        vm = self._vm
        try:
            fields = json.loads(vm.read_text(vm.call(vm.entries[_EXPLAIN], thrown)))
        except ThrownValue:
            return GuestError("the cell threw a value that cannot be shown")
        if "thrown" in fields:
            return GuestError(_cut(f"the cell threw {json.dumps(fields['thrown'], ensure_ascii=False)}, not an Error"))
        headline = ": ".join(part for part in (fields["name"], fields["message"]) if part)
        if headline == _NO_ROOM_FOR_REGEX and vm.memory_bytes() > vm.memory_limit_bytes // 4:
            return self._memory_limit()
        return _BRIDGE_ERRORS.get(fields["code"], GuestError)(_cut(headline) + self._position(fields["stack"]))

    def _position(self, stack: str) -> str:
        found = _POSITION.search(stack)
        if found is None or self._prepared is None:
            return ""
        reported = [Place(int(found[1]), int(found[2]))]
        with suppress(TurnInterrupted, OutOfMemory):  # a position is not worth another error
            place = self._engine.toolchain.locate(self._prepared, reported, self._deadline)[0]
            return f" ({self._prepared.filename}:{place.line}:{place.column})"
        return ""


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MAX_ERROR_BYTES else data[: MAX_ERROR_BYTES - 3].decode("utf-8", "ignore") + "…"
