"""Point at the files of the editor one has already: every tool of every server is there, and what is wrong is said."""

import asyncio
import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli_w
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, clean_environment
from tests.support.command import Done
from tests.support.http_servers import Recorded, build_shop, serve
from tests.support.mcp import SERVERS, reference_server

REFERENCE = ("everything", "filesystem", "memory", "sequential-thinking")
Tables = Mapping[str, dict[str, Any]]


class Desk(NamedTuple):
    """A folder with a manifest, and an environment in which nothing else is known."""

    folder: Path
    environment: dict[str, str]

    def write(self, file: str, text: str) -> Path:
        """Write a file and return its path."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    async def run(self, *arguments: str) -> Done:
        """Run `codemode ARGUMENTS`, while servers of the test may be asked."""
        done = await asyncio.to_thread(
            subprocess.run, [*COMMAND, *arguments], cwd=self.folder, env=self.environment, capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=BOUND_S, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty folder; lists of servers are cached in it."""
    environment = clean_environment(tmp_path / "state") | {"CODEMODE_CACHE_DIR": str(tmp_path / "cache")}
    return Desk(tmp_path, environment)


def claude_desktop(desk: Desk, servers: Tables) -> Path:
    """`claude_desktop_config.json`, among settings of its own."""
    return desk.write("claude_desktop_config.json", json.dumps({"globalShortcut": "", "mcpServers": servers}))


def cursor(desk: Desk, servers: Tables) -> Path:
    """`.cursor/mcp.json`."""
    return desk.write(".cursor/mcp.json", json.dumps({"mcpServers": servers}))


def vs_code(desk: Desk, servers: Tables) -> Path:
    """`.vscode/mcp.json`: types, inputs, comments and a trailing comma."""
    typed = {
        name: {"type": "http" if "url" in table else "stdio", "gallery": True} | table
        for name, table in servers.items()
    }
    body = json.dumps({"inputs": [{"id": "token", "type": "promptString"}], "servers": typed}, indent=2)
    return desk.write(".vscode/mcp.json", f"// what the team uses\n{body[:-2]},\n}}\n")


def codex(desk: Desk, servers: Tables) -> Path:
    """`.codex/config.toml`, with seconds for its timeouts."""
    timed = {name: {"startup_timeout_sec": 60} | table for name, table in servers.items()}
    return desk.write(".codex/config.toml", tomli_w.dumps({"model": "o4", "mcp_servers": timed}))


FORMATS: tuple[Callable[[Desk, Tables], Path], ...] = (claude_desktop, cursor, vs_code, codex)


def _local(name: str, folder: Path) -> dict[str, Any]:
    command, *arguments = reference_server(name, *([str(folder)] if name == "filesystem" else [])).command
    environment = {"env": {"MEMORY_FILE_PATH": str(folder / "memory.json")}} if name == "memory" else {}
    return {"command": command, "args": arguments, **environment}


def _odd(mode: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / "odd.py"), mode]}


@asynccontextmanager
async def _six_servers(desk: Desk) -> AsyncIterator[Tables]:
    """Four from npm, one in Python over streamable HTTP, one that is broken."""
    async with serve(build_shop().streamable_http_app()) as base:
        yield {
            **{name: _local(name, desk.folder) for name in REFERENCE},
            "shop": {"url": f"{base}/mcp"},
            "broken": _odd("exits_at_start"),
        }


@functools.cache
def _told_by_the_sdk() -> frozenset[str]:
    """Return the ids of all tools of the reference servers, asked with nothing of ours."""

    async def ask(name: str) -> set[str]:
        table = _local(name, SERVERS)
        parameters = StdioServerParameters(command=table["command"], args=table["args"])
        async with stdio_client(parameters, errlog=nowhere) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return {f"mcp:{name}:{tool.name}" for tool in (await session.list_tools()).tools}

    async def ask_all() -> frozenset[str]:
        return frozenset().union(*await asyncio.gather(*map(ask, REFERENCE)))

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        return asyncio.run(ask_all())


