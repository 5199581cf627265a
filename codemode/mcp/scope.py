"""What the guest sees of MCP: identifiers, headers, virtual files, and where each path leads.

Takes the visible MCP tools of a run and arranges them as `core.types.GuestScope` says. Names
are given in id order, so that the same tools always get the same names.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from codemode.core.errors import InvalidInput
from codemode.core.jsonsafe import clean_text
from codemode.core.limits import MAX_BRIDGE_BYTES
from codemode.core.names import GUEST_GLOBALS, UNSAFE_SEGMENTS, camel_case, unique_names
from codemode.core.types import PATH_SEPARATOR, GuestScope, Json, NamespaceTarget, ToolSpec
from codemode.mcp.declarations import DeclaredServer, DeclaredTool, render_index, render_server
from codemode.mcp.schema_types import all_that_hold, properties_of, required_of

_TAKEN = GUEST_GLOBALS | UNSAFE_SEGMENTS | {"$api"}
_TAKEN_BY_SERVERS = _TAKEN | {"index"}  # its file is mcp/index.d.ts
_TAKEN_BY_TOOLS = _TAKEN | {"resources", "prompts"}
_MAX_NAMED_SERVERS = 12  # in the description of `exec`, which must not grow for ever


class _Server(NamedTuple):
    """One server under its name in the guest: its tools under theirs, and its other operations."""

    ident: str
    name: str
    tools: dict[str, ToolSpec]
    operations: tuple[ToolSpec, ...]

    def declared(self) -> DeclaredServer:
        """Return what its declarations are made of."""
        return DeclaredServer(
            self.ident,
            self.name,
            tuple(
                DeclaredTool(ident, tool.description or tool.label or "", tool.parameters, tool.output_schema)
                for ident, tool in self.tools.items()
            ),
            self.has("resources"),
            self.has("prompts"),
            len(self.operations),
        )

    def has(self, capability: str) -> bool:
        """Say whether it offers `resources` or `prompts`."""
        return any(tool.name.startswith(f"{capability}/") for tool in self.operations)


def build_guest_scope(tools: Iterable[ToolSpec]) -> GuestScope:
    """Return what the guest sees of these MCP tools; nothing at all when there are none.

    Contract: mcp:names:collisions, mcp:scope:only-visible, mcp:scope:files
    """
    grouped: dict[str, list[ToolSpec]] = {}
    for tool in sorted(tools, key=lambda tool: tool.id):
        grouped.setdefault(tool.owner, []).append(tool)
    if not grouped:
        return GuestScope()
    idents = unique_names(((name, camel_case(name, "server")) for name in sorted(grouped)), _TAKEN_BY_SERVERS)
    servers = [_arrange(ident, name, grouped[name]) for name, ident in idents.items()]
    declared = [server.declared() for server in servers]
    texts = [render_server(server) for server in declared]
    index = render_index(declared)
    faces = [_face(server, text.file, text.headers) for server, text in zip(servers, texts, strict=True)]
    files = [_file("index", "Which MCP servers there are.", index)]
    files += (_file(server.ident, _describe(server), text.file) for server, text in zip(declared, texts, strict=True))
    return GuestScope(
        mcp=_to_json({"header": index, "servers": faces}),
        files=_to_json(files),
        targets=dict(entry for server in servers for entry in _targets(server)),
        prompts=(_prompt(servers),),
    )


def fill_defaults(schema: Json, value: dict[str, Json]) -> dict[str, Json]:
    """Return the input with the schema's defaults for what is missing, in nested objects and lists of them too.

    They are found through local references and `allOf`, and not in the branches of a choice. A default of
    null is left out where nothing demands the key: servers write it for "none", often against their own schema.

    Raises:
        InvalidInput: The defaults would make it larger than what crosses the bridge.

    Contract: mcp:call:defaults, mcp:call:defaults-bounded
    """
    return _Filler(schema).fill(all_that_hold([schema], schema), value)


class _Filler:
    """Fills one input; a list of a million empty objects would get the same large default a million times."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = MAX_BRIDGE_BYTES  # characters of defaults, and four for each property that is looked at

    def fill(self, schemas: list[dict[str, Json]], value: dict[str, Json]) -> dict[str, Json]:
        parts: dict[str, list[Json]] = {}
        for schema in schemas:
            for key, part in properties_of(schema).items():
                parts.setdefault(key, []).append(part)
        self._spend(4 * len(parts))
        filled = dict(value)
        for key, of_key in parts.items():
            if key not in filled:
                defaults = [part["default"] for part in of_key if isinstance(part, dict) and "default" in part]
                if defaults and (defaults[0] is not None or any(key in required_of(schema) for schema in schemas)):
                    filled[key] = self._copy(defaults[0])
            elif isinstance(filled[key], (dict, list)):
                filled[key] = self._fill_within(all_that_hold(of_key, self._root), filled[key])
        return filled

    def _fill_within(self, schemas: list[dict[str, Json]], value: Json) -> Json:
        if not isinstance(value, (dict, list)):
            return value
        self._spend(len(schemas))
        if isinstance(value, dict):
            return self.fill(schemas, value)
        of_items = [schema["items"] for schema in schemas if "items" in schema]
        if not of_items:
            return value
        held = all_that_hold(of_items, self._root)
        return [self._fill_within(held, item) for item in value]

    def _copy(self, default: Json) -> Json:
        if isinstance(default, (dict, list, str)):
            self._spend(len(json.dumps(default)))
        return copy.deepcopy(default)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InvalidInput("with the defaults of the tool's schema this input is too large; send less of it.")


