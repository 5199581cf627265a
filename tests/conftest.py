"""Fixtures that several areas share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples each time, so that a failure is the change's and not the day's;
# `make test ARGS="--hypothesis-profile=search"` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests' runs out of the user's store; share one engine cache, it is verified anyway."""
    before = dict(os.environ)
    os.environ["CODEMODE_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))
    os.environ.pop("CODEMODE_MANIFEST", None)
    os.environ.pop("CI", None)  # with it nobody can be asked, and there are tests of asking
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a command compiled anew each time takes twice as long
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache folder for compiled engines that this test process owns."""
    return tmp_path_factory.mktemp("engine")
