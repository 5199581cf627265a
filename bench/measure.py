"""How a figure is taken: warm-up, many samples, the median; a reference in the same minute.

A `Figure` is one row of the table. Nothing here knows what is measured. Two things that are
compared are run in turn, one of each, so that a busy moment of the machine hits both.
"""

import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import truediv
from pathlib import Path
from typing import NamedTuple


class Samples(NamedTuple):
    """Measured values of one thing, in the order in which they were taken."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value that half of the samples do not exceed."""
        return statistics.median(self.values)

    @property
    def p90(self) -> float:
        """The value that nine of ten samples do not exceed."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))]


class Figure(NamedTuple):
    """One row: what, how much, beside what. `skipped` says why there is no value.

    `goal` is what the project wants of this row, as text; no row is ever compared with it.
    """

    name: str
    unit: str
    goal: str
    samples: Samples | None
    beside: str = ""
    reference: Samples | None = None
    skipped: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the reference: the median of the pairs, which were taken in turn, else that of the medians."""
        if self.samples is None or self.reference is None or not all(self.reference.values):
            return None
        if len(self.samples.values) == len(self.reference.values):
            return statistics.median(map(truediv, self.samples.values, self.reference.values))
        return self.samples.median / self.reference.median


def skip(name: str, unit: str, goal: str, why: str) -> Figure:
    """Return a row without a value that says why."""
    return Figure(name, unit, goal, None, skipped=why)


def scaled(samples: Samples, divisor: float, base: float = 0.0) -> Samples:
    """Return the samples less a base, each divided: the cost of one of many things done in a row."""
    return Samples(tuple((value - base) / divisor for value in samples.values))


def time_processes(
    commands: Sequence[Sequence[str]], count: int, environment: Mapping[str, str], folders: Sequence[Path] = ()
) -> list[Samples]:
    """Return the wall time in milliseconds of each command, run in turn `count` times after one warm-up.

    `folders` are where they run, one for each; without them, here.

    Raises:
        RuntimeError: A command failed; a figure of a failing program would be worth nothing.
    """
    taken: list[list[float]] = [[] for _ in commands]
    for turn in range(count + 1):
        for command, values, folder in zip(commands, taken, folders or [Path.cwd()] * len(commands), strict=True):
            started = time.perf_counter()
            done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, check=False)
            elapsed = (time.perf_counter() - started) * 1000
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
            if turn > 0:
                values.append(elapsed)
    return [Samples(tuple(values)) for values in taken]


async def time_each(action: Callable[[], Awaitable[object]], count: int, warm_up: int = 5) -> Samples:
    """Return the wall time in milliseconds of an awaited action, `count` times after a warm-up."""
    for _ in range(warm_up):
        await action()
    values = []
    for _ in range(count):
        started = time.perf_counter()
        await action()
        values.append((time.perf_counter() - started) * 1000)
    return Samples(tuple(values))