def _arrange(ident: str, name: str, tools: list[ToolSpec]) -> _Server:
    own = {tool.id: tool for tool in tools if not _is_operation(tool)}
    idents = unique_names(((id_, camel_case(tool.name, "tool")) for id_, tool in own.items()), _TAKEN_BY_TOOLS)
    return _Server(
        ident,
        name,
        {idents[id_]: tool for id_, tool in own.items()},
        tuple(tool for tool in tools if tool.id not in own),
    )


def _is_operation(tool: ToolSpec) -> bool:
    return getattr(tool.invoke, "is_operation", False)  # of a `RemoteCall`, or of what stands for one in a replay


def _face(server: _Server, header: str, headers: tuple[str, ...]) -> dict[str, Json]:
    return {
        "ident": server.ident,
        "name": server.name,
        "header": header,
        "resources": server.has("resources"),
        "prompts": server.has("prompts"),
        "tools": [
            {"ident": ident, "name": tool.name, "id": tool.id, "header": text, "parameters": tool.parameters}
            for (ident, tool), text in zip(server.tools.items(), headers, strict=True)
        ],
    }


def _file(name: str, description: str, text: str) -> dict[str, Json]:
    text = clean_text(text)
    return {"path": f"mcp/{name}.d.ts", "description": description, "bytes": len(text.encode()), "text": text}


def _targets(server: _Server) -> Iterator[tuple[str, NamespaceTarget]]:
    paths = server.tools | {tool.name.replace("/", PATH_SEPARATOR): tool for tool in server.operations}
    for path, tool in paths.items():
        whole = PATH_SEPARATOR.join(("MCP", server.ident, path))
        yield whole, NamespaceTarget(tool, _take_object(whole.replace(PATH_SEPARATOR, "."), tool.parameters))


def _take_object(shown: str, schema: Json) -> Callable[[list[Json]], Json]:
    def to_input(arguments: list[Json]) -> Json:
        given = arguments[0] if arguments else None
        if len(arguments) > 1 or not (given is None or isinstance(given, dict)):
            raise InvalidInput(f"{shown} takes one object argument, or none.")
        return fill_defaults(schema, given or {})

    return to_input


def _describe(server: DeclaredServer) -> str:
    return f"{server.size} of the MCP server {server.name}, as MCP.{server.ident}."


def _prompt(servers: list[_Server]) -> str:
    named = ", ".join(f"MCP.{server.ident}" for server in servers[:_MAX_NAMED_SERVERS])
    more = f" and {len(servers) - _MAX_NAMED_SERVERS} more" if len(servers) > _MAX_NAMED_SERVERS else ""
    return f"- MCP servers here: {named}{more}."


def _to_json(value: Json) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
