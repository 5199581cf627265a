"""Server definitions in every known format: what they say, where they came from, what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from codemode.core.errors import InvalidConfig
from codemode.core.redact import Redactor
from codemode.core.tables import Where
from codemode.manifest import load_manifest
from codemode.mcp.connections import McpServers
from codemode.mcp.includes import read_include
from codemode.mcp.servers import ServerSpec, gather_servers, parse_server, resolve
from codemode.mcp.shared import SharedServers
from tests.requirements import requirement

WHERE = Where("/shop/codemode.toml", "mcp.servers.shop")


def _parse(table: Any, name: str = "shop") -> ServerSpec:
    return parse_server(name, table, WHERE, Path("/shop"))


def _include(folder: Path, document: Any, name: str = ".mcp.json") -> tuple[ServerSpec, ...]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return gather_servers([], [file]).specs


@requirement("mcp:config:transport")
@pytest.mark.parametrize(
    ("table", "transport"),
    [
        ({"command": "npx"}, "stdio"),
        ({"command": "npx", "type": "stdio"}, "stdio"),
        ({"url": "https://shop.test/mcp"}, "auto"),
        ({"url": "https://shop.test/mcp", "type": "http"}, "http"),
        ({"url": "https://shop.test/mcp", "transport": "streamable-http"}, "http"),
        ({"url": "https://shop.test/sse", "type": "sse"}, "sse"),
        ({"httpUrl": "https://shop.test/mcp"}, "auto"),
        ({"type": "remote", "url": "https://shop.test/mcp"}, "auto"),
        ({"type": "local", "command": ["npx", "-y", "thing"]}, "stdio"),
    ],
)
def test_the_transport_follows_from_the_keys(table: dict[str, Any], transport: str) -> None:
    """An explicit type wins over what the keys suggest."""
    assert _parse(table).transport == transport


@requirement("mcp:config:transport")
@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"command": "npx", "url": "https://x.test"}, "both a command and a url; keep one."),
        ({}, "it needs a command or a url."),
        ({"args": ["x"]}, "it needs a command or a url."),
        ({"type": "http", "command": "npx"}, 'the type "http" contradicts its command.'),
        ({"type": "stdio", "url": "https://x.test"}, 'the type "stdio" contradicts its url.'),
        ({"url": "https://x.test", "args": ["x"]}, '"args" has no meaning beside url; remove one of the two.'),
        ({"command": "npx", "headers": {"A": "b"}}, '"headers" has no meaning beside command'),
        ({"url": "https://a.test", "serverUrl": "https://b.test"}, '"serverUrl" contradicts another spelling of "url"'),
        ({"type": "htpp", "url": "https://x.test"}, 'found "htpp"; allowed is "stdio"'),
        ({"type": "htpp", "url": "https://x.test"}, 'Did you mean "http"'),
    ],
)
def test_keys_that_contradict_each_other_are_an_error(table: dict[str, Any], sentence: str) -> None:
    """With key and file in front."""
    with pytest.raises(InvalidConfig) as caught:
        _parse(table)

    assert sentence in caught.value.message
    assert "mcp.servers.shop" in caught.value.message
    assert "/shop/codemode.toml" in caught.value.message


@requirement("mcp:config:keys")
def test_an_unknown_key_is_an_error_with_the_nearest_known_one() -> None:
    """Silence about a misspelt key is what people complain about."""
    with pytest.raises(InvalidConfig, match=r'unknown key "comand"; known keys are .*Did you mean "command"'):
        _parse({"comand": "npx"})


@requirement("mcp:config:keys")
def test_keys_of_other_clients_without_a_meaning_here_are_tolerated() -> None:
    """So are comments in key's clothing."""
    spec = _parse(
        {"command": "npx", "alwaysAllow": ["x"], "autoApprove": [], "sandboxEnabled": True, "_why": 1, "$schema": ""}
    )

    assert spec.command == ("npx",)


