"""MCP from inside a cell: real servers, a real worker, one `exec`."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from codemode.cli.drive import Go, drive
from codemode.cli.listing import load_toolbox
from codemode.cli.progress import Progress
from codemode.cli.smoke import SmokeOptions
from codemode.cli.source import Cell
from codemode.cli.terminal import Terminal
from codemode.cli.verdicts import check_cells
from codemode.composition import Setup, open_session
from codemode.store.memory import MemoryStore
from tests.requirements import requirement
from tests.support.cells import clean_environment, run_command
from tests.support.mcp import SERVERS, reference_server
from tests.support.streams import Stream


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, engine_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of these servers are nobody else's business."""
    monkeypatch.setenv("CODEMODE_CACHE_DIR", str(engine_cache))


def _manifest(folder: Path, **servers: Any) -> Path:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    manifest = folder / "codemode.toml"
    manifest.write_text('[mcp]\ninclude = [".mcp.json"]\n', encoding="utf-8")
    return manifest


def _command(name: str, *arguments: str) -> dict[str, Any]:
    command, *rest = reference_server(name, *arguments).command
    return {"command": command, "args": rest}


def _fixture(*arguments: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / arguments[0]), *arguments[1:]]}


async def _run(manifest: Path, code: str) -> dict[str, Any]:
    async with open_session(Setup(manifest, limits={"timeout_ms": 60_000}), store=MemoryStore()) as session:
        return (await session.exec({"code": code})).to_json()


