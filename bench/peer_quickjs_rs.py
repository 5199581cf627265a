"""Runs in the peers' environment: what `quickjs-rs` takes for the same small things, as JSON.

No process wall, no policy, no telemetry stands between; it is the floor that we stand beside.
"""

import asyncio
import json
import sys
import time

import quickjs_rs

CALLS = 200


def measure(count: int) -> dict[str, list[float]]:
    """Return milliseconds of a context with one evaluation, and of one awaited host call."""
    runtime = quickjs_rs.Runtime()
    evaluations = []
    for _ in range(count + 3):
        started = time.perf_counter()
        with runtime.new_context() as context:
            context.eval("1 + 1")
        evaluations.append((time.perf_counter() - started) * 1000)
    return {"evaluate": evaluations[3:], "call": asyncio.run(_calls(runtime, max(3, count // 20)))}


async def _calls(runtime: quickjs_rs.Runtime, count: int) -> list[float]:
    async def nothing(n: int) -> int:
        return n

    taken = []
    with runtime.new_context() as context:
        context.register("nothing", nothing)
        for _ in range(count + 1):
            started = time.perf_counter()
            await context.eval_async(f"for (let i = 0; i < {CALLS}; i++) await nothing(i); 1")
            taken.append((time.perf_counter() - started) * 1000 / CALLS)
    return taken[1:]


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
