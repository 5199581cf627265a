"""`codemode doctor` as a person runs it: on a machine in order, and with each thing broken in turn."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from codemode.cli.checks.claims import CLAIMS
from codemode.core.types import Json
from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, FIXTURES, clean_environment
from tests.support.terminal import run_in_terminal

CELLS = str(FIXTURES / "manifests" / "cells" / "codemode.toml")
SHELF = FIXTURES / "servers" / "shelf.py"
STATES = {"ok", "warning", "failed"}


class Report(NamedTuple):
    """What the command said: its status, its checks, the versions, and stderr."""

    status: int
    checks: list[Json]
    versions: dict[str, str]
    err: str

    def named(self, name: str) -> list[Json]:
        return [check for check in self.checks if check["name"] == name]


def run_doctor(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        encoding="utf-8", timeout=BOUND_S, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def report_of(environment: dict[str, str], folder: Path, *arguments: str) -> Report:
    """Run `codemode doctor --json …` and read what it found."""
    done = run_doctor(environment, folder, "doctor", "--json", *arguments)
    assert done.stdout.count("\n") == 1
    document = json.loads(done.stdout)
    assert set(document) == {"ok", "checks", "versions"}
    assert document["ok"] == (done.returncode == 0)
    return Report(done.returncode, document["checks"], document["versions"], done.stderr)


@pytest.fixture
def environment(tmp_path: Path, engine_cache: Path) -> dict[str, str]:
    return clean_environment(tmp_path / "state") | {"CODEMODE_CACHE_DIR": str(engine_cache)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, engine_cache: Path) -> Report:
    """What it says of a machine in order; one run for several tests, since it tries so much."""
    folder = tmp_path_factory.mktemp("sound")
    environment = clean_environment(folder / "state") | {"CODEMODE_CACHE_DIR": str(engine_cache)}
    return report_of(environment, folder, "-m", CELLS)


def write(folder: Path, *parts: str) -> None:
    (folder / "codemode.toml").write_text("\n".join(parts), encoding="utf-8")


# In order


@requirement("cli:doctor:checks", "doctor:claims:tried", "doctor:lockdown:reported", "doctor:status:failed")
def test_a_machine_in_order_has_everything_tried_and_ends_with_0(sound: Report) -> None:
    assert (sound.status, sound.err) == (0, "")
    assert {check["state"] for check in sound.checks} <= STATES
    assert [check for check in sound.checks if check["state"] == "failed"] == []
    assert len(sound.named("sandbox")) == len(CLAIMS)
    assert {"versions", "engine", "snapshot", "lockdown", "cache", "store", "manifest", "tools", "code mode"} <= {
        check["name"] for check in sound.checks
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the lockdown is Linux's")
@requirement("doctor:lockdown:tried", "doctor:lockdown:reported")
def test_the_lockdown_is_both_reported_and_tried(sound: Report) -> None:
    says = [check["says"] for check in sound.named("lockdown")]

    assert any(line.startswith("seccomp: ") for line in says)
    assert any(line.startswith("landlock: ") for line in says)
    assert any(line.startswith("opening a socket is ") for line in says)
    assert any(line.startswith("opening a file is ") for line in says)


@requirement("doctor:versions:named", "cli:version:engine")
def test_versions_are_in_the_document_and_on_a_line(sound: Report) -> None:
    assert sound.versions["wasmtime"] in sound.named("versions")[0]["says"]
    assert set(sound.versions) >= {"codemode", "python", "quickjs-wasi", "acorn", "sucrase"}


# Out of order


@requirement(
    "doctor:status:failed", "doctor:servers:why-not", "doctor:manifest:clamps", "doctor:activation:reasons"
)  # fmt: skip
def test_whatever_is_broken_in_a_manifest_is_named_each_with_what_to_do(
    environment: dict[str, str], tmp_path: Path
) -> None:
    dead = "raise SystemExit('no key')"
    write(
        tmp_path,
        "[tools]\ncodeMode = { enabled = true, timeoutMs = 5 }\n[agents.night.tools]\ncodeMode = false",
        '[[tool]]\nname = "lost"\ndescription = "Gone."\npython = "no_such_module:function"',
        '[[tool]]\nname = "tool"\ndescription = "No such program."\ncommand = ["no-such-program-here"]',
        f'[mcp.servers.shelf]\ncommand = "{sys.executable}"\nargs = ["{SHELF}"]',
        '[mcp.servers.gone]\ncommand = "no-such-server-here"',
        f'[mcp.servers.dead]\ncommand = "{sys.executable}"\nargs = ["-c", "{dead}"]',
    )
    report = report_of(environment, tmp_path)
    tools, servers = report.named("tool"), report.named("server")
    main, night, *gates = report.named("code mode")

    assert report.status == 1
    assert [check for check in report.checks if check["state"] == "failed" and not check.get("fix")] == []
    assert ["no_such_module" in tools[0]["says"], "no-such-program-here" in tools[1]["says"]] == [True, True]
    assert sorted(check["state"] for check in servers) == ["failed", "failed", "ok"]
    assert any("no key" in check["says"] for check in servers)
    assert report.named("limits")[0]["fix"] == "Write 100."
    assert main["says"].startswith("on for the agent main: ")
    assert night["says"] == "off for the agent night: tools.codeMode.enabled is not true"
    assert [gate["says"].split(",")[0] for gate in gates] == [
        "off with --raw", "off with --disable-tools", "off with --no-model-tools",
    ]  # fmt: skip


@requirement("doctor:status:failed", "cli:quiet:errors-only", "cli:output:plain")
def test_quiet_shows_only_what_is_not_in_order_each_with_what_to_do(
    environment: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, "[tools]\nalow = []")
    (tmp_path / "file").write_text("")
    done = run_doctor(environment | {"CODEMODE_STATE_DIR": str(tmp_path / "file")}, tmp_path, "-q", "doctor")
    troubles = re.findall(r"^(\w+) +([\w ]+): .*\n         (\w.*)$", done.stdout, re.MULTILINE)

    assert (done.returncode, done.stderr) == (1, "")
    assert not re.search(r"^ok", done.stdout, re.MULTILINE)
    assert [(state, name) for state, name, _ in troubles if state == "failed"] == [
        ("failed", "store"),
        ("failed", "manifest"),
    ]


@requirement("doctor:cache:verified", "cli:doctor:checks", "cli:output:plain")
def test_damage_in_the_cache_is_counted_and_what_is_used_is_mended(environment: dict[str, str], tmp_path: Path) -> None:
    """In a pipe each check is a line, and the count goes to stderr."""
    cache = tmp_path / "cache"
    environment = environment | {"CODEMODE_CACHE_DIR": str(cache)}
    run_doctor(environment, tmp_path, "run", "-e", "return 1")
    stale = cache / f"image-{'0' * 32}"
    stale.write_bytes(b"x" * 1000)
    stale.chmod(0o600)
    in_use = next(file for file in cache.iterdir() if file.name.startswith("module-"))
    in_use.write_bytes(in_use.read_bytes()[:-1] + b"?")
    done = run_doctor(environment, tmp_path, "doctor")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("         ")]

    assert done.returncode == 0
    assert f"warning  cache: 1 file in {cache} is damaged, and never loaded" in lines
    assert all(re.match(r"(ok|warning|failed) +[a-z ]+: ", line) for line in lines)
    assert re.fullmatch(r"\d+ ok, \d+ to look at, 0 failed\n", done.stderr)
    assert int(done.stderr.split()[0]) == sum(line.startswith("ok") for line in lines)


@requirement("cli:doctor:checks")
def test_on_a_terminal_checks_have_marks_and_advice_stands_under_them(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environment.pop("NO_COLOR")
    shown = run_in_terminal(["doctor"], environment, tmp_path)

    assert shown.exit_status == 0
    assert "\x1b[32m✓ \x1b[0m" in shown.text
    assert "\x1b[33m! \x1b[0m" in shown.text
    assert "there is no codemode.toml here or above" in shown.text
    assert "\x1b[36m            Give -m FILE" in shown.text
