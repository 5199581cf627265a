"""Runs where `pydantic-monty` is installed: the same work in its Python, in its worker processes."""

import asyncio
import json
import sys
import time

from pydantic_monty import AsyncFunctionSnapshot, AsyncMonty, MontyComplete

CALLS, AT_ONCE, ROUNDS = 200, 16, 20
SEQUENTIAL = f"for i in range({CALLS}):\n    await nothing(i)"
PARALLEL = (
    f"import asyncio\nfor r in range({ROUNDS}):\n    await asyncio.gather(*[nothing(i) for i in range({AT_ONCE})])"
)
HOLDING = (
    "kept = [{'id': n, 'name': 'order ' + str(n), 'open': n % 2 == 0} for n in range(200)]\n"
    "answer = nothing(1)\nlen(kept)"
)


async def nothing(n: int) -> int:
    """Return the input."""
    return n


async def evaluate(pool: AsyncMonty) -> float:
    """Return the milliseconds of a session with one evaluation."""
    started = time.perf_counter()
    async with pool.checkout() as session:
        await session.feed_run("1 + 1")
    return (time.perf_counter() - started) * 1000


async def calls(pool: AsyncMonty, code: str, count: int, each: int) -> list[float]:
    """Return the milliseconds of one call, from so many programs after a warm-up."""
    taken = []
    async with pool.checkout(limits={"max_suspensions": 1_000_000}) as session:
        for _ in range(count + 1):
            started = time.perf_counter()
            await session.feed_run(code, external_lookup={"nothing": nothing})
            taken.append((time.perf_counter() - started) * 1000 / each)
    return taken[1:]


async def suspending(pool: AsyncMonty, count: int) -> dict[str, list[float]]:
    """Return what it takes to come to bytes, and from bytes to the end."""
    found: dict[str, list[float]] = {"suspend": [], "resume": [], "bytes": []}
    for _ in range(count + 3):
        started = time.perf_counter()
        async with pool.checkout() as session:
            data = (await session.feed_start(HOLDING)).dump()
        middle = time.perf_counter()
        async with pool.checkout() as session:
            snapshot = await session.load_snapshot(data)
            assert isinstance(snapshot, AsyncFunctionSnapshot)
            end = await snapshot.resume({"return_value": 1})
            assert isinstance(end, MontyComplete)
        found["suspend"].append((middle - started) * 1000)
        found["resume"].append((time.perf_counter() - middle) * 1000)
        found["bytes"].append(len(data))
    return {key: values[3:] for key, values in found.items()}


async def main(count: int) -> None:
    """Print what was measured."""
    few = max(3, count // 20)
    async with AsyncMonty() as pool:
        found = {"evaluate": [await evaluate(pool) for _ in range(count + 3)][3:]}
        found["call"] = await calls(pool, SEQUENTIAL, few, CALLS)
        found["parallel"] = await calls(pool, PARALLEL, few, AT_ONCE * ROUNDS)
        found |= await suspending(pool, max(10, count // 2))
    print(json.dumps(found))


asyncio.run(main(int(sys.argv[1])))
