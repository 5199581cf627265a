"""Other clients' definitions as tables of a manifest: variables, secrets, folders, text."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codemode.core.errors import InvalidConfig, InvalidInput
from codemode.core.tables import Where
from codemode.importing.conversion import Import, ImportedServer, import_files
from codemode.importing.dialects import Dialect, translate, variable_name
from codemode.importing.manifests import add_servers, build_first_manifest, build_tables
from codemode.manifest import load_manifest
from codemode.mcp.servers import parse_server
from tests.requirements import requirement
from tests.support.cells import FIXTURES

CLIENTS = FIXTURES / "clients"
FILES = {
    "claude_desktop": "claude_desktop_config.json",
    "claude_code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "windsurf": "mcp_config.json",
    "codex": ".codex/config.toml",
    "opencode": "opencode.jsonc",
    "gemini": ".gemini/settings.json",
}
Convert = Callable[..., ImportedServer]


def client(name: str) -> Path:
    return CLIENTS / name / FILES[name]


def tables(name: str, folder: Path | None = None) -> dict[str, Any]:
    found = import_files([client(name)], folder or CLIENTS / name)
    return {server.name: server.table for server in found.servers}


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Import one server from a `.mcp.json` in the manifest's own folder."""

    def one(table: dict[str, Any], name: str = "shop") -> ImportedServer:
        import json

        file = tmp_path / ".mcp.json"
        file.write_text(json.dumps({"mcpServers": {name: table}}))
        (server,) = import_files([file], tmp_path).servers
        return server

    return one


@requirement("importing:clients:seven", "importing:secrets:variables")
def test_claude_desktop() -> None:
    assert tables("claude_desktop") == {
        "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/notes"]},
        "github": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}"},
        },
        "postgres": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-postgres", "${POSTGRES_SECRET}"],
        },
    }


@requirement("importing:clients:seven")
def test_claude_code() -> None:
    assert tables("claude_code") == {
        "sentry": {
            "type": "http",
            "url": "https://mcp.sentry.example/mcp",
            "headers": {"Authorization": "Bearer ${SENTRY_TOKEN}", "X-Team": "${TEAM:-shop}"},
        },
        "events": {"type": "sse", "url": "https://events.example/sse"},
        "database": {"command": "${DB_SERVER:-db-server}", "args": ["--dsn", "${DSN}"]},
    }


@requirement("importing:clients:seven", "importing:secrets:variables")
def test_cursor() -> None:
    assert tables("cursor") == {
        "search": {
            "command": "uvx",
            "args": ["mcp-search", "--api-key", "${SEARCH_API_KEY}"],
            "env": {"REGION": "eu", "PROXY_PASSWORD": "${PROXY_PASSWORD}"},
        },
        "tickets": {
            "url": "https://tickets.example/mcp?api_key=${TICKETS_API_KEY}&team=shop",
            "headers": {"X-Api-Key": "${TICKETS_X_API_KEY}"},
        },
        "off": {"command": "never", "enabled": False},
    }


@requirement("importing:clients:seven", "importing:variables:dialects")
def test_vs_code_with_inputs() -> None:
    assert tables("vscode") == {
        "perplexity": {
            "command": "npx",
            "args": ["-y", "server-perplexity-ask"],
            "env": {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}", "REGION": "${REGION:-eu-west}"},
        },
        "local": {"command": "node", "args": ["${workspaceFolder}/tools/server.js", "--name", "vscode"]},
        "docs": {"type": "http", "url": "https://docs.example/mcp"},
    }
    elsewhere = tables("vscode", FIXTURES)["local"]["args"][0]
    assert elsewhere == f"{CLIENTS / 'vscode'}/tools/server.js"


@requirement("importing:clients:seven", "importing:secrets:variables")
def test_windsurf() -> None:
    assert tables("windsurf") == {
        "figma": {"url": "https://figma.example/mcp/s/${FIGMA_KEY}/sse", "deny": ["delete_file"]},
        "linear": {
            "command": "npx",
            "args": [
                "-y", "mcp-remote", "https://mcp.linear.example/sse",
                "--header", "Authorization: Bearer ${LINEAR_TOKEN}",
            ],
        },
    }  # fmt: skip


