"""Tool lists on disk, and the cache that keeps servers from being started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.core.redact import Redactor
from codemode.mcp.connections import McpServers
from codemode.mcp.listings import Listing, ListingCache, list_tools
from codemode.mcp.shared import Onlooker, SharedServers
from tests.requirements import requirement
from tests.support.mcp import call, odd, servers_of, shelf

_LIST = """
import asyncio, sys
from pathlib import Path
from codemode.core.redact import Redactor
from codemode.core.tables import Where
from codemode.mcp.connections import McpServers
from codemode.mcp.servers import parse_server
from codemode.mcp.shared import SharedServers

table = {{"command": {command!r}, "args": ["shelf.py"]}}
spec = parse_server("shelf", table, Where("f"), Path({folder!r}))

async def main():
    servers = McpServers([spec], Redactor(), SharedServers(Path({cache!r})))
    listing = await servers.tools()
    servers.guest_scope(listing.tools)
    await servers.close()
    return len(listing.tools)

heavy = {{"mcp", "pydantic", "httpx2", "jsonschema", "anyio", "platformdirs", "rich"}}
print(asyncio.run(main()), sorted(heavy & set(sys.modules)))
"""
LISTING = Listing(1000.5, {"tools": {}}, [{"name": "a"}, None])


@requirement("mcp:cache:private")
def test_what_is_saved_is_loaded_and_is_the_users_alone(tmp_path: Path) -> None:
    """File and folder; under the digest and nothing else."""
    cache = ListingCache(tmp_path)
    cache.save("f" * 64, LISTING)

    assert cache.load("f" * 64) == LISTING
    assert cache.load("0" * 64) is None
    (file,) = (tmp_path / "mcp").iterdir()
    assert file.name == f"{'f' * 32}.json"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@requirement("mcp:cache:private")
@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"format": 2, "listedAt": 1, "capabilities": {}, "tools": []}',
        b'{"format": 1, "listedAt": "now", "capabilities": {}, "tools": []}',
        b'{"format": 1, "listedAt": 1, "capabilities": {}, "tools": {}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_no_list(tmp_path: Path, damaged: bytes) -> None:
    """It costs a start, nothing else."""
    cache = ListingCache(tmp_path)
    cache.save("f" * 64, LISTING)
    next((tmp_path / "mcp").iterdir()).write_bytes(damaged)

    assert cache.load("f" * 64) is None


@requirement("mcp:cache:private")
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Nor is a list that no JSON writer can write."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    ListingCache(tmp_path / "file").save("f" * 64, LISTING)
    tower: list[object] = []
    for _ in range(10_000):
        tower = [tower]
    ListingCache(tmp_path).save("e" * 64, LISTING._replace(tools=tower))

    assert ListingCache(tmp_path).load("e" * 64) is None


@requirement("mcp:cache:private")
def test_lists_that_nobody_asked_for_in_a_month_are_forgotten(tmp_path: Path) -> None:
    """So that a token that changes every hour does not fill the disk."""
    cache = ListingCache(tmp_path)
    for name in ("a", "b"):
        cache.save(name * 64, LISTING)
    os.utime(tmp_path / "mcp" / f"{'a' * 32}.json", (0, 0))
    cache.save("c" * 64, LISTING._replace(listed_at=31 * 86_400.0))

    assert sorted(file.name[0] for file in (tmp_path / "mcp").iterdir()) == ["b", "c"]


@requirement("mcp:list:pages")
async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    """It may only have resources."""

    async def refuse(method: str, params: object) -> dict[str, object]:
        raise AssertionError(method)

    assert await list_tools(refuse, {"resources": {}}, 7.0) == Listing(7.0, {"resources": {}}, [])


@requirement("mcp:list:pages")
@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": "x", "nextCursor": 7}, {"nextCursor": ""}])
async def test_a_page_without_tools_is_an_empty_one(page: dict[str, object]) -> None:
    """A cursor that is no text ends the list."""

    async def answer(method: str, params: object) -> dict[str, object]:
        return page

    assert (await list_tools(answer, {"tools": {}}, 7.0)).tools == []


@requirement("mcp:cache:no-start", "mcp:cache:refresh")
async def test_a_cached_list_starts_no_server_until_one_is_called_or_refreshed(tmp_path: Path) -> None:
    """Its age is known."""
    log, now = tmp_path / "log", [1000.0]
    spec = odd("starts_twice_into", str(log))

    async def tools_at(moment: float, refresh: bool = False) -> tuple[int, float]:
        now[0] = moment
        async with servers_of(spec, cache=tmp_path, clock=lambda: now[0]) as servers:
            listing = await servers.tools(refresh)
        assert len(listing.tools) == 1
        return log.read_text().count("started"), listing.ages["odd"]

    assert await tools_at(1000) == (1, 0)
    assert await tools_at(1060) == (1, 60)
    assert await tools_at(1100, refresh=True) == (2, 0)
    assert await tools_at(1130) == (2, 30)
    async with servers_of(spec, cache=tmp_path) as servers:
        await call(servers, "odd.hello")
    assert log.read_text().count("started") == 3


@requirement("mcp:cache:refresh")
async def test_a_called_server_is_listed_again_for_the_next_run(tmp_path: Path) -> None:
    """A list from the cache may be older than the server that was just started."""
    stale = Listing(1000.0, {"tools": {}}, [{"name": "hello"}, {"name": "gone"}])
    spec = odd("plain")
    ListingCache(tmp_path).save(spec.fingerprint(), stale)

    async with servers_of(spec, cache=tmp_path) as servers:
        before = await servers.tools()
        await call(servers, "odd.hello")
    async with servers_of(spec, cache=tmp_path) as servers:
        after = await servers.tools()

    assert [len(listing.tools) for listing in (before, after)] == [2, 1]


@requirement("mcp:cache:key")
async def test_another_value_of_a_variable_is_another_list(tmp_path: Path) -> None:
    """And no value is on the disk."""
    spec = odd("plain", env={"TOKEN": "${TOKEN}"})
    for token in ("first-secret", "second-secret", "first-secret"):
        async with servers_of(spec, cache=tmp_path, environment={"TOKEN": token}) as servers:
            await servers.tools()

    files = list((tmp_path / "mcp").iterdir())
    assert len(files) == 2
    assert all("secret" not in file.name + file.read_text() for file in files)


@requirement("mcp:cache:no-start")
def test_neither_definitions_nor_a_cached_list_import_the_sdk(tmp_path: Path) -> None:
    """Half a second that a cell without MCP calls must not pay; nor jsonschema, pydantic, httpx2."""
    spec = shelf()
    ListingCache(tmp_path).save(spec.fingerprint(), LISTING)
    program = _LIST.format(command=spec.command[0], folder=str(spec.folder), cache=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "1 []\n"


@requirement("cli:progress:servers")
async def test_an_onlooker_hears_which_servers_are_asked_and_what_became_of_each(tmp_path: Path) -> None:
    """A server whose list is known is not asked, so nothing is heard of it."""
    heard: list[tuple[str, str]] = []
    shared = SharedServers(tmp_path, onlooker=Onlooker(look=lambda *told: heard.append(told)))
    async with servers_of(shelf(), odd("exits_at_start"), cache=tmp_path, shared=shared) as servers:
        await servers.tools()
        asked, settled = heard[:2], sorted(heard[2:])
        await servers.tools()

    assert asked == [("shelf", "asked"), ("odd", "asked")]
    assert settled == [("odd", "failed"), ("shelf", "answered")]
    assert len(heard) == 4


@requirement("mcp:warnings:told", "mcp:stdout:noise")
async def test_what_comes_up_in_a_call_is_told_the_onlooker_and_what_a_listing_tells_is_not(tmp_path: Path) -> None:
    """Once: with a list from the cache the server is first started by a call, and no listing follows."""
    heard: list[str] = []
    for then in (0, 2):
        shared = SharedServers(tmp_path, onlooker=Onlooker(warn=heard.append))
        async with servers_of(odd("chats_on_stdout"), cache=tmp_path, shared=shared) as servers:
            listed = await servers.tools()
            for _ in range(then):
                await call(servers, "odd.chat")
        if not then:
            assert (len(listed.warnings), heard) == (1, [])

    (warning,) = heard
    assert warning.endswith("they are skipped. First: Welcome to the chatty server!")


async def test_disabled_servers_do_not_exist(tmp_path: Path) -> None:
    """They are neither listed nor failed."""
    async with servers_of(odd("exits_at_start", enabled=False), cache=tmp_path) as servers:
        listing = await servers.tools()

    assert (listing.tools, listing.failures, listing.ages) == ((), (), {})


async def test_servers_that_were_never_used_close_at_once(tmp_path: Path) -> None:
    """Closing is always safe."""
    servers = McpServers([shelf()], Redactor(), SharedServers(tmp_path))
    await servers.close()
    await servers.close()

    assert json.dumps(servers.warnings) == "[]"
