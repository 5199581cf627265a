"""The runs of a session on a terminal, one a line; the plain twin is `plain.table_text`."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from codemode.render.words import counted, one_line

_MARKS = {"completed": ("✓ ", "green"), "failed": ("✗ ", "red"), "expired": ("✗ ", "red"), "aborted": ("✗ ", "red")}
_OPEN_MARK = ("◌ ", "yellow")
_MAX_RUNS = 40


def render_runs(rows: Sequence[tuple[str, str, str, str]]) -> RenderableType:
    """Return the rows (id, state, age, about) cut to the width; older ones are folded into a count.

    Contract: cli:runs:list
    """
    return _Runs(rows)


class _Runs:
    def __init__(self, rows: Sequence[tuple[str, str, str, str]]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for id_, state, age, about in self.rows[:_MAX_RUNS]:
            taken = len(id_) + 2 + 11 + 8
            rest = one_line(about, max(options.max_width - taken, 10))
            yield Text.assemble(
                _MARKS.get(state, _OPEN_MARK), id_, f"  {state:<9}", (f"{age:>7} ", "dim"), (rest, "dim")
            )
        if len(self.rows) > _MAX_RUNS:
            yield Text(f"… {counted(len(self.rows) - _MAX_RUNS, 'older run')}; --json lists all", "dim italic")
