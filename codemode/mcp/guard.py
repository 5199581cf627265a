"""A watchdog that ends our servers when we cannot: it outlives us by a second, they do not.

A server that reads its stdin notices our death by itself; many do not, and `npx` starts
children. So one tiny shell, in a session of its own, knows the process groups and the marks of
our servers (`process`) and waits at the end of a pipe that only we hold. When the pipe closes,
however we died, it sends SIGTERM to each group, then SIGKILL, and SIGKILL to all that left it.
"""

import subprocess
from contextlib import suppress

from codemode.mcp.process import MARK

_SHELL = "/bin/sh"
_SCRIPT = f"""
trap '' HUP INT TERM
descendants() {{
  for child in $(cat /proc/"$1"/task/*/children); do echo "$child"; descendants "$child"; done
}}
servers=
while read -r change server; do
  kept=
  for one in $servers; do [ "$one" = "$server" ] || kept="$kept $one"; done
  servers=$kept
  [ "$change" = + ] && servers="$servers $server"
done
[ -n "$servers" ] || exit 0
strays=
for one in $servers; do strays="$strays $(descendants "${{one%:*}}")"; done
for one in $servers; do kill -TERM "-${{one%:*}}"; done
sleep 1
for one in $servers; do kill -KILL "-${{one%:*}}"; done
for one in $strays; do kill -KILL "$one"; done
for one in $servers; do
  for found in $(grep -l "{MARK}=${{one#*:}}" /proc/[0-9]*/environ); do
    found=${{found#/proc/}}
    kill -KILL "${{found%/environ}}"
  done
done
"""


class Guard:
    """Servers that must not outlive this process. Without a shell it does nothing."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None

    def watch(self, group: int, mark: str) -> None:
        """End this process group, and all that bears the mark, when our process ends, whichever way."""
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
        self._tell(f"+ {group}:{mark}")

    def forget(self, group: int, mark: str) -> None:
        """Leave a group alone: it has ended, and its number may be given to another."""
        self._tell(f"- {group}:{mark}")

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
