"""`CodeMode`: a session of code mode for a program that has it in its own process.

It opens what a session needs (workers, store, manifest, servers), gives the two use cases and
what a program wants to know of them, and closes all of it again. `codemode run` and the REPL
stand on the same parts; nothing here runs a cell by itself.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypedDict, Unpack

from codemode.catalog import Catalog
from codemode.composition import Setup, Toolbox, open_pool, open_toolbox, session_over
from codemode.config import Activation, ModelRequest, decide_activation
from codemode.core.errors import InvalidConfig, InvalidInput
from codemode.core.events import Event
from codemode.core.limits import LIMITS
from codemode.core.names import VISIBLE_TOOLS, did_you_mean
from codemode.core.tables import shown
from codemode.core.types import CodeModeResult, Failed, Json, Language, VisibleTool
from codemode.library.functions import ToolLike, entry_of
from codemode.mcp.shared import SharedServers
from codemode.payload.messages import ChatRequest, ToolResult, ToolUse
from codemode.payload.providers import Change, Provider, build_direct_tools, build_payload, parse_provider
from codemode.recording.file import check_recording
from codemode.runs import RunState
from codemode.session import Identity, Session
from codemode.store.database import Database
from codemode.store.memory import MemoryStore
from codemode.store.port import Caller, Store
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from codemode.surface import EXEC, build_surface, parse_decisions
from codemode.trajectory import Trajectory, fold

_ID_BYTES = 6
_ANY_REQUEST = ModelRequest()


class Options(TypedDict, total=False):
    """What may be said of a `CodeMode` beside its manifest and its tools.

    session: Groups runs in a store; a name of its own when left out, so that nobody else sees them.
    agent: Whose settings of the manifest hold.
    enabled: Whether `surface` offers `exec` and `wait`; the manifest's word when left out, and
        without a manifest it does.
    limits: Over the manifest's: `{"timeout_ms": 500}`.
    store: The file that runs are kept in, to go on in another process; in memory when left out.
    beside: An open `CodeMode` whose workers, store and connections to MCP servers to share, and nothing else.
    may_ask: Whether a person can decide on approvals; without one they are denied at once.
    on_event: Told of each event of a run as it happens, in the event loop's thread; what it raises goes to
        the loop's exception handler, and the run goes on.
    record: The file to write all nested calls to, redacted.
    replay: The recording that answers nested calls, instead of manifest and tools.
    """

    session: str
    agent: str
    enabled: bool
    limits: Mapping[str, int]
    store: str | os.PathLike[str]
    beside: "CodeMode"
    may_ask: bool
    on_event: Callable[[Event], None]
    record: str | os.PathLike[str]
    replay: str | os.PathLike[str]


class CodeMode:
    """Code mode over a manifest and a program's own tools; open it with `async with`.

    async with CodeMode(tools=[lookup_order]) as code_mode:
        result = await code_mode.exec("return await tools.lookup_order({id: 7})")
    """

    def __init__(
        self,
        manifest: str | os.PathLike[str] | None = None,
        *,
        tools: Iterable[ToolLike] = (),
        **options: Unpack[Options],
    ) -> None:
        """Say what it is to be; nothing is opened yet.

        Args:
            manifest: A `codemode.toml`, or None for a catalog of `tools` alone.
            tools: Functions, `tool(…)`s and `MockTool`s to have beside the manifest's.
            **options: See `Options`.

        Raises:
            InvalidConfig: A tool has no description or no readable signature, or an option is unknown.

        Contract: library:open:nothing-before
        """
        if not isinstance(tools, Iterable):
            raise InvalidConfig(f"tools= takes a list of tools; found {shown(tools)}.")
        _check_names(options, Options.__annotations__, "option")
        _check_names(options.get("limits", {}), [limit.name for limit in LIMITS], "limit")
        self._manifest = None if manifest is None else Path(manifest)
        self._tools = tuple(map(entry_of, tools))
        self._options = options
        self._stack = AsyncExitStack()
        self._opened: _Opened | None = None

    async def __aenter__(self) -> Self:
        """Open it.

        Raises:
            InvalidConfig: The manifest, the store's place, or a server that is required cannot be used.
            RuntimeUnavailable: The store cannot be opened, or no worker can be started.
        """
        if self._opened is not None:
            raise InvalidInput("this CodeMode is open already; make another one, with beside= to share its workers")
        async with AsyncExitStack() as stack:
            self._opened = await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is live, and close what was opened; in a store file waiting runs stay."""
        self._opened = None
        await self._stack.aclose()

    # ---- exec and wait ----

    async def exec(self, code: str, language: Language | None = None) -> CodeModeResult:
        """Run a cell.

        Returns:
            `Completed`, `Waiting` or `Failed`; it raises nothing, whatever the cell does.

        Contract: library:exec:result
        """
        return await self._now.session.exec({"code": code} | ({"language": language} if language else {}))

    async def wait(
        self,
        run_id: str,
        *,
        approve: Iterable[str] = (),
        deny: Iterable[str] = (),
        always: bool = False,
        timeout_ms: int | None = None,
    ) -> CodeModeResult:
        """Go on with a run that waits.

        Args:
            run_id: That of a `Waiting` result.
            approve: Ids of pending calls that a person approved.
            deny: Those that a person refused.
            always: Whether an approval holds for every call of its tool in this run.
            timeout_ms: Wall clock of this wait; the settings' when left out.

        Raises:
            InvalidInput: A call is both approved and denied.

        Contract: library:wait:decides
        """
        decisions = parse_decisions(approve, deny)
        return await self._now.session.wait({"runId": run_id}, decisions, timeout_ms, always=always)

    async def answer(self, use: ToolUse) -> ToolResult:
        """Carry out a tool call that a model made of `exec` or `wait`, as its request's `surface` offered them.

        Contract: library:answer:tool-use
        """
        if use.name not in VISIBLE_TOOLS:
            raise InvalidInput(f'there is no tool "{use.name}" in the surface; it has {" and ".join(VISIBLE_TOOLS)}')
        session = self._now.session
        result = await (session.exec(use.input) if use.name == EXEC else session.wait(use.input))
        text = json.dumps(result.to_json(), ensure_ascii=False, separators=(",", ":"))
        return ToolResult(use, text, isinstance(result, Failed), result.run_id)

    def abort(self, run_id: str) -> RunState:
        """End a run: its worker is stopped, its open calls are cancelled, its snapshot is gone.

        Raises:
            InvalidInput: Unknown, finished, or of another session.
        """
        return self._now.session.abort(run_id)

    # ---- what a model gets ----

    def activation(self, request: ModelRequest = _ANY_REQUEST) -> Activation:
        """Say whether a request to a model gets `exec` and `wait`, and why."""
        box = self._now.box
        enabled = self._options.get("enabled", box.config.enabled or box.manifest.path is None)
        return decide_activation(enabled, request, box.manifest.allow, box.catalog.size)

    def surface(self, provider: str = "openai", request: ModelRequest = _ANY_REQUEST) -> tuple[VisibleTool, ...]:
        """Return the tools that a request offers: `exec` and `wait`, or, where code mode is off, the tools themselves.

        Args:
            provider: Whose rules the names of tools follow where code mode is off.
            request: What the request says about tools.

        Contract: library:surface:gate
        """
        return self._surface(parse_provider(provider), request, self.activation(request).active)

    def payload(
        self,
        provider: str,
        chat: ChatRequest | None = None,
        request: ModelRequest = _ANY_REQUEST,
        change: Change | None = None,
    ) -> dict[str, Json]:
        """Return the body of a request to a model, checked to offer nothing but `exec` and `wait` if these are on.

        Args:
            provider: `openai`, `openai-responses`, `anthropic` or `gemini`.
            chat: The conversation; its tools are replaced by the surface.
            request: What the request says about tools.
            change: Has the last word on the body, such as for a provider's own settings; it is checked after that.

        Raises:
            InvalidInput: There is no such provider.
            Internal: Code mode is on, and `change` left more or less than `exec` and `wait`.

        Contract: library:payload:closed
        """
        chosen, active = parse_provider(provider), self.activation(request).active
        whole = (chat or ChatRequest(chosen.model, (), ()))._replace(tools=self._surface(chosen, request, active))
        return build_payload(chosen, whole, active, change)

    def _surface(self, provider: Provider, request: ModelRequest, active: bool) -> tuple[VisibleTool, ...]:
        catalog, config = self.catalog, self._now.session.parts.config
        if active:
            return build_surface(catalog.sources, catalog.scope, config.languages, config.limits)
        offers = request.supports_tools and not request.tools_disabled and not request.raw
        return build_direct_tools(catalog.tools, provider) if offers else ()

    # ---- what there is, and what happened ----

    @property
    def catalog(self) -> Catalog:
        """Everything that a cell can reach."""
        return self._now.box.catalog

    @property
    def agent_run_id(self) -> str:
        """The agent run of all cells that are run here: `telemetry` counts them together."""
        return self._now.session.agent_run_id

    @property
    def telemetry(self) -> dict[str, Json]:
        """The `CodeModeTelemetry` of all cells so far.

        Contract: library:telemetry:agent-run
        """
        session = self._now.session
        return session.parts.around.journal.telemetry(session.agent_run_id)

    def trace(self, run_id: str | None = None) -> Trajectory:
        """Return what happened in one run, or in all of them; `codemode.trajectory` exports it.

        Raises:
            InvalidInput: The run is unknown, or of another session.

        Contract: library:trace:runs, library:sharing:nothing-else
        """
        now = self._now
        store, who = now.shared.store, now.session.who
        if run_id is None:
            return fold(store.agent_run_events(now.session.agent_run_id))
        store.get(run_id, Caller(who.session, who.agent_id))
        return fold(store.events(run_id))

    # ---- opening ----

    @property
    def _now(self) -> "_Opened":
        if self._opened is None:
            raise InvalidInput("this CodeMode is not open; use it within: async with CodeMode(…) as code_mode")
        if not self._opened.is_here():
            raise InvalidInput(
                "this CodeMode belongs to the thread and the event loop that opened it; from elsewhere use "
                "asyncio.run_coroutine_threadsafe(code_mode.exec(…), loop), or open another one"
            )
        return self._opened

    async def _open(self, stack: AsyncExitStack) -> "_Opened":
        options = self._options
        record, replay = options.get("record"), options.get("replay")
        beside = options.get("beside")
        shared = _open_own(stack, options.get("store")) if beside is None else beside.shared
        who = Identity(options.get("session") or f"cs_{os.urandom(_ID_BYTES).hex()}", options.get("agent", "main"))
        setup = Setup(
            manifest=self._manifest if replay is None else check_recording(Path(replay)),
            who=who,
            limits=options.get("limits", {}),
            may_ask=options.get("may_ask", True),
            tools=self._tools,
            record=None if record is None else Path(record),
        )
        box = await stack.enter_async_context(
            open_toolbox(setup.manifest, who.agent_id, tools=setup.tools, shared=shared.servers)
        )
        session = await stack.enter_async_context(session_over(box, setup, shared.pool, shared.store))
        if "on_event" in options:
            session.listen(_unharmed_by(options["on_event"]))
        return _Opened(box, shared, session, threading.get_ident(), asyncio.get_running_loop())

    @property
    def shared(self) -> "Shared":
        """What another one `beside` this gets of it.

        Contract: library:sharing:workers-and-store, library:sharing:servers
        """
        return self._now.shared


