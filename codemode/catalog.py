"""The tools that are effective for a run: sorted, named, described, searchable.

The catalog is what a cell can reach and nothing else: a denied tool is not in it. MCP tools
are in it under their exact ids, so that policy, hooks and telemetry see them, but its
guest-facing answers leave them out. Everything costly (index, names, the guest's text) is
built when first asked for, so ten thousand tools cost a cell nothing that does not look.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from codemode.core.errors import NestedToolFailed
from codemode.core.limits import Limits
from codemode.core.names import CONTROL_TOOLS, camel_case, is_reserved_property, safe_name
from codemode.core.tables import shown
from codemode.core.types import PATH_SEPARATOR, GuestScope, Json, NamespaceTarget, ToolSpec
from codemode.policy import Policy

if TYPE_CHECKING:
    from codemode.search import Explained, SearchIndex

_HINTED = 5  # MCP tools that a search's hint names
_NEAR = 3  # ids that an error offers, or that a note names
_LISTED = 10  # ids of one name that an error lists
_SHELL_TOOL = "exec"  # a tool of this name is an ordinary shell tool, no control tool


class Note(NamedTuple):
    """Something that a listing must say of a tool, and why."""

    tool_id: str
    kind: Literal["left-out", "duplicate", "normalised", "suffixed", "collision", "reserved"]
    text: str


class SearchAnswer(NamedTuple):
    """Compact entries, best first; `hint` names matching MCP tools, which are withheld."""

    entries: list[dict[str, Json]]
    hint: str | None


class _ScopeText(NamedTuple):
    """The guest's globals as text and digest, and the scope's own texts that they were made of."""

    of: tuple[str, str, str]
    text: bytes
    digest: str


class _Listing:
    """What depends on the tools alone; catalogs of different scopes share one."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self.tools = tools
        self.own = tuple(tool for tool in tools if tool.source != "mcp")
        self.by_id = {tool.id: tool for tool in tools}
        self._last: _ScopeText | None = None

    def scope_text(self, scope: GuestScope) -> _ScopeText:
        """Return the text for a scope; the last is kept, because the scopes of runs mostly say the same."""
        of = (scope.mcp, scope.files, scope.namespaces)
        if self._last is None or self._last.of != of:
            mcp, files, namespaces = of
            names = _compact(self.names)
            texts = {"tools": self.entries_text, "names": names, "mcp": mcp, "files": files, "namespaces": namespaces}
            text = _compact(texts).encode()
            self._last = _ScopeText(of, text, hashlib.sha256(text).hexdigest())
        return self._last

    @cached_property
    def names(self) -> dict[str, str]:
        named = self.by_safe_name.items()
        return {safe: tools[0].id for safe, tools in named if len(tools) == 1 and not is_reserved_property(safe)}

    @cached_property
    def index(self) -> "SearchIndex":
        from codemode.search import SearchIndex  # 5 ms that a cell which does not search never pays

        return SearchIndex(self.tools)

    @cached_property
    def entries_text(self) -> str:
        return _compact([compact_entry(tool) for tool in self.own])

    @cached_property
    def by_name(self) -> dict[str, list[ToolSpec]]:
        named: dict[str, list[ToolSpec]] = {}
        for tool in self.own:
            named.setdefault(tool.name, []).append(tool)
        return named

    @cached_property
    def by_safe_name(self) -> dict[str, list[ToolSpec]]:
        named: dict[str, list[ToolSpec]] = {}
        for tool in self.own:
            named.setdefault(safe_name(tool.name), []).append(tool)
        return named