@requirement("importing:clients:seven")
def test_codex() -> None:
    assert tables("codex") == {
        "context": {
            "command": "npx",
            "args": ["-y", "context-server"],
            "env": {"CONTEXT_HOME": "${CONTEXT_HOME:-}"},
            "allow": ["resolve", "read"],
            "startTimeoutMs": 20000,
            "callTimeoutMs": 45500,
        },
        "figma": {
            "url": "https://figma-codex.example/mcp",
            "headers": {"Authorization": "Bearer ${FIGMA_TOKEN}", "X-Figma-Region": "us-east-1"},
        },
        "paused": {"command": "paused-server", "enabled": False},
    }


@requirement("importing:clients:seven", "importing:variables:dialects")
def test_opencode() -> None:
    assert tables("opencode") == {
        "weather": {"command": "bun", "args": ["x", "weather-server"], "env": {"WEATHER_KEY": "${WEATHER_KEY}"}},
        "mail": {
            "url": "https://mail.example/mcp",
            "headers": {"Authorization": "Bearer ${MAIL_TOKEN}"},
            "oauth": {"clientId": "codemode", "clientSecret": "${MAIL_CLIENT_SECRET}"},
        },
    }


@requirement("importing:clients:seven", "importing:variables:dialects")
def test_gemini_cli() -> None:
    assert tables("gemini") == {
        "calendar": {
            "url": "https://calendar.example/mcp",
            "headers": {"Authorization": "Bearer ${CALENDAR_TOKEN}"},
            "allow": ["list_events", "create_event"],
            "deny": ["delete_event"],
        },
        "python": {
            "command": "python",
            "args": ["-m", "my_mcp_server"],
            "env": {"DB_URL": "${DB_URL}", "API_KEY": "${MY_API_KEY}"},
            "cwd": "server",
        },
    }


@requirement("importing:clients:seven")
@pytest.mark.parametrize("name", FILES)
def test_what_is_written_means_what_was_read(name: str, tmp_path: Path) -> None:
    """Each table goes through a TOML file and is a definition that the manifest accepts."""
    found = import_files([client(name)], tmp_path)
    text = add_servers("", found.servers, tmp_path / "codemode.toml")

    for server in found.servers:
        table = tomllib.loads(text)["mcp"]["servers"][server.name]
        again = parse_server(server.name, table, Where("codemode.toml"), tmp_path)
        assert (table, again.name) == (server.table, server.name)


# variables


@requirement("importing:variables:dialects")
@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("${VAR} and ${VAR:-x:y}", "${VAR} and ${VAR:-x:y}"),
        ("${env:VAR}/x", "${VAR}/x"),
        ("Bearer {env:VAR}", "Bearer ${VAR}"),
        ("$env:VAR", "${VAR}"),
        ("env://VAR", "${VAR}"),
        ("keyring://linear-token", "${LINEAR_TOKEN}"),
        ("${input:api-key}", "${API_KEY}"),
        ("${input:region}", "${REGION:-eu}"),
        ("${config:my.setting}", "${CONFIG_MY_SETTING}"),
        ("${workspaceFolder}/a", "/project/a"),
        ("${workspaceFolderBasename}", "project"),
        ("a${/}b${pathSeparator}c", "a/b/c"),
        ("${userHome}/a", "${userHome}/a"),
        ("costs $5 or $VAR", "costs $5 or $VAR"),
        ("two $$", "two $$$$"),
        ("${TEAM:-shop}", "${TEAM:-shop}"),
    ],
)
def test_a_variable_is_written_as_a_manifest_has_it(text: str, translated: str) -> None:
    dialect = Dialect("/project", "project", defaults={"region": "eu"})

    assert translate({"deep": [text, 1]}, dialect) == {"deep": [translated, 1]}


@requirement("importing:variables:dialects")
def test_gemini_has_variables_without_braces() -> None:
    dialect = Dialect(None, "project", has_bare=True)

    assert translate("$A-${B} $$C $5", dialect) == "${A}-${B} $$$$C $5"


