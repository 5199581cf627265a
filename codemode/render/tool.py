"""One tool, or a ranking of tools, on a terminal; the plain twins are in `plain_catalog`."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain_catalog import reason_lines
from codemode.render.signature import parameters_of
from codemode.render.words import one_line, printable

_MAX_ID_CHARS = 44


def render_tool(tool: Mapping[str, Json]) -> RenderableType:
    """Return a tool's description: id, what it does, how to call it, what it takes.

    Contract: cli:catalog:describe
    """
    parts: list[RenderableType] = [
        Text(printable(tool["id"]), "bold cyan"),
        Padding(Text(printable(tool["description"])), (0, 0, 1, 0)),
        Text.assemble(("call  ", "dim"), (printable(tool["call"]), "green")),
    ]
    if tool.get("origin"):
        parts.append(Text.assemble(("from  ", "dim"), printable(tool["origin"])))
    if tool.get("approval", "never") != "never":
        parts.append(Text.assemble(("approval  ", "dim"), (tool["approval"], "yellow")))
    rows = parameters_of(tool["parameters"])
    if rows:
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
        for heading, style in (("input", "cyan"), ("type", "magenta"), ("", "yellow"), ("description", "")):
            table.add_column(heading, style=style, overflow="fold")
        for row in rows:
            needed = "required" if row.required else ""
            table.add_row(Text(row.name), Text(row.type), needed, Text(row.description))
        parts += [Text(""), table]
    return Group(*parts)


def render_ranking(ranking: Sequence[Mapping[str, Json]]) -> RenderableType:
    """Return the results of a search, best first, one a line, with the reasons where there are any."""
    return _Ranking(ranking)


class _Ranking:
    def __init__(self, ranking: Sequence[Mapping[str, Json]]) -> None:
        self.ranking = ranking

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max((len(entry["id"]) for entry in self.ranking), default=0)
        for entry in self.ranking:
            label = f"{printable(entry['id']):<{min(width, _MAX_ID_CHARS)}}  "
            rest = one_line(entry["description"], max(options.max_width - len(label), 20))
            yield Text.assemble((label, "cyan"), rest)
            yield from (Text(f"    {line}", "dim") for line in reason_lines(entry))


def render_declarations(text: str) -> RenderableType:
    """Return TypeScript declarations, highlighted; long lines are whole, for the terminal to wrap."""
    from rich.syntax import Syntax  # pygments, which only this needs

    return Syntax("", "typescript", theme="ansi_dark", background_color="default").highlight(text)