class Catalog:
    """The effective tools of a run; build it with `build_catalog`."""

    def __init__(self, listing: _Listing, left_out: tuple[Note, ...], limits: Limits, scope: GuestScope) -> None:
        """Keep a listing of tools that are sorted by id and unique."""
        self.tools = listing.tools
        self.size = len(listing.tools)
        self.scope = scope
        self._listing = listing
        self._left_out = left_out
        self._limits = limits

    @cached_property
    def sources(self) -> dict[str, int]:
        """How many tools each source gives: `{"openclaw", "plugin", "mcp", "client"}`."""
        counts = Counter(tool.source for tool in self.tools)
        return {source: counts[source] for source in ("openclaw", "plugin", "mcp", "client")}

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Everything that was left out, renamed or got no function, and why, in id order.

        Contract: catalog:notes:reasons
        """
        named = self._listing.by_safe_name.items()
        own = (note for safe, tools in named for note in _name_notes(safe, tools))
        return tuple(sorted((*self._left_out, *own, *_suffix_notes(self.scope.targets))))

    def entries(self) -> list[dict[str, Json]]:
        """Return `ALL_TOOLS`: compact entries without MCP tools, in id order.

        Contract: catalog:entries:compact
        """
        return [compact_entry(tool) for tool in self._listing.own]

    def names(self) -> dict[str, str]:
        """Return the convenience functions: `{safe name: id}`.

        Contract: catalog:names:collisions, catalog:names:reserved
        """
        return dict(self._listing.names)

    def resolve(self, id_or_name: Json) -> ToolSpec:
        """Return the tool of this id, else the only one of this name; never an MCP tool.

        Raises:
            NestedToolFailed: No tool, or several, are meant; the message lists near ids.

        Contract: catalog:resolve:id-then-name, catalog:resolve:near-ids, catalog:resolve:never-mcp
        """
        if not isinstance(id_or_name, str) or not id_or_name:
            raise NestedToolFailed(f"a tool is asked for by its id or name, found {shown(id_or_name)}.")
        tool = self._listing.by_id.get(id_or_name)
        if tool is not None and tool.source != "mcp":
            return tool
        named = self._listing.by_name.get(id_or_name, ())
        if len(named) == 1:
            return named[0]
        raise NestedToolFailed(self._unresolved(id_or_name, named), id_or_name)

    def tool(self, tool_id: str) -> ToolSpec | None:
        """Return the tool of this exact id, MCP tools included, or None."""
        return self._listing.by_id.get(tool_id)

    def describe(self, id_or_name: Json) -> dict[str, Json]:
        """Return the entry with its `parameters`.

        Raises:
            NestedToolFailed: As `resolve` does.

        Contract: catalog:describe:parameters
        """
        tool = self.resolve(id_or_name)
        return compact_entry(tool) | {"parameters": tool.parameters}

    def search(self, query: Json, limit: Json = None) -> SearchAnswer:
        """Return the entries that a query means, best first.

        Args:
            query: Plain words; anything but a text is refused.
            limit: How many at most; None gives `searchDefaultLimit`, more than `maxSearchLimit` that.

        Raises:
            NestedToolFailed: A query that is no text, or a limit that is no positive integer.

        Contract: search:arguments:checked, search:mcp:withheld
        """
        if not isinstance(query, str):
            raise NestedToolFailed(f"tools.search takes a text as its query, found {shown(query)}.")
        count = self._checked_limit(limit)
        entries = [compact_entry(ranked.tool) for ranked in self._listing.index.rank(query, count, mcp=False)]
        return SearchAnswer(entries, self._hint(query))

    def explain(self, query: str, limit: int | None = None) -> "list[Explained]":
        """Return the ranking, MCP tools included, with the reasons for each score."""
        return self._listing.index.explain(query, self._checked_limit(limit))

    def extend(self, tools: Iterable[ToolSpec], policy: Policy) -> "Catalog":
        """Return a catalog of these tools and more, without a scope; what was left out stays noted."""
        return build_catalog((*self.tools, *tools), policy, self._limits, self._left_out)

    def with_scope(self, scope: GuestScope) -> "Catalog":
        """Return the same catalog with what the guest sees beside it."""
        return Catalog(self._listing, self._left_out, self._limits, scope)

    def scope_text(self) -> bytes:
        """Return the guest's globals as JSON of JSON texts, so that it parses each when first touched.

        `{"tools": text, "names": text, "mcp": text, "files": text, "namespaces": text}`, UTF-8.

        Contract: catalog:scope:texts
        """
        return self._listing.scope_text(self.scope).text

    @property
    def scope_digest(self) -> str:
        """The SHA-256 of `scope_text`, in hex: equal digests mean equal globals."""
        return self._listing.scope_text(self.scope).digest

    @cached_property
    def _mcp_paths(self) -> dict[str, str]:
        return {
            target.tool.id: path.replace(PATH_SEPARATOR, ".")
            for path, target in self.scope.targets.items()
            if target.tool.source == "mcp"
        }

    def _mcp_path(self, tool: ToolSpec) -> str:
        guessed = f"MCP.{camel_case(tool.owner, 'server')}.{camel_case(tool.name, 'tool')}"
        return self._mcp_paths.get(tool.id, guessed)

    def _checked_limit(self, limit: Json) -> int:
        if limit is None:
            return self._limits.search_default_limit
        whole = isinstance(limit, int) or (isinstance(limit, float) and limit.is_integer())
        if not whole or isinstance(limit, bool) or limit < 1:
            raise NestedToolFailed(f"tools.search takes a positive whole number as its limit, found {shown(limit)}.")
        return min(int(limit), self._limits.max_search_limit)

    def _hint(self, query: str) -> str | None:
        if not self.sources["mcp"]:
            return None
        paths = [self._mcp_path(ranked.tool) for ranked in self._listing.index.rank(query, _HINTED, mcp=True)]
        if not paths:
            return None
        return (
            f"MCP tools match too: {', '.join(paths)}. Call them as MCP.<server>.<tool>(input); "
            'API.list("mcp") and API.read(path) show their types.'
        )

    def _unresolved(self, asked: str, named: Sequence[ToolSpec]) -> str:
        if named:
            ids = ", ".join(tool.id for tool in named[:_LISTED])
            more = f" and {len(named) - _LISTED:,} more" if len(named) > _LISTED else ""
            return f"the name {shown(asked)} means several tools: {ids}{more}. Use an id."
        mcp = self._listing.by_id.get(asked)
        if mcp is not None:
            return f"{asked} is an MCP tool; call {self._mcp_path(mcp)}(input)."
        near = [ranked.tool.id for ranked in self._listing.index.rank(asked, _NEAR, mcp=False)]
        return f"no tool is called {shown(asked)}." + (f" Near: {', '.join(near)}." if near else "")


def build_catalog(
    tools: Iterable[ToolSpec], policy: Policy, limits: Limits | None = None, notes: tuple[Note, ...] = ()
) -> Catalog:
    """Gather the effective tools of a run.

    Args:
        tools: From manifest, plugins, OpenAPI and MCP, in order of precedence: of two with the same
            id the first stays.
        policy: What it does not allow is not in the catalog at all.
        limits: For searches; the defaults when left out.
        notes: What was left out before, to be listed too.

    Contract: catalog:order:code-units, catalog:left-out:control-tools, catalog:left-out:denied
    """
    kept: dict[str, ToolSpec] = {}
    left_out = list(notes)
    for tool in tools:
        if not policy.is_allowed(tool):
            continue
        if tool.id in kept:
            where = f" of {tool.origin}" if tool.origin else ""
            left_out.append(Note(tool.id, "duplicate", f"a second definition{where} was left out; the first stays"))
        elif _is_control_tool(tool):
            left_out.append(Note(tool.id, "left-out", f'"{tool.name}" is the name of a control tool of code mode'))
        else:
            kept[tool.id] = tool
    listing = _Listing(tuple(sorted(kept.values(), key=_code_units)))
    return Catalog(listing, tuple(left_out), limits or Limits(), GuestScope())


def compact_entry(tool: ToolSpec) -> dict[str, Json]:
    """Return `{id, name, label?, description, source, sourceName}`."""
    entry: dict[str, Json] = {"id": tool.id, "name": tool.name}
    if tool.label is not None:
        entry["label"] = tool.label
    return entry | {"description": tool.description, "source": tool.source, "sourceName": tool.owner}


def _is_control_tool(tool: ToolSpec) -> bool:
    control = tool.name in CONTROL_TOOLS or tool.name.startswith("tool_search")
    return tool.source != "mcp" and control and tool.name != _SHELL_TOOL


def _code_units(tool: ToolSpec) -> bytes:
    return tool.id.encode("utf-16-be", "surrogatepass")


def _name_notes(safe: str, tools: Sequence[ToolSpec]) -> Iterator[Note]:
    """Yield a note for each non-MCP tool whose function is not called as the tool is, or is missing."""
    for tool in tools:
        instead = f'use tools.call("{tool.id}", input)'
        if is_reserved_property(safe):
            yield Note(tool.id, "reserved", f"tools.{safe} is taken by code mode; {instead}")
        elif len(tools) > 1:
            others = [other.id for other in tools[: _NEAR + 1] if other is not tool][:_NEAR]
            more = f" and {len(tools) - 1 - _NEAR:,} more" if len(tools) - 1 > _NEAR else ""
            yield Note(tool.id, "collision", f"tools.{safe} would also be {', '.join(others)}{more}; {instead}")
        elif safe != tool.name:
            yield Note(tool.id, "normalised", f"its function is tools.{safe}")


def _suffix_notes(targets: Mapping[str, NamespaceTarget]) -> Iterator[Note]:
    """Yield a note for each MCP server and tool that is not called by its own name, because that was taken."""
    holders = {path: target.tool.id for path, target in targets.items()}
    servers: dict[str, str] = {}  # each one's identifier, by its name
    for path, target in targets.items():
        tool = target.tool
        root, server, *rest = path.split(PATH_SEPARATOR)
        if tool.source != "mcp":
            continue
        servers[tool.owner] = server
        wanted = camel_case(tool.name, "tool")
        if len(rest) == 1 and rest != [wanted]:
            place = f"{root}.{server}"
            holder = holders.get(PATH_SEPARATOR.join((root, server, wanted)), "code mode")
            yield Note(tool.id, "suffixed", f"its function is {place}.{rest[0]}; {place}.{wanted} is taken by {holder}")
    names = {identifier: name for name, identifier in servers.items()}
    for name, identifier in servers.items():
        wanted = camel_case(name, "server")
        if identifier != wanted:
            holder = f"the server {names[wanted]}" if wanted in names else "code mode"
            yield Note(
                f"mcp:{name}:*", "suffixed", f"its tools are in MCP.{identifier}; MCP.{wanted} is taken by {holder}"
            )


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
