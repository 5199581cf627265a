"""What a worker has given up: as a worker reports it, and as tried in processes that are locked down alike."""

import json
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from codemode.cli.checks.check import CONFINE, Check
from codemode.core.errors import CodeModeError
from codemode.core.limits import WORKER_START_MS
from codemode.core.types import Json, Measure
from codemode.supervisor.spawn import sandbox_argv

_ALLOWED = "allowed"
_TOGETHER = {  # the attempts of `sandbox.probe` that are refused with an error: name → what it is
    "environment": "reading the environment",
    "read": "opening a file",
    "write": "writing a file",
    "list": "listing a folder",
    "fork": "starting a child",
    "signal": "signalling another process",
    "memory": "taking more memory than a worker may have",
}
_REFUSALS = {"PermissionError": "not permitted", "KeyError": "there is none", "MemoryError": "there is no more"}
_ALONE = {"socket": "opening a socket", "program": "running a program"}  # those that may end their process


class Probed(NamedTuple):
    """What probes came back with.

    outcomes: Attempt → `allowed`, or how it was refused: the name of an exception, or words.
    whole: Whether each measure was in force while they tried.
    cache: `(file, bytes, state)` of each file in the cache.
    fault: Why they could not try, or "".
    """

    outcomes: Mapping[str, str]
    whole: bool
    cache: Sequence[tuple[str, int, str]]
    fault: str = ""


def probe() -> Probed:
    """Start processes that lock themselves down as a worker does and make every attempt.

    Contract: doctor:lockdown:tried
    """
    outcomes: dict[str, str] = {}
    found: dict[str, Json] = {"lockdown": [], "cache": []}
    for names in (list(_TOGETHER), *([name] for name in _ALONE)):
        try:
            told, ending = _run(["audit", *names] if names[0] in _TOGETHER else names)
        except (CodeModeError, OSError, subprocess.TimeoutExpired) as error:
            return Probed({}, False, (), str(error))
        for message in told:
            if "attempt" in message:
                outcomes[message["attempt"]] = message["outcome"]
            found |= message
        if "fatal" in found or not found["lockdown"]:
            return Probed({}, False, (), found.get("fatal", ending))
        outcomes |= {name: ending for name in names if name not in outcomes}  # that one ended its process
    whole = all(enforced for _, enforced, _ in found["lockdown"])
    return Probed(outcomes, whole, [(name, count, state) for name, count, state in found["cache"]])


def _run(names: list[str]) -> tuple[list[dict[str, Json]], str]:
    """Run one probe; return what it told, and how it ended: `allowed` where nothing stopped it."""
    done = subprocess.run(
        [*sandbox_argv("probe"), *names],
        env={"CODEMODE_PROBE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WORKER_START_MS / 1000,
        check=False,
    )
    told: list[dict[str, Json]] = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 0:
        return told, _ALLOWED
    words = done.stderr.decode(errors="replace").strip()
    ended = f"the process is ended by {signal.Signals(-done.returncode).name}" if done.returncode < 0 else ""
    return told, ended or f"it ended with status {done.returncode}: {words}"


def check_measures(measures: Iterable[Measure]) -> Iterator[Check]:
    """Yield what a worker says that it has given up, one measure at a time.

    Contract: doctor:lockdown:reported
    """
    for name, enforced, detail in measures:
        yield Check("lockdown", "ok" if enforced else "warning", f"{name}: {detail}", "" if enforced else CONFINE)


def check_attempts(probed: Probed) -> Iterator[Check]:
    """Yield how each attempt of a locked process ended; one that was allowed is a hole.

    Where a measure is missing on this machine it is a known one: a warning.
    """
    if probed.fault:
        yield Check("lockdown", "failed", f"it could not be tried: {probed.fault}", CONFINE)
        return
    for name, what in (_TOGETHER | _ALONE).items():
        outcome = probed.outcomes[name]
        if outcome != _ALLOWED:
            yield Check("lockdown", "ok", f"{what} is refused: {_REFUSALS.get(outcome, outcome)}")
        else:
            yield Check("lockdown", "failed" if probed.whole else "warning", f"{what} is allowed", CONFINE)