@requirement("mcp:config:foreign")
def test_keys_of_other_clients_mean_what_they_mean_there() -> None:
    """Codex, Gemini, Cline, mcporter, OpenCode, Copilot."""
    codex = _parse(
        {
            "url": "https://x.test",
            "bearer_token_env_var": "TOKEN",
            "http_headers": {"X-A": "1"},
            "env_http_headers": {"X-B": "B_VAR"},
            "startup_timeout_sec": 2.5,
            "tool_timeout_sec": 9,
            "enabled_tools": ["a"],
            "disabled_tools": ["b"],
        }
    )
    local = _parse(
        {
            "command": ["npx", "-y"],
            "args": ["thing"],
            "environment": {"PORT": 80},
            "env_vars": ["HOME_X"],
            "disabled": True,
        }
    )

    copilot = _parse({"type": "local", "command": "npx", "tools": ["read_*"]})
    asked = _parse({"command": "npx", "tools": {"b": {"approval_mode": "prompt"}}, "default_tools_approval_mode": "x"})

    assert (copilot.allow, asked.allow) == (("read_*",), ("*",))
    assert codex.headers == {"Authorization": "Bearer ${TOKEN}", "X-A": "1", "X-B": "${B_VAR}"}
    assert (codex.start_timeout_ms, codex.call_timeout_ms) == (2500, 9000)
    assert (codex.allow, codex.deny) == (("a",), ("b",))
    assert local.command == ("npx", "-y", "thing")
    assert local.env == {"HOME_X": "${HOME_X:-}", "PORT": "80"}
    assert not local.enabled


@requirement("mcp:config:keys")
@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("npx", 'found "npx"; allowed is a table with a command or a url.'),
        ({"command": 7}, "command in /shop/codemode.toml: found 7; allowed is a text, or a list of texts."),
        ({"command": "npx", "args": "x"}, 'args in /shop/codemode.toml: found "x"; allowed is a list of texts.'),
        ({"command": "npx", "env": {"A": True}}, "env.A in /shop/codemode.toml: found true; allowed is a text."),
        ({"command": "npx", "enabled": "yes"}, 'found "yes"; allowed is true or false.'),
        ({"command": "npx", "startTimeoutMs": 0}, "found 0 as a timeout; allowed is a number above 0."),
        ({"command": "npx", "tool_timeout_sec": "soon"}, 'found "soon" as a timeout'),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_that_names_it(table: Any, sentence: str) -> None:
    """What was found, what is allowed."""
    with pytest.raises(InvalidConfig) as caught:
        _parse(table)

    assert sentence in caught.value.message


@pytest.mark.parametrize("name", ["", "  ", "a:b", "a\x1fb", "a\nb"])
def test_a_server_name_that_cannot_be_an_owner_is_an_error(name: str) -> None:
    """An id has three parts, divided by colons."""
    with pytest.raises(InvalidConfig, match="a server's name must not be empty nor hold a colon"):
        _parse({"command": "npx"}, name)


@requirement("mcp:config:first-wins", "mcp:config:provenance")
def test_the_first_definition_wins_and_each_knows_its_file(tmp_path: Path) -> None:
    """The manifest, then Codex's table in it, then the files in their order."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(json.dumps({"mcpServers": {"a": {"command": "a2"}, "b": {"command": "b1"}}}), encoding="utf-8")
    second.write_text(json.dumps({"mcpServers": {"b": {"command": "b2"}, "c": {"command": "c1"}}}), encoding="utf-8")
    manifest = Where(str(tmp_path / "codemode.toml"), "mcp.servers")

    found = gather_servers([(manifest, {"a": {"command": "a1"}})], [first, second])

    assert [(spec.name, spec.command, Path(spec.where.file).name) for spec in found.specs] == [
        ("a", ("a1",), "codemode.toml"),
        ("b", ("b1",), "first.json"),
        ("c", ("c1",), "second.json"),
    ]
    assert found.shadowed == (
        f"mcpServers.a in {first} is not used: {manifest.at('a')} defines the same server before it.",
        f"mcpServers.b in {second} is not used: mcpServers.b in {first} defines the same server before it.",
    )


@requirement("mcp:config:first-wins")
def test_within_one_json_file_the_first_of_two_equal_names_wins(tmp_path: Path) -> None:
    """Python's reader alone would keep the last, and say nothing."""
    file = tmp_path / "twice.json"
    file.write_text('{"mcpServers": {"a": {"command": "one"}, "b": {"command": "x"}, "a": {"command": "two"}}}')
    found = gather_servers([], [file])

    assert [spec.command for spec in found.specs] == [("one",), ("x",)]
    assert found.shadowed == (f"mcpServers.a in {file} is there twice; the first one is used.",)


