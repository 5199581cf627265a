"""Several sessions of one process over the same servers: one process each, and nothing else in common."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codemode import CodeMode, Completed, Failed, Waiting
from codemode.core.events import CallProgress, CallStarted, Event, RunEnded
from codemode.core.redact import MASK, Redactor
from codemode.core.types import CodeModeResult
from codemode.mcp.failures import ServerUnavailable
from codemode.mcp.shared import SharedServers
from tests.requirements import requirement
from tests.support.mcp import (
    CONTEXT,
    SERVERS,
    call,
    connection_of,
    eventually,
    noted,
    odd,
    servers_of,
    text_of,
)
from tests.support.processes import is_running

HELLO = "return (await MCP.odd.hello()).content[0].text"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEMODE_CACHE_DIR", str(tmp_path / "cache"))


def _manifest(folder: Path, *arguments: str, rules: str = "", **facts: Any) -> Path:
    """Write a manifest whose server comes from a file that other manifests of the folder include too."""
    server = {"command": sys.executable, "args": [str(SERVERS / "odd.py"), *(arguments or ["plain"])], **facts}
    folder.mkdir(exist_ok=True)
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"odd": server}}), encoding="utf-8")
    path = folder / f"codemode-{len(list(folder.glob('*.toml')))}.toml"
    path.write_text(f'{rules}\n[mcp]\ninclude = ["mcp.json"]\n', encoding="utf-8")
    return path


def _open(manifest: Path, **options: Any) -> CodeMode:
    """Return a session whose cells have as long as they may: other tests run beside these."""
    return CodeMode(manifest, limits={"timeout_ms": 60_000}, **options)


@asynccontextmanager
async def _sessions(*manifests: Path, heard: Iterable[list[Event]] = ()) -> AsyncIterator[list[CodeMode]]:
    """Open a session for each manifest, the later ones beside the first."""
    listeners = iter(heard)
    async with AsyncExitStack() as stack:
        opened: list[CodeMode] = []
        for manifest in manifests:
            beside: Any = {"beside": opened[0]} if opened else {}
            listener = next(listeners, [])
            opened.append(await stack.enter_async_context(_open(manifest, on_event=listener.append, **beside)))
        yield opened


async def _end(session: CodeMode, code: str) -> CodeModeResult:
    """Run a cell to its end, also beyond a deadline."""
    result = await session.exec(code)
    while isinstance(result, Waiting):
        result = await session.wait(result.run_id)
    return result


async def _value(session: CodeMode, code: str) -> Any:
    result = await _end(session, code)
    assert isinstance(result, Completed), result
    return result.value


def _pid(hello: str) -> int:
    return int(hello.removeprefix("hello from "))


@requirement("mcp:sharing:one-connection", "library:sharing:servers")
async def test_however_many_sessions_there_are_a_server_is_one_process(tmp_path: Path) -> None:
    """They are opened at once and call at once, and it is started once, listed once and answers all."""
    log = tmp_path / "starts"
    manifest = _manifest(tmp_path / "shop", "starts_twice_into", str(log))
    async with (
        _open(manifest) as first,
        _open(manifest, beside=first) as second,
        _open(manifest, beside=second) as third,
    ):
        pids = await asyncio.gather(*(_value(each, HELLO) for each in (first, second, third) for _ in range(3)))

    assert len(set(pids)) == 1
    assert log.read_text(encoding="utf-8") == "started\n"
    assert not is_running(_pid(pids[0]))


@requirement("mcp:sharing:last-closes", "library:sharing:servers")
async def test_a_session_that_ends_leaves_the_connection_to_the_others(tmp_path: Path) -> None:
    """The server runs until the last that uses it is closed, and one that only the second used until then."""
    shared, own = _manifest(tmp_path / "shared"), _manifest(tmp_path / "own")
    async with _open(shared) as first:
        async with _open(shared, beside=first) as second, _open(own, beside=first) as third:
            pid, other = _pid(await _value(second, HELLO)), _pid(await _value(third, HELLO))
        assert (is_running(pid), is_running(other)) == (True, False)
        assert _pid(await _value(first, HELLO)) == pid

    assert not is_running(pid)


@requirement("mcp:sharing:alike")
async def test_servers_that_are_defined_differently_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder, another argument or another value of a variable is another process."""
    monkeypatch.setenv("ODD_TOKEN", "first-value")
    env = {"env": {"ODD_TOKEN": "${ODD_TOKEN}"}}
    here, there = _manifest(tmp_path / "here", "plain", **env), _manifest(tmp_path / "there", "plain", **env)
    async with _sessions(here, there, here) as (first, second, third):
        monkeypatch.setenv("ODD_TOKEN", "second-value")
        async with _open(here, beside=first) as fourth:
            found = [await _value(each, HELLO) for each in (first, second, third, fourth)]

    assert [found.index(each) for each in found] == [0, 1, 0, 3]


