"""`codemode runs --prune AGE`: remove what ended long ago, and say how much it was."""

import re
from typing import TYPE_CHECKING

from codemode.cli.status import ExitStatus
from codemode.core.errors import InvalidInput

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal
    from codemode.store.port import Store

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def prune_runs(terminal: "Terminal", store: "Store", session: str, age: str) -> ExitStatus:
    """Remove the runs of a session that ended at least `age` ago: `30d`, `12h`, `45m` or `10s`.

    Raises:
        InvalidInput: It is no such age; nothing was removed.
    """
    from codemode.render.words import counted, size

    pruned = store.prune(session, _parse_age(age))
    if terminal.json:
        terminal.write_json({"session": session, "removed": pruned.runs, "freedBytes": pruned.freed_bytes})
    elif pruned.runs:
        freed = f"; the store is {size(pruned.freed_bytes)} smaller" if pruned.freed_bytes else ""
        terminal.note(f'removed {counted(pruned.runs, "run")} of session "{session}"{freed}')
    else:
        terminal.note(f'no run of session "{session}" ended that long ago')
    return ExitStatus.OK


def _parse_age(text: str) -> int:
    """Return the milliseconds of an age."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text.strip(), re.ASCII)
    if found is None:
        raise InvalidInput(f"--prune takes an age such as 30d, 12h or 45m (0d: all that ended), found {text[:40]!r}")
    return int(found[1]) * _UNIT_MS[found[2]]
