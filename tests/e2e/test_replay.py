"""`run --record` and `run --replay` through the real command, with a real MCP server and a secret."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.support.cells import without_settings

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100
PATIENTLY = ("--timeout-ms", "60000")  # a server starts within it on a busy machine too
SECRET = "sesame-48151623"
MANIFEST = f"""
[tools.codeMode]
maxPendingToolCalls = 3

[[tool]]
name = "greet"
description = "Greets, with a secret that it needs."
command = ["sh", "-c", 'echo "$1" >> "$0"; echo "hello $1, {{n}}"', "asked", "${{SESAME}}"]
parameters = {{ type = "object", properties = {{ n = {{ type = "integer" }} }}, required = ["n"] }}

[mcp.servers.shelf]
command = "{sys.executable}"
args = ["{ROOT}/fixtures/servers/shelf.py"]
env = {{ NEEDED = "${{SESAME}}" }}
"""
CELL = """
const hello = await tools.greet({ n: 1 });
await yield_control();
const { structuredContent } = await MCP.shelf.findBooks({ author: "Woolf" });
const { resources } = await MCP.shelf.resources.list();
return [hello.trim(), (await tools.greet({ n: 2 })).trim(), structuredContent.books[0].title, resources.length];
"""


class Folder:
    """A folder with a manifest, a cell and a store of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recording = path / "calls.jsonl"
        (path / "codemode.toml").write_text(MANIFEST)
        (path / "cell.js").write_text(CELL)
        self.environment = without_settings() | {"PYTHONPATH": str(ROOT), "CODEMODE_STATE_DIR": str(path / "state")}

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "codemode", *arguments, "--json", *(PATIENTLY if arguments[0] == "run" else ())],
            cwd=cwd or self.path,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    def record(self, *more: str) -> dict[str, Any]:
        status, result = self.run("run", "cell.js", "--record", "calls.jsonl", *more, SESAME=SECRET)
        assert status == 0, result
        return result

    def elsewhere(self) -> Path:
        """A folder that has the cell and the recording, and no manifest."""
        other = self.path / "elsewhere"
        other.mkdir()
        (other / "cell.js").write_text(CELL)
        (other / "calls.jsonl").write_text(self.recording.read_text())
        return other


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@requirement("recording:replay:servers", "recording:record:waits", "recording:record:redacted")
def test_a_run_is_replayed_where_there_is_neither_server_nor_secret_nor_manifest(folder: Folder) -> None:
    recorded = folder.record("--wait")
    asked = (folder.path / "asked").read_text()
    status, replayed = folder.run("run", "cell.js", "--replay", "calls.jsonl", "--wait", cwd=folder.elsewhere())

    assert recorded["value"] == [f"hello {SECRET}, 1", f"hello {SECRET}, 2", "Mrs Dalloway", 2]
    assert (status, replayed["value"]) == (0, ["hello [redacted], 1", "hello [redacted], 2", "Mrs Dalloway", 2])
    assert replayed["telemetry"]["nestedToolIds"] == recorded["telemetry"]["nestedToolIds"]
    assert SECRET not in folder.recording.read_text()
    assert (folder.path / "asked").read_text() == asked


@requirement("recording:format:diffable")
def test_recorded_again_the_file_is_the_same(folder: Folder) -> None:
    folder.record("--wait")
    before = folder.recording.read_text()
    folder.record("--wait")

    assert folder.recording.read_text() == before
    calls = [json.loads(line) for line in before.splitlines()[-4:]]
    assert [call["tool"] for call in calls] == [
        "client:app:greet",
        "mcp:shelf:find_books",
        "mcp:shelf:resources/list",
        "client:app:greet",
    ]


@requirement("recording:replay:across-processes")
def test_a_wait_on_a_replayed_run_is_replayed_from_any_folder(folder: Folder, tmp_path: Path) -> None:
    folder.record("--wait")
    status, waiting = folder.run("run", "cell.js", "--replay", "calls.jsonl")
    assert (status, waiting["reason"]) == (3, "yield")
    status, result = folder.run("wait", waiting["runId"], cwd=tmp_path.parent)

    assert (status, result["value"][1]) == (0, "hello [redacted], 2")


@requirement("recording:replay:strict")
def test_what_was_not_recorded_fails_and_says_what_was(folder: Folder) -> None:
    folder.record("--wait")
    status, result = folder.run("run", "-e", "return await tools.greet({n: 3})", "--replay", "calls.jsonl")

    assert (status, result["code"]) == (1, "nested_tool_failed")
    assert 'calls.jsonl has no answer for client:app:greet with {"n": 3}' in result["error"]
    assert '{"n": 1} (once), {"n": 2} (once)' in result["error"]


@requirement("recording:replay:no-manifest")
def test_a_manifest_is_not_replayed(folder: Folder) -> None:
    status, result = folder.run("run", "cell.js", "--replay", "codemode.toml", SESAME=SECRET)

    assert (status, result["code"]) == (2, "invalid_config")
    assert "is no recording" in result["error"]
    assert not (folder.path / "asked").exists()


def test_record_and_replay_exclude_each_other(folder: Folder) -> None:
    status, result = folder.run("run", "-e", "1", "--record", "a", "--replay", "b")

    assert (status, result["code"]) == (2, "invalid_input")


def test_a_recording_can_be_looked_at_as_a_catalog(folder: Folder) -> None:
    folder.record("--wait")
    status, listing = folder.run("catalog", "-m", str(folder.recording), cwd=folder.elsewhere())

    assert status == 0
    assert "client:app:greet" in [tool["id"] for tool in listing["tools"]]
    assert any(tool["id"].startswith("mcp:shelf:") for tool in listing["tools"])


@requirement("recording:replay:namespaces")
def test_a_run_with_a_plugins_namespace_is_replayed_where_the_plugin_is_not(folder: Folder) -> None:
    """Recorded with the plugin of the page, over a wait; replayed from a folder that has the file alone."""
    cell = "await yield_control(); return [Tickets.queue.name, await Tickets.change.close(7), await Tickets.list()]"
    plugin = ROOT / "tests" / "support" / "page_plugin.py"
    (folder.path / "page_plugin.py").write_text(plugin.read_text())
    (folder.path / "desk.toml").write_text('[[plugin]]\nid = "desk"\nmodule = "page_plugin"\n')
    recorded = folder.run("-m", "desk.toml", "run", "--wait", "-e", cell, "--record", "calls.jsonl")
    other = folder.elsewhere()
    replayed = folder.run("run", "--wait", "-e", cell, "--replay", "calls.jsonl", cwd=other)
    again = folder.run("run", "-e", "return await Tickets.change.close(8)", "--replay", "calls.jsonl", cwd=other)

    assert recorded[0] == 0, recorded
    assert (replayed[0], replayed[1]["value"]) == (0, recorded[1]["value"])
    assert recorded[1]["value"][:2] == ["support", {"number": 7, "state": "closed"}]
    assert again[1]["code"] == "nested_tool_failed"
    assert "no answer for Tickets.change.close with [8]; recorded: [7] (once)" in again[1]["error"]
