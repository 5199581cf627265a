"""Processes that are not our children: whether one runs, and its end, which takes a moment after its kill."""

import os
import select
from pathlib import Path

PATIENCE_S = 60  # bounds a failure only


def is_running(pid: int) -> bool:
    """Say whether a process runs; a zombie does not, and nobody may reap orphans where the tests run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # the latter: it ended while its file was open
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def has_ended(pid: int) -> bool:
    """Wait for the end of a process; False where it does not come."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], PATIENCE_S)[0])
    finally:
        os.close(process)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started, whichever of its threads did."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, listing.read_text(encoding="ascii").split())
        except (FileNotFoundError, ProcessLookupError):  # the thread has just ended
            continue
    return found