@requirement("mcp:transport:stdio", "mcp:operations:capability", "mcp:call:native-result")
async def test_one_cell_uses_four_reference_servers(tmp_path: Path) -> None:
    """It lists a folder, stores an entity, reads a resource and a prompt, all in one exec."""
    (tmp_path / "note.txt").write_text("hello", encoding="utf-8")
    memory = _command("memory") | {"env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}}
    manifest = _manifest(
        tmp_path,
        everything=_command("everything"),
        filesystem=_command("filesystem", str(tmp_path)),
        memory=memory,
        **{"sequential-thinking": _command("sequential-thinking")},
    )
    result = await _run(
        manifest,
        f"""
        const listed = await MCP.filesystem.listDirectory({{path: {json.dumps(str(tmp_path))}}});
        await MCP.memory.createEntities({{entities: [{{name: "Ada", entityType: "person", observations: []}}]}});
        const graph = JSON.parse((await MCP.memory.readGraph()).content[0].text);
        const read = await MCP.everything.resources.read({{uri: "demo://resource/dynamic/text/1"}});
        const got = await MCP.everything.prompts.get({{name: "args-prompt", arguments: {{city: "Oslo"}}}});
        return [listed.content[0].text, graph.entities[0].name, read.contents.length, got.messages.length];
        """,
    )

    assert result["status"] == "completed", result
    listed, name, contents, messages = result["value"]
    assert "[FILE] note.txt" in listed
    assert (name, contents, messages) == ("Ada", 1, 1)
    assert result["telemetry"]["nestedToolIds"] == [
        "mcp:filesystem:list_directory",
        "mcp:memory:create_entities",
        "mcp:memory:read_graph",
        "mcp:everything:resources/read",
        "mcp:everything:prompts/get",
    ]


@requirement("mcp:call:death", "mcp:call:reconnect", "mcp:call:one-object", "mcp:call:is-error-resolves")
async def test_a_cell_survives_a_server_that_dies(tmp_path: Path) -> None:
    """The call rejects with the tool's id; the next one works; so does a wrong argument's rejection."""
    manifest = _manifest(tmp_path, odd=_fixture("odd.py", "dies_in_a_call"), shelf=_fixture("shelf.py"))
    result = await _run(
        manifest,
        """
        const said = (promise) => promise.catch((error) => [error.code, error.toolId]);
        return [
            await said(MCP.odd.die()),
            (await MCP.odd.hello()).content[0].text.slice(0, 10),
            (await MCP.shelf.getBook({id: "nope"})).isError,
            await said(MCP.shelf.getBook({})),
            await said(MCP.shelf.getBook("1")),
        ];
        """,
    )

    assert result["value"] == [
        ["nested_tool_failed", "mcp:odd:die"],
        "hello from",
        True,
        ["nested_tool_failed", "mcp:shelf:get_book"],
        ["nested_tool_failed", None],
    ]


@requirement("mcp:scope:files", "mcp:scope:headers")
async def test_a_cell_reads_the_declarations_without_a_nested_call(tmp_path: Path) -> None:
    """Files, and headers of all, of a server and of a tool."""
    manifest = _manifest(tmp_path, **{"book-shelf": _fixture("shelf.py")})
    result = await _run(
        manifest,
        """
        const files = await API.list("mcp");
        const text = await API.read("mcp/bookShelf.d.ts");
        const [all, server] = [await MCP.$api(), await MCP.bookShelf.$api()];
        const tool = await MCP.bookShelf.$api("getBook", {schema: true});
        return {
            paths: files.map((file) => file.path),
            whole: files[1].bytes === text.length && server.header === text,
            servers: all.servers, tools: server.tools, schema: tool.schemas.getBook.required,
        };
        """,
    )

    assert result["value"] == {
        "paths": ["mcp/index.d.ts", "mcp/bookShelf.d.ts"],
        "whole": True,
        "servers": ["bookShelf"],
        "tools": ["findBooks", "getBook", "wrongBook"],
        "schema": ["id"],
    }
    assert result["telemetry"]["callCount"] == 0


@requirement("cli:progress:servers", "mcp:warnings:told")
def test_a_person_hears_which_servers_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By way of the host for a run, which tells it in words too, and what comes up in calls; directly for a listing."""
    manifest = _manifest(tmp_path, odd=_fixture("odd.py", "exits_at_start"), asks=_fixture("odd.py", "asks_back"))
    heard: set[tuple[str, str]] = set()
    monkeypatch.setattr(Progress, "look", lambda _, server, state: heard.add((server, state)))
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    err = Stream()
    terminal = Terminal(Stream(), err, {})
    terminal.speak(False, True)
    load_toolbox(terminal, str(manifest), refresh=True)
    listed = set(heard)
    heard.clear()
    request = {"op": "exec", "input": {"code": "await MCP.asks.ask()"}, "manifest": str(manifest), "refresh": True}
    request |= {"limits": {"timeout_ms": 60_000}, "session": "default", "noInput": True}
    drive(terminal, request, Cell("", "cell.js", None), Go(False, False))

    states = {("odd", "asked"), ("odd", "failed"), ("asks", "asked"), ("asks", "answered")}
    assert (listed, heard) == (states, states)
    assert " MCP server asks is asked for its tools" in err.getvalue()
    assert 'codemode: MCP server "asks" asked for sampling/createMessage; it was declined' in err.getvalue()


@requirement("cli:progress:servers", "mcp:warnings:told")
def test_smoke_checks_say_which_servers_are_asked_and_what_they_did_in_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _manifest(tmp_path, asks=_fixture("odd.py", "asks_back"))
    cell = tmp_path / "ask.js"
    cell.write_text(
        "// @status completed\n// @flags --timeout-ms 60000\nreturn await MCP.asks.ask()\n", encoding="utf-8"
    )
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(Progress, "look", lambda _, server, state: heard.append((server, state)))
    err = Stream()
    check_cells(Terminal(Stream(), err, {}), SmokeOptions([str(cell)], refresh=True))

    assert heard == [("asks", "asked"), ("asks", "answered")]
    assert err.getvalue().count('codemode: MCP server "asks" asked for sampling/createMessage; it was declined') == 1


@requirement("mcp:warnings:told")
def test_the_repl_tells_what_a_server_did_in_a_call(tmp_path: Path) -> None:
    _manifest(tmp_path, asks=_fixture("odd.py", "asks_back"))
    arguments = ["repl", "--timeout-ms", "60000"]
    told = run_command(arguments, clean_environment(tmp_path / "state"), tmp_path, "await MCP.asks.ask()\n").stderr

    assert told.count('codemode: MCP server "asks" asked for sampling/createMessage; it was declined') == 1
