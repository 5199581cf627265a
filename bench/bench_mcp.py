"""MCP and large catalogs: what a listing, a call, declarations and ten thousand tools cost."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import mcp_peers
from bench.measure import Figure, Samples, scaled, skip, time_each, time_processes
from codemode.composition import Setup, open_pool, open_session
from codemode.core.tables import Where
from codemode.core.types import Completed, ToolSpec
from codemode.definitions import Script, ToolEntry
from codemode.mcp.adapter import adapt_server
from codemode.mcp.declarations import DeclaredServer, DeclaredTool, render_server
from codemode.mcp.listings import Listing
from codemode.mcp.servers import parse_server
from codemode.session import Session
from codemode.store.memory import MemoryStore

ROOT = Path(__file__).parent.parent
SHELF = ROOT / "fixtures" / "servers" / "shelf.py"
EVERYTHING = ROOT / "fixtures/servers/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
CODEMODE = (sys.executable, "-m", "codemode")
CALLS = 100
TOOLS = 10_000


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of MCP; `scale` multiplies the number of samples."""
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as name:
        folder = Path(name)
        yield from _listings(folder, max(3, int(11 * scale)))
        yield from _unused_servers(folder, max(3, int(15 * scale)))
        yield from asyncio.run(_calls(folder, max(3, int(15 * scale))))
        yield _declarations(max(3, int(15 * scale)))
        yield from asyncio.run(_many_tools(max(20, int(200 * scale))))


def _environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    return kept | {"CODEMODE_STATE_DIR": f"{folder}/state", "CODEMODE_CACHE_DIR": f"{folder}/cache"}


def _server() -> tuple[str, ...]:
    """Return the command of a reference server; of the fixture's, where npm's are not installed."""
    return ("node", str(EVERYTHING)) if EVERYTHING.exists() else (sys.executable, str(SHELF))


def _write_manifest(folder: Path, servers: dict[str, tuple[str, ...]]) -> str:
    tables = [
        f"[mcp.servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        for name, command in servers.items()
    ]
    path = folder / f"{len(servers)}.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    return str(path)


