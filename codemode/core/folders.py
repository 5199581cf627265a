"""Where the files of a user lie: the cache, of what can be made again, and the state, of what must last.

Neither folder need exist yet. `platformdirs` names the same two, and its import costs 10 ms of each
command, that of `pathlib` 3.
"""

import os
import sys


def cache_dir() -> str:
    """Return the cache folder, or "" where the user has none.

    `CODEMODE_CACHE_DIR`, else `codemode` in the user's own.
    """
    return _folder("CODEMODE_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "Library/Caches")


def state_dir() -> str:
    """Return the state folder, or "" where the user has none.

    `CODEMODE_STATE_DIR`, else `codemode` in the user's own.

    Contract: runs:store:place
    """
    return _folder("CODEMODE_STATE_DIR", "XDG_STATE_HOME", ".local/state", "Library/Application Support")


def _folder(ours: str, desktops: str, on_linux: str, on_mac: str) -> str:
    if given := os.environ.get(ours):
        return os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111  # pathlib takes 3 ms
    is_mac = sys.platform == "darwin"
    base = "" if is_mac else os.environ.get(desktops, "")
    if base.startswith("/"):  # a relative one is none, by the desktop's rules
        return f"{base}/codemode"
    home = home_dir()
    return f"{home.rstrip('/')}/{on_mac if is_mac else on_linux}/codemode" if home else ""


def home_dir() -> str:
    """Return the user's home folder, or "" where there is none: in a container, for a user whom nobody knows."""
    home = os.environ["HOME"] if "HOME" in os.environ else os.path.expanduser("~")  # noqa: PTH111
    return os.path.normpath(home) if home.startswith("/") else ""
