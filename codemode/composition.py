"""How a session is made: manifest → plugins, tools, servers → catalog → executor → store → pool.

`open_toolbox` gives what can be reached and who may reach it, without running anything;
`open_session` adds what runs cells. Heavy parts (MCP, tools) are imported only where the
manifest asks for them, so that a cell without a manifest starts at once.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codemode.catalog import Catalog, build_catalog
from codemode.config import CodeModeConfig
from codemode.core import folders
from codemode.core.errors import CodeModeError, InvalidConfig
from codemode.core.interpolate import find_variables
from codemode.core.limits import clamp_limits
from codemode.core.redact import Redactor
from codemode.core.types import ToolSpec
from codemode.definitions import HookEntry, ToolEntry
from codemode.executor import Executor
from codemode.hooks import Hook
from codemode.live.journal import Journal, Listener
from codemode.live.service import Surroundings
from codemode.manifest import Manifest, is_recording, load_manifest
from codemode.policy import Policy
from codemode.session import Identity, Parts, Session
from codemode.store.place import state_dir
from codemode.store.port import Store
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from codemode.supervisor.spawn import Child

if TYPE_CHECKING:
    from codemode.mcp.connections import McpListing
    from codemode.mcp.servers import ServerSet
    from codemode.mcp.shared import Onlooker, SharedServers
    from codemode.namespaces import Namespace, Namespaces
    from codemode.recording.player import Player

MAX_WORKERS = 4  # more cells at once than cores only take turns


class Toolbox(NamedTuple):
    """What a manifest gives, ready to be called.

    defined: The tools of the manifest, its plugins and documents, with those that the policy hides.
    servers: What its MCP servers offer: failures, warnings, ages; None without servers.
    notes: Sentences about definitions that were not used.
    namespaces: Of its plugins, None without any; which of them a run sees depends on its catalog.
    player: What answers instead of the tools, where the manifest is a recording.
    variables: The names of those that its definitions are filled with; what they hold is secret.
    """

    manifest: Manifest
    config: CodeModeConfig
    catalog: Catalog
    policy: Policy
    redactor: Redactor
    defined: tuple[ToolSpec, ...] = ()
    hooks: tuple[Hook, ...] = ()
    servers: "McpListing | None" = None
    notes: tuple[str, ...] = ()
    namespaces: "Namespaces | None" = None
    player: "Player | None" = None
    variables: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Say what it is of, not all it holds: `asyncio.run` spells out what it returns, which takes its time."""
        return f"<Toolbox of {self.manifest.path}: {self.catalog.size} tools>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before a cell runs, in sentences."""
        if self.servers is None:
            return self.notes
        failures = tuple(failure.sentence() for failure in self.servers.failures)
        return (*self.notes, *failures, *self.servers.warnings)


class _Brought(NamedTuple):
    """What plugins and OpenAPI documents define beside the manifest."""

    tools: tuple[ToolEntry, ...] = ()
    hooks: tuple[HookEntry, ...] = ()
    namespaces: "tuple[Namespace, ...]" = ()
    notes: tuple[str, ...] = ()


class Setup(NamedTuple):
    """What a front end asks of a session.

    limits: Over the manifest's, by Python name: `{"timeout_ms": 500}`.
    may_ask: Whether a person can decide on approvals; without one they are denied at once.
    refresh: Ask every MCP server for its tools, instead of the cache.
    tools: What a program has beside the manifest's tools.
    record: The file to write nested calls to.
    """

    manifest: Path | None = None
    who: Identity = Identity()
    limits: Mapping[str, int] = {}
    may_ask: bool = True
    refresh: bool = False
    tools: tuple[ToolEntry, ...] = ()
    record: Path | None = None


@asynccontextmanager
async def open_toolbox(
    manifest_path: Path | None,
    agent_id: str = "main",
    refresh: bool = False,
    tools: tuple[ToolEntry, ...] = (),
    onlooker: "Onlooker | None" = None,
    shared: "SharedServers | None" = None,
) -> AsyncIterator[Toolbox]:
    """Read a manifest and gather what a cell can reach; on leaving, end what was started for it.

    Args:
        manifest_path: None for the empty manifest. A recording may stand here: its tools answer as
            they did when it was made, and nothing is started.
        agent_id: Whose settings hold.
        refresh: Ask every MCP server for its tools, instead of the cache.
        tools: More of them, which a program brings.
        onlooker: The person at this terminal; None where nobody is there.
        shared: The servers that this process is connected to; servers of its own when left out.

    Raises:
        InvalidConfig: The manifest, or a server that it requires, cannot be used; the message is redacted.

    Contract: redaction:setup:errors
    """
    redactor = Redactor(paths=((folders.state_dir(), "<state>"), (folders.home_dir(), "~")))
    if manifest_path is not None and is_recording(manifest_path):
        yield _replay(manifest_path, redactor)
        return
    manifest = load_manifest(manifest_path).with_tools(tools)
    config = manifest.config_for(agent_id)
    policy = Policy(manifest.allow, manifest.deny, manifest.approvals, manifest.sandbox)
    async with AsyncExitStack() as stack:
        box = Toolbox(manifest, config, build_catalog((), policy, config.limits), policy, redactor)
        try:
            box = await _fill(stack, box, refresh, shared, onlooker)
        except CodeModeError as error:  # a plugin may say anything while it is loaded
            error.args = (redactor.text(error.message),)
            raise
        yield box


