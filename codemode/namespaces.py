"""Namespaces: what a plugin shows to cells as a global of its own, each call a call of its own tools.

Here live the gate (who may see a namespace), the serialiser (what of a scope crosses to the guest)
and the paths (what each callable leads to). Descriptors are plain data; a call that comes back is
resolved from the host's own table and runs as any tool does. `plugins` registers namespaces, the
live run opens them, `bridge` resolves their calls.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from codemode.catalog import Catalog
from codemode.core.deadline import is_cancelled
from codemode.core.errors import InvalidConfig, InvalidInput, type_and_words_of
from codemode.core.jsonsafe import NotJson, adapt, clean_text
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_JSON_DEPTH
from codemode.core.names import GUEST_GLOBALS, UNSAFE_SEGMENTS, build_tool_id, is_identifier
from codemode.core.tables import Where, shown
from codemode.core.types import PATH_SEPARATOR, Json, NamespaceTarget, RunContext, ToolSpec
from codemode.mappers import Mapper, NotPortable, read_mapper, write_mapper

_RESERVED_PREFIXES = ("__codemode", "__openclaw")
_BUILT_INS = frozenset(
    {
        "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array",
        "Boolean", "DOMException", "DataView", "Date", "DisposableStack", "Error", "EvalError",
        "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array",
        "Int32Array", "Int8Array", "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy",
        "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String", "SuppressedError",
        "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array",
        "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "atob", "btoa", "decodeURI", "decodeURIComponent",
        "encodeURI", "encodeURIComponent", "escape", "isFinite", "isNaN", "parseFloat", "parseInt", "undefined",
        "unescape",
        "exports", "module", "require",
    }
)  # fmt: skip  # the globals of the engine, and three names that no cell may use


class NamespaceTool:
    """Marks a member of a scope as callable; `namespace_tool` makes it."""

    __slots__ = ("mapper", "tool_name")

    def __init__(self, tool_name: str, mapper: Mapper | None) -> None:
        """Keep the name of the tool and what makes its input."""
        self.tool_name = tool_name
        self.mapper = mapper


def namespace_tool(name: str, mapper: Mapper | None = None) -> NamespaceTool:
    """Make a member of a scope that cells can call.

    Args:
        name: One of the namespace's required tools.
        mapper: Gets the list of the cell's arguments and returns the input of the tool. Without one
            the first argument is the input, or `{}`. It may be a function of a module or one within
            `create_scope`, and capture JSON values, functions of its kind, and the run's context.

    Raises:
        TypeError: The name is no text, or the mapper is no plain function.
    """
    if not isinstance(name, str):
        raise TypeError(f"namespace_tool takes the name of a tool, found {shown(name)}")
    if mapper is not None and (not callable(mapper) or inspect.iscoroutinefunction(mapper)):
        raise TypeError(f"the mapper of {name} must be a plain function that takes a list")
    return NamespaceTool(name, mapper)


CreateScope = Callable[[RunContext], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]


class Namespace(NamedTuple):
    """One registration; `plugin_id` was set by the loader, and owns the required tools."""

    id: str
    plugin_id: str
    global_name: str
    description: str
    required_tool_names: tuple[str, ...]
    create_scope: CreateScope
    prompt: str | None = None

    @property
    def about(self) -> str:
        """What it says of itself, as one line."""
        return " ".join(f"{self.description} {self.prompt or ''}".split())

    def find_tools(self, catalog: Catalog) -> dict[str, ToolSpec] | None:
        """Return the required tools by name; None, for an invisible namespace, unless all are there and its plugin's.

        Contract: namespaces:gate:all-tools, namespaces:gate:owner
        """
        found = {name: catalog.tool(self.tool_id(name)) for name in self.required_tool_names}
        there = {name: tool for name, tool in found.items() if tool is not None}
        return there if len(there) == len(found) else None

    def tool_id(self, name: str) -> str:
        """Return the id of a tool of its plugin."""
        return build_tool_id("plugin", self.plugin_id, name)

    def fail(self, sentence: str) -> NoReturn:
        """Raise `InvalidConfig` about this namespace."""
        raise InvalidConfig(f"the namespace {self.id} of the plugin {self.plugin_id}: {sentence}")


def check_global_name(name: str, where: Where) -> None:
    """Refuse a global that a cell could not name, or that would hide something.

    Raises:
        InvalidConfig: It is no identifier, or it is taken by JavaScript or by code mode.

    Contract: namespaces:global:identifier, namespaces:global:built-ins
    """
    if not is_identifier(name):
        where.fail(f"found {shown(name)}; allowed is a JavaScript identifier.")
    if name in GUEST_GLOBALS or name in _BUILT_INS or name.startswith(_RESERVED_PREFIXES):
        where.fail(f"found {shown(name)}, which cells know already; choose another name.")


class Namespaces:
    """The namespaces of a session, as they are `registered`; which of them a run sees depends on its catalog."""

    def __init__(self, registered: Iterable[Namespace] = ()) -> None:
        """Keep registrations that are different in id and global name."""
        self.registered = tuple(registered)

    def visible(self, catalog: Catalog) -> tuple[Namespace, ...]:
        """Return those whose tools are all in a catalog."""
        return tuple(each for each in self.registered if each.find_tools(catalog) is not None)

    def prompts(self, catalog: Catalog) -> tuple[str, ...]:
        """Return what `exec`'s description says of the visible ones.

        Contract: namespaces:prompt:only-visible
        """
        return tuple(_prompt(each) for each in self.visible(catalog))

    async def open(self, catalog: Catalog, context: RunContext) -> tuple[Catalog, Json]:
        """Make the scopes of a new run.

        Returns:
            The catalog with the visible namespaces, and what a later process needs to open them again:
            `{id: {path: {"tool", "mapper"}}}`, or None without any.

        Raises:
            InvalidConfig: A `create_scope` failed, or gave what may not cross.

        Contract: namespaces:scope:once, namespaces:scope:before-guest
        """
        found = [(each, each.find_tools(catalog)) for each in self.registered]
        scopes = [await _open(each, tools, context) for each, tools in found if tools is not None]
        if not scopes:
            return catalog, None
        text = json.dumps([scope.face for scope in scopes], ensure_ascii=False, separators=(",", ":"))
        if len(text.encode()) > MAX_BRIDGE_BYTES:
            names = ", ".join(scope.namespace.id for scope in scopes)
            raise InvalidConfig(f"the scopes of {names} are larger than {MAX_BRIDGE_BYTES} bytes; keep data in tools.")
        targets = {path: target for scope in scopes for path, target in scope.targets.items()}
        seen = catalog.scope._replace(namespaces=text, targets={**catalog.scope.targets, **targets})
        return catalog.with_scope(seen), {scope.namespace.id: scope.written for scope in scopes}

    def reopen(self, catalog: Catalog, written: Json, context: RunContext) -> Catalog:
        """Return the catalog with the paths of an earlier process; its guest has the descriptors already.

        A path whose tool or namespace is gone leads nowhere any more.

        Contract: namespaces:wait:same, namespaces:wait:tool-gone
        """
        targets = dict(catalog.scope.targets)
        for namespace in self.registered:
            for path, stored in written.get(namespace.id, {}).items():
                tool = catalog.tool(namespace.tool_id(stored["tool"]))
                if tool is not None:
                    mapper = stored["mapper"] and _read_later(stored["mapper"], context)
                    targets[path] = NamespaceTarget(tool, _to_input(path, mapper))
        return catalog.with_scope(catalog.scope._replace(targets=targets))


class _Scope(NamedTuple):
    """One opened namespace: its face in the guest, its paths, and what is stored of them."""

    namespace: Namespace
    face: Json
    targets: dict[str, NamespaceTarget]
    written: Json


async def _open(namespace: Namespace, tools: Mapping[str, ToolSpec], context: RunContext) -> _Scope:
    try:
        given: Any = namespace.create_scope(context)
        scope = await given if inspect.isawaitable(given) else given
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        namespace.fail("create_scope cancelled itself.")
    except Exception as error:  # noqa: BLE001  # whatever a plugin fails with, its namespace cannot be opened
        namespace.fail(f"create_scope failed: {type_and_words_of(error)}.")
    if not isinstance(scope, Mapping):
        namespace.fail(f"create_scope gave a {type(scope).__name__}; allowed is an object, as a dict.")
    serialiser = _Serialiser(namespace)
    node = serialiser.node(scope, [namespace.global_name])
    markers = serialiser.markers.items()
    return _Scope(
        namespace,
        face={"name": namespace.global_name, "node": node},
        targets={path: NamespaceTarget(tools[each.tool_name], _to_input(path, each.mapper)) for path, each in markers},
        written={
            path: {"tool": each.tool_name, "mapper": _write(namespace, path, each.mapper)} for path, each in markers
        },
    )


class _Serialiser:
    """Turns a scope into the nodes that the guest builds it from; `markers` are its callable paths.

    A node is `["f"]`, `["v", value]`, `["o", {key: node}]` or `["a", [node]]`; what holds nothing
    callable is one value.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.markers: dict[str, NamespaceTool] = {}
        self._namespace = namespace
        self._above: set[int] = set()

    def node(self, value: Any, path: list[str]) -> Json:
        """Return the node of a value.

        Contract: namespaces:scope:values, namespaces:scope:refused, namespaces:scope:declared-tools
        """
        if isinstance(value, NamespaceTool):
            return self._callable(value, path)
        if callable(value):
            self._fail(path, "a raw function", 'wrap it: namespace_tool("tool", mapper)')
        if not isinstance(value, (Mapping, list, tuple)):
            return ["v", _plain(value)]
        if id(value) in self._above:
            self._fail(path, "an object that holds itself", "a scope is a tree")
        if len(path) > MAX_JSON_DEPTH:
            self._fail(path, f"more than {MAX_JSON_DEPTH} levels", "flatten it")
        self._above.add(id(value))
        node = self._object(value, path) if isinstance(value, Mapping) else self._array(value, path)
        self._above.discard(id(value))
        return node

    def _callable(self, marker: NamespaceTool, path: list[str]) -> Json:
        declared = self._namespace.required_tool_names
        if marker.tool_name not in declared:
            self._fail(path, f'a call of "{marker.tool_name}"', f"required_tool_names has only {', '.join(declared)}")
        self.markers[PATH_SEPARATOR.join(path)] = marker
        return ["f"]

    def _object(self, value: Mapping[Any, Any], path: list[str]) -> Json:
        nodes = {self._segment(key, path): item for key, item in value.items()}
        nodes = {key: self.node(item, [*path, key]) for key, item in nodes.items()}
        if all(node[0] == "v" for node in nodes.values()):
            return ["v", {key: node[1] for key, node in nodes.items()}]
        return ["o", nodes]

    def _array(self, value: Iterable[Any], path: list[str]) -> Json:
        nodes = [self.node(item, [*path, str(at)]) for at, item in enumerate(value)]
        return ["v", [node[1] for node in nodes]] if all(node[0] == "v" for node in nodes) else ["a", nodes]

    def _segment(self, key: Any, path: list[str]) -> str:
        if not isinstance(key, str):
            self._fail(path, f"a key of type {type(key).__name__}", "keys are texts")
        segment = clean_text(key)
        if not segment or segment in UNSAFE_SEGMENTS or PATH_SEPARATOR in segment:
            self._fail(path, f"the key {shown(key)}", "no path may hold it")
        return segment

    def _fail(self, path: list[str], found: str, instead: str) -> NoReturn:
        self._namespace.fail(f"create_scope gave {found} at {'.'.join(path)[:200]}; {instead}.")