@requirement("mcp:sharing:own-requests")
async def test_a_session_that_aborts_cancels_its_own_call_and_no_other(tmp_path: Path) -> None:
    """The server hears of one cancellation, and the other session's call goes on until its own abort."""
    log = tmp_path / "log"
    manifest = _manifest(tmp_path / "shop", "never_answers_a_call", str(log))
    events: list[list[Event]] = [[], []]
    async with _sessions(manifest, manifest, heard=events) as (first, second):
        running = [asyncio.create_task(each.exec("return await MCP.odd.wait()")) for each in (first, second)]
        await eventually(lambda: noted(log, '"tools/call"') == 2)  # both are with the server now
        cancelled = "return JSON.parse((await MCP.odd.cancelled()).content[0].text).length"
        ended = []
        for number, (session, heard, run) in enumerate(zip((first, second), events, running, strict=True), 1):
            session.abort(next(event.run_id for event in heard if isinstance(event, CallStarted)))
            result = await run
            assert isinstance(result, Failed)
            await eventually(lambda told=number: noted(log, "notifications/cancelled") >= told)
            ended.append((result.code, await _value(second, cancelled), running[1].done()))

    assert ended == [("aborted", 1, False), ("aborted", 2, True)]


@requirement("mcp:sharing:own-requests")
async def test_progress_and_events_reach_the_session_that_called(tmp_path: Path) -> None:
    """Both call the same tool at the same time; each hears of its own run alone, and counts its own call."""
    manifest = _manifest(tmp_path / "shop", "reports_progress")
    events: list[list[Event]] = [[], []]
    async with _sessions(manifest, manifest, heard=events) as sessions:
        code = "await Promise.all([MCP.odd.work(), MCP.odd.work()]); return 1"
        await asyncio.gather(*(_value(each, code) for each in sessions))
        counts = [each.telemetry["callCount"] for each in sessions]

    for heard in events:
        (run_id,) = {event.run_id for event in heard}
        steps = [(event.call_id, event.update["message"]) for event in heard if isinstance(event, CallProgress)]
        assert sorted(steps) == [(call_id, f"step {step}") for call_id in (1, 2) for step in (1, 2)], run_id
    assert counts == [2, 2]


@requirement("mcp:sharing:nothing-else")
async def test_policy_hooks_and_approvals_stay_each_sessions_own(tmp_path: Path) -> None:
    """One may call, one must ask, one is denied, one has a hook that blocks; all over the same process."""
    (tmp_path / "shop").mkdir()
    hook = tmp_path / "shop" / "gates.py"
    hook.write_text("def check(event):\n    return {'block': 'not today'}\n", encoding="utf-8")
    manifests = [
        _manifest(tmp_path / "shop", rules=rules)
        for rules in (
            "",
            '[approvals]\n"mcp:odd:*" = "ask"',
            '[tools]\ndeny = ["mcp:odd:hello"]',
            '[[hook]]\nevent = "before_tool_call"\npython = "gates:check"',
        )
    ]
    async with _sessions(*manifests) as sessions:
        may, asks, denied, blocked = sessions
        asked = await asks.exec(HELLO)
        assert isinstance(asked, Waiting)
        assert [call.state for call in asked.pending] == ["awaiting_approval"]
        approved = await asks.wait(asked.run_id, approve=["1"])
        assert isinstance(approved, Completed)
        assert approved.value == await _value(may, HELLO)
        results = [await _end(each, HELLO) for each in (denied, blocked)]

    assert [result.to_json()["error"].partition(";")[0] for result in results] == [
        "ReferenceError: MCP is not defined",
        "the cell was blocked: not today",
    ]


@requirement("mcp:sharing:reconnect")
async def test_a_server_that_died_for_one_session_is_back_for_all(tmp_path: Path) -> None:
    """Whoever calls next connects again; the other finds the new process."""
    manifest = _manifest(tmp_path / "shop", "dies_in_a_call")
    async with _sessions(manifest, manifest) as (first, second):
        before = await _value(second, HELLO)
        died = await _end(first, "return await MCP.odd.die()")
        after = [await _value(each, HELLO) for each in (second, first)]

    assert isinstance(died, Failed)
    assert died.code == "nested_tool_failed"
    assert after[0] == after[1] != before


