"""Plugins: Python packages that bring tools, hooks and namespaces of their own.

This module is what a plugin's author imports. A plugin is a module, or an entry point of the group
`codemode.plugins`, with a function `register(plugin)`:

    from codemode.plugins import Plugin, namespace_tool

    def register(plugin: Plugin) -> None:
        plugin.tool("list_issues", list_issues, description="Issues, newest first.")
        plugin.namespace(
            "issues",
            global_name="Issues",
            description="Issues of this repository.",
            required_tool_names=["list_issues"],
            create_scope=lambda ctx: {"list": namespace_tool("list_issues")},
        )

The loader sets the plugin's id, and nothing that is registered can name another's. One bad tool or
namespace is left out and reported, its neighbours stay; a plugin that cannot be loaded, and a bad
hook, are errors, because a guard that is missing is an open door.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple, NotRequired, Required, TypedDict, Unpack

from codemode.core.errors import InvalidConfig, type_and_words_of
from codemode.core.names import build_tool_id, did_you_mean
from codemode.core.tables import Field, Where, check_table, shown
from codemode.core.types import Approval, Json, RunContext
from codemode.definitions import APPROVALS, HookEntry, LoadedFunction, ToolEntry, check_name, check_parameters
from codemode.extensions import PluginEntry
from codemode.namespaces import CreateScope, Namespace, NamespaceTool, check_global_name, namespace_tool

__all__ = ["CreateScope", "NamespaceTool", "Plugin", "RunContext", "namespace_tool"]

ENTRY_POINTS = "codemode.plugins"
HOOK_EVENT = "before_tool_call"
Import = Callable[[str, Where], ModuleType]
_TOOL_FIELDS = {
    "name": Field("text"),
    "run": Field("any"),
    "description": Field("text", required=True),
    "label": Field("text"),
    "parameters": Field("table"),
    "approval": Field("text", APPROVALS),
    "timeout_ms": Field("integer"),
}
_NAMESPACE_FIELDS = {
    "id": Field("text"),
    "global_name": Field("text", required=True),
    "description": Field("text", required=True),
    "required_tool_names": Field("texts", required=True),
    "create_scope": Field("any", required=True),
    "prompt": Field("text"),
}


class ToolFields(TypedDict):
    """What a tool is, beside its name and its function; `parameters` is the JSON Schema of its input."""

    description: Required[str]
    label: NotRequired[str]
    parameters: NotRequired[dict[str, Json]]
    approval: NotRequired[Approval]
    timeout_ms: NotRequired[int]


class NamespaceFields(TypedDict):
    """What a namespace is, beside its id.

    global_name: Its global in cells.
    description, prompt: What a model reads of it, while it is visible.
    required_tool_names: Tools of this plugin; without any of them it is invisible.
    create_scope: Called once for each run, with the run's context; returns what the global holds.
    """

    global_name: Required[str]
    description: Required[str]
    required_tool_names: Required[Sequence[str]]
    create_scope: Required[CreateScope]
    prompt: NotRequired[str]


class Plugin:
    """What `register` gets: it takes what the plugin brings, all of it under the plugin's own `id`."""

    def __init__(self, plugin_id: str, others: Sequence[Namespace] = ()) -> None:
        """Begin with nothing registered; the loader decides on the id, `others` are of earlier plugins."""
        self._id = plugin_id
        self._others = tuple(others)
        self._tools: list[ToolEntry] = []
        self._hooks: list[HookEntry] = []
        self._namespaces: list[Namespace] = []
        self._notes: list[str] = []

    @property
    def id(self) -> str:
        """The id that the loader set: the owner of all that is registered here."""
        return self._id

    def tool(self, name: str, run: Callable[..., Any], **fields: Unpack[ToolFields]) -> None:
        """Register a tool, `plugin:<id>:<name>`; one that is not right is left out and reported.

        Args:
            name: Its name.
            run: Called with the input's properties as keyword arguments; a parameter `context` gets the
                run's context, a single parameter `input: dict` the whole input. An asynchronous
                function runs in the event loop, another one in a thread.
            **fields: `description`, and if need be `label`, `parameters`, `approval`, `timeout_ms`.

        Contract: plugins:register:tool, plugins:register:isolated
        """
        try:
            self._tools.append(_read_tool(self._id, {**fields, "name": name, "run": run}, self._where(f"tool {name}")))
        except InvalidConfig as error:
            self._notes.append(error.message)

    def hook(self, event: str, run: Callable[..., Any], timeout_ms: int | None = None) -> None:
        """Register a hook that runs before every tool call, after those of the manifest.

        Args:
            event: `before_tool_call`.
            run: Gets the event as a dict and answers as a manifest's hook does: nothing, or a dict with
                `input`, `block` or `ask`.
            timeout_ms: After which the call is blocked.

        Raises:
            InvalidConfig: The hook is not right: a guard is not left out silently.

        Contract: plugins:register:hook
        """
        where = self._where(f"{self._id}.{getattr(run, '__name__', 'hook')}")
        if event != HOOK_EVENT:
            where.fail(f'found the event {shown(event)}; allowed is "{HOOK_EVENT}".')
        _check_callable(run, where)
        self._hooks.append(HookEntry(LoadedFunction(run), _positive(timeout_ms, where), where))

    def namespace(self, id: str, **fields: Unpack[NamespaceFields]) -> None:  # noqa: A002  # the contract's word
        """Register a namespace, a global of cells; one that is not right is left out and reported.

        Args:
            id: Its id, by which no other namespace goes.
            **fields: `global_name`, `description`, `required_tool_names`, `create_scope`, and if need be
                `prompt`.

        Raises:
            InvalidConfig: A second namespace of this id.

        Contract: plugins:register:namespace, plugins:register:isolated, namespaces:register:id-unique
        """
        where, known = self._where(f"namespace {id}"), (*self._others, *self._namespaces)
        for other in known:
            if other.id == id:
                where.fail(f"the plugin {other.plugin_id} has registered a namespace of this id already.")
        try:
            namespace = _read_namespace(self._id, {**fields, "id": id}, where)
            for other in known:
                if other.global_name == namespace.global_name:
                    where.at("global_name").fail(f"{other.global_name} is the global of {other.id} already.")
            self._namespaces.append(namespace)
        except InvalidConfig as error:
            self._notes.append(error.message)

    def registered(self) -> "Registered":
        """Return what has been registered so far."""
        return Registered(tuple(self._tools), tuple(self._hooks), tuple(self._namespaces), tuple(self._notes))

    def _where(self, what: str) -> Where:
        return Where(f"the plugin {self._id}", what)


