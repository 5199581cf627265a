"""The bottom bar: what there is, what is open, how the VM fares, how long the last cell took."""

import time
from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples

from codemode.catalog import Catalog
from codemode.render.words import counted, duration, size
from codemode.repl.evaluator import Evaluator
from codemode.repl.record import Record

_GAP = "  ·  "


class Toolbar:
    """Draws the bar; `fault` is shown in it until the next input.

    Contract: repl:bar:shows
    """

    def __init__(
        self, catalog: Catalog, evaluator: Evaluator, record: Record, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Draw what these say."""
        self.fault = ""
        self._tools = counted(catalog.size, "tool")
        self._evaluator = evaluator
        self._record = record
        self._clock = clock

    def __call__(self) -> StyleAndTextTuples:
        """Return the bar's parts with their styles."""
        waiting = len(self._evaluator.waiting)
        parts: StyleAndTextTuples = [("", f" {self._tools}")]
        if waiting:
            parts += [("", _GAP), ("class:bottom-toolbar.busy", f"{counted(waiting, 'open run')}")]
        parts += [("", f"{_GAP}{self._vm()}")]
        if self._evaluator.language == "typescript":
            parts += [("", f"{_GAP}TypeScript")]
        if self._record.last_ms is not None:
            parts += [("", f"{_GAP}last {duration(self._record.last_ms)}")]
        if self.fault:
            parts += [("", _GAP), ("class:bottom-toolbar.fault", self.fault)]
        return parts

    def _vm(self) -> str:
        if self._evaluator.fresh:
            return "a fresh VM for each cell"
        state = self._evaluator.states.current
        if state.snapshot is None:
            return "no VM yet"
        age = duration(max(round(self._clock() - state.began_s), 1) * 1000)
        return f"VM {size(state.size)}, {counted(state.cells, 'cell')}, {age.replace('.0', '')}"
