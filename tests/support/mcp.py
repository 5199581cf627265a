"""MCP servers for tests: definitions of the fixture servers, and one call in one line."""

import asyncio
import fcntl
import functools
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codemode.core.redact import Redactor
from codemode.core.tables import Where
from codemode.core.types import PATH_SEPARATOR, RunContext
from codemode.mcp.connection import Connection
from codemode.mcp.connections import McpListing, McpServers
from codemode.mcp.server import Server
from codemode.mcp.servers import ServerSpec, parse_server
from codemode.mcp.shared import SharedServers

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
NPM = SERVERS / "npm"
FILE = str(SERVERS / "codemode.toml")  # need not exist: it is only where definitions say they come from
CONTEXT = RunContext("agent", "key", "session", "cm_run", "ar_run")


def define(name: str, table: dict[str, Any]) -> ServerSpec:
    """Return the server that a manifest's table would define."""
    return parse_server(name, table, Where(FILE, "mcp.servers").at(name), SERVERS)


def shelf(**facts: Any) -> ServerSpec:
    """Return the well-behaved server."""
    return define("shelf", {"command": sys.executable, "args": ["shelf.py"], **facts})


def odd(mode: str, *arguments: str, **facts: Any) -> ServerSpec:
    """Return a server that behaves as its mode says."""
    return define("odd", {"command": sys.executable, "args": ["odd.py", mode, *arguments], **facts})


@asynccontextmanager
async def servers_of(
    *specs: ServerSpec,
    cache: Path,
    redactor: Redactor | None = None,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
    shared: SharedServers | None = None,
) -> AsyncIterator[McpServers]:
    """Open servers and close them whatever happens."""
    servers = McpServers(specs, redactor or Redactor(), shared or SharedServers(cache, environment, clock))
    try:
        yield servers
    finally:
        await servers.close()


def connection_of(server: Server) -> Connection:
    """Return the connection that a server has now."""
    assert server._connection is not None
    return server._connection


async def call(servers: McpServers, path: str, *arguments: Any, context: RunContext = CONTEXT) -> Any:
    """Call `MCP.<path>(…)` as the guest would, the executor left out."""
    return await call_listed(servers, await servers.tools(), path, *arguments, context=context)


async def call_listed(
    servers: McpServers, listing: McpListing, path: str, *arguments: Any, context: RunContext = CONTEXT
) -> Any:
    """Call `MCP.<path>(…)` of a listing that was fetched before."""
    target = servers.guest_scope(listing.tools).targets[f"MCP.{path}".replace(".", PATH_SEPARATOR)]
    return await target.tool.invoke(target.to_input(list(arguments)), context)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something outside this process has become so, for a generous while."""
    async with asyncio.timeout(60):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


def noted(log: Path, word: str) -> int:
    """Return how many messages with this word a server has noted that never answers a call."""
    return sum(word in line for line in log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def text_of(result: Any) -> str:
    """Return the text of a result's first content block."""
    return result["content"][0]["text"]


@functools.cache
def npm_folder() -> Path:
    """Return `node_modules` of the reference servers and the TypeScript compiler, installed from the lockfile."""
    modules = NPM / "node_modules"
    stamp = modules / ".package-lock.json"
    with (NPM / "package-lock.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at the same time
        if not stamp.exists() or stamp.stat().st_mtime < (NPM / "package-lock.json").stat().st_mtime:
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=NPM, check=True, capture_output=True, timeout=110)
    return modules


def reference_server(name: str, *arguments: str) -> ServerSpec:
    """Return one of the protocol's reference servers, such as `everything`."""
    script = npm_folder() / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return define(name, {"command": "node", "args": [str(script), *arguments]})


def check_types(folder: Path, *files: str) -> str:
    """Return what `tsc --strict` says of declaration files: nothing, if they are valid."""
    command = [str(npm_folder() / ".bin" / "tsc"), "--strict", "--noEmit", "--pretty", "false", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100).stdout
