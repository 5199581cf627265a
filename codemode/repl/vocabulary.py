"""All that can be named in a cell of this session: from the catalog, from MCP, from plugins, from JavaScript.

Each part becomes an index when it is first asked for. `warm` builds the large ones beforehand,
so that not even the first key press waits. Called by the completer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from codemode.catalog import Catalog
from codemode.core.types import PATH_SEPARATOR, GuestScope, Json, ToolSpec
from codemode.render.words import counted, one_line
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
_FACES = {"f": "function", "o": "object", "a": "list"}  # the kinds of a namespace's nodes; what else it has is a value
_JAVASCRIPT = Index([Word(name) for name in (*KEYWORDS, *BUILT_INS)])
_MCP = "MCP"
_OPERATIONS = {
    "resources": {"list": "list(): its resources", "read": "read({uri}): one of them"},
    "prompts": {"list": "list(): its prompts", "get": "get({name, arguments}): one of them"},
}


class Vocabulary:
    """What the completer may offer; the names that cells declare are added with `declare`."""

    def __init__(self, catalog: Catalog, namespaces: Mapping[str, str] | None = None) -> None:
        """Take the catalog, and of each namespace what it is; nothing is indexed yet."""
        self._catalog = catalog
        self._described_namespaces = namespaces or {}
        self._members: dict[tuple[str, ...], Index] = {}
        self._declared = _NOTHING
        self._nodes: dict[str, Json] = {}
        self._paths: dict[tuple[str, ...], ToolSpec] = {}
        self._mapped: set[tuple[str, ...]] = set()

    def warm(self) -> None:
        """Build the indexes that grow with the catalog."""
        self.ids.warm()
        self._globals.warm()
        for path in (("tools",), *((_MCP, server) for server in self._servers)):
            self.members(path).warm()

    def open(self, scope: GuestScope, mapped: Iterable[str]) -> None:
        """Take the namespaces as they are once opened.

        Args:
            scope: With their members.
            mapped: The paths whose function takes something else than the input of its tool.
        """
        self._nodes = {each["name"]: each["node"] for each in json.loads(scope.namespaces)}
        self._paths = {tuple(path.split(PATH_SEPARATOR)): target.tool for path, target in scope.targets.items()}
        self._mapped = {tuple(path.split(PATH_SEPARATOR)) for path in mapped}
        for path in [path for path in list(self._members) if path[0] in ("namespaces", *self._nodes)]:
            del self._members[path]

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
        return Index([_word(name, _server_meta(members)) for name, members in self._servers.items()])

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
            tool = self._function(path[1:] if path[:1] == ("namespaces",) else path)
        return None if tool is None else tool.parameters

    # ---- parts of the catalog ----

    @cached_property
    def _globals(self) -> Index:
        shown = {**GUEST_GLOBALS, "tools": f"{self._catalog.size:,} tools: search, describe, call, and by name"}
        if self._servers:
            shown[_MCP] = f"servers: {', '.join(self._servers)}"
            shown["ALL_TOOLS"] = "compact entries of all tools but those of MCP"
        shown |= self._described_namespaces
        return Index([_word(name, meta) for name, meta in shown.items()])

    @cached_property
    def _names(self) -> dict[str, str]:
        return self._catalog.names()

    @cached_property
    def _by_name(self) -> dict[str, ToolSpec]:
        return {tool.name: tool for tool in self._catalog.tools if tool.source != "mcp"}

    @cached_property
    def _servers(self) -> dict[str, dict[tuple[str, ...], ToolSpec]]:
        """Identifier of each MCP server → path of each of its functions, such as `("resources", "list")` → its tool."""
        servers: dict[str, dict[tuple[str, ...], ToolSpec]] = {}
        for path, target in self._catalog.scope.targets.items():
            namespace, server, *member = path.split(PATH_SEPARATOR)
            if namespace == _MCP:
                servers.setdefault(server, {})[tuple(member)] = target.tool
        return servers

    def _function(self, path: tuple[str, ...]) -> ToolSpec | None:
        """Return the tool whose input the function at a path takes."""
        if path[:1] == (_MCP,) and len(path) > 2:
            return self._servers.get(path[1], {}).get(path[2:])
        return None if path in self._mapped else self._paths.get(path)

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
                yield from (_word(name, meta) for name, meta in self._described_namespaces.items())
            case ("namespaces", *rest):
                yield from self._members_of(tuple(rest))
            case (name, *rest) if name in self._nodes:
                yield from self._namespace_members(name, rest)
            case (name,):
                yield from (Word(member) for member in MEMBERS.get(name, ()))

    def _described(self, tool_id: str) -> str:
        tool = self._catalog.tool(tool_id)
        return tool.description if tool else ""

    def _namespace_members(self, name: str, rest: list[str]) -> Iterator[Word]:
        """Walk into the descriptor of a namespace: `["o", {key: node}]` has members."""
        node: Any = self._nodes[name]
        for key in rest:
            node = node[1].get(key, ["v", None]) if node[0] == "o" else ["v", None]
        members = node[1].items() if node[0] == "o" else ()
        for key, inner in members:
            tool = self._paths.get((name, *rest, key))
            yield _word(key, tool.description if tool else _FACES.get(inner[0], ""))


def _server_members(functions: Mapping[tuple[str, ...], ToolSpec], rest: list[str]) -> Iterator[Word]:
    """Yield what stands behind `MCP.server.`, and behind `MCP.server.resources.`."""
    operations = {path[0]: _OPERATIONS[path[0]] for path in functions if len(path) > 1 and path[0] in _OPERATIONS}
    if not rest:
        yield from (_word(path[0], tool.description) for path, tool in functions.items() if len(path) == 1)
        yield from (Word(name, ", ".join(members)) for name, members in operations.items())
        yield Word("$api", "$api(toolName, {schema}): what it offers")
    elif rest[0] in operations:
        yield from _words(operations[rest[0]])


def _server_meta(functions: Mapping[tuple[str, ...], ToolSpec]) -> str:
    """Return `17 tools of everything`: as many as the catalog has of it."""
    server = next(iter(functions.values())).owner
    return f"{counted(len(functions), 'tool')} of {server}"


def _word(text: str, meta: str) -> Word:
    return Word(text, one_line(meta, _META_CHARS))


def _words(table: Mapping[str, str]) -> Iterator[Word]:
    return (Word(name, meta) for name, meta in table.items())