class Shared(NamedTuple):
    """What several `CodeMode`s of one process share: workers, a store, and connections to MCP servers."""

    pool: WorkerPool
    store: Store
    servers: SharedServers


class _Opened(NamedTuple):
    """What an open `CodeMode` holds; all of it is closed with its stack."""

    box: Toolbox
    shared: Shared
    session: Session
    thread: int
    loop: asyncio.AbstractEventLoop

    def is_here(self) -> bool:
        """Say whether whoever asks is in the thread and, if in any, in the event loop that opened it.

        Contract: library:open:one-loop
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # between two turns of the loop
            loop = self.loop
        return threading.get_ident() == self.thread and loop is self.loop


def _open_own(stack: AsyncExitStack, path: str | os.PathLike[str] | None) -> Shared:
    pool = open_pool()
    stack.push_async_callback(pool.close)
    store: Store = MemoryStore() if path is None else SqliteStore(Database(Path(path)))
    stack.callback(store.close)
    store.sweep()
    servers = SharedServers()
    stack.push_async_callback(servers.close)
    return Shared(pool, store, servers)


def _check_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InvalidConfig(f'CodeMode has no {what} "{name}"; it takes {", ".join(names)}.{hint}')


def _unharmed_by(on_event: Callable[[Event], None]) -> Callable[[Event], None]:
    """Return a listener whose failures do not become those of a run.

    Contract: library:events:listener-fails
    """

    def listen(event: Event) -> None:
        try:
            on_event(event)
        except Exception as error:  # noqa: BLE001  # code of the program around us: it may fail with anything
            about = {"message": "on_event of a CodeMode failed; the run goes on", "exception": error}
            asyncio.get_running_loop().call_exception_handler(about)

    return listen
