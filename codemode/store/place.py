"""Where the state of a user lies: the folder of the store, and of whatever else must last."""

import os
import sys
from pathlib import Path


def state_dir() -> Path:
    """Return the state folder: `CODEMODE_STATE_DIR`, else `codemode` in the user's own; it may not exist yet.

    Contract: runs:store:place
    """
    given = os.environ.get("CODEMODE_STATE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform.startswith("linux"):  # what platformdirs says too, whose import costs 10 ms of each command
        base = os.environ.get("XDG_STATE_HOME", "")
        return (Path(base) if base.startswith("/") else Path.home() / ".local/state") / "codemode"
    from platformdirs import user_state_path

    return user_state_path("codemode", appauthor=False)