@requirement("mcp:sharing:changes")
async def test_a_changed_tool_list_is_seen_by_whoever_opens_next(tmp_path: Path) -> None:
    """Also where the change was told to another session, which keeps the catalog it began with."""
    manifest = _manifest(tmp_path / "shop", "changes_its_tools")
    async with _sessions(manifest, manifest) as (first, second):
        await _value(second, "return await MCP.odd.grow()")
        async with _open(manifest, beside=first) as third, _open(manifest, beside=first) as fourth:
            grown = [len(each.catalog.tools) for each in (first, second, third, fourth)]
            assert "grown" in (await _value(third, "return await MCP.odd.$api()"))["header"]

    assert grown == [2, 2, 3, 3]


@requirement("mcp:sharing:one-connection")
async def test_sessions_that_list_at_the_same_time_ask_once(tmp_path: Path) -> None:
    """The second waits for the first's answer; one that gives up leaves it to the other."""
    log, shared = tmp_path / "starts", SharedServers(tmp_path)
    spec = odd("starts_twice_into", str(log))
    async with servers_of(spec, cache=tmp_path, shared=shared) as one:
        async with servers_of(spec, cache=tmp_path, shared=shared) as two:
            impatient = asyncio.create_task(one.tools())
            patient = asyncio.create_task(two.tools())
            await eventually(log.exists)
            impatient.cancel()
            assert [tool.id for tool in (await patient).tools] == ["mcp:odd:hello"]
        assert text_of(await call(one, "odd.hello")).startswith("hello")

    assert log.read_text(encoding="utf-8") == "started\n"


@requirement("mcp:sharing:redacted")
async def test_each_session_keeps_the_secrets_of_a_connection_that_another_opened(tmp_path: Path) -> None:
    """A session that joins later learns what the connection knows; failures and warnings show nobody's."""
    spec = odd("chats_on_stdout", env={"TOKEN": "${TOKEN}"})
    shared = SharedServers(tmp_path, {"TOKEN": "tok-one-123456"})
    early, late = Redactor(), Redactor(["Welcome to the chatty"])
    async with servers_of(spec, cache=tmp_path, shared=shared, redactor=early) as one:
        await one.tools(refresh=True)
        async with servers_of(spec, cache=tmp_path, shared=shared, redactor=late) as two:
            await call(two, "odd.hello")
            connection_of(two._servers["odd"])._hear_request("sampling/createMessage for tok-one-123456")
            (_, declined) = two.warnings
        assert early.text("tok-one-123456") == late.text("tok-one-123456") == MASK
        assert (MASK in two.warnings[0], "Welcome to the chatty" in one.warnings[0]) == (True, True)
        assert f"sampling/createMessage for {MASK}" in declined

    early.learn(["learned by one alone"])
    assert late.text("learned by one alone") == "learned by one alone"


@requirement("mcp:sharing:last-closes")
async def test_what_is_closed_for_all_opens_no_more(tmp_path: Path) -> None:
    """Who closes the servers closes them for those that joined, and a call after that says so."""
    shared = SharedServers(tmp_path)
    async with servers_of(odd("plain"), cache=tmp_path, shared=shared) as servers:
        pid = _pid(text_of(await call(servers, "odd.hello")))
        await shared.close()
        assert not is_running(pid)
        with pytest.raises(ServerUnavailable, match='MCP server "odd" is closed, as is what opened it'):
            await servers._servers["odd"].request("tools/call", {"name": "hello"}, CONTEXT.progress)


async def test_runs_of_sessions_over_one_server_end_each_for_itself(tmp_path: Path) -> None:
    """Closing a session while another's call is on its way does not touch that call."""
    log = tmp_path / "log"
    manifest = _manifest(tmp_path / "shop", "never_answers_a_call", str(log))
    heard: list[Event] = []
    async with _sessions(manifest, heard=[heard]) as (first,):
        running = asyncio.create_task(first.exec("return await MCP.odd.wait()"))
        await eventually(lambda: noted(log, '"tools/call"') == 1)
        async with _open(manifest, beside=first) as second:
            await _value(second, "return await MCP.odd.cancelled()")
        assert not any(isinstance(event, RunEnded) for event in heard)
        first.abort(heard[0].run_id)
        assert isinstance(await running, Failed)
