"""Approvals through the command: a run stops for a person, everything dies, a person decides."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, ROOT

MANIFEST = """
[[tool]]
name = "refund"
description = "Give money back."
parameters = { type = "object", properties = { order = { type = "integer" } }, required = ["order"] }
approval = "ask"
command = ["sh", "-c", 'echo "refund $1" >> ran; echo "{\\"refunded\\": $1}"', "refund", "{order}"]

[[tool]]
name = "notify"
description = "Tell the customer."
approval = "ask"
command = ["sh", "-c", "echo notify >> ran; echo true"]

[[tool]]
name = "endless"
description = "Never answers."
command = ["sh", "-c", "echo endless >> ran; exec sleep 1000"]
"""
ONE = "return await tools.refund({order: 7})"
CAUGHT = "return await tools.refund({order: 7}).catch((e) => [e.code, e.message])"
THREE = "const all = []; for (const order of [1, 2, 3]) all.push((await tools.refund({order})).refunded); return all"


class Desk:
    """A folder with a manifest and a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "codemode.toml").write_text(MANIFEST)
        kept = {name: value for name, value in os.environ.items() if name != "CI"}
        self.environment = kept | {"CODEMODE_STATE_DIR": str(folder / "state"), "PYTHONPATH": str(ROOT)}

    def command(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "codemode", *arguments],
            cwd=self.folder, env=self.environment | variables, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=BOUND_S, check=False,
        )  # fmt: skip

    def json(self, *arguments: str, **variables: str) -> tuple[int, Any]:
        done = self.command(*arguments, "--json", **variables)
        return done.returncode, json.loads(done.stdout)

    def begin(self, cell: str, *more: str) -> str:
        """Run a cell that stops for a person; return its run id."""
        status, result = self.json("run", "-e", cell, *more)
        assert (status, result["status"]) == (3, "waiting"), result
        run_id: str = result["runId"]
        return run_id

    def ran(self) -> list[str]:
        """What the tools did, in order."""
        log = self.folder / "ran"
        return log.read_text().splitlines() if log.exists() else []

    def until_ran(self, line: str) -> None:
        """Wait until a tool has begun that a waiting run's host carries on."""
        deadline = time.monotonic() + BOUND_S
        while line not in self.ran():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def processes(self) -> list[int]:
        """Every process that works for this folder: fronts, hosts, workers, tools."""
        mark = f"CODEMODE_STATE_DIR={self.folder / 'state'}".encode()
        return [int(each.parent.name) for each in Path("/proc").glob("[1-9]*/environ") if mark in _read(each)]

    def kill_everything(self) -> None:
        """End all of them as a power cut would."""
        while found := self.processes():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def _read(environment: Path) -> bytes:
    try:
        return environment.read_bytes()
    except OSError:  # the process has gone, or is not ours
        return b""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@requirement("approvals:run:says-how")
def test_a_run_that_needs_an_approval_says_how_to_decide(desk: Desk) -> None:
    done = desk.command("run", "-e", ONE)
    line, instead = done.stderr.splitlines()[-2:]
    _, _, command, run_id, flag, call = line.split()
    assert '    {"order": 7}' in done.stderr.splitlines()  # nobody can decide on what is not shown

    assert (done.returncode, done.stdout) == (3, "")
    assert (command, flag, instead.split()) == ("wait", "--approve", ["or", "--deny", call])
    assert desk.command("wait", run_id, flag, call).returncode == 0  # what it says can be typed


@requirement("approvals:run:listed", "approvals:run:shown")
def test_the_list_of_runs_names_the_calls_that_await_a_person_and_what_they_were_asked(desk: Desk) -> None:
    run_id = desk.begin("return await Promise.all([tools.refund({order: 1}), tools.notify()])")
    listed = desk.command("runs").stdout
    _, (run,) = desk.json("runs")

    asks = 'call 1 (client:app:refund) awaits approval with {"order": 1}, call 2 (client:app:notify) awaits approval'
    assert asks in listed
    assert [call["input"] for call in run["pendingToolCalls"]] == [{"order": 1}, {}]
    assert run["runId"] == run_id
    assert [call["state"] for call in run["pendingToolCalls"]] == ["awaiting_approval"] * 2


@requirement("approvals:run:shown")
def test_why_a_hook_asks_is_said_wherever_the_call_is_named(desk: Desk) -> None:
    hook = "def check(event):\n    return event['input'].get('why') and {'ask': 'large sum'}\n"
    (desk.folder / "asks.py").write_text(hook)
    with (desk.folder / "codemode.toml").open("a") as manifest:
        manifest.write('[[hook]]\nevent = "before_tool_call"\npython = "asks:check"\n')
        manifest.write('[[tool]]\nname = "pay"\ndescription = "Pay."\nvalue = 1\n')
    shown = desk.command("run", "-e", "return await tools.pay({why: true})").stderr
    listed = desk.command("runs").stdout
    _, (run,) = desk.json("runs")

    assert "    a hook asks: large sum" in shown.splitlines()
    assert 'awaits approval with {"why": true}, as a hook asks: large sum' in listed
    assert run["pendingToolCalls"][0]["reason"] == "large sum"


@requirement("approvals:wait:survives", "approvals:wait:once")
def test_after_everything_was_killed_an_approval_completes_the_run(desk: Desk) -> None:
    run_id = desk.begin("text('before'); " + ONE)
    desk.kill_everything()
    assert desk.ran() == []
    status, result = desk.json("wait", run_id, "--approve", "1")

    assert (status, result["value"], desk.ran()) == (0, {"refunded": 7}, ["refund 7"])
    status, again = desk.json("wait", run_id, "--approve", "1")
    assert (status, again["code"], desk.ran()) == (2, "invalid_input", ["refund 7"])