@requirement("mcp:config:roots")
@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"a": {"command": "x"}}},
        {"servers": {"a": {"command": "x"}}, "inputs": []},
        {"a": {"command": "x"}},
        {"mcp": {"servers": {"a": {"command": "x"}}}, "editor.fontSize": 12},
        {"mcp": {"a": {"type": "local", "command": ["x"]}}, "theme": "dark"},
        {"numStartups": 7, "mcpServers": {"a": {"command": "x"}}},
    ],
)
def test_every_root_of_the_known_clients_is_found(tmp_path: Path, document: Any) -> None:
    """Claude, Cursor, VS Code (file and settings), OpenCode, and the bare map."""
    (spec,) = _include(tmp_path, document)

    assert (spec.name, spec.command) == ("a", ("x",))


@requirement("mcp:config:roots")
@pytest.mark.parametrize("name", ["mcp", "servers", "mcpServers"])
def test_a_bare_map_may_hold_a_server_that_is_called_like_a_root(tmp_path: Path, name: str) -> None:
    """A table with a command is a server, not a map of servers."""
    (spec,) = _include(tmp_path, {name: {"command": "x"}})

    assert spec.name == name


@requirement("mcp:config:roots")
def test_codex_toml_can_be_included(tmp_path: Path) -> None:
    """Its servers are where Codex keeps them."""
    (spec,) = _include(tmp_path, 'model = "o"\n[mcp_servers.a]\ncommand = "x"\nargs = ["1"]\n', "config.toml")

    assert spec.command == ("x", "1")


@requirement("mcp:config:comments")
def test_comments_and_trailing_commas_are_no_error_and_strings_are_left_alone(tmp_path: Path) -> None:
    """VS Code writes them; a URL holds what looks like a comment."""
    text = """\ufeff{
      // the servers
      "servers": { /* all
        of them */
        "a": {"url": "https://x.test/*no*/,}", "headers": {"X": "a // b",},}, // last
      },
    }"""
    (spec,) = _include(tmp_path, text)

    assert spec.url == "https://x.test/*no*/,}"
    assert spec.headers == {"X": "a // b"}


@requirement("mcp:config:json5")
def test_bare_keys_and_single_quotes_are_read_as_openclaw_writes_them(tmp_path: Path) -> None:
    """Its file is JSON5; what stands in quotes is left alone, whatever it looks like."""
    text = r"""{
      tools: { codeMode: true }, // on
      mcp: { servers: {
        a: { env: {$A_1: 'b'}, command: 'say',
          args: ['it\'s', 'a "word"', "key: 'x'", 'https://x.test/\"y\\', "// no"], },
      } },
    }"""
    (spec,) = _include(tmp_path, text)

    assert spec.command == ("say", "it's", 'a "word"', "key: 'x'", 'https://x.test/"y\\', "// no")
    assert spec.env == {"$A_1": "b"}


@requirement("mcp:config:openclaw")
def test_what_openclaw_says_of_a_server_is_understood(tmp_path: Path) -> None:
    """Its filter decides what a model may reach, so it must not get lost; its timeouts count in seconds."""
    docs = {
        "url": "https://mcp.example.com/mcp", "transport": "streamable-http", "timeout": 20, "connectTimeout": 5,
        "requestTimeoutMs": 2000, "auth": "oauth", "oauth": {"scope": "docs.read"}, "supportsParallelToolCalls": True,
        "toolFilter": {"include": ["search_*"], "exclude": ["admin_*"]}, "codex": {"agents": ["a"]},
    }  # fmt: skip
    local = {"command": "x", "workingDirectory": "srv", "connectionTimeoutMs": 700, "toolFilter": {"exclude": ["b"]}}
    found, other = _include(tmp_path, {"mcp": {"servers": {"docs": docs, "local": local}}})

    assert (found.transport, found.allow, found.deny) == ("http", ("search_*",), ("admin_*",))
    assert (found.start_timeout_ms, found.call_timeout_ms) == (5000, 2000)
    assert found.oauth is not None
    assert (found.oauth.is_wanted, found.oauth.scope) == (True, "docs.read")
    assert (other.cwd, other.start_timeout_ms, other.allow, other.deny) == ("srv", 700, ("*",), ("b",))


