"""The processes of a command: two that want one run, and each killed at each step; the host is in the fault walk.

A plugin of the manifest kills them from within the host, just before a verb of the store. What comes
of it may depend on which process is faster, so each case allows what the contract allows, and asks
for what it promises in any: one result or none, no call twice, no run stuck, no process left.
"""

import json
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, clean_environment

MANIFEST = """
[[plugin]]
module = "killer"
[[tool]]
name = "once"
description = "Writes down that it ran."
approval = "ask"
python = "killer:once"
"""
KILLER = """
import os, pathlib, signal, time
from codemode.store.sqlite import SqliteStore

HERE = pathlib.Path(__file__).parent

def once():
    with open(HERE / "begun", "a") as begun:
        begun.write("once\\n")
    while (HERE / "shut").exists():
        time.sleep(0.01)
    return "done once"

def victims(kind):
    if kind == "worker":
        tasks = pathlib.Path("/proc/self/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]
    return [os.getppid()] if os.getppid() == int(os.environ["FRONT_END"]) else []

def killing(verb, kind):
    whole = getattr(SqliteStore, verb)
    def call(*arguments, **more):
        for pid in victims(kind):
            os.kill(pid, signal.SIGKILL)
            (HERE / "killed").touch()
        return whole(*arguments, **more)
    return call

def register(plugin):
    if "FAULT" in os.environ:
        verb, kind = os.environ["FAULT"].split()
        setattr(SqliteStore, verb, killing(verb, kind))
"""
CELL = "return await tools.once({}).catch((e) => e.message)"
STEPS = [("run", "create"), ("run", "suspend")] + [
    ("wait", verb) for verb in ("claim", "dispatch", "settle", "begin_delivery", "finish")
]
PATIENT = ("--timeout-ms", "60000", "--json")


class Place:
    """A folder with the manifest, a state folder, and whatever works for it."""

    def __init__(self, folder: Path) -> None:
        (folder / "codemode.toml").write_text(MANIFEST, encoding="utf-8")
        (folder / "killer.py").write_text(KILLER, encoding="utf-8")
        self.folder = folder
        self.environment = clean_environment(folder / "state")

    def run(self, *arguments: str, fault: str = "") -> tuple[int, dict[str, Any] | list[Any] | None]:
        """Run a command to its end, and all that it started; return its status and what it printed, if it did."""
        # the shell becomes the command, so that it knows its own pid
        script = 'FRONT_END=$$ exec "$@"'
        more = {"FAULT": fault} if fault else {}
        done = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND, *arguments], cwd=self.folder, env=self.environment | more,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND_S, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        self.wait_until_alone()
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def wait_until_alone(self) -> None:
        """Wait until no process works for this folder any more."""
        deadline = time.monotonic() + BOUND_S
        mark = f"XDG_STATE_HOME={self.environment['XDG_STATE_HOME']}".encode()
        while left := [each.parent.name for each in Path("/proc").glob("[1-9]*/environ") if mark in _read(each)]:
            assert time.monotonic() < deadline, f"processes {left} were left behind"
            time.sleep(0.01)

    def state(self) -> str | None:
        """Return the state of the only run; None where there is none."""
        _, listed = self.run("runs", "--json")
        assert isinstance(listed, list)
        return listed[0]["state"] if listed else None

    def begun(self) -> str:
        log = self.folder / "begun"
        return log.read_text(encoding="utf-8") if log.exists() else ""


def _read(environment: Path) -> bytes:
    with suppress(OSError):  # the process has gone, or is not ours
        return environment.read_bytes()
    return b""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def live(place: Place, command: str, fault: str) -> tuple[int, Any]:
    """Run the cell, and go on with it where the fault is one of the `wait`; return how the faulty command ended."""
    if command == "run":
        return place.run("run", "-e", CELL, *PATIENT, fault=fault)
    status, first = place.run("run", "-e", CELL, *PATIENT)
    assert isinstance(first, dict)
    assert (status, first["status"]) == (3, "waiting"), first
    return place.run("wait", first["runId"], "--approve", "1", *PATIENT, fault=fault)


