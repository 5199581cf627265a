"""Cells as data: read a cell's expectation from its header, run it, compare.

`run_in_session` runs a cell in this process's session with real workers and tools, which is
quick; `run_cell` runs it through the real command.

A cell's file begins with comment lines. The first says what is promised and by whom
(`// contract 6: a BigInt becomes its decimal string`); the others, in any order:

    // @status completed | waiting | failed
    // @value JSON            the value, exactly
    // @output JSON           all output items, exactly
    // @code CODE             without it a failed cell must have no code
    // @error TEXT            part of the error; may be given more than once
    // @phase PHASE           @dispatched true|false    @reason yield|pending_tools
    // @calls ID ID …         the nested calls that were executed, in any order; empty for none
    // @pending METHOD [ID]   an open request of a waiting result; once for each
    // @not TEXT              stands nowhere in the result
    // @manifest NAME         fixtures/manifests/NAME/codemode.toml; none without it
    // @flags --timeout-ms 500
    // @bare                  the header is no part of the cell; it is fed on standard input

Adding a case is adding a file.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codemode.composition import Setup, open_session
from codemode.store.memory import MemoryStore
from codemode.supervisor.pool import WorkerPool

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
COMMAND = (sys.executable, "-m", "codemode")
BOUND_S = 100  # a hung command fails its test instead of the whole suite
PATIENT_MS = 60_000  # the longest deadline: for cells that something else is to end, on a busy machine too
LOST = "the output of this turn is lost"  # where the worker got no time within the grace, and was killed

EXIT_STATUS: dict[str | None, int] = {
    None: 1, "typescript_transform_failed": 1, "module_access_denied": 1, "nested_tool_failed": 1,
    "snapshot_expired": 1, "snapshot_restore_failed": 1,
    "invalid_config": 2, "invalid_input": 2, "unsupported_language": 2,
    "timeout": 4, "memory_limit_exceeded": 4, "output_limit_exceeded": 4, "snapshot_limit_exceeded": 4,
    "too_many_pending_tool_calls": 4,
    "runtime_unavailable": 5, "internal_error": 70, "aborted": 130,
}  # fmt: skip
RESULT_FIELDS = {
    "completed": ({"status", "value", "output", "telemetry"}, set()),
    "waiting": ({"status", "runId", "reason", "pendingToolCalls", "output", "telemetry"}, set()),
    "failed": ({"status", "error", "phase", "dispatched", "output", "telemetry"}, {"code", "runId"}),
}  # status → the fields that must be there, those that may


class Cell(NamedTuple):
    """One cell with what is expected of it; `header` maps a tag to its texts, in order."""

    path: Path
    source: str
    promise: str
    header: Mapping[str, list[str]]
    code: str

    @property
    def id(self) -> str:
        """The ledger's id: `cells:json:bigint`, or with `-ts` for TypeScript."""
        area, _, behaviour = self.path.stem.partition("__")
        suffix = "-ts" if self.path.suffix == ".ts" else ""
        return f"{self.path.parent.name}:{area}:{behaviour}{suffix}"

    def one(self, tag: str) -> str | None:
        """Return the tag's only text, or None without the tag."""
        texts = self.header.get(tag)
        return texts[0] if texts else None


class Ran(NamedTuple):
    """How a cell ended; without a command there is no exit status."""

    result: Any
    exit_status: int | None = None
    stderr: str = ""


def load_cells(folder: Path) -> list[Cell]:
    """Return the folder's cells, sorted by name."""
    return [load_cell(path) for path in sorted(folder.iterdir()) if path.suffix in (".js", ".ts")]


def load_cell(path: Path) -> Cell:
    """Read one cell; the first comment lines that are no tag are its promise."""
    lines = path.read_text(encoding="utf-8").split("\n")
    length = next((at for at, line in enumerate(lines) if not line.startswith("//")), len(lines))
    header: dict[str, list[str]] = {}
    prose: list[str] = []
    for line in lines[:length]:
        text = line.removeprefix("//").strip()
        if text.startswith("@"):
            tag, _, rest = text[1:].partition(" ")
            header.setdefault(tag, []).append(rest.strip())
        else:
            prose.append(text)
    source, _, promise = " ".join(prose).partition(": ")
    code = "\n".join(lines[length + 1 :] if "bare" in header else lines)
    return Cell(path, source, promise, header, code)


def run_cell(cell: Cell, environment: Mapping[str, str], folder: Path, *extra: str) -> Ran:
    """Run a cell through the command with `--json`, in a folder without a manifest of its own."""
    manifest = cell.one("manifest")
    where = ["-m", str(_manifest(manifest))] if manifest else []
    flags = shlex.split(cell.one("flags") or "")
    if "--timeout-ms" not in (*flags, *extra):
        flags += ["--timeout-ms", str(PATIENT_MS)]
    file = "-" if "bare" in cell.header else str(cell.path)
    return run_command([*where, "run", file, "--json", *flags, *extra], environment, folder, cell.code)


