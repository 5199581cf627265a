"""A watchdog that ends our servers when we cannot: it outlives us by a second, they do not.

A server that reads its stdin notices our death by itself; many do not, and `npx` starts
children. So one tiny shell, in a session of its own, knows the process groups of our servers
and waits at the end of a pipe that only we hold. When the pipe closes, however we died, it
sends SIGTERM to each group, then SIGKILL.
"""

import subprocess
from contextlib import suppress

_SHELL = "/bin/sh"
_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r change group; do
  kept=
  for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
  groups=$kept
  [ "$change" = + ] && groups="$groups $group"
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -TERM "-$one"; done
sleep 1
for one in $groups; do kill -KILL "-$one"; done
"""


class Guard:
    """Process groups that must not outlive this process. Without a shell it does nothing."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """End this process group when our process ends, whichever way."""
        if self._shell is None:
            with suppress(OSError):
                self._shell = subprocess.Popen(
                    [_SHELL, "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,  # never our own: a caller's pipe would stay open
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )
        self._tell(f"+ {group}")

    def forget(self, group: int) -> None:
        """Leave a group alone: it has ended, and its number may be given to another."""
        self._tell(f"- {group}")

    def close(self) -> None:
        """End the watchdog; what it still watches is ended by it."""
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.close()
            self._shell.wait()
            self._shell = None

    def _tell(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(f"{line}\n".encode())
                self._shell.stdin.flush()