def _plain(value: Any) -> Json:
    """Return the adapter's form of a value; null stands for what has none: clients, handles, bytes."""
    try:
        return adapt(value)
    except NotJson:
        return None


def _write(namespace: Namespace, path: str, mapper: Mapper | None) -> Json:
    try:
        return None if mapper is None else write_mapper(mapper)
    except NotPortable as error:
        shown_path = path.replace(PATH_SEPARATOR, ".")
        namespace.fail(f"the mapper of {shown_path} cannot go on in another process: {error}.")


def _read_later(written: Json, context: RunContext) -> Mapper:
    def mapper(arguments: list[Json]) -> Any:
        return read_mapper(written, context)(arguments)

    return mapper


def _to_input(path: str, mapper: Mapper | None) -> Callable[[list[Json]], Json]:
    """Return what makes the tool's input of the cell's arguments, and says so where it cannot.

    Contract: namespaces:mapper:input, namespaces:mapper:failure
    """

    def to_input(arguments: list[Json]) -> Json:
        if mapper is None:
            return arguments[0] if arguments else {}
        try:
            return adapt(mapper(arguments))
        except Exception as error:  # a plugin's mapper on a cell's arguments: anything may happen
            called = path.replace(PATH_SEPARATOR, ".")
            raise InvalidInput(f"{called} cannot take these arguments: {type_and_words_of(error)}") from error

    return to_input


def _prompt(namespace: Namespace) -> str:
    lines = f"{namespace.description.strip()}\n{(namespace.prompt or '').strip()}".strip().splitlines()
    return f"- {namespace.global_name}: " + "\n  ".join(lines)
