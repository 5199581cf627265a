"""A cell's value on a terminal: a table of like objects, or highlighted JSON, folded when long.

The plain twin is `plain.value_text`, which never folds.
"""

import json
from collections.abc import Iterator
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from codemode.core.types import Json
from codemode.render.words import counted, one_line, printable

_KEY, _STRING, _NUMBER, _WORD, _FOLD = "cyan", "green", "magenta", "italic magenta", "dim italic"
_INDENT = 2
_MAX_LINES = 60  # of JSON; about two screens
_MAX_ROWS = 20
_MAX_COLUMNS = 8
_MAX_CELL_CHARS = 60
_MIN_CELL_CHARS = 12
_FOLD_STEPS = ((1 << 30, 1 << 30), (100, 2000), (20, 1000), (10, 400), (5, 200), (3, 100), (2, 60))  # items, characters
_ENCODER = json.JSONEncoder(ensure_ascii=False)
WHOLE_HINT = "folded; --json prints all of it"


def render_value(value: Json, hint: str = WHOLE_HINT) -> RenderableType:
    """Return a renderable that fits the terminal: table, text with line breaks, or JSON.

    Args:
        value: What to show.
        hint: How to see all of it, where a part is left out.

    Contract: cli:values:tables, cli:values:folded
    """
    if isinstance(value, str) and "\n" in value:
        return Text(printable(value))
    return _Value(value, hint)


class _Value:
    """Chooses its form when it learns the width."""

    def __init__(self, value: Json, hint: str) -> None:
        self.value = value
        self.hint = hint

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = _shared_columns(self.value)
        if columns:
            table = _table(self.value, columns)
            unbounded = options.update(max_width=1 << 16)  # a measurement is never wider than it is allowed to be
            if Measurement.get(console, unbounded, table).minimum <= options.max_width:
                yield table
                if len(self.value) > _MAX_ROWS:
                    rest = f"… {len(self.value) - _MAX_ROWS:,} more of {counted(len(self.value), 'row')}; {self.hint}"
                    yield Text(rest, _FOLD)
                return
        yield from _json_lines(self.value, options.max_width, self.hint)


def _shared_columns(value: Json) -> list[str]:
    """Return the columns of an array of like objects, or nothing where it is better shown as JSON."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(row, dict) and row for row in value):
        return []
    columns = list(dict.fromkeys(key for row in value for key in row))
    alike = all(len(row) * 2 >= len(columns) for row in value)
    small = all(_is_small(cell) for row in value[:_MAX_ROWS] for cell in row.values())
    return columns if alike and small and len(columns) <= _MAX_COLUMNS else []


def _is_small(cell: Json) -> bool:
    if isinstance(cell, str):
        return len(cell) <= 4 * _MAX_CELL_CHARS and "\n" not in cell
    return not isinstance(cell, (dict, list)) or len(json.dumps(cell)) <= _MAX_CELL_CHARS


def _table(rows: list[dict[str, Json]], columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style=f"bold {_KEY}", pad_edge=False, show_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column, 0), (int, float)) for row in rows)
        cells = [len(str(row.get(column, ""))) for row in rows[:_MAX_ROWS]]
        least = max(len(column), min(max(cells), _MIN_CELL_CHARS))  # narrower columns than this are no help
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(Text(printable(column)), justify=justify, min_width=least, overflow="fold")
    for row in rows[:_MAX_ROWS]:
        table.add_row(*(_cell(row[column]) if column in row else Text("") for column in columns))
    return table


def _cell(value: Json) -> Text:
    return Text(one_line(value, 4 * _MAX_CELL_CHARS)) if isinstance(value, str) else _flat(value)


def _json_lines(value: Json, width: int, hint: str) -> Iterator[Text]:
    """Yield the lines of a value, folded step by step until they are few enough."""
    lines: list[Text] = []
    for step in _FOLD_STEPS:
        folder = _Folder(width, *step)
        lines, height = [], 0
        for line in folder.lines(value):
            lines.append(line)
            height += 1 + len(line) // max(width, 1)
            if height > _MAX_LINES and step != _FOLD_STEPS[-1]:  # the rest of a million need not be laid out
                break
        if height <= _MAX_LINES:
            break
    yield from lines
    if folder.folded:
        yield Text(hint, _FOLD)


class _Folder:
    """Lays JSON out in lines: short containers on one line, long ones broken, their rest folded."""

    def __init__(self, width: int, items: int, chars: int) -> None:
        self.width = width
        self.items = items
        self.chars = chars
        self.folded = False

    def lines(self, value: Json, head: Text | None = None, indent: int = 0, tail: str = "") -> Iterator[Text]:
        """Yield the lines of one value; `head` (a key) stands before it and `tail` (a comma) behind."""
        start = Text.assemble(" " * indent, head or "")
        if not self._is_broken(value, len(start) + len(tail)):
            yield Text.assemble(start, self._leaf(value), tail)
            return
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        members = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
        yield Text.assemble(start, opening)
        if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
            yield from self._packed(value, indent + _INDENT)
        else:
            for number, (key, item) in enumerate(members[: self.items], 1):
                label = None if key is None else _label(key)
                yield from self.lines(item, label, indent + _INDENT, "," if number < len(members) else "")
        if len(members) > self.items:
            self.folded = True
            noun = "key" if isinstance(value, dict) else "item"
            yield Text(" " * (indent + _INDENT) + f"… {counted(len(members) - self.items, f'more {noun}')}", _FOLD)
        yield Text(" " * indent + closing + tail)

    def _packed(self, items: list[Json], indent: int) -> Iterator[Text]:
        """Yield an array of plain values with as many of them on a line as fit."""
        line = Text(" " * indent)
        for number, item in enumerate(items[: self.items], 1):
            leaf = Text.assemble(self._leaf(item), "," if number < len(items) else "")
            if len(line) > indent and len(line) + 1 + len(leaf) > self.width:
                yield line
                line = Text(" " * indent)
            line = Text.assemble(line, " " if len(line) > indent else "", leaf)
        yield line

    def _is_broken(self, value: Json, taken: int) -> bool:
        if not isinstance(value, (dict, list)) or not value:
            return False
        return len(value) > self.items or _is_longer(value, self.width - taken)

    def _leaf(self, value: Json) -> Text:
        if isinstance(value, str) and len(value) > self.chars:
            self.folded = True
            rest = f"… {counted(len(value) - self.chars, 'more character')}"
            return Text.assemble((_quoted(value[: self.chars])[:-1], _STRING), (rest, _FOLD))
        return _flat(value)


def _flat(value: Json) -> Text:
    """Return a value on one line, highlighted."""
    if isinstance(value, dict):
        members = [Text.assemble(_label(key), _flat(item)) for key, item in value.items()]
        return Text.assemble("{", Text(", ").join(members), "}")
    if isinstance(value, list):
        return Text.assemble("[", Text(", ").join(_flat(item) for item in value), "]")
    if isinstance(value, str):
        return Text.assemble((_quoted(value), _STRING))
    return Text.assemble((json.dumps(value), _WORD if value is None or isinstance(value, bool) else _NUMBER))


def _label(key: str) -> Text:
    return Text.assemble((_quoted(key), _KEY), ": ")


def _is_longer(value: Json, chars: int) -> bool:
    """Say whether a value is longer than this on one line; of a large one, only so much is written."""
    for part in _ENCODER.iterencode(value):
        chars -= len(part)
        if chars < 0:
            return True
    return False


def _quoted(text: str) -> str:
    return printable(json.dumps(text, ensure_ascii=False))
