"""The shop: a person's errands through the real command, with real tools of every kind."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.manifests.shop import server
from tests.requirements import requirement
from tests.support.cells import (
    FIXTURES,
    ROOT,
    Cell,
    clean_environment,
    differences,
    load_cell,
    load_cells,
    run_cell,
    run_command,
)

FOLDER = FIXTURES / "cells" / "shop"
MANIFEST = str(FIXTURES / "manifests" / "shop" / "codemode.toml")
CELLS = [pytest.param(cell, id=cell.path.name) for cell in load_cells(FOLDER)]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The parcel desk's port; it serves for the length of this module."""
    with server.start() as port:
        yield port


@pytest.fixture
def environment(port: int, tmp_path: Path) -> dict[str, str]:
    """An environment with a state folder of its own, in which every tool of the shop works."""
    shop = {"SHOP_PORT": str(port), "SHOP_LOG": str(tmp_path / "shop.log"), "PYTHON": sys.executable}
    return clean_environment(tmp_path / "state") | shop


def asked(folder: Path) -> list[str]:
    """Return the lines that the shop's tools logged."""
    log = folder / "shop.log"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@requirement("shop:cells:headers")
@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_of_the_shop_ends_as_its_header_says(cell: Cell, environment: dict[str, str], tmp_path: Path) -> None:
    """Joining, retrying, racing, falling back: what a person would want of a shop."""
    assert differences(cell, run_cell(cell, environment, tmp_path)) == []


@requirement("shop:courier:two-processes")
def test_the_slow_courier_is_asked_once_and_answers_in_another_process(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The first process ends as waiting while the call is open; the second gets its answer."""
    cell = load_cell(FOLDER / "wait_for_the_pigeon.js")
    first = run_cell(cell, environment, tmp_path, "--timeout-ms", "500")
    second = run_command(["wait", first.result["runId"], "--json"], environment, tmp_path)

    assert (first.exit_status, first.result["status"], first.result["reason"]) == (3, "waiting", "pending_tools")
    assert first.result["output"] == [{"type": "text", "text": "asking the pigeon…"}]
    assert [call["toolId"] for call in first.result["pendingToolCalls"]] == ["plugin:shop:quote_courier"]
    assert (second.exit_status, second.result["status"]) == (0, "completed")
    assert second.result["value"] == {"courier": "pigeon", "cents": 398, "days": 9}
    assert second.result["output"] == [{"type": "text", "text": "the pigeon is back"}]
    assert asked(tmp_path) == ["quote pigeon"]


@requirement("shop:steps:one-text-each")
def test_each_step_hands_over_its_own_text(environment: dict[str, str], tmp_path: Path) -> None:
    """The output of a result is only what is new since the last one."""
    cell = load_cell(FOLDER / "two_steps.js")
    first = run_cell(cell._replace(header={**cell.header, "flags": [""]}), environment, tmp_path)
    second = run_command(["wait", first.result["runId"], "--json"], environment, tmp_path)

    assert (first.exit_status, first.result["reason"]) == (3, "yield")
    assert [item["text"] for item in first.result["output"]] == ["5 orders are open"]
    assert second.exit_status == 0
    assert [item["text"] for item in second.result["output"]] == ["checking which of them are grinders or kettles"]


@requirement("shop:typescript:json")
def test_a_typescript_cell_prints_one_result(environment: dict[str, str], tmp_path: Path) -> None:
    """The manifest option may also stand after the command, as people write it."""
    cell = FOLDER / "quotes_in_parallel.ts"
    ran = run_command(["run", "-m", MANIFEST, str(cell), "--json"], environment, tmp_path)

    assert (ran.exit_status, ran.result["status"]) == (0, "completed")
    assert ran.result["telemetry"]["callCount"] == 4


@pytest.mark.timeout(300)
@requirement("shop:demo:ends-well")
def test_the_demo_runs_every_cell(environment: dict[str, str]) -> None:
    """Outputs, values, telemetry and trajectory of each cell, and one run in two processes."""
    done = subprocess.run(
        [sys.executable, "-m", "fixtures.demo"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:]
    assert [name for name in (path.name for path in FOLDER.iterdir()) if f"=== {name}" not in done.stdout] == []
    assert len(re.findall(r"cm_[0-9a-f-]{36}", done.stdout)) >= 2
