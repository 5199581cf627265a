"""Each of the sixteen codes through `codemode run --json` or `wait --json`: moment, phase, exit status.

A scene is a manifest's tools and the commands that lead to the code; the last command's result is
looked at. Where a fault of ours, or of the machine, is wanted, a tool of the manifest causes it:
tools run on the host with all its rights.
"""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codemode.core.errors import ErrorCode
from tests.requirements import requirement
from tests.support.cells import (
    BOUND_S,
    COMMAND,
    EXIT_STATUS,
    LOST,
    ROOT,
    Ran,
    clean_environment,
    run_command,
)

TOOLS = """
import os, signal
from pathlib import Path

def kill_worker() -> None:
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            os.kill(int(pid), signal.SIGKILL)

def break_codemode() -> None:
    import codemode.executor
    codemode.executor.Executor.call = None

def fail() -> None:
    raise ValueError("no stock left")

async def never() -> None:
    import asyncio
    Path(__file__).with_name("begun").open("w").close()  # a named pipe: whoever reads it knows
    await asyncio.Event().wait()
"""
MANIFEST = "[tools.codeMode]\nenabled = true\n" + "".join(
    f'[[tool]]\nname = "{name}"\ndescription = "A tool of the codes\' test."\npython = "scene_tools:{name}"\n'
    for name in ("kill_worker", "break_codemode", "fail", "never")
)


PATIENTLY = ("--timeout-ms", "60000")


class Stage:
    """A folder with a manifest and a state of its own, in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = clean_environment(folder / "state") | {"CODEMODE_STATE_DIR": str(folder / "state")}
        (folder / "codemode.toml").write_text(MANIFEST, encoding="utf-8")
        (folder / "scene_tools.py").write_text(TOOLS, encoding="utf-8")

    def codemode(self, *arguments: str) -> Ran:
        return run_command([*arguments, "--json"], self.environment, self.folder)

    def run(self, code: str, *flags: str) -> Ran:
        return self.codemode("run", "-e", code, *flags)

    def wait(self, ran: Ran, *flags: str) -> Ran:
        return self.codemode("wait", ran.result["runId"], *flags)

    @contextlib.contextmanager
    def store(self) -> Iterator[sqlite3.Connection]:
        """Open the store as somebody with the user's rights could."""
        (path,) = (self.folder / "state").rglob("*.db")
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            yield connection


class Scene(NamedTuple):
    """How a code comes about, and where it is said to have happened."""

    code: str | None
    phase: str
    play: Callable[[Stage], Ran]
    words: str
    output: tuple[str, ...] = ()


def _run(code: str, *flags: str) -> Callable[[Stage], Ran]:
    return lambda stage: stage.run(code, *flags)


def _without_engine(stage: Stage) -> Ran:
    package = stage.folder / "elsewhere"
    shutil.copytree(ROOT / "codemode", package / "codemode", ignore=shutil.ignore_patterns("assets", "__pycache__"))
    stage.environment["PYTHONPATH"] = str(package)
    return stage.run("return 1")


def _bad_manifest(stage: Stage) -> Ran:
    (stage.folder / "codemode.toml").write_text("[tools.codeMode]\nenabled = 'yes'\n", encoding="utf-8")
    return stage.run("return 1")


def _forgotten(stage: Stage) -> Ran:
    ran = stage.run("await yield_control()", "--snapshot-ttl-seconds", "1")
    for _ in range(200):
        if stage.codemode("runs").result[0]["state"] == "expired":
            return stage.wait(ran)
    raise AssertionError("the run never expired")


def _damaged_snapshot(stage: Stage) -> Ran:
    ran = stage.run("await yield_control()")
    with stage.store() as connection:
        connection.execute("UPDATE snapshots SET data = substr(data, 1, length(data) / 2)")
    return stage.wait(ran)


def _aborted_elsewhere(stage: Stage) -> Ran:
    ran = stage.run("await yield_control()")
    stage.codemode("abort", ran.result["runId"])
    return stage.wait(ran)


def _interrupted(stage: Stage) -> Ran:
    """Send Ctrl-C once the cell's tool has begun."""
    os.mkfifo(stage.folder / "begun")
    command = [*COMMAND, "run", "-e", "text('kept'); await tools.never()", "--json", *PATIENTLY]
    with subprocess.Popen(
        command, cwd=stage.folder, env=stage.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        (stage.folder / "begun").read_bytes()
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=BOUND_S)
    return Ran(json.loads(stdout), process.returncode, stderr.decode())