@requirement("editors:formats:listed", "editors:broken:reported", "mcp:config:roots")
@pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)
async def test_every_tool_of_an_editors_servers_is_listed(desk: Desk, write: Callable[[Desk, Tables], Path]) -> None:
    """Imported, and included as it is; the broken one is reported with its kind and its last words."""
    async with _six_servers(desk) as servers:
        file = write(desk, servers)
        imported = await desk.run("import", str(file))
        listed = await desk.run("catalog", "--json")
        desk.write("codemode.toml", f"[mcp]\ninclude = [{json.dumps(str(file.relative_to(desk.folder)))}]\n")
        included = await desk.run("catalog", "--json")
        plain = await desk.run("catalog")
    first, second = json.loads(listed.out), json.loads(included.out)
    ids = {tool["id"] for tool in first["tools"] if "/" not in tool["name"]}

    assert (imported.status, listed.status, included.status) == (0, 0, 0), imported.err + listed.err
    assert ids == await asyncio.to_thread(_told_by_the_sdk) | {"mcp:shop:price", "mcp:shop:bake"}
    assert [tool["id"] for tool in second["tools"]] == [tool["id"] for tool in first["tools"]]
    assert {tool["origin"] for tool in first["tools"]} == {str(desk.folder / "codemode.toml")}
    assert {tool["origin"] for tool in second["tools"]} == {str(file)}
    for listing in (first, second):
        (failure,) = listing["failures"]
        assert (failure["server"], failure["kind"], failure["exitStatus"]) == ("broken", "exited", 3)
        assert "cannot find the database" in failure["stderr"]
    (line,) = (line for line in plain.err.splitlines() if "broken" in line)
    where = file.relative_to(desk.folder)
    assert line.startswith(
        f"MCP server broken [exited], from {where}: exited with status 3. Its stderr ends with: cannot"
    )


@requirement("editors:cell:one-exec", "mcp:operations:capability", "mcp:call:native-result")
async def test_one_exec_uses_the_servers_of_an_editor_together(desk: Desk) -> None:
    """A folder is listed, entities are stored, a resource and a prompt are read; the broken server harms nobody."""
    cell = f"""
    const listed = await MCP.filesystem.listDirectory({{ path: {json.dumps(str(desk.folder))} }});
    const people = ["Ada", "Grace"].map((name) => ({{ name, entityType: "person", observations: [] }}));
    await MCP.memory.createEntities({{ entities: people }});
    const graph = JSON.parse((await MCP.memory.readGraph()).content[0].text);
    const resource = await MCP.everything.resources.read({{ uri: "demo://resource/dynamic/text/1" }});
    const prompt = await MCP.everything.prompts.get({{ name: "args-prompt", arguments: {{ city: "Oslo" }} }});
    const thought = {{ thought: "done", thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false }};
    await MCP.sequentialThinking.sequentialthinking(thought);
    const price = await MCP.shop.price({{ item: "cake" }});
    return {{
        listed: listed.content[0].text.includes("[FILE] note.txt"),
        people: graph.entities.map((entity) => entity.name),
        resource: "text" in resource.contents[0],
        prompt: prompt.messages[0].content.text,
        price: price.structuredContent.result,
    }};
    """
    desk.write("note.txt", "hello")
    async with _six_servers(desk) as servers:
        file = cursor(desk, servers)
        desk.write("codemode.toml", f"[mcp]\ninclude = [{json.dumps(str(file))}]\n")
        done = await desk.run("run", str(desk.write("cell.js", cell)), "--json", "--wait", "--timeout-ms", "60000")
    result = json.loads(done.out)

    assert result["status"] == "completed", result
    value = result["value"]
    assert "Oslo" in value.pop("prompt")
    assert value == {"listed": True, "people": ["Ada", "Grace"], "resource": True, "price": 5}
    assert result["telemetry"]["execCount"] == 1
    assert "broken" in done.err


@requirement("editors:kill:at-once", "mcp:call:death", "mcp:call:reconnect")
async def test_killing_a_server_in_mid_call_rejects_that_call_at_once_and_the_next_works(desk: Desk) -> None:
    """Its own timeout is an hour away, so nothing but its death can have ended the call."""
    desk.write(
        "codemode.toml",
        tomli_w.dumps(
            {
                "mcp": {"servers": {"odd": _odd("never_answers_a_call") | {"callTimeoutMs": 3_600_000}}},
                "tool": [
                    {"name": "kill", "description": "End a process.", "command": ["kill", "-9", "{pid}"]}
                    | {"parameters": {"type": "object", "properties": {"pid": {"type": "string"}}}}
                ],
            }
        ),
    )
    cell = """
    const pid = async () => (await MCP.odd.hello()).content[0].text.split(" ")[2];
    const first = await pid();
    const open = MCP.odd.wait().catch((error) => error);
    await tools.kill({ pid: first });
    const error = await open;
    return { code: error.code, toolId: error.toolId, message: error.message, fresh: (await pid()) !== first };
    """
    done = await desk.run("run", "-e", cell, "--json", "--timeout-ms", "60000")
    result = json.loads(done.out)

    assert result["status"] == "completed", result
    value = result["value"]
    assert (value["code"], value["toolId"], value["fresh"]) == ("nested_tool_failed", "mcp:odd:wait", True)
    assert value["message"].startswith('MCP server "odd" was ended by SIGKILL during tools/call')


def _manifest(**servers: Any) -> str:
    return tomli_w.dumps({"mcp": {"servers": servers}})


