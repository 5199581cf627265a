"""Whole processes: what a person or a script waits for, beside a hello world of `quickjs-rs`."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import mcp_peers, peers
from bench.measure import Figure, Samples, skip, time_processes

RUN = (sys.executable, "-m", "codemode", "run", "-e", "return 1+1", "--json")
HELP = (sys.executable, "-m", "codemode", "--help")
CHECKS = 100
PYTHON = (sys.executable, "-c", "pass")


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of whole processes; `scale` multiplies the number of samples."""
    with tempfile.TemporaryDirectory(prefix="codemode-bench-") as folder:
        environment = clean_environment(folder)
        yield from _warm(environment, max(3, int(21 * scale)))
        yield from _help(environment, max(3, int(11 * scale)))
        yield _smoke(environment, max(2, int(7 * scale)), Path(folder) / "checks")
        yield from _first_ever(environment, max(2, int(5 * scale)))


def clean_environment(folder: str) -> dict[str, str]:
    """Return this process's environment without codemode's settings, with state and cache in a folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    return kept | {"XDG_STATE_HOME": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache", "PWD": folder}


def _warm(environment: dict[str, str], count: int) -> Iterator[Figure]:
    name, goal, hello = "codemode run -e 'return 1+1' --json, warm", "0.45 x at most", _hello()
    if hello is None:
        ours, bare = time_processes([RUN, PYTHON], count, environment)
        yield Figure(name, "ms", goal, ours, skipped=peers.QUICKJS_RS.missing())
    else:
        ours, theirs, bare = time_processes([RUN, hello, PYTHON], count, environment)
        yield Figure(name, "ms", goal, ours, "quickjs-rs hello world, process", theirs)
    yield Figure("the same beside an empty Python", "ms", "", ours, "python -c pass", bare)


def _help(environment: dict[str, str], count: int) -> Iterator[Figure]:
    """Time the page of help beside those of other clients of MCP servers."""
    name, goal = "codemode --help", "120 ms at most"
    for peer, command in mcp_peers.help_commands():
        if command is None:
            (ours,) = time_processes([HELP], count, environment)
            yield skip(name, "ms", goal, f"{peer}: it is not installed; make bench-peers installs it")._replace(
                samples=ours
            )
        else:
            ours, theirs = time_processes([HELP, command], count, environment)
            yield Figure(name, "ms", goal, ours, peer, theirs)


def _smoke(environment: dict[str, str], count: int, folder: Path) -> Figure:
    """Time the checks of 100 trivial cells by two workers, from the command to the report."""
    folder.mkdir()
    for number in range(CHECKS):
        (folder / f"{number}.js").write_text(f"// @value {number}\nreturn {number};\n", encoding="utf-8")
    command = (sys.executable, "-m", "codemode", "smoke", str(folder), "--jobs", "2")
    (ours,) = time_processes([command], count, environment)
    return Figure(f"codemode smoke of {CHECKS} trivial cells, two workers", "ms", "2,000 ms at most", ours)


def _first_ever(environment: dict[str, str], count: int) -> Iterator[Figure]:
    """Time the run with an empty cache: the engine is compiled and its boot image made."""
    name, goal, hello = "the same, first run ever on a machine", "2 x at most", _hello()
    values = []
    for _ in range(count):
        with tempfile.TemporaryDirectory(prefix="codemode-bench-cache-") as cache:
            fresh = environment | {"XDG_CACHE_HOME": cache}
            started = time.perf_counter()
            _once(fresh)
            values.append((time.perf_counter() - started) * 1000)
    ours = Samples(tuple(values))
    if hello is None:
        yield skip(name, "ms", goal, peers.QUICKJS_RS.missing())._replace(samples=ours)
        return
    (theirs,) = time_processes([hello], count, environment)
    yield Figure(name, "ms", goal, ours, "quickjs-rs hello world, process", theirs)


def _once(environment: dict[str, str]) -> None:
    import subprocess

    subprocess.run(RUN, env=environment, capture_output=True, check=True)


def _hello() -> tuple[str, ...] | None:
    command = peers.QUICKJS_RS.command()
    return (*command, peers.QUICKJS_RS.hello) if command else None
