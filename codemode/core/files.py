"""Which files can be read to their end, and what a JSON file holds.

A named pipe that nobody writes to keeps its reader waiting for ever, and a device may have no end. What
a person, a manifest or a server's definition names is asked here first, before it is opened.
"""

import errno
import json
import os
import stat
from pathlib import Path

from codemode.core.jsonsafe import clean_escapes
from codemode.core.tables import Where
from codemode.core.types import Json

_OF_THIS_PROCESS = ("/dev/fd/", "/dev/stdin", "/proc/self/")  # what a shell hands over: /dev/stdin, <(…)
_OPEN_ALREADY = (*_OF_THIS_PROCESS, "/proc/")
_KINDS = ((stat.S_ISFIFO, "named pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


def is_of_this_process(path: Path) -> bool:
    """Say whether another process would find something else, or nothing, at a path: `/dev/stdin`, or what `<(…)` is."""
    return str(path.absolute()).startswith(_OF_THIS_PROCESS)


def readable(path: Path) -> Path:
    """Return the path, unless reading it may never end.

    A file may; so may a pipe that is open already, as `/dev/stdin` or of `<(…)`, and the empty device.

    Raises:
        OSError: It is something else, or there is nothing; a folder is left to who reads it.

    Contract: manifest:load:special-file
    """
    mode = path.stat().st_mode
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "")
    whole = str(path.absolute())
    if kind and whole != os.devnull and not whole.startswith(_OPEN_ALREADY):
        raise OSError(errno.EINVAL, f"it is a {kind}, not a file", str(path))
    return path


def read_json(path: Path, where: Where) -> Json:
    """Return what a JSON file holds, without halves of characters.

    Raises:
        InvalidConfig: It cannot be read, or is no JSON; the message says where.

    Contract: manifest:load:halves
    """
    try:
        return json.loads(clean_escapes(readable(path).read_text(encoding="utf-8-sig")))
    except OSError as error:
        where.fail(f"cannot read {path}: {error.strerror}.")
    except UnicodeDecodeError:
        where.fail(f"{path} is not UTF-8 text.")
    except json.JSONDecodeError as error:
        where.fail(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}.")
    except (ValueError, RecursionError) as error:
        where.fail(f"{path} {'is nested too deeply' if type(error) is RecursionError else 'has too long a number'}.")
