"""Start a child process in a group of its own, with three pipes and nothing else of ours.

Spawning comes first in the life of a command, so this file imports neither asyncio nor
subprocess. Called by the worker pool, by the host (whose first statement it is) and by the
front end (which starts the host).
"""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import NamedTuple

from codemode.core.errors import RuntimeUnavailable
from codemode.core.folders import cache_dir

_PACKAGE_ROOT = __file__.rsplit(os.sep, 3)[0]
_SANDBOX_MAIN = "import sys; sys.path += sys.argv[1:3]; from codemode.sandbox.{module} import main; main()"


class Child(NamedTuple):
    """A process of ours: its id, which is also its group's, and our ends of its three pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int


def spawn_worker() -> Child:
    """Start a sandbox worker with an empty environment.

    Raises:
        RuntimeUnavailable: wasmtime is not installed, or the process cannot be started.
    """
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return spawn(sandbox_argv("worker"), kept)


def sandbox_argv(module: str) -> list[str]:
    """Return the command that runs `main` of a module of the sandbox; the cache folder comes third.

    It is isolated from `PYTHON*` variables, from the working directory and from site hooks:
    its import path is the standard library, this package and the folder of wasmtime.

    Raises:
        RuntimeUnavailable: wasmtime is not installed.
    """
    found = PathFinder.find_spec("wasmtime")
    if found is None or not found.submodule_search_locations:
        raise RuntimeUnavailable("the package wasmtime is not installed; install codemode with its dependencies")
    engine_root = found.submodule_search_locations[0].rsplit(os.sep, 1)[0]
    main = _SANDBOX_MAIN.format(module=module)
    return [sys.executable, "-I", "-S", "-c", main, _PACKAGE_ROOT, engine_root, cache_dir()]


def spawn_first() -> Child | None:
    """Start a worker before anything else is loaded; None where that failed, which the pool will say."""
    try:
        return spawn_worker()
    except RuntimeUnavailable:
        return None


def spawn(argv: list[str], env: Mapping[str, str]) -> Child:
    """Start a program in a session, so a group, of its own; it inherits no descriptor but its three pipes.

    Raises:
        RuntimeUnavailable: The program cannot be started.
    """
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    ours_err, theirs_err = os.pipe()
    dup2 = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((theirs_in, theirs_out, theirs_err))]
    close = [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()]
    try:
        pid = os.posix_spawn(argv[0], argv, env, file_actions=[*dup2, *close], setsid=True)
    except OSError as error:
        for fd in (ours_in, ours_out, ours_err):
            os.close(fd)
        raise RuntimeUnavailable(f"cannot start {argv[0]}: {error.strerror}") from error
    finally:
        for fd in (theirs_in, theirs_out, theirs_err):
            os.close(fd)
    return Child(pid, ours_in, ours_out, ours_err)


def _inheritable() -> list[int]:
    """Return the descriptors above 2 that a child would inherit, such as a shell's `3>file`."""
    found: list[int] = []
    with os.scandir("/dev/fd") as entries:
        for entry in entries:
            fd = int(entry.name)
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
    return found


def kill(child: Child) -> str:
    """Kill the child and its group, collect it, close our pipes, and say how it ended.

    A child that ended by itself keeps its own exit status.

    Returns:
        `exited with status 3` or `was ended by SIGSEGV`.
    """
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):  # the latter: macOS, for a group of zombies
            send(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    for fd in (child.stdin, child.stdout, child.stderr):
        os.close(fd)
    code = os.waitstatus_to_exitcode(status)
    return f"exited with status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