@requirement("approvals:wait:survives")
def test_a_call_in_flight_that_died_is_rejected_and_the_approved_one_runs_once(desk: Desk) -> None:
    cell = """const all = await Promise.allSettled([tools.endless(), tools.refund({order: 7})]);
        return all.map((each) => each.value ?? each.reason.message)"""
    run_id = desk.begin(cell, "--timeout-ms", "1500")
    desk.until_ran("endless")
    desk.kill_everything()
    status, result = desk.json("wait", run_id, "--approve", "2", "--wait")

    assert (status, result["value"][1]) == (0, {"refunded": 7})
    assert "interrupted" in result["value"][0]
    assert sorted(desk.ran()) == ["endless", "refund 7"]


@requirement("approvals:wait:denied", "approvals:wait:once")
def test_a_denied_call_is_rejected_in_the_cell(desk: Desk) -> None:
    run_id = desk.begin(CAUGHT)
    status, result = desk.json("wait", run_id, "--deny", "1")

    assert (status, result["value"]) == (0, ["nested_tool_failed", "client:app:refund was not approved"])
    assert desk.json("wait", run_id, "--approve", "1")[0] == 2
    assert desk.ran() == []


def test_a_decision_about_no_such_call_decides_nothing(desk: Desk) -> None:
    run_id = desk.begin(ONE)
    status, result = desk.json("wait", run_id, "--approve", "9")
    assert (status, result["code"]) == (2, "invalid_input")
    assert "those that do: 1" in result["error"]
    status, result = desk.json("wait", run_id)
    assert (status, desk.ran()) == (3, [])

    assert desk.json("wait", run_id, "--approve", "1")[0] == 0


@requirement("approvals:alone:denied")
@pytest.mark.parametrize(("flags", "variables"), [(("--no-input",), {}), ((), {"CI": "true"})])
def test_where_nobody_can_be_asked_a_call_is_denied_at_once(
    desk: Desk, flags: tuple[str, ...], variables: dict[str, str]
) -> None:
    status, result = desk.json("run", "-e", CAUGHT, *flags, **variables)

    assert (status, result["value"][0], desk.ran()) == (0, "nested_tool_failed", [])
    assert "nobody can be asked here" in result["value"][1]


@requirement("approvals:alone:denied")
def test_a_wait_where_nobody_can_be_asked_carries_decisions_and_denies_the_rest(desk: Desk) -> None:
    cell = "const first = await tools.refund({order: 7}); return [first, await tools.notify().catch((e) => e.code)]"
    run_id = desk.begin(cell, "--wait")
    status, result = desk.json("wait", run_id, "--approve", "1", CI="1")

    assert (status, result["value"], desk.ran()) == (0, [{"refunded": 7}, "nested_tool_failed"], ["refund 7"])


@requirement("approvals:always:run")
def test_without_always_each_call_is_asked_about(desk: Desk) -> None:
    run_id = desk.begin(THREE)
    statuses = [desk.json("wait", run_id, "--approve", call)[0] for call in "123"]

    assert (statuses, desk.ran()) == ([3, 3, 0], ["refund 1", "refund 2", "refund 3"])


@requirement("approvals:always:run")
def test_always_approves_the_tool_for_the_rest_of_the_run(desk: Desk) -> None:
    run_id = desk.begin(THREE)
    status, result = desk.json("wait", run_id, "--approve", "1", "--always")

    assert (status, result["value"]) == (0, [1, 2, 3])
    assert desk.json("run", "-e", ONE)[0] == 3  # another run asks again


@requirement("approvals:always:run")
def test_always_is_remembered_by_later_processes_and_holds_for_its_tool_only(desk: Desk) -> None:
    cell = "await tools.refund({order: 1}); await yield_control(); await tools.refund({order: 2}); await tools.notify()"
    run_id = desk.begin(cell)
    assert desk.json("wait", run_id, "--approve", "1", "--always")[1]["reason"] == "yield"
    desk.kill_everything()
    status, result = desk.json("wait", run_id)

    assert (status, [call["toolId"] for call in result["pendingToolCalls"]]) == (3, ["client:app:notify"])
    assert desk.ran() == ["refund 1", "refund 2"]


@requirement("approvals:always:run")
def test_always_covers_calls_that_wait_already_but_not_one_that_is_denied(desk: Desk) -> None:
    run_id = desk.begin(
        "const orders = await Promise.allSettled([1, 2, 3].map((order) => tools.refund({order})));"
        "return orders.map((each) => each.status)"
    )
    status, result = desk.json("wait", run_id, "--approve", "1", "--deny", "2", "--always")

    assert (status, result["value"]) == (0, ["fulfilled", "rejected", "fulfilled"])
    assert sorted(desk.ran()) == ["refund 1", "refund 3"]


@requirement("approvals:decisions:contradiction")
def test_what_is_both_approved_and_denied_is_not_decided(desk: Desk) -> None:
    run_id = desk.begin(ONE)
    status, result = desk.json("wait", run_id, "--approve", "1", "--deny", "1")

    assert (status, result["code"]) == (2, "invalid_input")
    assert 'call "1" is both approved and denied' in result["error"]
    assert desk.json("runs")[1][0]["state"] == "waiting"


@requirement("approvals:always:needs-approve")
def test_always_without_a_call_is_a_usage_error(desk: Desk) -> None:
    run_id = desk.begin(ONE)
    done = desk.command("wait", run_id, "--always")

    assert done.returncode == 2
    assert "--always was given without --approve" in done.stderr
    assert desk.json("runs")[1][0]["state"] == "waiting"