class Registered(NamedTuple):
    """Definitions, which `tools` makes run; `notes` say what was left out and why."""

    tools: tuple[ToolEntry, ...] = ()
    hooks: tuple[HookEntry, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    notes: tuple[str, ...] = ()


class Plugins:
    """The loaded plugins of one manifest."""

    def __init__(self, import_module: Import) -> None:
        """Begin without any.

        Args:
            import_module: Imports a module by its name, or raises `InvalidConfig` about a place.
        """
        self._import = import_module
        self._loaded: dict[str, Registered] = {}

    def load(self, entry: PluginEntry) -> None:
        """Import a plugin and let it register; where it fails, nothing of it stays.

        Raises:
            InvalidConfig: It cannot be found or imported, has no `register`, or that fails.

        Contract: plugins:load:module, plugins:load:entry-point, plugins:load:fails, plugins:load:rolled-back
        """
        register = self._find_register(entry)
        plugin = Plugin(entry.id, self.registered().namespaces)
        try:
            answer = register(plugin)
        except InvalidConfig:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin's own code may fail with anything
            entry.where.fail(f"register of the plugin {entry.id} failed: {type_and_words_of(error)}.")
        if inspect.iscoroutine(answer):
            answer.close()
            entry.where.fail(f"register of the plugin {entry.id} is asynchronous; it must be a plain function.")
        self._loaded[entry.id] = plugin.registered()

    def remove(self, plugin_id: str) -> None:
        """Forget all that a plugin has registered.

        Contract: plugins:remove:clears
        """
        self._loaded.pop(plugin_id, None)

    def registered(self) -> Registered:
        """Return what all loaded plugins registered, in the order in which they were loaded."""
        return Registered(*(tuple(chain(*parts)) for parts in zip(*self._loaded.values(), strict=True)))

    def _find_register(self, entry: PluginEntry) -> Callable[[Plugin], object]:
        if entry.module is not None:
            found: Any = self._import(entry.module, entry.where.at("module"))
        else:
            found = _load_entry_point(entry.entry_point or "", entry.where.at("entryPoint"))
        register = getattr(found, "register", found)
        if not callable(register):
            entry.where.fail(f"the plugin {entry.id} has no function register(plugin).")
        wanted: Callable[[Plugin], object] = register
        return wanted


def load_plugins(entries: Iterable[PluginEntry], import_module: Import) -> Registered:
    """Load plugins in the manifest's order.

    Raises:
        InvalidConfig: As `Plugins.load`.
    """
    plugins = Plugins(import_module)
    for entry in entries:
        plugins.load(entry)
    return plugins.registered()


def _load_entry_point(name: str, where: Where) -> Any:
    from importlib.metadata import entry_points  # 30 ms, and few manifests name an entry point

    installed = entry_points(group=ENTRY_POINTS)
    found = {point.value: point for point in installed if point.name == name}
    if not found:
        where.fail(f'no installed package offers "{name}" in {ENTRY_POINTS}.{did_you_mean(name, installed.names)}')
    if len(found) > 1:
        where.fail(f'several packages offer "{name}" in {ENTRY_POINTS}: {", ".join(sorted(found))}. Remove one.')
    (point,) = found.values()
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a package may fail with anything while it is imported
        where.fail(f"cannot load {point.value}: {type_and_words_of(error)}.")


def _read_tool(plugin_id: str, given: dict[str, Any], where: Where) -> ToolEntry:
    fields = check_table(given, _TOOL_FIELDS, where)
    name: str = fields["name"]
    check_name(name, where)
    _check_callable(fields["run"], where)
    parameters = fields.get("parameters", {"type": "object", "properties": {}})
    return ToolEntry(
        id=build_tool_id("plugin", plugin_id, name),
        name=name,
        description=fields["description"],
        source="plugin",
        owner=plugin_id,
        parameters=check_parameters(parameters, where.at("parameters")),
        executor=LoadedFunction(fields["run"]),
        label=fields.get("label"),
        approval=fields.get("approval", "never"),
        timeout_ms=_positive(fields.get("timeout_ms"), where),
        where=where,
    )


def _read_namespace(plugin_id: str, given: dict[str, Any], where: Where) -> Namespace:
    if isinstance(given.get("required_tool_names"), tuple):
        given = given | {"required_tool_names": list(given["required_tool_names"])}
    fields = check_table(given, _NAMESPACE_FIELDS, where)
    check_global_name(fields["global_name"], where.at("global_name"))
    if not fields["required_tool_names"]:
        where.at("required_tool_names").fail("found none; a namespace is visible by the tools that it needs.")
    _check_callable(fields["create_scope"], where.at("create_scope"))
    return Namespace(
        id=fields["id"],
        plugin_id=plugin_id,
        global_name=fields["global_name"],
        description=fields["description"],
        required_tool_names=tuple(fields["required_tool_names"]),
        create_scope=fields["create_scope"],
        prompt=fields.get("prompt"),
    )


def _check_callable(value: Any, where: Where) -> None:
    if not callable(value):
        where.fail(f"found {shown(value)}; allowed is a function.")


def _positive(timeout_ms: int | None, where: Where) -> int | None:
    if timeout_ms is not None and (isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < 1):
        where.at("timeout_ms").fail(f"found {shown(timeout_ms)}; allowed is a whole number of 1 or more.")
    return timeout_ms
