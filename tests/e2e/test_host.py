"""The host process behind `codemode run` and `codemode wait`: what it carries on, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.support.processes import children_of, has_ended, is_running

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
MANIFEST = """
[[tool]]
name = "gate"
description = "Answers when a file appears; writes down who carries it, and when it was cancelled."
python = "gates:gate"
[[tool]]
name = "chatter"
description = "Prints."
python = "gates:chatter"
[[tool]]
name = "stubborn"
description = "Does not heed its cancellation."
python = "gates:stubborn"
[[tool]]
name = "ask"
description = "Needs a person."
approval = "ask"
value = { ok = true }
"""
GATES = """
import asyncio, os, pathlib, sys
HERE = pathlib.Path(__file__).parent

async def gate(key="gate"):
    with open(HERE / "begun", "a") as begun:
        begun.write(f"{key} {os.getpid()}\\n")
    try:
        while not (HERE / key).exists():
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        (HERE / "cancelled").touch()
        raise
    return (HERE / key).read_text()

async def stubborn():
    with open(HERE / "begun", "a") as begun:
        begun.write(f"stubborn {os.getpid()}\\n")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

def chatter():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    return "quiet"
"""


class Folder:
    """A folder with a manifest whose tool the test opens by touching files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "codemode.toml").write_text(MANIFEST)
        (path / "gates.py").write_text(GATES)
        self.environment = os.environ | {"PYTHONPATH": str(ROOT), "CODEMODE_STATE_DIR": str(path / "state")}

    def opens(self, key: str) -> None:
        """Let the tool go on: the file is there with all it says, or not at all."""
        (self.path / "new").write_text("opened")
        (self.path / "new").rename(self.path / key)

    def start(self, *arguments: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "codemode", *arguments],
            cwd=cwd or self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, cwd: Path | None = None) -> tuple[int, dict[str, Any], str]:
        """Run a command to its end: status, JSON of stdout, stderr."""
        return self.end(self.start(*arguments, cwd=cwd))

    def end(self, command: "subprocess.Popen[str]") -> tuple[int, dict[str, Any], str]:
        out, err = command.communicate(timeout=PATIENCE_S)
        return command.returncode, json.loads(out) if out else {}, err

    def begun(self, count: int = 1) -> list[int]:
        """Wait until so many calls were begun; return the processes that carry them."""
        begun = self.path / "begun"
        until(lambda: begun.exists() and begun.read_text().count("\n") >= count)
        return [int(line.split()[1]) for line in begun.read_text().splitlines()]

    def states(self) -> list[str]:
        return [run["state"] for run in self.run("runs", "--json")[1]]


