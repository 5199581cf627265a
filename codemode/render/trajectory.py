"""A trajectory on a terminal: each run with its calls, waits and suspended spans along one time axis.

The plain twin is `plain.trajectory_text`.
"""

from collections.abc import Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from codemode.core.types import Json
from codemode.render.timeline import Row, Timeline, timeline_of
from codemode.render.words import one_line

_GOOD = ("ok", "completed", "restored")
_OPEN = ("running", "waiting", "awaiting approval")
_BARS = {"call": ("━", "cyan"), "suspended": ("┄", "dim"), "wait": ("━", "magenta")}
_TOOK_CHARS = 9
_FRAME_CHARS = 7  # the tree's branch, the mark, the gaps
_REMARK_CHARS = 18  # what a remark gets even where it is narrow
_WIDE = 110  # from here on there is room for a longer axis
_AXIS_CHARS = (14, 40)


def render_trajectory(trajectory: Mapping[str, Json], *, inputs: bool = False) -> RenderableType:
    """Return the tree of all runs; with `inputs`, each call's redacted input under it.

    Contract: cli:trace:tree
    """
    return Group(*(_Run(timeline_of(run, inputs=inputs)) for run in trajectory["runs"]))


class _Run:
    """Lays out one run when it learns the width."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        timeline = self.timeline
        axis = _AXIS_CHARS[options.max_width >= _WIDE]
        remarks = max((len(_remark(row)) for row in timeline.rows), default=0)
        room = options.max_width - axis - _TOOK_CHARS - _FRAME_CHARS
        longest = max((len(row.label) for row in timeline.rows), default=0)
        label_chars = min(longest, max(room - min(remarks, _REMARK_CHARS), 20))
        yield Text.assemble(_mark(timeline.state), timeline.title)
        for number, row in enumerate(timeline.rows, 1):
            last = number == len(timeline.rows)
            yield Text.assemble(
                ("└─ " if last else "├─ ", "dim"),
                _mark(row.state) if row.kind == "call" else "  ",
                (f"{_fitted(row.label, label_chars):<{label_chars}}", "" if row.kind == "call" else "dim"),
                f"{row.took:>{_TOOK_CHARS}} ",
                _bar(row, timeline, axis),
                (f" {one_line(_remark(row), max(room - label_chars, _REMARK_CHARS))}", "dim"),
            )
            stem = "     " if last else "│    "
            yield from (Text(stem + one_line(note, options.max_width - len(stem)), "dim") for note in row.notes)


def _mark(state: str) -> tuple[str, str]:
    if state in _GOOD:
        return "✓ ", "green"
    return ("◌ ", "yellow") if state in _OPEN else ("✗ ", "red")


def _remark(row: Row) -> str:
    state = "" if row.state in ("ok", "restored") else row.state
    return ", ".join(part for part in (state, row.detail) if part)


def _fitted(label: str, chars: int) -> str:
    """Return a label cut at its beginning: the end of an id tells more."""
    return label if len(label) <= chars else "…" + label[len(label) - chars + 1 :]


def _bar(row: Row, timeline: Timeline, axis: int) -> Text:
    """Return the row's place on the time axis; what has not ended reaches to its end."""
    span = timeline.end_ms - timeline.start_ms
    if row.start_ms is None or span <= 0:
        return Text(" " * axis)
    mark, style = _BARS[row.kind]
    end_ms = timeline.end_ms if row.end_ms is None else row.end_ms
    first = min(max(int((row.start_ms - timeline.start_ms) / span * axis), 0), axis - 1)
    last = min(max(round((end_ms - timeline.start_ms) / span * axis), first + 1), axis)
    return Text((" " * first + mark * (last - first)).ljust(axis), style)
