"""Run cases in parallel: one pool of workers, one set of tools for each manifest, a session for each case.

Nobody can be asked, so that what needs an approval is denied at once, as in a CI job. Runs are
kept in memory and end with the command.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from codemode.composition import Setup, Toolbox, open_spans, open_toolbox, session_over
from codemode.core.events import CallStarted, Event
from codemode.core.types import CodeModeResult, Json, Waiting
from codemode.live.journal import Listener
from codemode.manifest import is_recording
from codemode.mcp.shared import NOBODY, Onlooker
from codemode.session import Identity, Session
from codemode.smoke.cases import Case
from codemode.smoke.verdicts import Observed, Verdict, judge
from codemode.store.memory import MemoryStore
from codemode.store.port import Store
from codemode.supervisor.pool import WorkerPool

_NESTED = ("call", "namespace")


class Plan(NamedTuple):
    """How cases are run: so many at once; `bail` begins none after the first that fails."""

    jobs: int
    bail: bool = False
    refresh: bool = False


class _Ground(NamedTuple):
    """What the sessions of all cases stand on."""

    pool: WorkerPool
    store: Store
    spans: Listener | None


async def run_cases(
    cases: Sequence[Case],
    pool: WorkerPool,
    plan: Plan,
    onlooker: Onlooker = NOBODY,
) -> list[Verdict]:
    """Run all cases and judge each.

    Args:
        cases: What to run; they share the tools of their manifests.
        pool: Workers, best as many as `plan` has jobs.
        plan: How.
        onlooker: Hears which servers are asked for their tools, and what a person should know of them and of the
            manifests: before the first case, or when it comes up in a call.

    Returns:
        The verdicts in the order of the cases.

    Raises:
        InvalidConfig: A manifest, or a server that it requires, cannot be used; nothing has run.
        RuntimeUnavailable: No worker can be started.

    Contract: smoke:run:parallel, smoke:run:bail, smoke:run:warnings, smoke:report:redacted
    """
    async with AsyncExitStack() as stack:
        await pool.warm()
        store = MemoryStore()
        stack.callback(store.close)
        ground = _Ground(pool, store, await stack.enter_async_context(open_spans()))
        boxes = await _open_toolboxes(stack, {case.manifest for case in cases}, plan.refresh, onlooker)
        for warning in dict.fromkeys(warning for box in boxes.values() for warning in box.warnings):
            onlooker.warn(warning)
        verdicts: dict[int, Verdict] = {}
        queue = iter(enumerate(cases))

        async def work() -> None:
            for at, case in queue:
                if plan.bail and any(verdict.state == "failed" for verdict in verdicts.values()):
                    verdicts[at] = Verdict(case, "skipped")
                else:
                    verdicts[at] = await _run_case(case, at, boxes[case.manifest], ground)

        await asyncio.gather(*(work() for _ in range(plan.jobs)))
        return [verdicts[at] for at in range(len(cases))]


async def _open_toolboxes(
    stack: AsyncExitStack, manifests: Iterable[Path | None], refresh: bool, onlooker: Onlooker
) -> Mapping[Path | None, Toolbox]:
    return {
        path: await stack.enter_async_context(open_toolbox(path, refresh=refresh, onlooker=onlooker))
        for path in manifests
    }


async def _run_case(case: Case, number: int, box: Toolbox, ground: _Ground) -> Verdict:
    """Run one case; a recording gives its answers to each case anew."""
    async with AsyncExitStack() as stack:
        if case.manifest is not None and is_recording(case.manifest):
            box = await stack.enter_async_context(open_toolbox(case.manifest))
        who = Identity(session=f"smoke-{number}")
        setup = Setup(case.manifest, who, case.settings.limits, may_ask=False)
        session = await stack.enter_async_context(session_over(box, setup, *ground))
        verdict = judge(case, await observe(session, case))
    shown = tuple(
        each._replace(expected=box.redactor.text(each.expected), found=box.redactor.text(each.found))
        for each in verdict.differences
    )
    return verdict._replace(differences=shown)  # reports end up in the logs of a CI


async def observe(session: Session, case: Case) -> Observed:
    """Run a case in a session and return what it came to.

    Contract: smoke:run:approvals-denied, smoke:run:waits
    """
    calls: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, CallStarted) and event.method in _NESTED and event.tool_id is not None:
            calls.append(event.tool_id)

    session.listen(hear)
    began = time.monotonic()
    results = [await session.exec({"code": case.code, "language": case.language})]
    while case.settings.to_end and isinstance(last := results[-1], Waiting):
        results.append(await session.wait({"runId": last.run_id}, timeout_ms=case.settings.limits.get("timeout_ms")))
    took_ms = (time.monotonic() - began) * 1000
    return Observed(_joined(results), tuple(calls), took_ms)


def _joined(results: Sequence[CodeModeResult]) -> dict[str, Json]:
    """Return the last result with the output of all."""
    shown = [result.to_json() for result in results]
    return shown[-1] | {"output": [item for result in shown for item in result["output"]]}