def until(holds: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    begun = tmp_path / "begun"
    for line in begun.read_text().splitlines() if begun.exists() else []:
        pid = int(line.split()[1])
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


CELL = "text('one'); return await tools.gate({key: 'gate'})"
LONG = ("--json", "--timeout-ms", "60000")  # for a run that something else is to end


@requirement("host:result:carried", "host:wait:any-folder", "session:wait:other-process", "host:pipes:not-the-callers")
def test_a_run_waits_and_its_call_is_carried_on_for_another_process_in_another_folder(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    status, result, _ = folder.run("run", "-e", CELL, "--timeout-ms", "800", "--json")
    assert (status, result["status"], result["output"]) == (3, "waiting", [{"type": "text", "text": "one"}])
    (host,) = folder.begun()
    assert is_running(host)
    waiter = folder.start("wait", result["runId"], "--json", cwd=tmp_path_factory.mktemp("elsewhere"))
    folder.opens("gate")
    status, end, _ = folder.end(waiter)

    assert (status, end["status"], end["value"], end["output"]) == (0, "completed", "opened", [])
    assert folder.begun() == [host]
    assert has_ended(host)


def test_a_host_whose_calls_have_settled_ends_and_the_result_is_in_the_store(folder: Folder) -> None:
    result = folder.run("run", "-e", CELL, "--timeout-ms", "800", "--json")[1]
    (host,) = folder.begun()
    folder.opens("gate")
    assert has_ended(host)
    status, end, _ = folder.run("wait", result["runId"], "--json")

    assert (status, end["value"]) == (0, "opened")


def test_a_run_that_waits_for_a_person_leaves_no_process(folder: Folder) -> None:
    status, result, _ = folder.run("run", "-e", "return await tools.ask({})", "--json")
    assert status == 3
    (pending,) = result["pendingToolCalls"]
    assert pending["state"] == "awaiting_approval"
    status, end, _ = folder.run("wait", result["runId"], "--approve", pending["id"], "--json")

    assert (status, end["value"]) == (0, {"ok": True})


@requirement("session:close:calls-interrupted")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_call_whose_host_ends_is_rejected_and_never_made_again(folder: Folder, ending: signal.Signals) -> None:
    code = "return await tools.gate({key: 'gate'}).catch((e) => [e.code, e.message])"
    result = folder.run("run", "-e", code, "--timeout-ms", "800", "--json")[1]
    (host,) = folder.begun()
    os.kill(host, ending)
    assert has_ended(host)
    status, end, _ = folder.run("wait", result["runId"], "--json")

    assert status == 0
    assert end["value"][0] == "nested_tool_failed"
    assert "interrupted" in end["value"][1]
    assert "may have taken effect" in end["value"][1]
    assert folder.begun() == [host]


@requirement("host:abort:leaves-nothing", "host:front-end:ctrl-c")
def test_ctrl_c_shows_the_aborted_result_and_leaves_nothing(folder: Folder) -> None:
    command = folder.start("run", "-e", CELL, *LONG)
    (host,) = folder.begun()
    workers = children_of(host)
    command.send_signal(signal.SIGINT)
    status, result, _ = folder.end(command)

    assert (status, result["code"], result["dispatched"]) == (130, "aborted", True)
    assert result["output"] == [{"type": "text", "text": "one"}]
    assert all(map(has_ended, [host, *workers]))
    assert (folder.path / "cancelled").exists()
    assert folder.states() == ["aborted"]


@requirement("host:abort:leaves-nothing")
def test_a_tool_that_heeds_no_cancellation_does_not_keep_its_process(folder: Folder) -> None:
    command = folder.start("run", "-e", "return await tools.stubborn({})", *LONG)
    (host,) = folder.begun()
    command.send_signal(signal.SIGINT)
    status, result, _ = folder.end(command)

    assert (status, result["code"]) == (130, "aborted")
    assert has_ended(host)


@requirement("host:abort:leaves-nothing")
@pytest.mark.parametrize("code", [CELL, "tools.gate({}); await null; while (true) {}"])
def test_a_front_end_that_dies_takes_its_run_with_it(folder: Folder, code: str) -> None:
    command = folder.start("run", "-e", "await tools.gate({key: 'first'});" + code, *LONG)
    (host,) = folder.begun()
    workers = children_of(host)
    (folder.path / "first").touch()
    command.kill()
    folder.end(command)
    assert all(map(has_ended, [host, *workers]))

    assert folder.states() == ["aborted"]


@requirement("host:front-end:died")
def test_a_host_that_is_killed_is_one_clear_error(folder: Folder) -> None:
    command = folder.start("run", "-e", CELL, *LONG)
    (host,) = folder.begun()
    os.kill(host, signal.SIGKILL)
    status, result, _ = folder.end(command)

    assert (status, result["code"]) == (5, "runtime_unavailable")
    assert "the host process was ended by SIGKILL" in result["error"]
    assert folder.states() == ["failed"]


@requirement("execution:worker:crash")
def test_a_worker_that_is_killed_in_mid_cell_is_one_clear_error(folder: Folder) -> None:
    command = folder.start("run", "-e", "await tools.gate({key: 'first'}); while (true) {}", *LONG)
    (host,) = folder.begun()
    (worker,) = children_of(host)
    (folder.path / "first").touch()
    os.kill(worker, signal.SIGKILL)
    status, result, _ = folder.end(command)

    assert (status, result["code"], result["phase"]) == (5, "runtime_unavailable", "runtime")
    assert "SIGKILL" in result["error"]


@requirement("session:abort:from-elsewhere")
def test_a_run_is_aborted_by_another_command(folder: Folder) -> None:
    command = folder.start("run", "-e", CELL, *LONG)
    (host,) = folder.begun()
    (run,) = folder.run("runs", "--json")[1]
    assert folder.run("abort", run["runId"], "--json")[1]["state"] == "running"
    status, result, _ = folder.end(command)

    assert (status, result["code"]) == (130, "aborted")
    assert has_ended(host)
    assert (folder.path / "cancelled").exists()


def test_aborting_a_waiting_run_ends_the_host_that_carries_its_call(folder: Folder) -> None:
    result = folder.run("run", "-e", CELL, "--timeout-ms", "800", "--json")[1]
    (host,) = folder.begun()
    assert folder.run("abort", result["runId"], "--json")[1]["state"] == "aborted"
    assert has_ended(host)

    assert (folder.path / "cancelled").exists()
    assert folder.run("wait", result["runId"], "--json")[1]["code"] == "aborted"


@requirement("host:output:prints")
def test_what_a_tool_prints_goes_to_stderr(folder: Folder) -> None:
    status, result, stderr = folder.run("run", "-e", "return await tools.chatter()", "--json")

    assert (status, result["value"]) == (0, "quiet")
    assert "to stdout" in stderr
    assert "to stderr" in stderr


@pytest.mark.parametrize(
    ("manifest", "code", "status"), [("[[tool]\n", "invalid_config", 2), ("[tols]\n", "invalid_config", 2)]
)
def test_a_bad_manifest_is_a_failed_result(folder: Folder, manifest: str, code: str, status: int) -> None:
    (folder.path / "codemode.toml").write_text(manifest)
    ended, result, stderr = folder.run("run", "-e", "1", "--json")

    assert (ended, result["code"], result["phase"], stderr) == (status, code, "input", "")


def test_a_wait_for_a_run_that_is_unknown_is_a_failed_result(folder: Folder) -> None:
    status, result, _ = folder.run("wait", "cm_unknown", "--json")

    assert (status, result["code"], result["dispatched"]) == (2, "invalid_input", False)


HEAVY = ("jsonschema", "pydantic", "rich", "mcp", "importlib.metadata", "typer", "httpx2", "wasmtime")


@requirement("host:start:early")
def test_a_host_loads_nothing_heavy_before_it_is_needed() -> None:
    program = "import sys, codemode.host; print([name for name in sys.argv[1:] if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", program, *HEAVY], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "[]"


@requirement("host:start:early")
@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["run", "-e", "1"], True),
        (["-m", "run", "wait", "cm_x"], True),
        (["--manifest", "x.toml", "run", "f.ts"], True),
        (["runs"], False),
        (["-m", "run", "catalog"], False),
        (["run", "--help"], False),
        (["--version"], False),
        ([], False),
    ],
)
def test_a_host_is_started_early_for_the_commands_that_run_cells(arguments: list[str], needed: bool) -> None:
    from codemode.__main__ import needs_host

    assert needs_host(arguments) is needed