def run_command(arguments: list[str], environment: Mapping[str, str], folder: Path, stdin: str = "") -> Ran:
    """Run `codemode ARGUMENTS` and parse its standard output as one JSON document."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=dict(environment), input=stdin.encode(),
        capture_output=True, timeout=BOUND_S, check=False,
    )  # fmt: skip
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {"status": f"no JSON: {done.stdout[:500]!r} {done.stderr[-1500:].decode(errors='replace')}"}
    return Ran(result, done.returncode, done.stderr.decode(errors="replace"))


async def run_in_session(cell: Cell, pool: WorkerPool) -> Ran:
    """Run a cell in a session of its own, with an empty store, on the workers of `pool`."""
    flags = dict(re.findall(r"--([\w-]+)(?: ([^-]\S*))?", cell.one("flags") or ""))
    limits = {"timeout_ms": PATIENT_MS} | {
        name.replace("-", "_"): int(text) for name, text in flags.items() if text.isdigit()
    }
    language = flags.get("language", "typescript" if cell.path.suffix == ".ts" else "javascript")
    name = cell.one("manifest")
    setup = Setup(manifest=_manifest(name) if name else None, limits=limits)
    pool.release(await pool.acquire())  # a killed worker's successor has to start, which no deadline is to pay for
    async with open_session(setup, pool, MemoryStore()) as session:
        result = (await session.exec({"code": cell.code, "language": language})).to_json()
        while "wait" in flags and result["status"] == "waiting":
            result = (await session.wait({"runId": result["runId"]})).to_json()
    return Ran(result)


def _manifest(name: str) -> Path:
    return FIXTURES / "manifests" / name / "codemode.toml"


def without_settings() -> dict[str, str]:
    """Return this process's environment without codemode settings; only its cache stays the tests' own."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("CODEMODE_") or key == "CODEMODE_CACHE_DIR"
    }


def clean_environment(state: Path) -> dict[str, str]:
    """Return this process's environment with a state folder of its own, no codemode settings and no window's size."""
    kept = without_settings()
    for key in ("COLUMNS", "LINES"):  # the test runner's, or that of whoever started it
        kept.pop(key, None)
    return kept | {"XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


def differences(cell: Cell, ran: Ran) -> list[str]:
    """Return one sentence for each way in which the run is not what the header expects."""
    found = [*_shape(ran), *_exactly(cell, ran.result), *_texts(cell, ran.result), *_requests(cell, ran.result)]
    return [*found, f"the result was {json.dumps(ran.result, ensure_ascii=False)[:3000]}"] if found else []


def _shape(ran: Ran) -> list[str]:
    """Check what holds for every result, whatever the cell."""
    result = ran.result
    status = result["status"]
    if status not in RESULT_FIELDS:
        return [f"status {status}"]
    must, may = RESULT_FIELDS[status]
    wrong = []
    if not must <= set(result) <= must | may:
        wrong.append(f"a {status} result has the fields {sorted(result)}")
    exit_status = {"completed": 0, "waiting": 3}.get(status, EXIT_STATUS.get(result.get("code")))
    if ran.exit_status not in (None, exit_status):
        wrong.append(f"exit status {ran.exit_status} instead of {exit_status}")
    if len(result.get("error", "").encode()) > 8192:
        wrong.append("the error is longer than 8 KiB")
    if "Traceback" in ran.stderr:
        wrong.append(f"a traceback on stderr: {ran.stderr[-2000:]}")
    return wrong


def _exactly(cell: Cell, result: Any) -> list[str]:
    wrong = []
    for tag in ("status", "code", "phase", "reason"):
        expected = cell.one(tag)
        if (expected is not None or tag == "code") and result.get(tag) != expected:
            wrong.append(f"{tag} is {result.get(tag)!r}, expected {expected!r}")
    for tag in ("value", "output", "dispatched"):
        expected = None if _has_lost_its_output(result) else cell.one(tag)
        if expected is not None and not _same(json.loads(expected), result.get(tag)):
            wrong.append(f"{tag} is {json.dumps(result.get(tag), ensure_ascii=False)[:1500]}, expected {expected}")
    return wrong


def _has_lost_its_output(result: Any) -> bool:
    """Say whether the worker was killed at the deadline: the contract allows it where the machine gave it no time."""
    return result.get("code") == "timeout" and LOST in result["error"]


def _same(expected: Any, actual: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return json.dumps(expected, sort_keys=True) == json.dumps(actual, sort_keys=True)


def _texts(cell: Cell, result: Any) -> list[str]:
    error = result.get("error", "")
    everything = json.dumps(result, ensure_ascii=False)
    wanted = [] if _has_lost_its_output(result) else cell.header.get("error", [])
    missing = [f"the error lacks {text!r}" for text in wanted if text not in error]
    return missing + [f"the result holds {text!r}" for text in cell.header.get("not", []) if text in everything]


def _requests(cell: Cell, result: Any) -> list[str]:
    wrong = []
    calls = cell.one("calls")
    if calls is not None:
        telemetry = result["telemetry"]
        seen = (sorted(set(telemetry["nestedToolIds"])), telemetry["callCount"])
        if seen != (sorted(set(calls.split())), len(calls.split())):
            wrong.append(f"the executed calls are {seen}, expected {calls!r}")
    if "pending" in cell.header:
        open_requests = [f"{call['method']} {call.get('toolId', '')}".strip() for call in result["pendingToolCalls"]]
        if sorted(open_requests) != sorted(cell.header["pending"]):
            wrong.append(f"the open requests are {open_requests}, expected {cell.header['pending']}")
    return wrong
