"""Smoke checks on a terminal; the plain twin is `plain_smoke`."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain_smoke import differences, summary_text, verdict_note
from codemode.render.words import printable

_MARKS = {"passed": ("✓ ", "green"), "failed": ("✗ ", "bold red"), "skipped": ("- ", "dim")}


def render_verdict(verdict: Mapping[str, Json]) -> RenderableType:
    """Return one case in a line, and each difference below it."""
    line = Text.assemble(
        _MARKS[verdict["state"]], (printable(verdict["name"]), "bold"), "  ", (verdict_note(verdict), "dim")
    )
    rows: list[Text] = [line]
    for place, texts in differences(verdict):
        rows.append(Text(f"  {place}", "cyan"))
        rows += [Text(f"  {text}", style) for text, style in zip(texts, ("green", "red"), strict=False)]
    return Group(*rows)


def render_summary(report: Mapping[str, Json]) -> RenderableType:
    """Return the summary, green where everything holds."""
    return Text(summary_text(report), "bold green" if report["ok"] else "bold red")
