"""What the sandbox promises, tried on this machine with real workers: limits, modules, recursion, snapshots.

Each claim is a row of data: a cell, the limits that it runs under, and how it must end.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import NamedTuple

from codemode.cli.checks.check import REPORT, Check
from codemode.cli.checks.lockdown import check_measures
from codemode.composition import Setup, open_pool, open_session
from codemode.core.errors import CodeModeError, ErrorCode
from codemode.core.types import CodeModeResult, Completed, Failed, Json, Language, Waiting
from codemode.render.words import duration, size
from codemode.store.memory import MemoryStore
from codemode.supervisor.pool import WorkerPool

_BROKEN = "Do not run cells that you do not trust on this machine, and please report this."
_SUSPENDED = "let kept = 41; await yield_control(); kept += 1; return kept"


class Claim(NamedTuple):
    """One promise: the cell ends with `code`, or with `value` where that is None."""

    says: str
    cell: str
    code: ErrorCode | None = None
    value: Json = None
    limits: Mapping[str, int] = {}
    language: Language = "javascript"


ENGINE = Claim(
    "a cell runs, with a timer, an output and a value",
    "text('out'); await new Promise(done => setTimeout(done, 1)); return 6 * 7",
    value=42,
)
CLAIMS = (
    Claim(
        "an endless loop ends at its deadline, whatever it catches",
        "for (;;) { try { for (;;); } catch {} }",
        ErrorCode.TIMEOUT,
        limits={"timeout_ms": 200},
    ),
    Claim(
        "a built-in that never looks at the clock ends with its worker",
        "const hay = 'a'.repeat(8_000_000); for (;;) hay.indexOf(`${'a'.repeat(1_000_000)}b`);",
        ErrorCode.TIMEOUT,
        limits={"timeout_ms": 200},
    ),
    Claim(
        "a cell that takes ever more memory ends at its limit",
        "const held = []; for (;;) { try { held.push(new Uint8Array(100_000).fill(1)); } catch {} }",
        ErrorCode.MEMORY_LIMIT_EXCEEDED,
        limits={"memory_limit_bytes": 8 << 20},
    ),
    Claim(
        "a cell that writes ever more ends at its limit",
        "for (let n = 0; n < 1000; n++) text('x'.repeat(1000)); return 1",
        ErrorCode.OUTPUT_LIMIT_EXCEEDED,
        limits={"max_output_bytes": 4096},
    ),
    Claim("import is denied", "const fs = await import('node:fs'); return fs", ErrorCode.MODULE_ACCESS_DENIED),
    Claim("require is denied", "return (0, require)('fs')", ErrorCode.MODULE_ACCESS_DENIED),
    Claim(
        "there is no process, network or file for a cell",
        "return ['process', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Deno', 'std', 'os', 'WebAssembly']"
        ".filter(name => name in globalThis)",
        value=[],
    ),
    Claim(
        "endless recursion is an error that a cell can catch",
        "try { (function down() { down(); })(); } catch (error) { return error.name; }",
        value="RangeError",
    ),
    Claim(
        "TypeScript is transformed in a sandbox of its own",
        "const n: number = 41; return ((x: number): number => x + 1)(n)",
        value=42,
        language="typescript",
    ),
)


async def check_claims() -> list[Check]:
    """Try each claim in turn; without a working engine there is only that to say.

    Contract: doctor:claims:tried
    """
    async with AsyncExitStack() as stack:
        try:
            pool = open_pool()
            stack.push_async_callback(pool.close)
            result = await _try(ENGINE, pool)
            worker = await pool.acquire()
        except CodeModeError as error:
            return [Check("engine", "failed", error.message, "Reinstall codemode; its wheel carries the engine.")]
        pool.release(worker)
        if not _holds(ENGINE, result):
            return [Check("engine", "failed", f"a test cell ended with {_ending(result)}", REPORT)]
        engine = Check("engine", "ok", f"{ENGINE.says}, in {duration(result.telemetry['durationMs'])}")
        claims = [await _check(claim, pool) for claim in CLAIMS]
        return [engine, *claims, await _check_snapshot(pool), *check_measures(worker.lockdown)]


async def _try(claim: Claim, pool: WorkerPool) -> CodeModeResult:
    async with open_session(Setup(limits=claim.limits), pool, MemoryStore()) as session:
        return await session.exec({"code": claim.cell, "language": claim.language})


def _holds(claim: Claim, result: CodeModeResult) -> bool:
    if claim.code is not None:
        return isinstance(result, Failed) and result.code is claim.code
    return isinstance(result, Completed) and bool(result.value == claim.value)


async def _check(claim: Claim, pool: WorkerPool) -> Check:
    try:
        result = await _try(claim, pool)
    except CodeModeError as error:
        return Check("sandbox", "failed", f"{claim.says}: it could not be tried: {error.message}", _BROKEN)
    if _holds(claim, result):
        return Check("sandbox", "ok", f"{claim.says} ({duration(result.telemetry['durationMs'])})")
    return Check("sandbox", "failed", f"{claim.says}: not so, it ended with {_ending(result)}", _BROKEN)


def _ending(result: CodeModeResult) -> str:
    if isinstance(result, Failed):
        return f"{result.code or 'an error of its own'}: {result.error}"
    return f"the value {result.value}" if isinstance(result, Completed) else "a suspension"


async def _check_snapshot(pool: WorkerPool) -> Check:
    """Suspend a cell in one session, and finish it in another one from what the store holds."""
    says = "a suspended cell goes on from its snapshot in another session"
    store = MemoryStore()
    try:
        async with open_session(Setup(), pool, store) as session:
            waiting = await session.exec({"code": _SUSPENDED})
        if not isinstance(waiting, Waiting):
            return Check("snapshot", "failed", f"{says}: not so, it ended with {_ending(waiting)}", REPORT)
        async with open_session(Setup(), pool, store) as session:
            result = await session.wait({"runId": waiting.run_id})
    except CodeModeError as error:
        return Check("snapshot", "failed", f"{says}: it could not be tried: {error.message}", REPORT)
    restored = result.telemetry["snapshots"]
    if isinstance(result, Completed) and result.value == 42 and restored["restored"]:
        return Check("snapshot", "ok", f"{says} ({size(restored['lastBytes'])})")
    return Check("snapshot", "failed", f"{says}: not so, it ended with {_ending(result)}", REPORT)
