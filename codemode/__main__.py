"""The console entry: for `run` and `wait` a host is started, and help is shown, before anything else is loaded."""

import gc
import sys

from codemode.cli.overview import is_asked_for, show_overview
from codemode.cli.streams import fill_closed_streams

_ABORTED = 130  # as `cli.status` has it, which is not loaded yet
_NEED_HOST = ("run", "wait")
_NO_RUN = ("--help", "-h", "--version")
_WITH_VALUE = ("-m", "--manifest")


def main() -> int:
    """Run the command line of this process and return its exit status.

    Contract: host:start:early, cli:start:overview
    """
    fill_closed_streams()
    try:
        if is_asked_for(sys.argv[1:]):
            return show_overview()
        gc.disable()  # while modules are loaded there is no garbage
        if needs_host(sys.argv[1:]):
            from codemode.cli.hostlink import start_early

            start_early()
        from codemode.cli.app import main as run_command_line  # typer takes as long as the host's own start

        gc.enable()
    except KeyboardInterrupt:
        return _ABORTED
    return run_command_line()


def needs_host(arguments: list[str]) -> bool:
    """Say whether the arguments are those of a command that runs a cell."""
    if any(argument in _NO_RUN for argument in arguments):
        return False
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word in _NEED_HOST
    return False


if __name__ == "__main__":
    sys.exit(main())
