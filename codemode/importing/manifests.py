"""Manifests as text: the first one, and server tables added to one that is there.

tomli-w writes tables, people write comments; a manifest that is there keeps every line of its
own. What a text says after a change is compared with what it should say before it is written.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codemode.core.errors import InvalidInput
from codemode.core.types import Json
from codemode.importing.conversion import ImportedServer

_MARK = "# Imported from "
_HEADING = re.compile(r"\s*\[[^\[].*\]\s*(?:#.*)?\Z")

_HEAD = """\
# What the cells of this project can reach. codemode finds this file from any folder below it.
# All keys: docs/configuration.md. After a change, `codemode doctor` says what to mend.
"""
_CODE_MODE_NOTE = "# Code mode is on: a model sees `exec` and `wait`, and reaches everything below from inside cells."
_TOOL_NOTE = """\
# A tool with a fixed answer, to begin with. Instead of `value` a tool may have
#     python = "module:function"                      a function of a module beside this file
#     command = ["git", "log", "-n", "{count}"]       a program; without {…} it gets JSON on stdin
#     http = { url = "https://api.example.com/{id}" } a request
# Secrets stay out of this file: write ${NAME}, and set the variable."""
_SERVERS_NOTE = """\
# MCP servers. `codemode import FILE` takes over those of Claude, Cursor, VS Code, Codex and others.
#
# [mcp.servers.everything]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-everything"]"""
FIRST_CELL = """\
// Greets by calling a tool. Run it: codemode run checks/hello.js
// @value "Hello, world!"
// @calls client:app:greeting
// `codemode smoke checks` runs it and compares; --update writes what it gives into these lines.

const { hello } = await tools.greeting({ name: "world" });
return `${hello}, world!`;
"""


def build_first_manifest() -> str:
    """Return the text of a manifest that works at once.

    Contract: importing:init:works-at-once
    """
    tool: Json = {
        "name": "greeting",
        "description": "How to greet somebody.",
        "value": {"hello": "Hello"},
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    }
    return "\n".join([build_bare_manifest(), _TOOL_NOTE, _toml({"tool": [tool]}), _SERVERS_NOTE, ""])


def build_bare_manifest() -> str:
    """Return the text of a manifest that only turns code mode on."""
    return "\n".join([_HEAD, _CODE_MODE_NOTE, _toml({"tools": {"codeMode": {"enabled": True}}})])


def build_tables(servers: Iterable[ImportedServer], folder: Path) -> str:
    """Return the tables of servers, each with a comment that says where it is from.

    Args:
        servers: What to write.
        folder: The manifest's; files are named from there.
    """
    blocks: list[str] = []
    for server in servers:
        note = f"{_MARK}{_short(Path(server.origin.file), folder)}: {server.origin.key}"
        blocks.append(f"{note}\n{_toml({'mcp': {'servers': {server.name: server.table}}})}")
    return "\n".join(blocks)


def _short(file: Path, folder: Path) -> str:
    """Return a path that says nothing of this machine: from the manifest's folder, or from the user's."""
    for base, mark in ((folder.resolve(), ""), (Path.home(), "~/")):
        if file.is_relative_to(base):
            return mark + file.relative_to(base).as_posix()
    return file.name


def add_servers(text: str, servers: Sequence[ImportedServer], file: Path) -> str:
    """Return a manifest's text with these servers; one of the same name is replaced, all other lines stay.

    Raises:
        InvalidInput: The file writes its servers in a way that cannot be changed by lines.

    Contract: importing:write:keeps-the-rest
    """
    before = tomllib.loads(text)
    written = before.get("mcp", {}).get("servers", {})
    names = {server.name for server in servers}
    kept = _without(text, [("mcp", "servers", name) for name in names if name in written])
    end = "\r\n" if "\r\n" in text else "\n"
    added = build_tables(servers, file.absolute().parent).replace("\n", end)
    new = f"{kept.rstrip()}{end}{end}{added}" if kept.strip() else added
    mcp = before.get("mcp", {})
    tables: dict[str, Json] = {**written, **{server.name: server.table for server in servers}}
    if _parsed(new) != {**before, "mcp": {**mcp, "servers": tables}}:
        raise InvalidInput(
            f"{file} cannot be changed by itself, as it writes mcp.servers in another way than as [mcp.servers.NAME]; "
            "codemode import --print shows the tables, to be copied by hand"
        )
    return new


def _parsed(text: str) -> Mapping[str, Json] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _without(text: str, paths: Sequence[tuple[str, ...]]) -> str:
    """Return a text without these tables and their sub-tables, each with our own comment above it."""
    kept: list[str] = []
    is_gone = False
    for line in text.split("\n"):
        path = _path_of(line) if _HEADING.match(line) else None
        if path is not None or line.lstrip().startswith("[["):
            is_gone = path is not None and any(path[: len(each)] == each for each in paths)
            if is_gone and kept and kept[-1].startswith(_MARK):
                kept.pop()
        elif is_gone and line.startswith("#"):
            is_gone = False  # a comment at the margin belongs to what follows
        if not is_gone:
            kept.append(line)
    return "\n".join(kept)


def _path_of(line: str) -> tuple[str, ...] | None:
    """Return the keys of a table's heading, as TOML reads them."""
    table = _parsed(line)
    path: list[str] = []
    while table:
        ((key, table),) = table.items()
        path.append(key)
    return tuple(path) or None


def _toml(table: Mapping[str, Json]) -> str:
    import tomli_w  # only commands that write a manifest need it

    return tomli_w.dumps(table)
