"""All that can be named in a cell of this session: from the catalog, from MCP, from JavaScript.

Each part becomes an index when it is first asked for. `warm` builds the large ones beforehand,
so that not even the first key press waits. Called by the completer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from codemode.catalog import Catalog
from codemode.core.types import PATH_SEPARATOR, Json, ToolSpec
from codemode.render.words import one_line
from codemode.repl.index import Index, Word
from codemode.repl.javascript import (
    API_MEMBERS,
    BUILT_INS,
    GUEST_GLOBALS,
    KEYWORDS,
    MEMBERS,
    TOOLS_MEMBERS,
)

_META_CHARS = 70
_NOTHING = Index(())
_JAVASCRIPT = Index([Word(name) for name in (*KEYWORDS, *BUILT_INS)])
_SERVER_PARTS = {
    "resources": {"list": "list(): its resources", "read": "read({uri}): one of them"},
    "prompts": {"list": "list(): its prompts", "get": "get({name, arguments}): one of them"},
}


class Vocabulary:
    """What the completer may offer; the names that cells declare are added with `declare`."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the catalog; nothing is indexed yet."""
        self._catalog = catalog
        self._members: dict[tuple[str, ...], Index] = {}
        self._declared = _NOTHING

    def warm(self) -> None:
        """Build the indexes that grow with the catalog."""
        self.ids.warm()
        self.members(("tools",)).warm()

    def declare(self, names: Iterable[str]) -> None:
        """Say which names the cells so far have declared."""
        self._declared = Index([Word(name, "declared here") for name in names])

    def names(self, typed: str) -> list[Word]:
        """Return the names in scope that fit: of the person's own cells, then of codemode, then of JavaScript."""
        return [*self._declared.find(typed), *self._globals.find(typed), *_JAVASCRIPT.find(typed)]

    @cached_property
    def ids(self) -> Index:
        """The ids that `tools.call` takes."""
        return Index([_word(tool.id, tool.description) for tool in self._catalog.tools if tool.source != "mcp"])

    @cached_property
    def all_ids(self) -> Index:
        """All ids, those of MCP tools too."""
        return Index([_word(tool.id, tool.description) for tool in self._catalog.tools])

    @cached_property
    def servers(self) -> Index:
        """The identifiers of the MCP servers."""
        return Index([Word(name, _server_meta(server)) for name, server in self._servers.items()])

    @cached_property
    def files(self) -> Index:
        """The paths that `API.read` takes."""
        files = json.loads(self._catalog.scope.files)
        return Index([_word(file["path"], file["description"]) for file in files])

    def members(self, path: tuple[str, ...]) -> Index:
        """Return what stands behind the dot of `MCP.everything.`; nothing where that is unknown."""
        if path not in self._members:
            self._members[path] = Index(list(self._members_of(path)))
        return self._members[path]

    def schema(self, path: tuple[str, ...], tool_id: str | None = None) -> Json:
        """Return the schema of the input that a function takes, or None where it is no tool's."""
        if tool_id is not None:
            tool = self._catalog.tool(tool_id) or self._by_name.get(tool_id)
        elif path[:1] == ("tools",) and len(path) == 2:
            tool = self._catalog.tool(self._names.get(path[1], ""))
        else:
            tool = self._targets.get(path[1:] if path[:1] == ("namespaces",) else path)
        return None if tool is None else tool.parameters

    # ---- parts of the catalog ----

    @cached_property
    def _globals(self) -> Index:
        shown = {**GUEST_GLOBALS, "tools": f"{self._catalog.size:,} tools: search, describe, call, and by name"}
        if self._servers:
            shown["MCP"] = f"servers: {', '.join(self._servers)}"
        shown |= dict.fromkeys(self._namespaces, "namespace of a plugin")
        return Index([_word(name, meta) for name, meta in shown.items()])

    @cached_property
    def _names(self) -> dict[str, str]:
        return self._catalog.names()

    @cached_property
    def _by_name(self) -> dict[str, ToolSpec]:
        return {tool.name: tool for tool in self._catalog.tools if tool.source != "mcp"}

    @cached_property
    def _targets(self) -> dict[tuple[str, ...], ToolSpec]:
        targets = self._catalog.scope.targets.items()
        return {tuple(path.split(PATH_SEPARATOR)): target.tool for path, target in targets}

    @cached_property
    def _servers(self) -> dict[str, Mapping[str, Json]]:
        mcp = json.loads(self._catalog.scope.mcp)
        return {server["ident"]: server for server in mcp["servers"]} if mcp else {}

    @cached_property
    def _namespaces(self) -> dict[str, Json]:
        return {each["name"]: each["node"] for each in json.loads(self._catalog.scope.namespaces)}

    def _members_of(self, path: tuple[str, ...]) -> Iterator[Word]:
        match path:
            case ("tools",):
                yield from _words(TOOLS_MEMBERS)
                yield from (_word(name, self._described(id_)) for name, id_ in self._names.items())
            case ("API",):
                yield from _words(API_MEMBERS)
            case ("MCP",):
                yield from self.servers.words
                yield Word("$api", "$api(): what each server offers")
            case ("MCP", server, *rest) if server in self._servers:
                yield from _server_members(self._servers[server], rest)
            case ("namespaces",):
                yield from (Word(name, "namespace of a plugin") for name in self._namespaces)
            case ("namespaces", *rest):
                yield from self._members_of(tuple(rest))
            case (name, *rest) if name in self._namespaces:
                yield from _node_members(self._namespaces[name], rest)
            case (name,):
                yield from (Word(member) for member in MEMBERS.get(name, ()))

    def _described(self, tool_id: str) -> str:
        tool = self._catalog.tool(tool_id)
        return tool.description if tool else ""


def _server_members(server: Mapping[str, Json], rest: list[str]) -> Iterator[Word]:
    if not rest:
        yield from (_word(tool["ident"], tool["header"]) for tool in server["tools"])
        yield Word("$api", "$api(toolName, {schema}): what it offers")
        yield from (Word(part, f"{', '.join(members)}") for part, members in _SERVER_PARTS.items() if server.get(part))
    elif rest[0] in _SERVER_PARTS and server.get(rest[0]):
        yield from _words(_SERVER_PARTS[rest[0]])


def _node_members(node: Any, rest: list[str]) -> Iterator[Word]:
    """Walk into the descriptor of a namespace: `["o", {key: node}]` has members."""
    for key in rest:
        node = node[1].get(key, ["v", None]) if node[0] == "o" else ["v", None]
    if node[0] == "o":
        yield from (Word(key, "function" if inner[0] == "f" else "") for key, inner in node[1].items())


def _server_meta(server: Mapping[str, Json]) -> str:
    return one_line(f"{len(server['tools'])} tools of {server['name']}", _META_CHARS)


def _word(text: str, meta: str) -> Word:
    return Word(text, one_line(meta, _META_CHARS))


def _words(table: Mapping[str, str]) -> Iterator[Word]:
    return (Word(name, meta) for name, meta in table.items())
