"""One check of `doctor` on a terminal; the plain twin is `plain.check_text`."""

from rich.console import Group, RenderableType
from rich.text import Text

from codemode.render.words import printable

_MARKS = {"ok": ("✓ ", "green"), "warning": ("! ", "yellow"), "failed": ("✗ ", "bold red")}


def render_check(name: str, state: str, says: str, fix: str) -> RenderableType:
    """Return the check in one line, and what to do under it."""
    line = Text.assemble(_MARKS[state], (f"{name:<10}", "bold"), printable(says))
    return Group(line, Text(f"            {fix}", "cyan")) if fix else line