SCENES = {
    "engine missing": Scene("runtime_unavailable", "runtime", _without_engine, "reinstall codemode"),
    "worker died": Scene("runtime_unavailable", "runtime", _run("await tools.kill_worker({})"), "was ended by SIGKILL"),
    "a setting of the wrong type": Scene("invalid_config", "input", _bad_manifest, "enabled"),
    "a shell line": Scene("invalid_input", "input", _run("ls -la"), "shell"),
    "an empty cell": Scene("invalid_input", "input", _run("   "), "-e is empty"),
    "an unknown run": Scene("invalid_input", "input", lambda stage: stage.codemode("wait", "cm_no"), "cm_no"),
    "another language": Scene("unsupported_language", "input", _run("return 1", "--language", "ruby"), "ruby"),
    "a namespace block": Scene(
        "typescript_transform_failed",
        "transform",
        _run("\nnamespace A { export const x = 1 }", "-l", "typescript"),
        "cell.ts:2:1",
    ),
    "an import": Scene("module_access_denied", "transform", _run("import fs from 'fs'"), "cell.js:1:1"),
    "a loop": Scene(
        "timeout", "guest", _run("text('kept'); while (true) {}", "--timeout-ms", "400"), "timeoutMs", ("kept",)
    ),
    "a memory bomb": Scene(
        "memory_limit_exceeded",
        "guest",
        _run("text('kept'); const a = []; for (;;) a.push({})", "--memory-limit-bytes", "8388608", *PATIENTLY),
        "memoryLimitBytes",
        ("kept",),
    ),
    "a flood of text": Scene(
        "output_limit_exceeded",
        "guest",
        _run("text('kept'); json('x'.repeat(2000))", "--max-output-bytes", "1024"),
        "bytes were left out",
        ("kept",),
    ),
    "a heavy suspension": Scene(
        "snapshot_limit_exceeded",
        "runtime",
        _run("text('kept'); await yield_control()", "--max-snapshot-bytes", "1024"),
        "maxSnapshotBytes",
        ("kept",),
    ),
    "a forgotten run": Scene("snapshot_expired", "runtime", _forgotten, "snapshotTtlSeconds"),
    "a damaged snapshot": Scene("snapshot_restore_failed", "runtime", _damaged_snapshot, "snapshot"),
    "a call too many": Scene(
        "too_many_pending_tool_calls",
        "bridge",
        _run("tools.never({}); await tools.never({})", "--max-pending-tool-calls", "1"),
        "maxPendingToolCalls",
    ),
    "a tool that fails": Scene("nested_tool_failed", "bridge", _run("await tools.fail({})"), "no stock left"),
    "an abort from elsewhere": Scene("aborted", "runtime", _aborted_elsewhere, "aborted"),
    "Ctrl-C": Scene("aborted", "runtime", _interrupted, "the run was aborted", ("kept",)),
    "a fault of ours": Scene(
        "internal_error", "runtime", _run("await tools.break_codemode({}); await tools.fail({})"), "TypeError"
    ),
    "a throw": Scene(None, "guest", _run("text('kept'); null.x"), "TypeError", ("kept",)),
    "a syntax error": Scene(None, "transform", _run("return (1"), "SyntaxError"),
}


def _claims(scene: Scene) -> str:
    return f"codes:{scene.code.replace('_', '-')}:arises" if scene.code else "codes:none:guest"


@pytest.mark.parametrize(
    "scene",
    [pytest.param(scene, id=name, marks=pytest.mark.requirement(_claims(scene))) for name, scene in SCENES.items()],
)
def test_a_code_arises_at_its_moment_with_phase_and_exit_status(scene: Scene, tmp_path: Path) -> None:
    ran = scene.play(Stage(tmp_path))
    result: dict[str, Any] = ran.result

    assert (result["status"], result.get("code"), result["phase"]) == ("failed", scene.code, scene.phase), result
    is_lost = scene.code == "timeout" and LOST in result["error"]  # as where the machine gave the worker no time
    assert is_lost or scene.words in result["error"]
    assert ran.exit_status == EXIT_STATUS[scene.code]
    shown = [item["value" if item["type"] == "json" else "text"] for item in result["output"]]
    assert shown == ([] if is_lost else list(scene.output))
    assert "Traceback" not in ran.stderr


@requirement("codes:table:complete")
def test_the_scenes_cover_all_sixteen_codes() -> None:
    assert len(ErrorCode) == 16
    assert {scene.code for scene in SCENES.values()} - {None} == set(ErrorCode)
