"""`codemode runs --prune AGE`: ended runs go when a person says so, and nothing else does."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, clean_environment

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def codemode(tmp_path: Path) -> Command:
    """Run `codemode …` with a state folder of its own."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=clean_environment(tmp_path / "state"), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=BOUND_S, check=False,
        )  # fmt: skip

    return run


def states(codemode: Command, session: str = "default") -> list[str]:
    return [run["state"] for run in json.loads(codemode("runs", "--session", session, "--json").stdout)]


@requirement("runs:retention:now")
def test_prune_removes_the_ended_runs_of_a_session_and_says_how_many(codemode: Command) -> None:
    codemode("run", "-e", "return 1")
    codemode("run", "-e", "throw 1")
    codemode("run", "-e", "await yield_control()")
    codemode("run", "-e", "return 1", "--session", "nightly")

    young = codemode("runs", "--prune", "1h")
    assert (young.returncode, young.stdout) == (0, "")
    assert young.stderr == 'no run of session "default" ended that long ago\n'
    assert states(codemode) == ["waiting", "failed", "completed"]

    done = codemode("runs", "--prune", "0d")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r'removed 2 runs of session "default"(; the store is [\d.]+ k?B smaller)?\n', done.stderr)
    assert states(codemode) == ["waiting"]
    assert states(codemode, "nightly") == ["completed"]


@requirement("runs:retention:now")
def test_with_json_it_is_one_document(codemode: Command) -> None:
    codemode("run", "-e", "return 1")

    pruned = json.loads(codemode("runs", "--prune", "0s", "--json").stdout)

    assert pruned == {"session": "default", "removed": 1, "freedBytes": pruned["freedBytes"]}
    assert pruned["freedBytes"] >= 0


@requirement("runs:retention:now")
@pytest.mark.parametrize("age", ["", "7", "d", "7w", "-1d", "1.5h", "٣d", "1234567d"])
def test_an_age_that_is_none_is_refused_and_removes_nothing(codemode: Command, age: str) -> None:
    codemode("run", "-e", "return 1")

    refused = codemode("runs", f"--prune={age}")

    assert refused.returncode == 2
    assert refused.stderr.startswith("error [invalid_input]: --prune takes an age such as 30d, 12h or 45m")
    assert states(codemode) == ["completed"]
