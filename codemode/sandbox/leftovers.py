"""What may go from the cache: engines and images that no build has used for a month, and broken-off writes.

Each file's own time says when it was used last, renewed once a day; reading leaves no trace that could
be trusted (`noatime`). Whatever cannot be judged stays, and what is missed is made anew.
"""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from codemode.core.limits import KEEP_ENGINE_DAYS

UNFINISHED = "new-"  # begins the name of a file that is still being written
PREFIXES = ("module-", "image-")  # begin the names of those that are whole
_DAY_S = 86_400


def note_use(file: Path) -> None:
    """Note that a cached file is in use; with the first note of a day, remove what nobody uses.

    Contract: sandbox:cache:pruned
    """
    with suppress(OSError):  # a cache that cannot be kept in order costs room, nothing else
        if _age_s(file.stat()) > _DAY_S:
            os.utime(file)
            _prune(file.parent)


def _prune(cache: Path) -> None:
    for file in cache.iterdir():
        with suppress(OSError):
            if file.name.startswith((*PREFIXES, UNFINISHED)) and _is_left(file.lstat()):
                file.unlink()


def _is_left(status: os.stat_result) -> bool:
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
    return ours and _age_s(status) > KEEP_ENGINE_DAYS * _DAY_S


def _age_s(status: os.stat_result) -> float:
    """Return how long ago a file was used; negative where the clock was set back since."""
    return time.time() - status.st_mtime
