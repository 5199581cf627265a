"""The two use cases, `exec` and `wait`, and the life of the runs between them.

A session ties one catalog, one executor and one store to the runs of one agent run. It does
not know how these were made (`composition` does). Every way in ends in a `CodeModeResult`.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from codemode.bridge import Bridge
from codemode.catalog import Catalog
from codemode.config import CodeModeConfig
from codemode.core.events import ExecStarted, WaitStarted
from codemode.core.limits import Limits, clamp_limits
from codemode.core.names import VISIBLE_TOOLS
from codemode.core.protocol import Start
from codemode.core.types import CodeModeResult, GuestScope, Json, Keep, RunContext
from codemode.executor import Executor
from codemode.hooks import Hook
from codemode.live.admission import admit_cell
from codemode.live.attempt import Attempt
from codemode.live.journal import Listener
from codemode.live.reach import Reach
from codemode.live.residents import Residents
from codemode.live.service import Service, Surroundings
from codemode.live.vm import Vm
from codemode.policy import Policy
from codemode.runs import RunState
from codemode.store.owner import this_process
from codemode.store.port import Caller, Claimed, NewRun
from codemode.supervisor.pool import WorkerPool
from codemode.surface import ExecInput, parse_exec_input, parse_wait_input

if TYPE_CHECKING:
    from codemode.namespaces import Namespaces

_SEED_BYTES = 16


class Identity(NamedTuple):
    """For whom a session works. Without an `agent_run_id`, each wait goes on with the run's own."""

    session: str = "default"
    agent_id: str = "main"
    agent_run_id: str | None = None
    session_id: str = ""
    sender: str | None = None
    channel: str | None = None


class Parts(NamedTuple):
    """What a session works with. Sessions may share a pool and a store; `manifest` is a path."""

    pool: WorkerPool
    around: Surroundings
    catalog: Catalog
    policy: Policy
    executor: Executor
    config: CodeModeConfig
    hooks: tuple[Hook, ...] = ()
    manifest: str | None = None
    namespaces: "Namespaces | None" = None


