"""Which process a run or a call belongs to, and whether that process still lives.

A pid alone is not enough: pids come back. So an owner is a pid together with the moment at
which that process started, as the kernel tells it. Nothing here waits for a lease to run
out: a dead owner is found at the moment when somebody asks.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_START_FIELD = 19  # of the fields after the command's name: field 22 of proc(5), clock ticks since boot
_DEAD_STATES = ("Z", "X")  # a zombie does nothing any more; its parent has only not looked yet


class Owner(NamedTuple):
    """A process: its pid and when it started, in a form that only this module reads."""

    pid: int
    started: str


@cache
def this_process() -> Owner:
    """Return the process that asks.

    Cached, so a process that forks must not go on as the owner of its parent's runs; ours
    never fork without exec.
    """
    pid = os.getpid()
    return Owner(pid, _started(pid) or "")


def is_alive(owner: Owner) -> bool:
    """Say whether exactly this process still runs on this machine.

    A pid of another container cannot be judged from here, so it counts as alive: a run then
    waits for its expiry, rather than being taken from a process that works on it.
    """
    machine, _, _ = owner.started.rpartition(" ")
    if machine and _same_boot(machine) and machine != _machine():
        return True
    return _started(owner.pid) == owner.started


def _started(pid: int) -> str | None:
    """Return `"<boot> <pid namespace> <ticks>"`, or what `ps` says elsewhere; None if no such process lives."""
    if not sys.platform.startswith("linux"):
        return _started_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in _DEAD_STATES else f"{_machine()} {fields[_START_FIELD - 1]}"


def _started_by_ps(pid: int) -> str | None:
    import subprocess  # not needed where there is /proc

    found = subprocess.run(
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = found.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith(_DEAD_STATES) else None


@cache
def _machine() -> str:
    """Return `"<boot id> <pid namespace>"`: where a pid means what it means here."""
    boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"


def _same_boot(machine: str) -> bool:
    return machine.partition(" ")[0] == _machine().partition(" ")[0]