def test_a_variable_is_named_as_shells_allow() -> None:
    assert [variable_name(text) for text in ("github-token", "clientSecret", "2fa", "ä", "A.b c")] == [
        "GITHUB_TOKEN", "CLIENT_SECRET", "_2FA", "VALUE", "A_B_C",
    ]  # fmt: skip


# secrets


@requirement("importing:secrets:variables")
@pytest.mark.parametrize(
    ("table", "key", "hidden"),
    [
        ({"command": "x", "env": {"API_TOKEN": "abc123def"}}, "env", {"API_TOKEN": "${API_TOKEN}"}),
        ({"command": "x", "env": {"WHERE": "ghp_" + "a" * 36}}, "env", {"WHERE": "${WHERE}"}),
        ({"command": "x", "env": {"DEBUG_TOKEN": "true"}}, "env", {"DEBUG_TOKEN": "true"}),
        ({"command": "x", "env": {"MAX_TOKENS": "4096"}}, "env", {"MAX_TOKENS": "4096"}),
        ({"command": "x", "env": {"TOKEN": ""}}, "env", {"TOKEN": ""}),
        ({"command": "x", "env": {"TOKEN": "a-${B}"}}, "env", {"TOKEN": "a-${B}"}),
        ({"command": "x", "args": ["--token=abc123def", "-v"]}, "args", ["--token=${SHOP_TOKEN}", "-v"]),
        ({"command": "x", "args": ["--password", "hunter2"]}, "args", ["--password", "${SHOP_PASSWORD}"]),
        ({"command": "x", "args": ["--token", "--verbose"]}, "args", ["--token", "--verbose"]),
        ({"command": "x", "args": ["-e", "DB_PASSWORD=hunter2"]}, "args", ["-e", "DB_PASSWORD=${DB_PASSWORD}"]),
        ({"command": "x", "args": ["mysql://a:b@h/d"]}, "args", ["${SHOP_SECRET}"]),
        ({"command": "x", "args": ["--header", "X-Key: a"]}, "args", ["--header", "X-Key: a"]),
        ({"command": "x", "args": ["https://h/x?token=abc1234"]}, "args", ["https://h/x?token=${SHOP_TOKEN}"]),
        ({"url": "https://ada:pass@h/mcp"}, "url", "${SHOP_URL}"),
        ({"url": "https://h/" + "a1" * 16 + "/mcp"}, "url", "https://h/${SHOP_KEY}/mcp"),
        ({"url": "https://h/a-long-but-readable-path/v2"}, "url", "https://h/a-long-but-readable-path/v2"),
        ({"url": "https://h/${ID}?token=${T}"}, "url", "https://h/${ID}?token=${T}"),
        ({"url": "https://h", "headers": {"Authorization": "Basic YWRhOnBhc3M="}}, "headers",
         {"Authorization": "Basic ${SHOP_TOKEN}"}),
        ({"url": "https://h", "headers": {"X-Shop-Secret": "abc", "Accept": "text/html"}}, "headers",
         {"X-Shop-Secret": "${SHOP_X_SHOP_SECRET}", "Accept": "text/html"}),
    ],
)  # fmt: skip
def test_a_secret_in_clear_becomes_a_variable(convert: Convert, table: dict[str, Any], key: str, hidden: Any) -> None:
    assert convert(table).table[key] == hidden


@requirement("importing:secrets:variables", "importing:report:complete")
def test_it_is_known_which_variable_holds_what_and_where_it_was(convert: Convert) -> None:
    server = convert({"command": "x", "args": ["--key", "${KEY}"], "env": {"TOKEN": "abc123", "HOME": "${userHome}"}})

    assert server.variables == ("KEY", "TOKEN")
    assert [(each.variable, each.key) for each in server.moved] == [("TOKEN", "env.TOKEN")]


