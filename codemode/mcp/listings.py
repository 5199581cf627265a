"""What a server offers, as it told us, and where that is kept between processes.

A `Listing` is raw: the tools as the server sent them, its capabilities, and when. The cache
keeps one file for each server definition, so that a cell that calls no MCP tool starts no
server. A file that cannot be read, or was written by another version, is no listing at all.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codemode.core.folders import cache_dir
from codemode.core.limits import MAX_MCP_PAGES
from codemode.core.types import Json
from codemode.mcp.private import write_private

_FORMAT = 1
_KEPT_S = 30 * 86_400  # each new value of a variable is a new file; a token may change every hour
Request = Callable[[str, Mapping[str, Json]], Awaitable[dict[str, Json]]]


class Listing(NamedTuple):
    """One server's tools and what it said of itself.

    listed_at: Unix seconds.
    capabilities: `{"tools": {}, "resources": {}, …}` as in the handshake.
    tools: As the server sent them; nothing is checked yet.
    warnings: What went wrong while listing, without the server's name.
    """

    listed_at: float
    capabilities: dict[str, Json]
    tools: list[Json]
    warnings: tuple[str, ...] = ()


async def list_tools(request: Request, capabilities: dict[str, Json], now: float) -> Listing:
    """Ask a server for all its tools, page by page.

    A cursor that was seen before, or more than `MAX_MCP_PAGES` pages, ends the listing with a warning.

    Args:
        request: Sends one request and returns its result.
        capabilities: Of the handshake; a server without `tools` is not asked.
        now: Unix seconds.

    Contract: mcp:list:pages
    """
    tools: list[Json] = []
    seen: set[str] = set()
    cursor: Json = None
    while "tools" in capabilities:
        page = await request("tools/list", {} if cursor is None else {"cursor": cursor})
        found = page.get("tools")
        tools += found if isinstance(found, list) else []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
        if cursor in seen or len(seen) >= MAX_MCP_PAGES:
            why = "repeats a cursor" if cursor in seen else f"has more than {MAX_MCP_PAGES} pages"
            return Listing(now, capabilities, tools, (f"its tool list {why}; what came before is used.",))
        seen.add(cursor)
    return Listing(now, capabilities, tools)


class ListingCache:
    """Listings in the user's cache folder, a file for each definition, readable by the user alone."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use this folder, or the user's own."""
        self._folder = Path(folder or cache_dir() or os.devnull) / "mcp"  # nothing can be in the latter

    def load(self, fingerprint: str) -> Listing | None:
        """Return the listing of a definition, if there is a sound one."""
        try:
            kept = json.loads(self._file(fingerprint).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        match kept:
            case {
                "format": format_,
                "listedAt": int() | float() as listed_at,
                "capabilities": dict(capabilities),
                "tools": list(tools),
            } if format_ == _FORMAT:
                return Listing(listed_at, capabilities, tools)
        return None

    def save(self, fingerprint: str, listing: Listing) -> None:
        """Keep a listing, whole or not at all; a cache that cannot be written only costs time.

        Contract: mcp:cache:private
        """
        kept = {
            "format": _FORMAT,
            "listedAt": listing.listed_at,
            "capabilities": listing.capabilities,
            "tools": listing.tools,
        }
        with suppress(OSError, RecursionError):  # what is nested that deep, no tool is made of
            write_private(self._file(fingerprint), json.dumps(kept))
            self._forget_old(listing.listed_at)

    def _forget_old(self, now: float) -> None:
        for file in self._folder.iterdir():
            if file.stat().st_mtime < now - _KEPT_S:
                file.unlink()

    def _file(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint[:32]}.json"
