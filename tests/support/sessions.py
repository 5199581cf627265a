"""Sessions over tools that a test holds in its hand, with real workers and any store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from codemode.catalog import build_catalog
from codemode.composition import Setup, Toolbox, session_over
from codemode.config import CodeModeConfig
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import Approval, GuestScope, RunContext, ToolSpec
from codemode.hooks import Hook
from codemode.manifest import Manifest
from codemode.policy import Policy
from codemode.session import Identity, Session
from codemode.store.memory import MemoryStore
from codemode.store.port import Store
from codemode.supervisor.pool import WorkerPool
from tests.support.cells import PATIENT_MS

PATIENCE_S = 100  # bounds a failure only
NOBODY = Identity()


def tool(
    name: str,
    run: Callable[..., Awaitable[Any]],
    *,
    approval: Approval = "never",
    parameters: dict[str, Any] | None = None,
    **more: Any,
) -> ToolSpec:
    """A client tool that runs `run(**input)`."""

    async def invoke(given: dict[str, Any], context: RunContext) -> Any:
        return await run(**given)

    return ToolSpec(
        id=f"client:app:{name}",
        name=name,
        description=f"The tool {name}",
        source="client",
        owner="app",
        parameters=parameters or {"type": "object"},
        invoke=more.pop("invoke", invoke),
        approval=approval,
        **more,
    )


class Gate:
    """A tool that answers when the test says so; it counts how often it was begun and cancelled."""

    def __init__(self, name: str = "gate") -> None:
        self.begun: list[dict[str, Any]] = []
        self.cancelled = 0
        self._moved = asyncio.Event()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self.tool = tool(name, self._run)

    async def _run(self, key: str = "", **rest: Any) -> Any:
        self.begun.append({"key": key, **rest})
        self._moved.set()
        try:
            return await self._answer(key)
        except asyncio.CancelledError:
            self.cancelled += 1
            self._moved.set()
            raise

    async def until(self, *, begun: int = 0, cancelled: int = 0) -> None:
        """Wait until so many calls were begun and cancelled."""
        while len(self.begun) < begun or self.cancelled < cancelled:
            self._moved.clear()
            await self._moved.wait()

    def open(self, value: Any = "opened", key: str = "") -> None:
        """Let the call with this key answer."""
        self._answer(key).set_result(value)

    def _answer(self, key: str) -> asyncio.Future[Any]:
        return self._answers.setdefault(key, asyncio.get_running_loop().create_future())


def toolbox(tools: Iterable[ToolSpec] = (), *, hooks: Sequence[Hook] = (), **more: Any) -> Toolbox:
    """What a session reaches: these tools and hooks; `policy`, `limits`, `scope`, `secrets` as given.

    A deadline that no test is about is the longest, for a busy machine.
    """
    limits = Limits(timeout_ms=PATIENT_MS)._replace(**more.pop("limits", {}))
    policy = more.pop("policy", None) or Policy()
    catalog = build_catalog(tools, policy, limits).with_scope(more.pop("scope", GuestScope()))
    redactor = Redactor(more.pop("secrets", ()))
    config = CodeModeConfig(enabled=True, limits=limits)
    return Toolbox(Manifest(), config, catalog, policy, redactor, hooks=tuple(hooks))


@asynccontextmanager
async def open_test_session(
    pool: WorkerPool, box: Toolbox, store: Store | None = None, who: Identity = NOBODY, *, may_ask: bool = True
) -> AsyncIterator[Session]:
    """A session over a toolbox; closed afterwards, its store too if it made one."""
    kept = store or MemoryStore()
    try:
        async with session_over(box, Setup(who=who, may_ask=may_ask), pool, kept) as session:
            async with asyncio.timeout(PATIENCE_S):
                yield session
    finally:
        if store is None:
            kept.close()
