"""Files that are the user's alone: written whole or not at all, mode 0600, in a folder of mode 0700."""

import os
import tempfile
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Replace a file by a new one with this text; readers see the old one or the new one.

    Raises:
        OSError: It cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
