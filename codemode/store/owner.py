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
_START_TICKS = 19  # counted after the command's name and the state: field 22 of proc(5)
_DEAD_STATES = ("Z", "X")  # a zombie does nothing any more; its parent has only not looked yet


class Owner(NamedTuple):
    """A process: its pid and when it started, in words of this module; "" where nothing tells."""

    pid: int
    started: str


@cache
def this_process() -> Owner:
    """Return the process that asks (remembered: ours never fork without an exec)."""
    pid = os.getpid()
    return Owner(pid, _started(pid) or "")


def is_alive(owner: Owner) -> bool:
    """Say whether exactly this process still runs on this machine.

    What cannot be judged from here, such as a pid of another container, counts as alive: its
    run then waits for its expiry, rather than being taken from a process that works on it.

    Contract: runs:owners:pid-and-start
    """
    if owner == this_process() or owner.started == "" or _is_out_of_sight(owner):
        return True
    return _started(owner.pid) == owner.started


def _started(pid: int) -> str | None:
    """Return when a process started, `"<boot id> <pid namespace> <ticks>"` on Linux; None if it does not run."""
    if not sys.platform.startswith("linux"):
        return _started_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    state, *fields = stat.rpartition(b")")[2].decode().split()
    return None if state in _DEAD_STATES else f"{_machine()} {fields[_START_TICKS - 1]}"


def _started_by_ps(pid: int) -> str | None:
    import subprocess  # not needed where there is /proc

    command = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    state, _, started = found.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith(_DEAD_STATES) else None


@cache
def _machine() -> str:
    """Return `"<boot id> <pid namespace>"`: the machine, since its last start, on which a pid has a meaning."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:  # a kernel that hides them; the ticks must do
        return "? ?"


def _is_out_of_sight(owner: Owner) -> bool:
    """Say whether the owner runs under this kernel, but its pid is one of another container."""
    if not sys.platform.startswith("linux"):
        return False
    boot, namespace = _machine().split(" ")
    return owner.started.startswith(f"{boot} ") and not owner.started.startswith(f"{boot} {namespace} ")
