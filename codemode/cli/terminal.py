"""The world of a command: its two streams, whether people read them, and how much to say.

Nothing else of the command line touches `sys.stdout` or `sys.stderr`. Values go to stdout,
everything about them to stderr. Rich is loaded only for a stream that is a terminal.
"""

import io
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from codemode.core.types import Json


class OutputLost(Exception):
    """Stdout cannot be written, for another reason than a reader that is gone: a full disk, say."""


class Terminal:
    """Writes to stdout and stderr, in colour on a terminal, plain elsewhere, quiet on a broken pipe.

    The flags are set by the command once its options are known: `json` (stdout carries one JSON
    document and nothing else), `quiet` (stderr carries errors only), `verbose` (it tells each step).
    """

    @classmethod
    def of_process(cls) -> Self:
        """Return the terminal of this process; what is piped is UTF-8 whatever the locale, as JSON must be."""
        out, err = sys.stdout, sys.stderr
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper):
                encoding = stream.encoding if stream.isatty() else "utf-8"
                stream.reconfigure(encoding=encoding, errors="backslashreplace")
        return cls(out, err, os.environ)

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        """Look at the streams; `environ` decides with TERM whether they can be styled."""
        dumb = environ.get("TERM") == "dumb"
        self.styled_out = out.isatty() and not dumb
        self.styled_err = err.isatty() and not dumb
        self.coloured = not environ.get("NO_COLOR")
        self.json = False
        self.quiet = False
        self.verbose = False
        self.manifest: str | None = None  # of the option before the command
        self._out = out
        self._err = err

    def speak(self, quiet: bool, verbose: bool) -> None:
        """Take how much to say from a place of the command line; another one may have said it already."""
        self.quiet = self.quiet or quiet
        self.verbose = self.verbose or verbose

    def write(self, text: str) -> None:
        """Write a text and a line feed to stdout."""
        self._emit(self._out, text)

    def note(self, text: str) -> None:
        """Write a text and a line feed to stderr, unless the command is to be quiet."""
        if not self.quiet:
            self._emit(self._err, text)

    def tell(self, text: str) -> None:
        """Write a step of the work and a line feed to stderr, if the command is to be verbose."""
        if self.verbose and not self.quiet:
            self._emit(self._err, text)

    def pass_on(self, text: str) -> None:
        """Write to stderr what another process wrote to its own, unless the command is to be quiet."""
        if not self.quiet:
            self._emit(self._err, text, end="")

    def complain(self, text: str) -> None:
        """Write an error to stderr."""
        self._emit(self._err, text)

    def write_json(self, value: "Json") -> None:
        """Write the one JSON document of `--json`: indented for a person, compact for a program."""
        import json  # help needs none of it

        if self.styled_out:
            self.write(json.dumps(value, ensure_ascii=False, indent=2))
        else:
            self.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def out_console(self) -> "Console":
        """Return a rich console on stdout, which is a terminal."""
        return _console(self._out)

    def err_console(self) -> "Console":
        """Return a rich console on stderr, which is a terminal."""
        return _console(self._err)

    def print_out(self, renderable: "RenderableType") -> None:
        """Print a renderable to stdout, which is a terminal; long lines are left to it to wrap."""
        self.out_console().print(renderable, soft_wrap=True)

    def print_err(self, renderable: "RenderableType") -> None:
        """Print a renderable to stderr, which is a terminal."""
        self.err_console().print(renderable, soft_wrap=True)

    def close(self) -> None:
        """Flush what is left; whoever read us may be gone already."""
        self._emit(self._out, "", end="")
        self._emit(self._err, "", end="")

    def _emit(self, stream: TextIO, text: str, end: str = "\n") -> None:
        try:
            stream.write(text + end)
            stream.flush()
        except OSError as error:
            _forget(stream)
            if stream is self._out and not isinstance(error, BrokenPipeError):
                raise OutputLost(f"the output could not be written: {error.strerror}") from error


def _console(stream: TextIO) -> "Console":
    from rich.console import Console  # 80 ms, and only people on a terminal see what it does

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _forget(stream: TextIO) -> None:
    """Point a stream that takes nothing any more at nothing, so that not even the interpreter complains at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