@requirement("importing:secrets:variables")
def test_the_same_name_with_another_value_gets_the_servers_name(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    servers = ", ".join(
        f'"{name}": {{"command": "x", "env": {{"TOKEN": "{value}"}}}}'
        for name, value in (("one", "first!"), ("two", "second"), ("three", "first!"))
    )
    file.write_text(f'{{"mcpServers": {{{servers}}}}}')
    found = import_files([file], tmp_path).servers

    assert [server.table["env"]["TOKEN"] for server in found] == ["${TOKEN}", "${TWO_TOKEN}", "${TOKEN}"]


@requirement("importing:secrets:variables")
def test_no_secret_of_the_samples_is_left(tmp_path: Path) -> None:
    found = import_files([client(name) for name in FILES], tmp_path)
    text = add_servers("", found.servers, tmp_path / "codemode.toml") + str(found.skipped)
    secrets = ("ghp_", "hunter22", "sk-proj", "1f9f2d8a", "9f8e7d6c", "lin_api", "s3cr3t")

    assert [secret for secret in secrets if secret in text] == []


# what is skipped, what is left out, which folder


def reasons(found: Import) -> dict[str, str]:
    return {each.name: each.why for each in found.skipped}


@requirement("importing:servers:isolated", "importing:report:complete")
def test_what_cannot_be_used_is_skipped_with_its_reason(tmp_path: Path) -> None:
    found = import_files([client(name) for name in FILES], tmp_path)

    assert len(found.servers) == 20
    assert reasons(found) == {
        "both": "it has both a command and a url; keep one.",
        "notes": "{file:~/.secrets/notes} reads a file, which a manifest cannot; put the value into a variable",
        "figma": f"mcpServers.figma in {client('windsurf')} defines the same name before it",
    }


@requirement("importing:report:complete")
def test_a_server_that_a_file_defines_twice_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "one"}, "a": {"command": "two"}}}')
    found = import_files([file], tmp_path)

    assert [server.table for server in found.servers] == [{"command": "one"}]
    assert reasons(found) == {"a": "the file defines it twice; the first one is taken"}


@requirement("importing:report:complete")
def test_what_means_nothing_here_is_left_out_and_said(convert: Convert) -> None:
    server = convert(
        {
            "type": "stdio", "command": "x", "alwaysAllow": ["a"], "timeout": 60, "disabled": False, "gallery": False,
            "_comment": "mine", "startup_timeout_sec": 3, "env": {},
        }
    )  # fmt: skip

    assert server.left_out == ("alwaysAllow", "timeout")
    assert server.table == {"command": "x", "startTimeoutMs": 3000}


def test_a_relative_program_is_started_where_it_was(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "manifest"
    (project / "bin").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "bin" / "server.py").write_text("")
    file = project / ".mcp.json"
    file.write_text('{"a": {"command": "python", "args": ["bin/server.py"]}, "b": {"command": "x", "cwd": "~/b"}}')

    def folders(manifest: Path) -> list[Any]:
        return [server.table.get("cwd") for server in import_files([file], manifest).servers]

    assert folders(project) == [None, "~/b"]
    assert folders(tmp_path) == ["project", "~/b"]
    assert folders(elsewhere) == [str(project), "~/b"]


@requirement("mcp:config:env-file")
@pytest.mark.parametrize(
    ("env_file", "same_folder", "other_folder"),
    [
        ("${workspaceFolder}/.env", "${workspaceFolder}/.env", "{tmp}/project/.env"),
        ("conf/my.env", "conf/my.env", "{tmp}/project/conf/my.env"),
        ("~/my.env", "~/my.env", "~/my.env"),
    ],
)
def test_an_env_file_is_found_from_the_manifest(
    tmp_path: Path, env_file: str, same_folder: str, other_folder: str
) -> None:
    """What is in it stays there, and is no secret of the definition."""
    file = tmp_path / "project" / ".vscode" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"servers": {"shop": {"command": "npx", "envFile": "' + env_file + '"}}}')

    for folder, written in ((tmp_path / "project", same_folder), (tmp_path / "other", other_folder)):
        (server,) = import_files([file], folder).servers
        assert server.table == {"command": "npx", "envFile": written.replace("{tmp}", str(tmp_path.resolve()))}
        assert (server.variables, server.left_out) == ((), ())


