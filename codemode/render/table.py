"""Rows of texts as a table on a terminal; the plain twin is `plain.table_text`."""

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from codemode.render.words import printable


def render_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Return a table whose last column takes what is left; the first, an id, is never broken."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
