"""Runs where `quickjs-rs` is installed: no process, no policy and no telemetry stands between."""

import asyncio
import json
import sys
import time

import quickjs_rs

CALLS, AT_ONCE, ROUNDS = 200, 16, 20
SEQUENTIAL = f"for (let i = 0; i < {CALLS}; i++) await nothing(i); 1"
PARALLEL = (
    f"for (let r = 0; r < {ROUNDS}; r++)"
    f" await Promise.all(Array.from({{ length: {AT_ONCE} }}, (_, i) => nothing(i))); 1"
)


async def nothing(n: int) -> int:
    """Return the input."""
    return n


def evaluate(runtime: quickjs_rs.Runtime) -> float:
    """Return the milliseconds of a context with one evaluation."""
    started = time.perf_counter()
    with runtime.new_context() as context:
        context.eval("1 + 1")
    return (time.perf_counter() - started) * 1000


async def calls(runtime: quickjs_rs.Runtime, code: str, count: int, each: int) -> list[float]:
    """Return the milliseconds of one call, from so many programs after a warm-up."""
    taken = []
    with runtime.new_context() as context:
        context.register("nothing", nothing)
        for _ in range(count + 1):
            started = time.perf_counter()
            await context.eval_async(code)
            taken.append((time.perf_counter() - started) * 1000 / each)
    return taken[1:]


def main(count: int) -> None:
    """Print what was measured."""
    runtime, few = quickjs_rs.Runtime(), max(3, count // 20)
    found = {"evaluate": [evaluate(runtime) for _ in range(count + 3)][3:]}
    found["call"] = asyncio.run(calls(runtime, SEQUENTIAL, few, CALLS))
    found["parallel"] = asyncio.run(calls(runtime, PARALLEL, few, AT_ONCE * ROUNDS))
    print(json.dumps(found))


main(int(sys.argv[1]))
