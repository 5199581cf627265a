"""What goes from the cache of compiled engines, and what stays: real files with times of their own."""

import os
import time
from pathlib import Path

import pytest

from codemode.core.limits import KEEP_ENGINE_DAYS
from codemode.sandbox.image import Workshop
from codemode.sandbox.leftovers import note_use
from tests.requirements import requirement

DAY_S = 86_400
OLD_S = (KEEP_ENGINE_DAYS + 1) * DAY_S
HOUR_S = 3600


def put(folder: Path, name: str, age_s: float) -> Path:
    """Write a file that was used so long ago."""
    file = folder / name
    file.write_bytes(b"engine")
    return aged(file, age_s)


def aged(file: Path, age_s: float) -> Path:
    moment = time.time() - age_s
    os.utime(file, (moment, moment))
    return file


def age_s(file: Path) -> float:
    return time.time() - file.stat().st_mtime


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@requirement("sandbox:cache:pruned")
def test_what_nobody_has_used_for_a_month_goes_when_something_is_used(tmp_path: Path) -> None:
    """Engines of earlier versions, and what a killed process had begun to write."""
    used = put(tmp_path, "module-now", 2 * DAY_S)
    for name in ("module-old", "image-old", "new-old"):
        put(tmp_path, name, OLD_S)
    put(tmp_path, "image-other-version", (KEEP_ENGINE_DAYS - 1) * DAY_S)

    note_use(used)

    assert names(tmp_path) == {"module-now", "image-other-version"}
    assert age_s(used) < HOUR_S


@requirement("sandbox:cache:pruned")
def test_what_is_not_an_engine_of_ours_stays_however_old(tmp_path: Path) -> None:
    """The folder holds tool lists of servers too, and whatever a person puts there."""
    used = put(tmp_path, "module-now", 2 * DAY_S)
    put(tmp_path, "notes.txt", OLD_S)
    put(tmp_path, "modules", OLD_S)
    (tmp_path / "image-folder").mkdir()
    aged(tmp_path / "image-folder", OLD_S)
    (tmp_path / "image-link").symlink_to(tmp_path / "notes.txt")
    os.utime(tmp_path / "image-link", (0, 0), follow_symlinks=False)
    before = names(tmp_path)

    note_use(used)

    assert names(tmp_path) == before


@requirement("sandbox:cache:pruned")
def test_a_file_that_was_used_today_is_neither_marked_nor_the_cache_looked_through(tmp_path: Path) -> None:
    """Starting a worker is on the path of every command."""
    used = put(tmp_path, "module-now", HOUR_S)
    moment = used.stat().st_mtime_ns
    put(tmp_path, "module-old", OLD_S)

    note_use(used)

    assert used.stat().st_mtime_ns == moment
    assert names(tmp_path) == {"module-now", "module-old"}


@requirement("sandbox:cache:pruned")
def test_a_clock_that_was_set_back_removes_nothing(tmp_path: Path) -> None:
    """Times in the future are as young as can be."""
    used = put(tmp_path, "module-now", 2 * DAY_S)
    put(tmp_path, "image-future", -OLD_S)

    note_use(used)

    assert names(tmp_path) == {"module-now", "image-future"}


@requirement("sandbox:cache:pruned")
def test_a_file_that_is_gone_meanwhile_is_no_matter(tmp_path: Path) -> None:
    """Another process may have removed it."""
    note_use(tmp_path / "module-gone")

    assert names(tmp_path) == set()


@requirement("sandbox:cache:pruned")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file of another user")
def test_a_file_of_another_user_stays(tmp_path: Path) -> None:
    used = put(tmp_path, "module-now", 2 * DAY_S)
    os.chown(put(tmp_path, "module-theirs", OLD_S), 65534, 65534)

    note_use(used)

    assert names(tmp_path) == {"module-now", "module-theirs"}


@requirement("sandbox:cache:pruned")
def test_a_workshop_marks_what_it_loads_and_an_audit_marks_nothing(tmp_path: Path) -> None:
    """What `doctor` looks at is not thereby in use."""
    Workshop(tmp_path).machine()
    (module,) = tmp_path.iterdir()
    aged(module, OLD_S)
    stale = put(tmp_path, "image-of-an-earlier-version", OLD_S)

    assert {state for _, _, state in Workshop(tmp_path).audit()} == {"verified", "damaged"}
    assert age_s(module) > OLD_S - DAY_S
    assert stale.exists()

    Workshop(tmp_path).machine()

    assert age_s(module) < HOUR_S
    assert not stale.exists()
