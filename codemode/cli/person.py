"""Whether a person sits at this terminal who can sign in with a browser, and how they are asked."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `run` asks a host, and need not load what that loads
    from codemode.mcp.signin import Invite


def is_person_here() -> bool:
    """Say whether somebody reads stderr and types on stdin; on a CI machine nobody does.

    Contract: mcp:auth:nobody
    """
    return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")


def invite_person(tell: Callable[[str], None]) -> "Invite | None":
    """Return a way to ask the person at this terminal to sign in, or None where nobody is; `tell` writes a line."""
    if not is_person_here():
        return None
    from codemode.mcp.signin import invite  # only where a person may have to sign in

    return lambda server, url: invite(server, url, tell)
