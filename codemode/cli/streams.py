"""A process may be started with its standard streams closed (`2>&-`); from here on each of them exists.

Called before anything else is loaded, so it imports next to nothing. Without it the next pipe or
file that is opened would get the number of a closed stream, and `sys.stderr` would be None.
"""

import os
import sys

_NAMES = ("stdin", "stdout", "stderr")


def fill_closed_streams() -> None:
    """Put the null device wherever a standard stream was closed: it reads as empty and swallows what is written.

    Contract: cli:streams:closed
    """
    for fd, name in enumerate(_NAMES):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one: those below it are taken
            os.set_inheritable(fd, True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(fd, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # as long as we live