_BAD_FILES = {
    "an unset variable": (
        _manifest(shop={"command": "node", "args": ["${NO_SUCH_VARIABLE}"]}),
        "mcp.servers.shop.args[0] in {folder}/codemode.toml: the variable NO_SUCH_VARIABLE is not set; set it",
    ),
    "bad JSON": ('[mcp]\ninclude = ["bad.json"]\n', "{folder}/bad.json:1:16: not JSON: Expecting value."),
    "a file that is not there": (
        '[mcp]\ninclude = ["none.json"]\n',
        "cannot read {folder}/none.json, which mcp.include names: No such file or directory.",
    ),
    "an unknown transport": (
        _manifest(shop={"url": "https://x.test", "type": "htpp"}),
        'mcp.servers.shop.type in {folder}/codemode.toml: found "htpp"; allowed is ',
    ),
    "an unknown key": (
        _manifest(shop={"comand": "npx"}),
        'mcp.servers.shop in {folder}/codemode.toml: unknown key "comand"; known keys are ',
    ),
}


@requirement("editors:bad:one-line")
@pytest.mark.parametrize("what", _BAD_FILES)
async def test_a_definition_that_cannot_be_used_is_one_clear_line(desk: Desk, what: str) -> None:
    """Where it stands, what was found, what to do; nothing runs."""
    text, sentence = _BAD_FILES[what]
    desk.write("bad.json", '{"mcpServers": }')
    desk.write("codemode.toml", text)
    done = await desk.run("catalog")

    assert (done.status, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert sentence.replace("{folder}", str(desk.folder)) in line.replace("~/", f"{Path.home()}/")


@requirement("editors:bad:one-line", "mcp:config:first-wins")
async def test_a_server_that_is_defined_twice_is_one_clear_line(desk: Desk) -> None:
    """The first one is used."""
    shelf = {"command": sys.executable, "args": [str(SERVERS / "shelf.py")]}
    desk.write("twice.json", json.dumps({"mcpServers": {"shelf": _odd("plain")}}))
    desk.write("codemode.toml", tomli_w.dumps({"mcp": {"include": ["twice.json"], "servers": {"shelf": shelf}}}))
    done = await desk.run("catalog")

    assert "mcp:shelf:get_book" in done.out
    (line,) = (line for line in done.err.splitlines() if "twice.json" in line)
    assert line.endswith(
        f"mcpServers.shelf in {desk.folder}/twice.json is not used: mcp.servers.shelf in"
        f" {desk.folder}/codemode.toml defines the same server before it."
    )


_BAD_SERVERS = {
    "a banner": (
        "chats_on_stdout",
        'MCP server "bad" writes lines to stdout that are no MCP messages; they are skipped',
    ),
    "the same cursor": ("repeats_its_cursor", 'MCP server "bad": its tool list repeats a cursor; what came before'),
    "silence": (
        "never_greets",
        "MCP server bad [timeout], from codemode.toml: did not answer within startTimeoutMs = 1500 ms.",
    ),
    "an end": (
        "exits_at_start",
        "MCP server bad [exited], from codemode.toml: exited with status 3. Its stderr ends with: cannot find",
    ),
}


@requirement("editors:bad:one-line", "mcp:start:isolated")
@pytest.mark.parametrize("what", _BAD_SERVERS)
async def test_a_server_that_misbehaves_is_one_clear_line(desk: Desk, what: str) -> None:
    """In time, and beside a good server that is listed all the same."""
    mode, sentence = _BAD_SERVERS[what]
    hasty = {"startTimeoutMs": 1500} if what == "silence" else {}
    shelf = {"command": sys.executable, "args": [str(SERVERS / "shelf.py")]}
    desk.write("codemode.toml", _manifest(bad=_odd(mode) | hasty, shelf=shelf))
    done = await desk.run("catalog")

    assert done.status == 0
    assert "mcp:shelf:get_book" in done.out
    (line,) = (line for line in done.err.splitlines()[:-1] if "bad" in line and ", listed " not in line)
    assert sentence in line


@requirement("editors:bad:one-line", "mcp:start:failure-kinds")
@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"refuses": True}, "MCP server bad [offline], from codemode.toml: cannot be reached: "),
        (
            {"status": 401},
            "MCP server bad [auth], from codemode.toml: refused the credentials (HTTP 401); check the headers of",
        ),
        ({"status": 500}, "MCP server bad [http], from codemode.toml: answered with HTTP 500."),
    ],
)
async def test_an_address_that_does_not_serve_is_one_clear_line(
    desk: Desk, facts: dict[str, Any], sentence: str
) -> None:
    """A port that refuses, a 401, a server that is ill."""
    app = Recorded(build_shop().streamable_http_app(), lambda method, headers: facts.get("status"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with serve(app) as base:
            url = f"http://127.0.0.1:{unused.getsockname()[1]}" if "refuses" in facts else base
            desk.write("codemode.toml", _manifest(bad={"url": f"{url}/mcp"}))
            done = await desk.run("catalog")

    assert done.status == 0
    (line,) = (line for line in done.err.splitlines() if "MCP server" in line)
    assert sentence in line
