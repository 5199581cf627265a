"""Ours beside what people use for this job: the same small work, each in an environment of its own.

Ours goes through everything that a user gets (worker process, policy, telemetry, SQLite); what
stands between host and guest elsewhere is said in each row. A peer that is missing, or that
cannot do a thing, is a row that says so.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import bench_session as ours
from bench.bench_processes import RUN, clean_environment
from bench.measure import Figure, Samples, skip, time_processes
from bench.peers import PEERS, Peer, measure

WORK = {  # what a peer measures → our figure, its unit, what one of its units is in milliseconds
    "evaluate": (ours.TRIVIAL, "ms", 1.0),
    "call": (ours.ONE_CALL, "µs", 0.001),
    "parallel": (ours.AT_ONCE_EACH, "µs", 0.001),
    "suspend": (ours.SUSPEND, "ms", 1.0),
    "resume": (ours.RESUME, "ms", 1.0),
    "bytes": (ours.STORED, "kB", 1000.0),
}
# The goals in milliseconds were set where quickjs-rs took 1.07 ms for a context and an evaluation in it, and
# 326 µs for an awaited call: this is what they are on any machine.
GOALS = {
    ("quickjs-rs", "evaluate"): "1.4 x at most",
    ("quickjs-rs", "call"): "0.49 x at most",
}


def figures(scale: float) -> Iterator[Figure]:
    """Yield one row for each peer and each thing, and the whole process last."""
    count = max(20, int(200 * scale))
    mine = {figure.name: figure for figure in asyncio.run(ours.live(scale))}
    measured = {peer: measure(peer, count) for peer in PEERS}
    for key, (name, unit, unit_ms) in WORK.items():
        for peer, found in measured.items():
            goal = GOALS.get((peer.name, key), "")
            yield _row(mine[name]._replace(goal=goal), peer, found, key, unit_ms)._replace(unit=unit)
    for peer in PEERS:
        yield _process(peer, max(3, int(11 * scale)))


def _row(mine: Figure, peer: Peer, found: dict[str, list[float]] | str, key: str, unit_ms: float) -> Figure:
    if isinstance(found, str):
        return mine._replace(skipped=found)
    if not found.get(key):
        return mine._replace(skipped=f"{peer.name} cannot do it")
    reference = Samples(tuple(value / unit_ms for value in found[key]))
    return mine._replace(beside=f"{peer.name}, {peer.wall}", reference=reference)


def _process(peer: Peer, count: int) -> Figure:
    name, command = "whole process: 1 + 1", peer.command()
    if command is None:
        return skip(name, "ms", "", peer.missing())
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
        environment = clean_environment(folder)
        theirs = (*command, peer.hello)
        mine, reference = time_processes([RUN, theirs], count, environment, (Path.cwd(), peer.folder))
    return Figure(name, "ms", "", mine, f"{peer.name}, {peer.wall}", reference)
