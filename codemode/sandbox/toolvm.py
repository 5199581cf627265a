"""A script of ours that reads hostile text, asked with JSON and answering with JSON.

Parsing hostile source is hostile work too: each question gets a fresh copy of the script's
image, so that nothing of one cell is there when the next one is parsed. `toolchain.py` asks.
"""

import json
from collections.abc import Callable

from codemode.core.types import Json
from codemode.sandbox.engine import OutOfMemory, Stock, ThrownValue, Vm
from codemode.sandbox.image import Image
from codemode.sandbox.wasm import Machine, TrapError

_MEMORY_BYTES = 96 << 20  # parsing 64 KiB of the densest source took 30 MiB


class ToolVm:
    """The copies of one image, each asked one question."""

    def __init__(self, machine: Machine, load: Callable[[], Image], names: tuple[str, ...]) -> None:
        """Name the image's entry points, in their order; the image is loaded at the first question."""
        self._machine = machine
        self._load = load
        self._names = names
        self._stock: Stock | None = None
        self._asked: Vm | None = None  # the last question's, freed when nobody waits

    def make_spare(self) -> None:
        """Free the last question's copy and make the next one's, if there was a question: 1 ms."""
        self._free_asked()
        if self._stock is not None:
            self._stock.make_ready(_MEMORY_BYTES)

    def ask(self, name: str, request: Json, deadline: float) -> Json:
        """Call an entry point with a JSON value and return its JSON answer.

        Raises:
            TurnInterrupted: The deadline (of `time.monotonic`) passed.
            OutOfMemory: The source needs more memory than parsing may have.
        """
        if self._stock is None:
            self._stock = Stock(self._machine, self._load())
        self._free_asked()
        vm = self._stock.take(_MEMORY_BYTES)
        try:
            vm.arm(deadline)
            text = vm.new_text(json.dumps(request).encode())
            answer = vm.call(vm.entries[self._names.index(name)], text)
            return json.loads(vm.read_text(answer))
        except (TrapError, ThrownValue) as error:
            raise OutOfMemory from error
        finally:
            vm.rest()
            self._asked = vm
            if vm.memory_bytes() > len(vm.image.memory):  # the cell may need what it took
                self._free_asked()

    def _free_asked(self) -> None:
        if self._asked is not None:
            self._asked.close()
            self._asked = None
