"""A closed terminal and `kill`: what the REPL and smoke checks have started ends with them."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.cells import COMMAND, clean_environment
from tests.support.processes import PATIENCE_S, has_ended

MANIFEST = """
[tools.codeMode]
enabled = true
timeoutMs = 60000

[[tool]]
name = "nap"
description = "Says who it is, and sleeps."
command = ["sh", "-c", "echo $$$$ > started; exec sleep 600"]
"""
CELL = "await tools.nap({})\n"
_AS_EVER = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


@requirement("session:hangup:leaves-nothing")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("command", ["repl", "smoke"])
def test_what_a_command_has_started_ends_with_it(tmp_path: Path, command: str, number: int) -> None:
    (tmp_path / "codemode.toml").write_text(MANIFEST)
    (tmp_path / "nap.js").write_text(f"// @status completed\n{CELL}")
    os.mkfifo(tmp_path / "started")
    told = os.open(tmp_path / "started", os.O_RDONLY | os.O_NONBLOCK)
    arguments = ("repl",) if command == "repl" else ("smoke", "nap.js")
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _AS_EVER, *COMMAND, *arguments],  # under `nohup` it would ignore the terminal's end
            cwd=tmp_path,
            env=clean_environment(tmp_path / "state"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            process.stdin.write(CELL)
            process.stdin.flush()  # and it stays open: a person is still there
            assert select.select([told], [], [], PATIENCE_S)[0], "the tool did not start"
            started = int(os.read(told, 100))
            process.send_signal(number)
            status = process.wait(PATIENCE_S)
            _, err = process.communicate()
    finally:
        os.close(told)

    assert has_ended(started)
    assert (status, "Traceback" in err) == (130, False), err
