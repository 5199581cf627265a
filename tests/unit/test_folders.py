"""Where the cache and the state of a user lie, by the environment and by the system."""

import pwd
import sys
from pathlib import Path

import pytest

from codemode.composition import open_toolbox
from codemode.core.errors import InvalidConfig
from codemode.core.folders import cache_dir, state_dir
from codemode.mcp.listings import Listing, ListingCache
from codemode.store.sqlite import SqliteStore
from tests.requirements import requirement

ON_LINUX = ("/home/ada/.cache/codemode", "/home/ada/.local/state/codemode")
ON_MAC = ("/home/ada/Library/Caches/codemode", "/home/ada/Library/Application Support/codemode")
VARIABLES = ("CODEMODE_CACHE_DIR", "CODEMODE_STATE_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be ada on Linux, with nothing set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user whom the system does not know, as in a container."""

    def unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@requirement("runs:store:place")
@pytest.mark.parametrize(
    ("system", "environment", "cache", "state"),
    [
        ("linux", {}, *ON_LINUX),
        ("darwin", {}, *ON_MAC),
        ("linux", {"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"}, "/c/codemode", "/s/codemode"),
        ("linux", {"XDG_CACHE_HOME": "c", "XDG_STATE_HOME": ""}, *ON_LINUX),
        ("darwin", {"XDG_CACHE_HOME": "/c"}, *ON_MAC),
        ("linux", {"CODEMODE_CACHE_DIR": "/c", "CODEMODE_STATE_DIR": "~/s"}, "/c", "/home/ada/s"),
        ("linux", {"CODEMODE_CACHE_DIR": "~/c", "CODEMODE_STATE_DIR": "s"}, "/home/ada/c", str(Path.cwd() / "s")),
        ("linux", {"HOME": "/"}, "/.cache/codemode", "/.local/state/codemode"),
        ("linux", {"HOME": ""}, "", ""),
    ],
)
def test_each_folder_is_where_its_variable_or_the_system_says(
    monkeypatch: pytest.MonkeyPatch, system: str, environment: dict[str, str], cache: str, state: str
) -> None:
    """Ours first, then the desktop's rules, by which a relative folder is none."""
    monkeypatch.setattr(sys, "platform", system)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert (cache_dir(), state_dir()) == (cache, state)


@pytest.mark.usefixtures("nobody")
def test_a_user_without_a_home_keeps_no_cache_and_is_told_that_the_store_has_no_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match="set HOME, or CODEMODE_STATE_DIR"):
        SqliteStore()
    listings = ListingCache()
    listings.save("a" * 64, Listing(1.0, {}, []))

    assert (cache_dir(), listings.load("a" * 64), list(tmp_path.iterdir())) == ("", None, [])


@pytest.mark.usefixtures("nobody")
async def test_a_user_without_a_home_has_a_catalog() -> None:
    async with open_toolbox(None) as box:
        assert box.redactor.text("/home/ada") == "/home/ada"