class Session:
    """Runs cells with `exec`, continues them with `wait`; needs a running loop, and `close` in the end.

    `parts` is what it works with.
    """

    def __init__(self, parts: Parts, who: Identity) -> None:
        """Begin an agent run, or go on with that of `who`."""
        self.who = who
        self.agent_run_id = who.agent_run_id or f"ar_{os.urandom(12).hex()}"
        self.parts = parts
        self._around = parts.around
        self._reach = Reach(parts.catalog, parts.policy, parts.namespaces)
        self._residents = Residents(parts.around)
        self._kept: dict[str, bytes] = {}
        self._line = asyncio.Lock()

    @property
    def catalog(self) -> Catalog:
        """The tools of this session."""
        return self.parts.catalog

    def listen(self, listener: Listener) -> None:
        """Tell somebody of each event, as it happens."""
        self._around.journal.listeners.append(listener)

    # ---- exec and wait ----

    async def exec(self, raw: Json, limits: Limits | None = None, keep: Keep | None = None) -> CodeModeResult:
        """Run a cell.

        Args:
            raw: `{"code"?, "command"?, "language"?}` as a model gave it.
            limits: Instead of the configured ones, for this run.
            keep: Run it as the REPL does, in the VM that an earlier cell left behind; see `kept`.

        Contract: session:errors:never-raised
        """
        attempt = Attempt(self.agent_run_id, self._around)
        return await self._attempt(attempt, self._exec(raw, limits or self.parts.config.limits, attempt, keep))

    async def wait(
        self,
        raw: Json,
        decisions: Mapping[str, bool] | None = None,
        timeout_ms: int | None = None,
        *,
        always: bool = False,
    ) -> CodeModeResult:
        """Go on with a run that waits.

        Args:
            raw: `{"runId"}` as a model gave it.
            decisions: Id of a pending call → whether a person approved it.
            timeout_ms: Wall clock of this wait; the manifest's when left out.
            always: Whether an approval holds for every call of its tool in this run.

        Contract: session:errors:never-raised, session:wait:own-timeout
        """
        attempt = Attempt(self.agent_run_id, self._around)
        wanted = self.parts.config.limits.timeout_ms if timeout_ms is None else timeout_ms
        clamped, _ = clamp_limits({"timeout_ms": wanted})
        decide = partial(Service.decide, decisions=decisions or {}, always=always)
        return await self._attempt(attempt, self._wait(raw, decide, clamped.timeout_ms, attempt))

    async def _attempt(self, attempt: Attempt, work: Coroutine[Any, Any, CodeModeResult]) -> CodeModeResult:
        try:
            return await work
        except (Exception, asyncio.CancelledError) as error:  # whatever it was, the run ends with a result
            failed = await attempt.fail(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return failed
        finally:
            self._residents.leave(attempt)
            if attempt.run is not None and attempt.run.vm.kept is not None:
                self._kept[attempt.run.run_id] = attempt.run.vm.kept

    def kept(self, run_id: str) -> bytes | None:
        """Return, once, the snapshot that an ended cell left behind: the `base` of the next one.

        None where it left none: it was not to be kept, it has not ended, or a limit cut it short.
        """
        return self._kept.pop(run_id, None)

    async def open_scope(self) -> tuple[GuestScope, Json]:
        """Open, before its first cell, what cells that share one VM see of namespaces; they will see just that.

        Returns:
            The scope, and what is stored of its namespaces: `{id: {path: {"tool", "mapper"}}}`, or None.

        Raises:
            InvalidConfig, TurnTimeout: As a cell would fail.

        Contract: namespaces:scope:once
        """
        limits = self.parts.config.limits
        deadline = asyncio.get_running_loop().time() + limits.timeout_ms / 1000
        context = self._context("", self.agent_run_id, limits)
        catalog, written = await self._reach.open(context, deadline, kept=True)
        return catalog.scope, written

    async def _exec(self, raw: Json, limits: Limits, attempt: Attempt, keep: Keep | None) -> CodeModeResult:
        parts, around = self.parts, self._around
        given = parse_exec_input(raw, parts.config.languages)
        await parts.pool.warm()
        await self._stand_in_line()
        deadline = attempt.start_clock(limits.timeout_ms)
        attempt.run_id = run_id = around.store.create(self._new_run(given, limits))
        around.journal.follow(run_id, self.agent_run_id)
        self._record_start(run_id, given)
        context = self._context(run_id, self.agent_run_id, limits)
        given = await admit_cell(given, parts.hooks, context, around.redactor, parts.config.languages, deadline)
        catalog, attempt.namespaces = await self._reach.open(context, deadline, kept=keep is not None)
        attempt.scope = (catalog.scope_digest, catalog.scope_text())
        bridge = Bridge(catalog, parts.executor, limits)
        run = self._residents.enter(attempt, Vm(parts.pool, limits, deadline), bridge, context)
        start = partial(_start, given, limits, attempt.scope, keep)
        return await attempt.conclude(run, await run.exec(start))

    async def _wait(
        self, raw: Json, decide: Callable[[Service], None], timeout_ms: int, attempt: Attempt
    ) -> CodeModeResult:
        parts, around = self.parts, self._around
        run_id = parse_wait_input(raw)
        await parts.pool.warm()
        deadline = attempt.start_clock(timeout_ms)
        claimed = around.store.claim(run_id, self._caller, this_process())
        attempt.run_id, attempt.claimed, attempt.dispatched = run_id, True, claimed.carry["dispatched"]
        attempt.agent_run_id = claimed.run.agent_run_id
        attempt.scope, attempt.namespaces = (claimed.scope, claimed.scope_text), claimed.carry.get("namespaces")
        self._follow(claimed)
        limits = claimed.run.limits._replace(timeout_ms=timeout_ms)
        vm = Vm(parts.pool, limits, deadline, claimed.snapshot)
        context = self._context(run_id, attempt.agent_run_id, limits)
        bridge = Bridge(self._reach.reopen(claimed, context), parts.executor, limits)
        run = self._residents.enter(attempt, vm, bridge, context)
        run.wait_id = f"wait_{os.urandom(6).hex()}"
        around.journal.record(WaitStarted(run_id, _now_ms(), run.wait_id))
        run.take_up(claimed)
        decide(run.service)
        return await attempt.conclude(run, await run.resume())

    # ---- runs that live on, and their ends from outside ----

    async def settled(self) -> None:
        """Wait until no call of a waiting run is in flight here, and all results are in the store."""
        await self._residents.settled()

    def abort(self, run_id: str) -> RunState:
        """End a run: at once if it waits or is live here, else by asking the process that has it.

        Raises:
            InvalidInput: Unknown, finished, or of another session.
        """
        return self._residents.abort(run_id, self._caller)

    def stop(self, reason: str) -> bool:
        """Abort what is live here; its callers get their failed results. False where nothing is."""
        return self._residents.stop(reason)

    async def close(self) -> None:
        """End what is live here; waiting runs stay, their calls in flight are interrupted."""
        await self._residents.close()

    async def _stand_in_line(self) -> None:
        """Begin one run in each turn of the loop: of many at once, those that compute are served in between."""
        await self._line.acquire()
        asyncio.get_running_loop().call_soon(self._line.release)

    # ---- what runs are made of ----

    @property
    def _caller(self) -> Caller:
        return Caller(self.who.session, self.who.agent_id, self.who.agent_run_id)

    def _new_run(self, given: ExecInput, limits: Limits) -> NewRun:
        who = self.who
        return NewRun(
            session=who.session,
            agent_id=who.agent_id,
            agent_run_id=self.agent_run_id,
            language=given.language,
            manifest=self.parts.manifest,
            limits=limits,
            owner=this_process(),
        )

    def _context(self, run_id: str, agent_run_id: str, limits: Limits) -> RunContext:
        who = self.who
        return RunContext(
            agent_id=who.agent_id,
            session_key=who.session,
            session_id=who.session_id,
            run_id=run_id,
            agent_run_id=agent_run_id,
            config=limits.to_json(),
            sender=who.sender,
            channel=who.channel,
            report=self.parts.executor.report,
        )

    def _record_start(self, run_id: str, given: ExecInput) -> None:
        catalog, around = self.parts.catalog, self._around
        source = around.redactor.text(given.code)
        around.journal.record(
            ExecStarted(
                run_id=run_id,
                at_ms=_now_ms(),
                agent_run_id=self.agent_run_id,
                language=given.language,
                source=source,
                catalog_size=catalog.size,
                sources=catalog.sources,
                visible_tools=list(VISIBLE_TOOLS),
            )
        )

    def _follow(self, claimed: Claimed) -> None:
        """Take the run's events from now on, and count those of its agent run that are in the store."""
        store, journal, agent_run_id = self._around.store, self._around.journal, claimed.run.agent_run_id
        earlier = () if journal.knows(agent_run_id) else store.agent_run_events(agent_run_id)
        journal.follow(claimed.run.run_id, agent_run_id, earlier)


def _start(given: ExecInput, limits: Limits, scope: tuple[str, bytes], keep: Keep | None, budget_ms: float) -> Start:
    digest, text = scope
    return Start(
        source=given.code,
        language=given.language,
        budget_ms=budget_ms,
        memory_limit_bytes=limits.memory_limit_bytes,
        max_output_bytes=limits.max_output_bytes,
        max_pending_tool_calls=limits.max_pending_tool_calls,
        seed=int.from_bytes(os.urandom(_SEED_BYTES)),
        scope=digest,
        scope_text=text,
        keep=keep is not None,
        base=keep.base or b"" if keep is not None else b"",
    )


def _now_ms() -> float:
    return time.time() * 1000