@requirement("mcp:config:openclaw")
@pytest.mark.parametrize("wrong", [["search_*"], {"only": ["a"]}, {"include": "a"}])
def test_a_filter_that_is_none_is_an_error(tmp_path: Path, wrong: Any) -> None:
    """Better no server than one with tools that somebody meant to leave out."""
    with pytest.raises(InvalidConfig, match="toolFilter"):
        _include(tmp_path, {"mcp": {"servers": {"a": {"command": "x", "toolFilter": wrong}}}})


@requirement("mcp:config:roots")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n  "mcpServers": {7}\n}', ".mcp.json:2:18: not JSON: "),
        ('{\n  // fine\n  "mcpServers" 7}', ".mcp.json:3:16: not JSON: "),
        ("[]", ".mcp.json: no servers found; allowed is a map of servers, alone or under mcpServers or servers."),
        ('{"theme": {"dark": true}}', ".mcp.json: no servers found"),
        ('{"mcpServers": []}', ".mcp.json: no servers found"),
        ('{"mcpServers": {"a": []}}', "mcpServers.a in "),
        ("[" * 100_000, "nested too deeply."),
    ],
)
def test_a_file_that_is_no_list_of_servers_is_an_error_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    """Line and column are those of the file, comments or not."""
    with pytest.raises(InvalidConfig) as caught:
        _include(tmp_path, text)

    assert sentence in caught.value.message


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """It is named, and who names it."""
    (tmp_path / "latin").write_bytes(b'{"\xe9": 1}')
    (tmp_path / "bad.toml").write_text("[", encoding="utf-8")

    for name, sentence in (
        ("nowhere.json", r"cannot read .*nowhere\.json, which mcp\.include names: No such file"),
        ("latin", r"latin is not UTF-8 text \(byte 2\)"),
        ("bad.toml", r"bad\.toml: not TOML: "),
    ):
        with pytest.raises(InvalidConfig, match=sentence):
            read_include(tmp_path / name, ", which mcp.include names")


@requirement("mcp:config:interpolation", "mcp:config:redacted")
def test_variables_are_filled_in_everywhere_and_told_to_the_redactor() -> None:
    """Command, args, env and cwd; url and headers; listings keep the placeholder."""
    local = _parse(
        {"command": "${BIN}", "args": ["${A:-dflt}", "$$5"], "env": {"T": "${env:TOKEN}"}, "cwd": "${DIR}/x"}
    )
    remote = _parse({"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X": "literal"}})
    environment = {"BIN": "node", "TOKEN": "tok-1234", "DIR": "sub", "HOST": "x.test"}

    started = resolve(local, environment)
    reached = resolve(remote, environment)

    assert started.command is not None
    assert started.command.argv == ("node", "dflt", "$5")
    assert started.command.env == {"T": "tok-1234"}
    assert started.command.cwd == Path("/shop/sub/x")
    assert started.secrets == {"node", "tok-1234", "sub"}
    assert (reached.url, reached.headers["Authorization"]) == ("https://x.test/mcp", "Bearer tok-1234")
    assert reached.secrets == {"tok-1234", "x.test", "Bearer tok-1234", "literal"}
    assert remote.target == "https://${HOST}/mcp"
    assert local.target == "${BIN} ${A:-dflt} $$5"


