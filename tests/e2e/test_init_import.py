"""`codemode init` and `codemode import` as they are installed, up to the tools of an imported server."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, FIXTURES, clean_environment
from tests.support.command import Done

CLIENTS = FIXTURES / "clients"


Codemode = Callable[..., Done]


@pytest.fixture
def codemode(tmp_path: Path) -> Codemode:
    """Run `codemode …` in an empty folder with a state folder of its own beside it."""
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*arguments: str, **variables: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=folder, env=clean_environment(tmp_path / "state") | {"HOME": str(tmp_path)} | variables,
            capture_output=True, text=True, timeout=BOUND_S, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work"


@requirement("importing:init:works-at-once")
def test_what_init_writes_runs_and_passes_its_own_check(codemode: Codemode, folder: Path) -> None:
    done = codemode("init")

    assert (done.status, done.out) == (0, "wrote codemode.toml\nwrote checks/hello.js\n")
    assert done.err == "next: codemode run checks/hello.js\n      codemode smoke checks\n"
    assert codemode("run", "checks/hello.js").out == '"Hello, world!"\n'
    assert codemode("smoke", "checks").status == 0
    assert json.loads(codemode("catalog", "--json").out)["size"] == 1


@requirement("importing:write:no-overwrite")
def test_init_overwrites_only_when_forced(codemode: Codemode, folder: Path) -> None:
    (folder / "codemode.toml").write_text("# mine\n")
    done = codemode("init")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error [invalid_input]: codemode.toml is there already; --force overwrites")
    assert (folder / "codemode.toml").read_text() == "# mine\n"
    assert not (folder / "checks").exists()
    assert codemode("init", "--force").status == 0
    assert (folder / "codemode.toml").read_text() != "# mine\n"


def test_init_makes_a_folder_and_says_what_could_be_imported(codemode: Codemode, folder: Path) -> None:
    shutil.copytree(CLIENTS / "cursor", folder / "shop")
    done = codemode("init", "shop")

    assert done.status == 0
    assert "next: codemode -m shop/codemode.toml run shop/checks/hello.js\n" in done.err
    assert "codemode -m shop/codemode.toml import shop/.cursor/mcp.json\n" in done.err
    assert codemode("-m", "shop/codemode.toml", "run", "shop/checks/hello.js").status == 0
    assert json.loads(codemode("init", "new", "--json").out) == {
        "written": ["new/codemode.toml", "new/checks/hello.js"], "importable": [],
    }  # fmt: skip


def test_init_says_it_where_nothing_can_be_written(codemode: Codemode, folder: Path) -> None:
    (folder / "file").write_text("")
    (folder / "shop").mkdir()
    (folder / "shop" / "checks").write_text("")

    assert codemode("init", "file").err.startswith('error [invalid_input]: "file" is no folder')
    assert codemode("init", "shop").err.startswith("error [invalid_input]: shop/checks/hello.js cannot be written")


@requirement("importing:write:no-overwrite", "importing:report:complete")
def test_servers_are_added_once_and_replaced_when_forced(codemode: Codemode, folder: Path) -> None:
    codemode("init")
    first = (folder / "codemode.toml").read_text()
    codex = str(CLIENTS / "codex" / ".codex" / "config.toml")
    done = codemode("import", codex, FIGMA_TOKEN="set-already")
    written = (folder / "codemode.toml").read_text()

    assert (done.status, done.err) == (0, "next: codemode catalog\n")
    assert done.out == f"wrote 3 servers to {folder / 'codemode.toml'}: context, figma, paused\n"
    assert written.startswith(first)
    again = codemode("import", codex)
    assert again.status == 1
    assert again.err.count("defines it already; --force replaces it") == 3
    assert (folder / "codemode.toml").read_text() == written
    assert codemode("import", codex, "--force", "--quiet").status == 0
    assert (folder / "codemode.toml").read_text() == written


@requirement("importing:report:complete", "importing:secrets:variables")
def test_the_report_names_what_to_set_and_shows_no_secret(codemode: Codemode, folder: Path) -> None:
    done = codemode("import", str(CLIENTS / "cursor" / ".cursor" / "mcp.json"))
    report = json.loads(
        codemode("import", "--print", "--json", str(CLIENTS / "claude_desktop" / "claude_desktop_config.json")).out
    )

    assert "set PROXY_PASSWORD\n" in done.err
    assert "set SEARCH_API_KEY; its value is at mcpServers.search.args[2] in " in done.err
    assert "left out of search: autoApprove, without a meaning here\n" in done.err
    assert "sk-proj" not in done.out + done.err + (folder / "codemode.toml").read_text()
    assert [variable["name"] for variable in report["variables"]] == ["GITHUB_PERSONAL_ACCESS_TOKEN", "POSTGRES_SECRET"]
    assert "[mcp.servers.github]" in report["toml"]
    assert "ghp_" not in json.dumps(report)


@requirement("importing:write:no-overwrite")
def test_print_writes_nothing_and_only_chooses(codemode: Codemode, folder: Path) -> None:
    vscode = str(CLIENTS / "vscode" / ".vscode" / "mcp.json")
    done = codemode("import", "--print", vscode, "--only", "docs")

    assert done.out.splitlines()[1:] == ["[mcp.servers.docs]", 'type = "http"', 'url = "https://docs.example/mcp"']
    assert list(folder.iterdir()) == []
    assert codemode("import", vscode, "--only", "dcs").err.startswith(
        'error [invalid_input]: no file has a server "dcs"; there are perplexity, local, docs. Did you mean "docs"?'
    )


@requirement("importing:report:complete")
def test_a_file_without_a_server_is_said_to_have_none(codemode: Codemode, folder: Path) -> None:
    (folder / "empty.json").write_text('{"mcpServers": {}}')

    done = codemode("import", "empty.json")

    assert (done.status, done.out) == (1, "")
    assert done.err == "there is no server to import: the map of servers is empty\n"
    assert not (folder / "codemode.toml").exists()


@requirement("importing:clients:seven")
def test_servers_come_from_a_pipe_of_the_shell_too(tmp_path: Path) -> None:
    """`codemode import <(jq … settings.json)`."""
    document = json.dumps({"mcpServers": {"shop": {"command": "npx"}}})
    script = 'said=$1; shift; "$@" import <(printf %s "$said") --print'
    done = subprocess.run(
        ["bash", "-c", script, "bash", document, *COMMAND], cwd=tmp_path, env=clean_environment(tmp_path / "state"),
        capture_output=True, text=True, timeout=BOUND_S, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines()[1:] == ["[mcp.servers.shop]", 'command = "npx"'], done.stderr


@requirement("importing:write:no-overwrite")
@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[tols]\n", "error [invalid_config]: "),
        ("[x\n", "error [invalid_config]: "),
        ("mcp = { servers = { a = { url = 'http://a' } } }\n", "error [invalid_input]: "),
    ],
)
def test_a_manifest_that_cannot_take_servers_stays_as_it_is(
    codemode: Codemode, folder: Path, manifest: str, message: str
) -> None:
    (folder / "codemode.toml").write_text(manifest)
    done = codemode("import", "--force", str(CLIENTS / "codex" / ".codex" / "config.toml"))

    assert (done.status, done.err.startswith(message)) == (2, True)
    assert (folder / "codemode.toml").read_text() == manifest
    assert [each.name for each in folder.iterdir()] == ["codemode.toml"]


SERVER = """
import asyncio
from mcp.server import MCPServer

