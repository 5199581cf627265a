"""What a shell may complete: run ids, tool ids, server names, and the words that options take.

A completion never fails and never complains: where something is wrong there is nothing to offer.
Everything is imported when a shell asks, since every command's options refer to this file.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from codemode.composition import Toolbox

Offers = list[tuple[str, str]]  # word, help


_USEFUL = {"wait": ("waiting",), "abort": ("waiting", "running")}  # what a command can do something with


def complete_run(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the runs of the session that is named so far, newest first: those that the command can use."""

    def offers() -> Offers:
        from codemode.store.sqlite import SqliteStore

        store = SqliteStore()
        try:
            states = _USEFUL.get(str(ctx.info_name))
            found = store.runs(ctx.params.get("session") or "default")
            return [(run.run_id, run.state) for run in found if states is None or run.state in states]
        finally:
            store.close()

    return _offered(offers, incomplete)


def complete_tool(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the ids of all tools of the manifest that is named so far."""

    def offers() -> Offers:
        from codemode.render.words import one_line

        return [(tool.id, one_line(tool.description, 60)) for tool in _toolbox(ctx).catalog.tools]

    return _offered(offers, incomplete)


def complete_server(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the MCP servers of the manifest, under their names in a cell."""

    def offers() -> Offers:
        from codemode.cli.listing import find_declarations, server_of

        files = find_declarations(_toolbox(ctx), None)
        return [(server_of(file["path"]), file["description"]) for file in files[1:]]

    return _offered(offers, incomplete)


def complete_words(*words: str) -> Callable[[str], list[str]]:
    """Return a completer of a few fixed words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _offered(offers: Callable[[], Offers], incomplete: str) -> Offers:
    from codemode.core.errors import CodeModeError

    try:
        return [offer for offer in offers() if offer[0].startswith(incomplete)]
    except (CodeModeError, OSError):
        return []


def _toolbox(ctx: typer.Context) -> "Toolbox":
    import asyncio
    from pathlib import Path

    from codemode.composition import open_toolbox
    from codemode.manifest import find_manifest

    async def load(path: Path | None) -> "Toolbox":
        async with open_toolbox(path) as box:
            return box

    given = next((level.params["manifest"] for level in _levels(ctx) if level.params.get("manifest")), None)
    return asyncio.run(load(Path(given) if given else find_manifest(Path.cwd())))


def _levels(ctx: typer.Context) -> Iterator[typer.Context]:
    level: Any = ctx
    while level is not None:
        yield level
        level = level.parent
