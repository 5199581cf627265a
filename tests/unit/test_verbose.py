"""What `--verbose` tells, `--quiet` keeps back, and a process without standard streams goes without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.cli import app
from codemode.cli.terminal import Terminal
from codemode.core.events import (
    CallParked,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecStarted,
    RunEnded,
    SnapshotEvent,
    TurnMeasured,
    WaitStarted,
    to_json,
)
from codemode.render.event import Narrator
from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, FIXTURES, clean_environment
from tests.support.streams import Stream

CELLS = str(FIXTURES / "manifests" / "cells" / "codemode.toml")
RUN = "cm_1"


# Events as lines


@requirement("cli:verbose:events")
def test_every_kind_of_event_is_a_line_with_its_time_since_the_first() -> None:
    told = Narrator()
    events = [
        ExecStarted(RUN, 1000.0, "ar", "javascript", "return 1", 24, {"client": 24}, ["exec", "wait"]),
        CallStarted(RUN, 1005.0, 1, "call", "client:app:add", {"a": 1}),
        CallParked(RUN, 1006.0, 2, "call", "client:app:pay", {"sum": 9}),
        CallParked(RUN, 1007.0, 3, "call", "client:app:pay", {"sum": 99}, "a large sum"),
        CallProgress(RUN, 1100.0, 1, {"done": 3}),
        CallSettled(RUN, 1120.0, 1, "ok", 2048, None),
        TurnMeasured(RUN, 1121.0, 0.5, [1]),
        CallSettled(RUN, 1122.0, 2, "denied", 0, "a person said no"),
        SnapshotEvent(RUN, 1200.0, "taken", 20480),
        WaitStarted(RUN, 3000.0, "w1"),
        TurnMeasured(RUN, 3001.0, 4.5, [2, 3], "w1"),
        RunEnded(RUN, 3002.0, "failed", "timeout", "too long", 102.0),
        RunEnded(RUN, 3003.0, "completed", None, None, 3.0),
    ]

    assert [told.line(to_json(event)) for event in events] == [
        "+0.0 ms   run cm_1 begins: javascript, 24 tools in the catalog",
        '+5.0 ms   call 1 client:app:add started with {"a": 1}',
        '+6.0 ms   call 2 client:app:pay awaits approval with {"sum": 9}',
        '+7.0 ms   call 3 client:app:pay awaits approval with {"sum": 99}, as a hook asks: a large sum',
        '+100 ms   call 1 client:app:add reports {"done": 3}',
        "+120 ms   call 1 client:app:add settled: ok, 2.0 kB",
        "+121 ms   turn after call 1 over, 0.5 ms in the cell",
        "+122 ms   call 2 client:app:pay settled: denied, a person said no",
        "+200 ms   snapshot taken, 20.5 kB",
        "+2.0 s    run cm_1 goes on",
        "+2.0 s    turn after calls 2, 3 over, 4.5 ms in the cell",
        "+2.0 s    run cm_1 is failed [timeout] after 102 ms",
        "+2.0 s    run cm_1 is completed after 3.0 ms",
    ]


@requirement("cli:verbose:events", "cli:output:harmless")
def test_a_line_is_one_line_and_harmless_whatever_a_tool_says() -> None:
    told = Narrator()
    started = told.line(to_json(CallStarted(RUN, 0.0, 1, "call", "client:app:x", {"a": "x" * 1000})))
    progress = told.line(to_json(CallProgress(RUN, 0.0, 1, "two\nlines \x1b[2J")))

    assert len(started) < 260
    assert started.endswith("…")
    assert progress == "+0.0 ms   call 1 client:app:x reports two lines \\u001b[2J"


def test_calls_without_a_tool_go_by_their_method_and_unknown_events_by_their_name() -> None:
    told = Narrator()

    assert told.line(to_json(CallStarted(RUN, 5.0, 1, "timer", None, 500))) == "+0.0 ms   call 1 timer started with 500"
    assert told.line(to_json(CallSettled(RUN, 4.0, 7, "ok", 1, None))) == "+0.0 ms   call 7 ? settled: ok, 1 B"
    asked = {"event": "server", "at_ms": 5.0, "server": "shop", "state": "asked"}
    assert told.line(asked) == "+0.0 ms   MCP server shop is asked for its tools"
    assert told.line(asked | {"state": "failed"}) == "+0.0 ms   MCP server shop has failed"
    assert told.line({"event": "of_another_version", "at_ms": 6.0}) == "+1.0 ms   of_another_version"


# How much to say


@requirement("cli:quiet:errors-only", "cli:verbose:events")
def test_either_place_of_the_command_line_can_ask_for_quiet_or_verbose() -> None:
    err = Stream()
    terminal = Terminal(Stream(), err, {})
    terminal.speak(False, True)
    terminal.speak(False, False)
    terminal.tell("a step")
    terminal.speak(True, False)
    terminal.tell("another")
    terminal.pass_on("words of a host\n")
    terminal.complain("an error")

    assert err.getvalue() == "a step\nan error\n"


@requirement("cli:quiet:errors-only")
@pytest.mark.parametrize("arguments", [["-q", "catalog", "-m", CELLS], ["--quiet", "runs"], ["-q", "catalog"]])
def test_quiet_before_the_command_silences_its_remarks(
    arguments: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert app.main(arguments) == 0
    assert capfd.readouterr().err == ""


@requirement("cli:verbose:events")
def test_verbose_names_the_manifest_that_is_used(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app.main(["-v", "catalog", "-m", CELLS])
    named = capfd.readouterr().err
    app.main(["-v", "catalog"])

    assert named.splitlines()[0] == f"manifest {CELLS}"
    assert capfd.readouterr().err.splitlines()[0] == "there is no codemode.toml here or above"


# Closed streams


def closing(redirections: str, *arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    """Run a command from a shell that closes streams of it, with files for those that are open."""
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *arguments]
    return subprocess.run(
        command, cwd=state, env=clean_environment(state), capture_output=True, text=True, timeout=BOUND_S, check=False
    )


@requirement("cli:streams:closed")
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_a_cell_runs_with_any_streams_closed_and_the_others_get_what_is_theirs(closed: str, tmp_path: Path) -> None:
    """`2>&-` once ended with status 70: there was no `sys.stderr` to pass a host's words on to."""
    done = closing(closed, "run", "-e", "text('out'); return 1", state=tmp_path)

    assert done.returncode == 0
    assert done.stdout == ("" if "1>" in closed else "out\n1\n")
    assert done.stderr.endswith("" if "2>" in closed else "\n")
    assert ("completed in" in done.stderr) == ("2>" not in closed)


