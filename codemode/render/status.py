"""What became of a run, in one line, and how to go on with one that waits.

The plain twin is `plain.status_text`.
"""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain import next_steps, status_line
from codemode.render.words import printable

_MARKS = {"completed": ("✓ ", "bold green"), "waiting": ("◌ ", "bold yellow"), "failed": ("✗ ", "bold red")}


def render_status(result: Mapping[str, Json], session: str = "default") -> RenderableType:
    """Return the status line; for a waiting run its open calls and the command that goes on."""
    mark, style = _MARKS[str(result["status"])]
    line = Text.assemble((mark, style), status_line(result))
    if result["status"] != "waiting":
        return line
    steps: list[RenderableType] = []
    for step in next_steps(result, session):
        steps.append(Text.assemble("  next: ", (step.command, "bold cyan")))
        steps += [Text.assemble("        or ", (step.instead, "bold cyan"))] if step.instead else []
    return Group(line, _pending(result["pendingToolCalls"]), *steps)


def _pending(calls: list[Mapping[str, Json]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for call in calls:
        state = str(call["state"]).replace("_", " ")
        style = "yellow" if call["state"] == "awaiting_approval" else "dim"
        target = printable(str(call.get("toolId", "")))
        table.add_row(f"  {call['id']}", Text(str(call["method"]), "dim"), Text(target), Text(state, style))
    return table