@requirement("importing:servers:isolated")
def test_a_file_that_is_none_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {')

    with pytest.raises(InvalidInput, match=r'there is no file ".*mcp\.jsn".*Did you mean "mcp\.json"'):
        import_files([tmp_path / "mcp.jsn"], tmp_path)
    with pytest.raises(InvalidInput, match="is a folder"):
        import_files([tmp_path], tmp_path)
    with pytest.raises(InvalidConfig, match=r"mcp\.json:1:17: not JSON"):
        import_files([tmp_path / "mcp.json"], tmp_path)


# the text of a manifest


def servers(*names: str) -> list[ImportedServer]:
    table = {"command": "new", "env": {"A": "${A}"}}
    return [ImportedServer(name, table, Where("/x/mcp.json", f"mcpServers.{name}"), (), (), ()) for name in names]


MANIFEST = """\
# mine
[tools.codeMode]
enabled = true # on

# Imported from old.json: mcpServers.b
[mcp.servers.b]
command = "old"

[mcp.servers.b.env]
X = "1"

# about c
[mcp.servers.c]
command = "c"
args = [
  "[not.a.heading]",
]

[[tool]]
name = "t"
"""
ADDED = """
# Imported from mcp.json: mcpServers.{name}
[mcp.servers.{shown}]
command = "new"

[mcp.servers.{shown}.env]
A = "${{A}}"
"""


@requirement("importing:write:keeps-the-rest")
def test_a_server_is_added_behind_everything_else() -> None:
    text = add_servers(MANIFEST, servers("d e"), Path("/m/codemode.toml"))

    assert text == MANIFEST + ADDED.format(name='"d e"', shown='"d e"').replace('mcpServers."d e"', "mcpServers.d e")


@requirement("importing:write:keeps-the-rest")
def test_a_server_is_replaced_with_its_sub_tables_and_our_comment() -> None:
    text = add_servers(MANIFEST, servers("b"), Path("/m/codemode.toml"))
    begin, end = MANIFEST.index("# Imported"), MANIFEST.index("# about c")

    assert text == MANIFEST[:begin] + MANIFEST[end:] + ADDED.format(name="b", shown="b")


@requirement("importing:write:keeps-the-rest")
def test_line_ends_stay() -> None:
    text = add_servers("[tools]\r\nallow = ['*']\r\n", servers("b"), Path("/m/codemode.toml"))

    assert text.count("\r\n") == text.count("\n")


@requirement("importing:write:keeps-the-rest")
@pytest.mark.parametrize(
    "text", ['mcp = { servers = { a = { command = "a" } } }\n', "[mcp]\nservers.b.command = 'b'\n"]
)
def test_servers_written_in_another_way_are_left_to_a_person(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be changed by itself"):
        add_servers(text, servers("b"), Path("codemode.toml"))


def test_a_comment_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    def shown(file: Path) -> str:
        server = servers("a")[0]._replace(origin=Where(str(file), "mcpServers.a"))
        return build_tables([server], tmp_path).splitlines()[0]

    assert shown(tmp_path / ".cursor" / "mcp.json") == "# Imported from .cursor/mcp.json: mcpServers.a"
    assert shown(Path.home() / ".claude.json") == "# Imported from ~/.claude.json: mcpServers.a"
    assert shown(Path("/srv/secret-project/mcp.json")) == "# Imported from mcp.json: mcpServers.a"


@requirement("importing:init:works-at-once")
def test_the_first_manifest_loads(tmp_path: Path) -> None:
    path = tmp_path / "codemode.toml"
    path.write_text(build_first_manifest())
    manifest = load_manifest(path)

    assert (manifest.code_mode.enabled, [tool.id for tool in manifest.tools]) == (True, ["client:app:greeting"])
    assert list(_examples(build_first_manifest())) == ["mcp"]


def _examples(text: str) -> Iterator[str]:
    """Yield the keys of what stands in comments as TOML, which must be TOML."""
    commented = text[text.index("# [mcp.servers.everything]") :].replace("# ", "")
    yield from tomllib.loads(commented)