server = MCPServer("greeter")

@server.tool()
def greet(name: str) -> str:
    return f"Hello, {name}!"

server.run("stdio")
"""


@requirement("importing:clients:seven", "importing:servers:isolated")
def test_the_tools_of_an_imported_server_are_in_the_catalog_and_a_cell_calls_one(
    codemode: Codemode, folder: Path
) -> None:
    """A client's file in a project's folder, with a program named from there, beside one that cannot be used."""
    (folder / "server.py").write_text(SERVER)
    (folder / ".vscode").mkdir()
    servers = {
        "greeter": {
            "type": "stdio",
            "command": sys.executable,
            "args": ["${workspaceFolder}/server.py"],
            "env": {"GREETER_TOKEN": "not-for-the-manifest"},
        },
        "broken": {"type": "pigeon", "command": "x"},
    }
    (folder / ".vscode" / "mcp.json").write_text(json.dumps({"servers": servers}))
    done = codemode("import", ".vscode/mcp.json")
    listing = json.loads(codemode("catalog", "--json", GREETER_TOKEN="now-in-a-variable").out)
    cell = "return (await MCP.greeter.greet({ name: 'Ada' })).content[0].text"
    ran = codemode("run", "-e", cell, "--timeout-ms", "60000", GREETER_TOKEN="x")

    assert done.status == 0
    assert "skipped broken of " in done.err
    assert "set GREETER_TOKEN; its value is at servers.greeter.env.GREETER_TOKEN in " in done.err
    assert "mcp:greeter:greet" in [tool["id"] for tool in listing["tools"]]
    assert ran.out == '"Hello, Ada!"\n'
