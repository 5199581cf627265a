"""What a cell can reach, on a terminal: tools by source and owner, servers that failed, notes.

The plain twin is `plain_catalog.catalog_text`.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain_catalog import failure_lines, note_lines, origin_of, server_lines, summary_line
from codemode.render.words import counted, one_line, printable

_MAX_NAME_CHARS = 34


def render_catalog(listing: Mapping[str, Json]) -> RenderableType:
    """Return the whole listing: groups of tools, namespaces, then what is wrong, then the sum.

    Args:
        listing: As `cli.listing.build_listing` makes it.

    Contract: cli:catalog:list
    """
    groups = groupby(listing["tools"], key=lambda tool: (tool["source"], tool["sourceName"]))
    parts: list[RenderableType] = [_Tools(owner, list(tools), listing) for owner, tools in groups]
    if listing["namespaces"]:
        parts.append(_Namespaces(listing["namespaces"]))
    parts += [Text(line, "dim") for line in server_lines(listing, tool_less=True)]
    parts += [Text(f"✗ {line}", "red") for line in failure_lines(listing)]
    parts += [Text(f"! {line}", "yellow") for line in note_lines(listing)]
    parts.append(Text(summary_line(listing), "dim"))
    return Group(*parts)


class _Tools:
    """The tools of one owner, one a line, cut to the width."""

    def __init__(
        self, owner: tuple[str, str], tools: Sequence[Mapping[str, Json]], listing: Mapping[str, Json]
    ) -> None:
        self.owner = owner
        self.tools = tools
        self.origin = origin_of(owner[1], listing) if owner[0] == "mcp" else ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        source, owner = self.owner
        head = Text.assemble((f"{source} ", "dim"), (printable(owner), "bold cyan"))
        yield Text.assemble(head, (f"  {counted(len(self.tools), 'tool')}{self.origin}", "dim"))
        width = min(max(len(tool["name"]) for tool in self.tools), _MAX_NAME_CHARS)
        room = max(options.max_width - width - 5, 20)
        for tool in self.tools:
            name = one_line(tool["name"], _MAX_NAME_CHARS)
            yield Text.assemble(f"  {name:<{width}}  ", (one_line(tool["description"], room), "dim"))
        yield Text("")


class _Namespaces:
    """The globals that plugins bring, one a line, cut to the width."""

    def __init__(self, namespaces: Sequence[Mapping[str, Json]]) -> None:
        self.namespaces = namespaces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(("namespaces", "bold cyan"), ("  globals that plugins bring", "dim"))
        width = max(len(each["name"]) for each in self.namespaces)
        for each in self.namespaces:
            about = one_line(each["description"], max(options.max_width - width - 5, 20))
            yield Text.assemble(f"  {printable(each['name']):<{width}}  ", (about, "dim"))
        yield Text("")
