"""The counts of an agent run in one compact panel; the plain twin is `plain.telemetry_text`."""

from collections.abc import Mapping

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain import telemetry_rows


def render_telemetry(telemetry: Mapping[str, Json]) -> RenderableType:
    """Return the panel; what never happened takes no line."""
    table = Table.grid(padding=(0, 2))
    for label, text in telemetry_rows(telemetry):
        table.add_row(Text(label, "dim"), Text(text))
    return Panel(
        table, title=Text("telemetry", "dim"), title_align="left", box=box.ROUNDED, border_style="dim", expand=False
    )