def complete(place: Place) -> bool:
    """Decide on the call where that is still open, take the run to its end; say whether its value is one of two."""
    _, listed = place.run("runs", "--json")
    assert isinstance(listed, list)
    (run,) = listed
    asked = [call["id"] for call in run.get("pendingToolCalls", []) if call["state"] == "awaiting_approval"]
    decide = ("--approve", *asked) if asked else ()
    status, last = place.run("wait", run["runId"], *decide, *PATIENT)
    assert isinstance(last, dict)
    assert (status, last["status"]) == (0, "completed"), last
    return last["value"] == "done once" or "was interrupted" in last["value"]


@requirement("session:faults:walk", "runs:calls:dispatched-once")
@pytest.mark.timeout(6 * BOUND_S)
@pytest.mark.parametrize(("command", "verb"), STEPS)
def test_a_front_end_killed_at_any_step_takes_its_run_with_it_or_leaves_it_waiting(
    place: Place, command: str, verb: str
) -> None:
    status, printed = live(place, command, f"{verb} front-end")

    assert (place.folder / "killed").exists()
    assert (status, printed) == (-signal.SIGKILL, None)
    state = place.state()
    assert state in ("aborted", "completed", "waiting")
    if state == "waiting":
        assert complete(place)
    elif state == "completed":
        assert place.begun() == "once\n"
    assert place.begun() in ("", "once\n")


@requirement("session:faults:walk", "runs:calls:dispatched-once")
@pytest.mark.timeout(6 * BOUND_S)
@pytest.mark.parametrize(("command", "verb"), STEPS)
def test_a_worker_killed_at_any_step_is_replaced_or_named_in_the_result(place: Place, command: str, verb: str) -> None:
    status, printed = live(place, command, f"{verb} worker")

    assert (place.folder / "killed").exists()
    assert isinstance(printed, dict)
    if printed["status"] == "failed":
        assert (status, printed["code"]) == (5, "runtime_unavailable")
        assert "SIGKILL" in printed["error"]
    else:
        assert (status, printed["status"]) in ((0, "completed"), (3, "waiting"))
    assert place.state() == printed["status"]
    if printed["status"] == "waiting":
        assert complete(place)
    if printed["status"] == "completed":
        assert printed["value"] == "done once"
    assert place.begun() in ("", "once\n")


@requirement("runs:claims:concurrent", "runs:calls:dispatched-once")
@pytest.mark.timeout(6 * BOUND_S)
def test_of_two_waits_at_once_one_is_refused_and_the_other_goes_on(place: Place) -> None:
    """Both would approve the same call; it runs once, for whoever claimed the run."""
    _, first = place.run("run", "-e", CELL, *PATIENT)
    assert isinstance(first, dict)
    (place.folder / "shut").touch()
    waits = [
        subprocess.Popen(
            [*COMMAND, "wait", first["runId"], "--approve", "1", *PATIENT], cwd=place.folder, env=place.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    deadline = time.monotonic() + BOUND_S
    while all(wait.poll() is None for wait in waits):  # the one that has the run cannot end: its call is shut
        assert time.monotonic() < deadline
        time.sleep(0.01)
    refused, goes_on = sorted(waits, key=lambda wait: wait.poll() is None)
    out, _ = refused.communicate(timeout=BOUND_S)
    assert (refused.returncode, json.loads(out)["code"]) == (2, "invalid_input")
    assert "another `wait`" in json.loads(out)["error"]

    (place.folder / "shut").unlink()

    out, _ = goes_on.communicate(timeout=BOUND_S)
    assert (goes_on.returncode, json.loads(out)["value"]) == (0, "done once")
    assert place.begun() == "once\n"