@requirement("mcp:config:interpolation")
@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"command": "${NO}"}, "command"),
        ({"command": "x", "args": ["a", "${NO}"]}, "args[1]"),
        ({"command": "x", "env": {"K": "${NO}"}}, "env.K"),
        ({"command": "x", "cwd": "${NO}"}, "cwd"),
        ({"url": "${NO}"}, "url"),
        ({"url": "https://x.test", "headers": {"K": "${NO}"}}, "headers.K"),
    ],
)
def test_an_unset_variable_is_an_error_that_names_variable_key_and_file(table: dict[str, Any], place: str) -> None:
    """Only connecting asks for it: the definition itself is fine."""
    spec = _parse(table)

    with pytest.raises(InvalidConfig) as caught:
        resolve(spec, {})
    assert caught.value.message == (
        f"mcp.servers.shop.{place} in /shop/codemode.toml: the variable NO is not set; set it, write ${{NO:-default}}, "
        'or go on without this server by setting its "enabled" to false.'
    )


@requirement("mcp:config:interpolation")
def test_all_unset_variables_of_a_server_are_named_at_once() -> None:
    spec = _parse({"command": "x", "args": ["${A}"], "env": {"K": "${B}"}})
    with pytest.raises(InvalidConfig, match=r"the variables A \(args\[0\]\) and B \(env\.K\) are not set"):
        resolve(spec, {})


@requirement("mcp:config:interpolation")
async def test_the_unset_variables_of_all_servers_are_told_in_one_error(tmp_path: Path) -> None:
    specs = [_parse({"url": f"https://${{{name}}}"})._replace(name=name) for name in ("NONE_A", "NONE_B")]
    servers = McpServers(specs, Redactor(), SharedServers(tmp_path, {}))
    with pytest.raises(InvalidConfig, match=r"variable NONE_A is not set.*variable NONE_B is not set"):
        await servers.tools()
    await servers.close()


def test_a_url_that_is_none_is_an_error() -> None:
    """Shown as it is written, not as it is filled in."""
    spec = _parse({"url": "${SCHEME}://x.test"})

    with pytest.raises(InvalidConfig, match=r'found "\$\{SCHEME\}://x\.test"; allowed is an address'):
        resolve(spec, {"SCHEME": "ftp-secret"})


@requirement("mcp:config:cwd")
def test_folders_start_from_the_file_of_the_definition(tmp_path: Path) -> None:
    """A file in an editor's folder means the workspace around it."""
    (plain,) = _include(tmp_path, {"mcpServers": {"a": {"command": "x", "cwd": "sub"}}})
    (editor,) = _include(
        tmp_path, {"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/a"]}}}, ".vscode/mcp.json"
    )
    (home,) = _include(tmp_path, {"mcpServers": {"a": {"command": "~/bin/x", "cwd": "~"}}})

    commands = [resolve(spec, {}).command for spec in (plain, editor, home)]
    assert [command.cwd for command in commands if command] == [tmp_path / "sub", tmp_path, Path.home()]
    assert commands[1] is not None
    assert commands[1].argv == ("x", f"{tmp_path}/a")
    assert commands[2] is not None
    assert commands[2].argv == (str(Path.home() / "bin/x"),)
    assert resolve(editor, {}).secrets == frozenset()


@requirement("mcp:config:roots")
def test_an_include_may_begin_with_the_home_folder(tmp_path: Path) -> None:
    """Or be absolute, or start from the manifest's folder."""
    manifest = tmp_path / "codemode.toml"
    manifest.write_text(f'[mcp]\ninclude = ["~/.cursor/mcp.json", "{tmp_path}/a.json", "b.json"]\n', encoding="utf-8")

    found = load_manifest(manifest).mcp.include
    assert found == (Path.home() / ".cursor/mcp.json", tmp_path / "a.json", tmp_path / "b.json")


