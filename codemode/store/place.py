"""Where the store of a user lies, and whatever else must last."""

from pathlib import Path

from codemode.core import folders
from codemode.core.errors import InvalidConfig


def state_dir() -> Path:
    """Return the state folder; it may not exist yet.

    Raises:
        InvalidConfig: The user has none.
    """
    folder = folders.state_dir()
    if not folder:
        raise InvalidConfig("there is no folder for the store: set HOME, or CODEMODE_STATE_DIR to a folder of yours")
    return Path(folder)
