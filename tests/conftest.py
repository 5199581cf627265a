"""Fixtures that several areas share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, so that a failure is the change's and not the day's;
# `make test ARGS="--hypothesis-profile=search"` looks for new ones.
# Slow is no fault of theirs, and what a fixture holds is the same for all examples of a test.
UNASKED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("steady", derandomize=True, deadline=None, database=None, suppress_health_check=UNASKED)
settings.register_profile("search", max_examples=1000, deadline=None, suppress_health_check=UNASKED)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, engine_cache: Path) -> Iterator[None]:
    """Keep the tests' runs and caches out of the user's folders; share one engine cache, it is verified anyway."""
    before = dict(os.environ)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)  # in a shell's background it is ignored
    os.environ["CODEMODE_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))
    os.environ["CODEMODE_CACHE_DIR"] = str(engine_cache)
    os.environ.pop("CODEMODE_MANIFEST", None)
    os.environ.pop("CI", None)  # with it nobody can be asked, and there are tests of asking
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a command compiled anew each time takes twice as long
    yield
    os.environ.clear()
    os.environ.update(before)
    signal.signal(signal.SIGINT, interrupt)


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache folder that this test process owns, with its compiled engine."""
    return tmp_path_factory.mktemp("engine")


@pytest.fixture
def no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the interrupt alone end what computes past its deadline, however little of the machine its worker gets.

    Otherwise a worker that got no time within the grace is killed, as the contract has it, and its output is lost.
    """
    monkeypatch.setattr("codemode.supervisor.worker.KILL_GRACE_MS", 60_000)