def _listings(folder: Path, count: int) -> Iterator[Figure]:
    environment, command = _environment(folder), _server()
    ours = (*CODEMODE, "-m", _write_manifest(folder, {"everything": command}), "catalog", "list", "--json")
    cold, alone = _beside_the_server_alone((*ours, "--refresh"), command, count, environment)
    over = Samples(tuple(a - b for a, b in zip(cold.values, alone.values, strict=True)))
    yield Figure("catalog list of one stdio server, cold", "ms", "", cold, "the server's own start and list", alone)
    yield Figure("the same, over the server's own start", "ms", "400 ms at most", over)
    for peer, peer_command in mcp_peers.list_commands(folder, command):
        name, goal = "catalog list of one stdio server, cold", "faster"
        if peer_command is None:
            yield skip(name, "ms", goal, f"{peer} is not installed; python -m bench --install-peers installs it")
            continue
        mine, theirs = time_processes([(*ours, "--refresh"), peer_command], max(2, count // 2), environment)
        yield Figure(name, "ms", goal, mine, peer, theirs)
    (cached,) = time_processes([ours], count, environment)
    yield Figure("the same, cached", "ms", "250 ms at most", cached)


def _beside_the_server_alone(
    ours: tuple[str, ...], server: tuple[str, ...], count: int, environment: dict[str, str]
) -> tuple[Samples, Samples]:
    """Time our whole process and, in turn, the server from its spawn to its list, asked by hand."""
    taken: tuple[list[float], list[float]] = [], []
    _timed(ours, environment)
    for _ in range(count):
        taken[0].append(_timed(ours, environment))
        taken[1].append(_ask_by_hand(server))
    return Samples(tuple(taken[0])), Samples(tuple(taken[1]))


def _timed(command: tuple[str, ...], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return (time.perf_counter() - started) * 1000


def _ask_by_hand(server: tuple[str, ...]) -> float:
    """Return the milliseconds from a server's spawn to its tool list, with three lines of JSON."""
    client = {"name": "bench", "version": "0"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    started = time.perf_counter()
    quiet = subprocess.DEVNULL
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
            process.stdin.flush()
            while "id" in line and json.loads(process.stdout.readline()).get("id") != line["id"]:
                pass
        elapsed = (time.perf_counter() - started) * 1000
        process.kill()
    return elapsed


def _unused_servers(folder: Path, count: int) -> Iterator[Figure]:
    environment = _environment(folder)
    five = _write_manifest(folder, {f"server{n}": _server() for n in range(5)})
    none = _write_manifest(folder, {})
    cell = ("run", "-e", "return 1", "--json")
    ours, bare = time_processes([(*CODEMODE, "-m", each, *cell) for each in (five, none)], count, environment)
    yield Figure(
        "a cell that calls none of five servers", "ms", "1.3 x at most", ours, "the cell without servers", bare
    )


async def _calls(folder: Path, count: int) -> list[Figure]:
    """Time awaited calls of a tool, from a cell and with the SDK alone, in the same minute."""
    raw = await _raw_calls(count)
    manifest = Path(_write_manifest(folder, {"shelf": (sys.executable, str(SHELF))}))
    pool = open_pool()
    try:
        async with open_session(Setup(manifest, limits={"timeout_ms": 60_000}), pool, MemoryStore()) as session:
            await _complete(session, "await MCP.shelf.getBook({ id: '1' })")  # the SDK is loaded, the server runs
            loop = "for (let n = 0; n < {} ; n += 1) await MCP.shelf.getBook({{ id: '1' }})"
            base = (await time_each(lambda: _complete(session, loop.format(0)), count)).median
            taken = await time_each(lambda: _complete(session, loop.format(CALLS)), count, 1)
    finally:
        await pool.close()
    ours = scaled(taken, CALLS, base)
    added = Samples(tuple(value - raw.median for value in ours.values))
    return [
        Figure("MCP call from a cell, stdio", "ms", "", ours, "the SDK's own call_tool", raw),
        Figure("the same, over the SDK's", "ms", "1 ms at most", added),
    ]


async def _raw_calls(count: int) -> Samples:
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=sys.executable, args=[str(SHELF)])
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()

        async def several() -> None:
            for _ in range(CALLS):
                await session.call_tool("get_book", {"id": "1"})

        return scaled(await time_each(several, count, 1), CALLS)


async def _complete(session: Session, code: str) -> None:
    result = await session.exec({"code": code})
    assert isinstance(result, Completed), f"a benchmark's cell ended otherwise: {result}"


def _declarations(count: int) -> Figure:
    """Time the declarations of a thousand tools, shaped like those of real servers."""
    tools = tuple(DeclaredTool(tool.name, tool.description, tool.parameters) for tool in _remote_tools(1000))
    server, values = DeclaredServer("big", "big", tools), []
    for turn in range(count + 2):
        started = time.perf_counter()
        render_server(server)
        if turn >= 2:
            values.append((time.perf_counter() - started) * 1000)
    return Figure(".d.ts of 1,000 tools, a header for each", "ms", "60 ms at most", Samples(tuple(values)))


def _remote_tools(count: int) -> list[ToolSpec]:
    spec = parse_server("big", {"command": "none"}, Where("bench", "mcp.servers.big"), ROOT)
    tools: list[Any] = [
        {
            "name": f"update_issue_{n}",
            "description": "Update an issue of a repository. Only what is given is changed.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string", "description": "Owner of the repository."},
                    "number": {"type": "integer", "description": "Number of the issue.", "default": 1},
                    "state": {"enum": ["open", "closed"], "description": "The new state."},
                    "labels": {"type": "array", "items": {"type": "string"}},
                    "milestone": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
                "required": ["owner", "number"],
            },
        }
        for n in range(count)
    ]

    async def nobody(*_: Any) -> None: ...

    adapted, _ = adapt_server(spec, Listing(0.0, {"tools": {}}, tools), nobody)
    return adapted


async def _many_tools(count: int) -> list[Figure]:
    """Time a cell in a live session with ten thousand tools that it does not look at, and with none, in turn."""
    async with (
        open_session(Setup(tools=_own_tools(TOOLS)), store=MemoryStore()) as own,
        open_session(Setup(), store=MemoryStore()) as none,
    ):
        first = await _first_exec(own)
        many, few = await _in_turn(own, none, count)
    name = f"exec with {TOOLS:,} tools, not looked at"
    return [
        Figure(name, "ms", "1.5 x at most", many, "with none", few),
        Figure(f"the first exec with {TOOLS:,} tools", "ms", "", Samples((first,))),
    ]


async def _first_exec(session: Session) -> float:
    started = time.perf_counter()
    await _complete(session, "return 1")
    return (time.perf_counter() - started) * 1000


async def _in_turn(one: Session, other: Session, count: int) -> tuple[Samples, Samples]:
    taken: tuple[list[float], list[float]] = [], []
    for turn in range(count + 5):
        for session, values in zip((one, other), taken, strict=True):
            elapsed = await _first_exec(session)
            if turn >= 5:
                values.append(elapsed)
    return Samples(tuple(taken[0])), Samples(tuple(taken[1]))


def _own_tools(count: int) -> tuple[ToolEntry, ...]:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    return tuple(
        ToolEntry(
            id=f"client:app:tool_{n}",
            name=f"tool_{n}",
            description="Does one of very many things.",
            source="client",
            owner="app",
            parameters=schema,
            executor=Script("value", n),
            label=None,
            approval="never",
            timeout_ms=None,
            where=Where("bench"),
        )
        for n in range(count)
    )