async def _fill(
    stack: AsyncExitStack, box: Toolbox, refresh: bool, shared: "SharedServers | None", onlooker: "Onlooker | None"
) -> Toolbox:
    """Add tools, plugins and servers; what fills their definitions is kept secret before any of them is used."""
    manifest, found = box.manifest, _gather_servers(box.manifest)
    known = [*(tool.executor for tool in manifest.tools), *(hook.executor for hook in manifest.hooks)]
    box = _add_tools(stack, _know([*known, manifest.openapi, found], box))
    if found is not None:
        box = await _add_servers(stack, box, found, refresh, shared or _open_servers(onlooker))
    return _add_prompts(box)


def _know(definitions: object, box: Toolbox) -> Toolbox:
    """Keep secret what fills these definitions, before any is used."""
    names = find_variables(definitions)
    box.redactor.learn(os.environ.get(name, "") for name in names)
    return box._replace(variables=box.variables | names)


def _replay(path: Path, redactor: Redactor) -> Toolbox:
    from codemode.recording.file import load_recording  # few runs are replayed
    from codemode.recording.player import Player

    path = path.absolute()
    recording = load_recording(path)
    redactor.learn(os.environ.get(name, "") for name in recording.variables)
    player = Player(recording, path.name, redactor)
    policy, config = Policy(), recording.config
    catalog = build_catalog(player.tools, policy, config.limits)
    if catalog.sources["mcp"]:
        from codemode.mcp.scope import build_guest_scope  # a cell without servers need not wait for it

        catalog = catalog.with_scope(build_guest_scope(tool for tool in catalog.tools if tool.source == "mcp"))
    box = Toolbox(Manifest(path=path), config, catalog, policy, redactor, player=player)
    return _add_prompts(box._replace(namespaces=player.namespaces))


def _add_tools(stack: AsyncExitStack, box: Toolbox) -> Toolbox:
    manifest = box.manifest
    if not (manifest.tools or manifest.hooks or manifest.core.tools or manifest.plugins or manifest.openapi):
        return box
    from codemode.tools.toolset import Toolset  # a cell without tools need not wait for it

    brought = _bring(manifest)
    whole = manifest._replace(tools=(*manifest.tools, *brought.tools), hooks=(*manifest.hooks, *brought.hooks))
    box = _know([*(tool.executor for tool in whole.tools), *(hook.executor for hook in whole.hooks)], box)
    toolset = Toolset(whole, box.redactor.learn)
    stack.push_async_callback(toolset.close)
    catalog = box.catalog.extend(toolset.tools, box.policy)
    notes = tuple(map(box.redactor.text, brought.notes))
    box = box._replace(catalog=catalog, defined=toolset.tools, hooks=toolset.hooks, notes=notes)
    if not brought.namespaces:
        return box
    from codemode.namespaces import Namespaces  # loaded already, with the plugins

    off_loop = (each._replace(create_scope=toolset.off_loop(each.create_scope)) for each in brought.namespaces)
    return box._replace(namespaces=Namespaces(off_loop))


def _bring(manifest: Manifest) -> _Brought:
    """Load plugins and OpenAPI documents; each is imported only where there are any."""
    brought = _Brought()
    if manifest.plugins:
        from codemode.plugins import load_plugins
        from codemode.tools.python import import_module

        brought = _Brought(
            *load_plugins(manifest.plugins, lambda name, where: import_module(name, manifest.folder, where))
        )
    for entry in manifest.openapi:
        from codemode.openapi import load_openapi

        found = load_openapi(entry)
        brought = brought._replace(tools=(*brought.tools, *found.tools), notes=(*brought.notes, *found.notes))
    return brought


def _add_prompts(box: Toolbox) -> Toolbox:
    """Let `exec` say what the visible namespaces are; their scopes are made for each run."""
    if box.namespaces is None:
        return box
    scope = box.catalog.scope
    prompts = (*scope.prompts, *box.namespaces.prompts(box.catalog))
    return box._replace(catalog=box.catalog.with_scope(scope._replace(prompts=prompts)))


def _open_servers(onlooker: "Onlooker | None") -> "SharedServers":
    from codemode.mcp.shared import NOBODY, SharedServers
    from codemode.mcp.signin import SignIn

    onlooker = onlooker or NOBODY
    return SharedServers(sign_in=SignIn(state_dir() / "mcp", onlooker.invite), onlooker=onlooker)


def _gather_servers(manifest: Manifest) -> "ServerSet | None":
    tables = manifest.mcp
    if not (tables.servers or tables.include):
        return None
    from codemode.mcp.servers import gather_servers  # a cell without servers need not wait for it

    return gather_servers(tables.servers, tables.include)


