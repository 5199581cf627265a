"""Nothing that a server starts outlives us: not when we close it, not when we are killed."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from codemode.core.redact import Redactor
from codemode.mcp.connection import Connection
from codemode.mcp.connections import McpServers
from codemode.mcp.servers import ServerSpec
from codemode.mcp.shared import SharedServers
from tests.requirements import requirement
from tests.support.mcp import SERVERS, call, connection_of, define, eventually, odd, servers_of, shelf
from tests.support.processes import is_running

_HOST = """
import asyncio, sys
from pathlib import Path
from tests.support.mcp import odd, servers_of

async def main():
    async with servers_of(odd("keeps_a_family", sys.argv[1]), cache=Path(sys.argv[2])) as servers:
        listing = await servers.tools()
        print(len(listing.tools), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@requirement("mcp:close:no-process-left")
async def test_closing_ends_a_stubborn_server_and_its_whole_family(tmp_path: Path) -> None:
    """It ignores a closed stdin and SIGTERM; so do its children: one left the group, one is nobody's child."""
    family = tmp_path / "family"
    async with servers_of(odd("keeps_a_family", str(family)), cache=tmp_path) as servers:
        await servers.tools()
        pids = json.loads(family.read_text())
        assert len(pids) == 4
        assert all(map(is_running, pids))

    assert [pid for pid in pids if is_running(pid)] == []


@requirement("mcp:close:no-process-left")
async def test_closing_a_good_server_that_was_called_is_gentle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves by itself, with status 0, when its stdin closes."""
    monkeypatch.setattr("codemode.mcp.connection.MCP_EXIT_MS", 60_000)  # it gets as far as that on a busy machine too
    async with servers_of(shelf(), cache=tmp_path) as servers:
        await call(servers, "shelf.getBook", {"id": "1"})
        process = connection_of(servers._servers["shelf"])._process
        assert process is not None

    assert process.exit_status == 0


@requirement("mcp:close:no-process-left")
async def test_a_server_that_was_only_listed_is_not_waited_for_as_one_that_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has nothing to finish; one that does not heed the end of its stdin gets its SIGTERM soon."""
    monkeypatch.setattr("codemode.mcp.connection.MCP_EXIT_MS", 600_000)  # longer than a test may take
    code = f"""
import sys, time
sys.path.insert(0, {str(SERVERS)!r})
from wire import Server
Server("slow").run()
time.sleep(600)
"""
    slow = define("slow", {"command": sys.executable, "args": ["-c", code]})
    async with servers_of(slow, cache=tmp_path) as servers:
        await servers.tools()
        process = connection_of(servers._servers["slow"])._process
        assert process is not None

    assert process.exit_status == -signal.SIGTERM


@requirement("mcp:close:no-process-left")
async def test_a_start_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    """A cancelled listing cancels what it started."""
    family = tmp_path / "family"
    spec = odd("keeps_a_family", str(family))
    async with servers_of(spec, cache=tmp_path) as servers:
        listing = asyncio.create_task(servers.tools())
        await eventually(lambda: family.exists() and family.read_text() != "")
        listing.cancel()
        await asyncio.gather(listing, return_exceptions=True)

    pids = json.loads(family.read_text())
    assert [pid for pid in pids if is_running(pid)] == [], pids


@requirement("mcp:close:no-process-left")
async def test_closing_while_a_server_starts_leaves_no_process(tmp_path: Path) -> None:
    """Whoever waits for the list hears of it."""
    log = tmp_path / "log"
    code = f"import os, pathlib, time; pathlib.Path({str(log)!r}).write_text(str(os.getpid())); time.sleep(600)"
    mute = define("mute", {"command": sys.executable, "args": ["-c", code]})
    servers = McpServers([mute], Redactor(), SharedServers(tmp_path))
    listing = asyncio.create_task(servers.tools())
    await eventually(lambda: log.exists() and log.read_text() != "")
    await servers.close()

    assert isinstance((await asyncio.gather(listing, return_exceptions=True))[0], asyncio.CancelledError)
    assert not is_running(int(log.read_text()))


def _deaf(up: Path, told: Path) -> ServerSpec:
    """Return a server that is deaf to SIGTERM, so that to end it takes a while."""
    code = f"""
import pathlib, signal, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path({str(told)!r}).touch())
pathlib.Path({str(up)!r}).touch()
while True:
    time.sleep(600)
"""
    return define("deaf", {"command": sys.executable, "args": ["-c", code]})


@requirement("mcp:close:no-process-left")
async def test_who_is_cancelled_while_servers_are_closed_leaves_them_to_the_watchdog(tmp_path: Path) -> None:
    """It ends what is left, and then itself."""
    up, told = tmp_path / "up", tmp_path / "told"
    async with servers_of(_deaf(up, told), cache=tmp_path) as servers:
        listing = asyncio.create_task(servers.tools())
        await eventually(up.exists)
        closing = asyncio.create_task(servers.close())
        await eventually(told.exists)
        watchdog = servers._servers["deaf"]._around.guard._shell
        closing.cancel()
        await asyncio.gather(closing, listing, return_exceptions=True)

        assert watchdog is not None
        assert watchdog.returncode == 0
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others or not (await asyncio.wait(others, timeout=60))[1]


@requirement("mcp:close:no-process-left")
async def test_closing_a_server_that_is_being_given_up_does_not_cut_its_end_short(tmp_path: Path) -> None:
    """Its time to start is over, and then nobody wants it any more."""
    up, told = tmp_path / "up", tmp_path / "told"
    deaf = _deaf(up, told)
    async with servers_of(deaf, cache=tmp_path) as servers:
        connection = Connection(deaf, servers._servers["deaf"]._around)
        opening = asyncio.create_task(connection.open(to_call=False))
        await eventually(up.exists)
        connection._clock.reschedule(0.0)  # its time to start is over
        await eventually(told.exists)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)

        assert connection._process is not None
        assert connection._process.exit_status == -signal.SIGKILL


@requirement("mcp:close:killed")
async def test_a_killed_host_takes_its_servers_along(tmp_path: Path) -> None:
    """SIGKILL leaves no time to say goodbye; the whole family of the server ends all the same."""
    family = tmp_path / "family"
    host = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _HOST, str(family), str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    assert host.stdout is not None
    assert await host.stdout.readline() == b"1\n"
    pids = json.loads(family.read_text())
    host.send_signal(signal.SIGKILL)
    await host.wait()

    await eventually(lambda: not any(map(is_running, pids)))


@requirement("mcp:close:no-process-left")
async def test_what_a_server_starts_while_it_is_closed_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stdin closes, it starts a process in a session of its own, and is gone: nobody saw them together."""
    monkeypatch.setattr(
        "codemode.mcp.connection.MCP_LISTED_EXIT_MS", 60_000
    )  # it gets as far as that on a busy machine too
    log = tmp_path / "log"
    code = f"""
import subprocess, sys
from pathlib import Path
sys.path.insert(0, {str(SERVERS)!r})
from wire import Server
Server("late").run()
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
Path({str(log)!r}).write_text(str(sleeper.pid))
"""
    late = define("late", {"command": sys.executable, "args": ["-c", code]})
    async with servers_of(late, cache=tmp_path) as servers:
        await servers.tools()

    assert not is_running(int(log.read_text()))
