"""Runs where `langchain-quickjs` is installed: the REPL of its middleware, used without a model."""

import asyncio
import json
import sys
import time

from langchain_core.tools import tool
from langchain_quickjs._repl import _Registry

CALLS, AT_ONCE, ROUNDS = 200, 16, 20
SEQUENTIAL = f"for (let i = 0; i < {CALLS}; i++) await tools.nothing({{ n: i }}); 1"
PARALLEL = (
    f"for (let r = 0; r < {ROUNDS}; r++)"
    f" await Promise.all(Array.from({{ length: {AT_ONCE} }}, (_, i) => tools.nothing({{ n: i }}))); 1"
)


@tool
async def nothing(n: int) -> int:
    """Return the input."""
    return n


def registry() -> _Registry:
    """Return a registry of REPLs with its own defaults and no bound on calls."""
    return _Registry(
        memory_limit=64 << 20, timeout=60.0, capture_console=True, max_stdout_chars=4000, max_ptc_calls=None
    )


def evaluate(made: _Registry) -> float:
    """Return the milliseconds of a fresh REPL on a warm thread with one evaluation."""
    started = time.perf_counter()
    made.reset_repl("bench")
    made.get("bench").eval_sync("1 + 1")
    return (time.perf_counter() - started) * 1000


async def calls(made: _Registry, code: str, count: int, each: int) -> list[float]:
    """Return the milliseconds of one call, from so many programs after a warm-up."""
    repl, taken = made.get("bench"), []
    repl.install_tools([nothing])
    for _ in range(count + 1):
        started = time.perf_counter()
        outcome = await repl.eval_async(code, outer_loop=asyncio.get_running_loop())
        assert outcome.error_type is None, outcome
        taken.append((time.perf_counter() - started) * 1000 / each)
    return taken[1:]


def main(count: int) -> None:
    """Print what was measured."""
    made, few = registry(), max(3, count // 20)
    made.get("bench")
    found = {"evaluate": [evaluate(made) for _ in range(count + 3)][3:]}
    found["call"] = asyncio.run(calls(made, SEQUENTIAL, few, CALLS))
    found["parallel"] = asyncio.run(calls(made, PARALLEL, few, AT_ONCE * ROUNDS))
    made.close()
    print(json.dumps(found))


main(int(sys.argv[1]))