@requirement("mcp:config:roots")
def test_inputs_of_vs_code_come_from_variables_or_their_default(tmp_path: Path) -> None:
    """Nobody is there to be prompted."""
    document = {
        "inputs": [{"id": "api-key", "type": "promptString", "password": True}, {"id": "host", "default": "x.test"}, 7],
        "servers": {"a": {"url": "https://${input:host}/", "headers": {"K": "${input:api-key}"}}},
    }
    (spec,) = _include(tmp_path, document)

    assert resolve(spec, {"CODEMODE_INPUT_API_KEY": "key-123"}).headers == {"K": "key-123"}
    assert resolve(spec, {"CODEMODE_INPUT_API_KEY": "k", "CODEMODE_INPUT_HOST": "y.test"}).url == "https://y.test/"
    with pytest.raises(
        InvalidConfig, match=r"it asks for the input api-key; set the variable CODEMODE_INPUT_API_KEY\."
    ):
        resolve(spec, {})
    with pytest.raises(InvalidConfig, match=r"the inputs a and b; set the variables CODEMODE_INPUT_A and CODEMODE_INP"):
        resolve(_parse({"url": "https://x/${input:a}", "headers": {"K": "${input:b}"}}), {})


@requirement("mcp:cache:key")
def test_the_fingerprint_follows_definition_and_variables_and_shows_neither() -> None:
    """What does not change the server does not change it."""
    table = {"command": "x", "args": ["${A}", "${input:b}"], "env": {"T": "${env:TOKEN:-none}"}}
    spec = _parse(table)
    environment = {"A": "1", "CODEMODE_INPUT_B": "2", "TOKEN": "secret"}
    base = spec.fingerprint(environment)

    assert base == _parse({**table, "callTimeoutMs": 5, "deny": ["x"], "required": True}).fingerprint(environment)
    others = [
        _parse({**table, "args": ["${A}"]}).fingerprint(environment),
        spec._replace(folder=Path("/elsewhere")).fingerprint(environment),
        spec._replace(env_file=".env").fingerprint(environment),
        *(spec.fingerprint({**environment, name: "other"}) for name in environment),
        spec.fingerprint({}),
    ]
    assert len({base, *others}) == len(others) + 1
    assert "secret" not in base


@requirement("mcp:config:env-file")
def test_the_variables_of_an_env_file_reach_the_server_below_its_env(tmp_path: Path) -> None:
    """Quotes, comments, `export`, a byte order mark; nothing is expanded, all of it is secret."""
    lines = ["\ufeff# a comment", "", "PLAIN=one two # three", "export KEY = 'it''s'", 'LONG="a # b\\n\\"c\\"" # d']
    lines += ["EMPTY=", "HASH=a#b", "RAW='$HOME\\n'", "PLAIN=last", "SHARED=file", "A=#"]
    (tmp_path / ".env").write_text("\r\n".join(lines), encoding="utf-8")
    table = {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"SHARED": "own"}}
    (spec,) = _include(tmp_path, {"servers": {"shop": table}}, ".vscode/mcp.json")

    command, *_, secrets, _ = resolve(spec, {})

    assert command is not None
    assert command.env == {
        "PLAIN": "last",
        "KEY": "'it''s'",
        "LONG": 'a # b\n"c"',
        "EMPTY": "",
        "HASH": "a#b",
        "RAW": "$HOME\\n",
        "SHARED": "own",
        "A": "",
    }
    assert {"last", "a#b"} <= secrets


@requirement("mcp:config:env-file")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory; correct the path, or leave envFile out."),
        (b"A=1\nhunter2\n", "line 2 of "),
        (b"\xff\xfe", "cannot be read: it is no UTF-8 text"),
    ],
)
def test_an_env_file_that_is_not_right_is_named_without_its_content(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "my.env").write_bytes(content)
    spec = parse_server("shop", {"command": "x", "envFile": "my.env"}, WHERE, tmp_path)

    with pytest.raises(InvalidConfig) as caught:
        resolve(spec, {})

    assert "mcp.servers.shop.envFile in /shop/codemode.toml: " in str(caught.value)
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)


@requirement("mcp:config:env-file")
def test_an_env_file_has_no_meaning_beside_a_url() -> None:
    with pytest.raises(InvalidConfig, match='"envFile" has no meaning beside url'):
        _parse({"url": "https://shop.test/mcp", "envFile": ".env"})