@requirement("cli:streams:closed")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("repl",), 0), (("catalog",), 0), (("--version",), 0), (("bogus",), 2), (("run", "-"), 2)],
)
def test_no_command_minds_that_all_its_streams_are_closed(
    arguments: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    assert closing("0<&- 1>&- 2>&-", *arguments, state=tmp_path).returncode == status


@requirement("cli:streams:closed")
def test_closed_streams_are_filled_with_the_null_device_under_their_own_numbers() -> None:
    """Otherwise the next pipe would be number 2, and a complaint would go into it."""
    program = (
        "import os, sys\n"
        "from codemode.cli.streams import fill_closed_streams\n"
        "fill_closed_streams()\n"
        "null = os.stat(os.devnull).st_rdev\n"
        "same = [os.fstat(fd).st_rdev == null for fd in (0, 2)]\n"
        "print(same, sys.stdin.read() == '', sys.stderr.write('lost') == 4)\n"
        "print(os.get_inheritable(2), min(os.pipe()) > 2)\n"
    )
    command = ["sh", "-c", 'exec "$@" 0<&- 2>&-', "sh", sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ}, stdout=subprocess.PIPE, text=True, timeout=BOUND_S, check=False)

    assert done.stdout == "[True, True] True True\nTrue True\n"


@requirement("cli:streams:closed", "cli:output:broken-pipe")
def test_a_full_stderr_costs_nothing_but_what_was_said(tmp_path: Path) -> None:
    done = closing("2>/dev/full", "run", "-e", "return 1", state=tmp_path)

    assert (done.returncode, done.stdout) == (0, "1\n")
