"""Who owns a run: real processes, alive, dead, half dead and out of sight."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.store import owner
from codemode.store.owner import Owner, is_alive, this_process
from tests.requirements import requirement

ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
TELL = "from codemode.store.owner import this_process; print(*this_process(), sep='|', flush=True); input()"


@pytest.fixture
def child():
    """A real process that says who it is and lives until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", TELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    pid, started = process.stdout.readline().decode().strip().split("|")
    yield process, Owner(int(pid), started)
    process.kill()
    process.communicate()


@requirement("runs:owners:pid-and-start")
def test_a_process_is_alive_until_it_is_killed_even_before_its_parent_looks(child):
    """Killed and not yet reaped it is a zombie, which does nothing any more."""
    process, its_owner = child
    assert its_owner.pid == process.pid
    assert is_alive(its_owner)

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead now, but not reaped

    assert not is_alive(its_owner)
    process.wait()
    assert not is_alive(its_owner)


@requirement("runs:owners:pid-and-start")
def test_another_process_with_the_same_pid_is_not_the_owner(child):
    """Pids come back; start times do not."""
    _, its_owner = child
    *place, ticks = its_owner.started.split(" ")

    assert not is_alive(its_owner._replace(started=" ".join([*place, str(int(ticks) - 1)])))


@ON_LINUX
def test_a_process_from_before_the_last_boot_is_dead(child):
    """After a restart of the machine the same pid may have started at the same tick."""
    _, its_owner = child
    _, *rest = its_owner.started.split(" ")

    assert not is_alive(its_owner._replace(started=" ".join(["00000000-boot", *rest])))


@ON_LINUX
def test_a_process_of_another_container_counts_as_alive():
    """Its pid means nothing here, and its run must not be taken from it."""
    boot, _, ticks = this_process().started.split(" ")

    assert is_alive(Owner(2**22 + 1, f"{boot} pid:[1] {ticks}"))


def test_an_owner_of_whom_nothing_is_known_counts_as_alive():
    """Where neither /proc nor ps tells: the run waits for its expiry."""
    assert is_alive(Owner(2**22 + 1, ""))


def test_this_process_is_itself_and_alive():
    """Asked often, read once."""
    assert this_process().pid == os.getpid()
    assert this_process() is this_process()
    assert is_alive(this_process())


@ON_LINUX
def test_a_command_name_with_brackets_and_blanks_does_not_mislead(tmp_path):
    """The second field of /proc/PID/stat is whatever the program calls itself."""
    program = tmp_path / ") 1 (Z"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "60"])
    started = owner._started(process.pid)

    assert started is not None
    assert int(started.rpartition(" ")[2]) >= int(this_process().started.rpartition(" ")[2])
    process.kill()
    process.wait()


def test_elsewhere_ps_tells_the_start(monkeypatch, child):
    """The fallback of systems without /proc, tried with this machine's ps where there is one."""
    process, its_owner = child
    monkeypatch.setattr(sys, "platform", "darwin")
    started = owner._started(process.pid)
    if started is None:
        pytest.skip("this machine has no /bin/ps")

    assert is_alive(its_owner._replace(started=started))
    assert not is_alive(its_owner._replace(started="Thu Jan  1 00:00:00 1970"))
    process.kill()
    process.wait()
    assert not is_alive(its_owner._replace(started=started))


def test_without_ps_nothing_tells(monkeypatch):
    """Then every owner counts as alive."""

    def missing(*_, **__):
        raise FileNotFoundError("/bin/ps")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", missing)

    assert owner._started(os.getpid()) is None


def test_a_kernel_that_hides_its_boot_still_tells_the_ticks(monkeypatch, tmp_path):
    """Some sandboxes leave boot_id out."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (python) S " + " ".join(str(n) for n in range(4, 53)))
    monkeypatch.setattr(owner, "_PROC", tmp_path)
    owner._machine.cache_clear()

    assert owner._started(7) == "? ? 22"
    owner._machine.cache_clear()