async def _add_servers(
    stack: AsyncExitStack, box: Toolbox, found: "ServerSet", refresh: bool, shared: "SharedServers"
) -> Toolbox:
    from codemode.mcp.connections import McpServers  # a cell without servers need not wait for it

    servers = McpServers(found.specs, box.redactor, shared)
    stack.push_async_callback(servers.close)
    listing = await servers.tools(refresh)
    catalog = box.catalog.extend(listing.tools, box.policy)
    catalog = catalog.with_scope(servers.guest_scope(catalog.tools))
    return box._replace(catalog=catalog, servers=listing, notes=(*box.notes, *found.shadowed))


@asynccontextmanager
async def open_session(
    setup: Setup, pool: WorkerPool | None = None, store: Store | None = None
) -> AsyncIterator[Session]:
    """Open a session; on leaving, end it, and close what was made for it.

    Args:
        setup: What is asked.
        pool: Workers to share; one of our own when left out.
        store: Where runs are kept; the user's own when left out.

    Raises:
        InvalidConfig: The manifest, or a server that it requires, cannot be used.
        RuntimeUnavailable: No worker can be started, or the store cannot be opened.
    """
    async with AsyncExitStack() as stack:
        if pool is None:
            pool = open_pool()
            stack.push_async_callback(pool.close)
        if store is None:
            store = open_store()
            stack.callback(store.close)
        box = await stack.enter_async_context(
            open_toolbox(setup.manifest, setup.who.agent_id, setup.refresh, setup.tools)
        )
        yield await stack.enter_async_context(session_over(box, setup, pool, store))


@asynccontextmanager
async def session_over(
    box: Toolbox, setup: Setup, pool: WorkerPool, store: Store, spans: Listener | None = None
) -> AsyncIterator[Session]:
    """Open a session over tools, workers and a store that are there already; on leaving, end it.

    The one way to a session: the command, the REPL, smoke checks and the library come here.

    Args:
        box: What it can reach.
        setup: What is asked.
        pool: Workers.
        store: Where runs are kept.
        spans: From `open_spans`, where many sessions are short; one of its own when left out.

    Contract: spans:export:everywhere
    """
    async with AsyncExitStack() as stack:
        heard = spans or await stack.enter_async_context(open_spans())
        session = Session(build_parts(setup, box, pool, store), setup.who)
        stack.push_async_callback(session.close)
        if heard is not None:
            session.listen(heard)
        yield session


@asynccontextmanager
async def open_spans() -> AsyncIterator[Listener | None]:
    """Give what sends the events of sessions as OpenTelemetry spans; None, unless CODEMODE_OTEL is set.

    Raises:
        InvalidConfig: It is set, but OpenTelemetry is not installed.

    Contract: spans:export:off
    """
    if not os.environ.get("CODEMODE_OTEL"):
        yield None
        return
    try:
        from codemode.spans.export import SpanExport  # a third of a second, and not everybody has it
    except ImportError as error:
        raise InvalidConfig(
            "CODEMODE_OTEL is set, but OpenTelemetry is not installed; run pip install 'codemode[otel]', or unset it"
        ) from error
    spans = SpanExport()
    try:
        yield spans
    finally:
        await asyncio.to_thread(spans.close)


def open_pool(first: Child | None = None) -> WorkerPool:
    """Start a pool of as many workers as compute at once on this machine; `first` runs already."""
    return WorkerPool(max(2, min(os.cpu_count() or 2, MAX_WORKERS)), first)


def open_store() -> Store:
    """Open the user's own store, and expire in it what is too old."""
    store = SqliteStore()
    store.sweep()
    return store


def build_parts(setup: Setup, box: Toolbox, pool: WorkerPool, store: Store) -> Parts:
    """Tie a toolbox to a pool and a store, as `setup` asks."""
    journal = Journal()
    limits, _ = clamp_limits({**box.config.limits._asdict(), **setup.limits})
    box = box._replace(config=box.config._replace(limits=limits))
    if box.player is not None:
        box.player.recall = store.events
    executor, namespaces = _build_executor(setup, box, journal)
    return Parts(
        pool=pool,
        around=Surroundings(store, journal, box.redactor, setup.may_ask),
        catalog=box.catalog,
        policy=box.policy,
        executor=executor,
        config=box.config,
        hooks=box.hooks,
        manifest=str(box.manifest.path) if box.manifest.path else None,
        namespaces=namespaces,
    )


def _build_executor(setup: Setup, box: Toolbox, journal: Journal) -> "tuple[Executor, Namespaces | None]":
    """Return who carries calls out, and the namespaces; a recorder hears of both."""
    executor = Executor(box.redactor, box.policy, box.hooks, journal.record)
    if setup.record is None:
        return executor, box.namespaces
    from codemode.recording.file import describe_toolbox  # few runs are recorded
    from codemode.recording.recorder import HeardNamespaces, Recorder

    lines = describe_toolbox(box.config, box.variables, box.catalog.tools)
    recorder = Recorder(executor, setup.record, lines, box.redactor)
    journal.listeners.append(recorder.heed)
    return recorder, HeardNamespaces(box.namespaces, recorder) if box.namespaces is not None else None
