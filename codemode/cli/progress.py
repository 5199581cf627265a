"""A line on stderr while a run takes long: what it is waiting for, and for how long already.

Only on a terminal, and only after a moment: a fast run never loads rich for it.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from codemode.cli.terminal import Terminal
from codemode.core.types import Json
from codemode.render.words import MARKS, counted, duration, one_line, waits

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_PATIENCE_S = 0.4  # nobody wonders before that
_REDRAWS_PER_S = 8
_PREPARING, _RUNNING = "starting servers and tools", "running"  # of a cell


class Progress:
    """Follows a run's events; use it as a context manager around the wait for its result."""

    def __init__(self, terminal: Terminal, doing: str = _PREPARING) -> None:
        """Begin with nothing open; `doing` is what to say until something is."""
        self._terminal = terminal
        self._doing = doing
        self._began = time.monotonic()
        self._open: dict[Any, tuple[str, float]] = {}
        self._servers: dict[str, tuple[str, float]] = {}
        self._timer = threading.Timer(_PATIENCE_S, self._show)
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._over = False

    def __enter__(self) -> Self:
        if self._terminal.styled_err and not (self._terminal.quiet or self._terminal.verbose):
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._over = True
            self._timer.cancel()
            if self._live is not None:
                self._live.stop()

    def look(self, server: str, state: str) -> None:
        """Take what becomes of an MCP server that is asked for its tools: `asked`, then `answered` or `failed`."""
        if state == "asked":
            self._servers[server] = (server, time.monotonic())
        else:
            self._servers.pop(server, None)

    def follow(self, event: Mapping[str, Json]) -> None:
        """Take one event, as `core.events.to_json` or the host writes it; from the first of the run on, the cell runs.

        Contract: cli:progress:servers
        """
        if event["event"] == "server":
            self.look(str(event["server"]), str(event["state"]))
            return
        self._doing = _RUNNING
        match event["event"]:
            case "call_started":
                label = str(event["tool_id"] or event["method"])
                self._open[event["call_id"]] = (label, time.monotonic())
            case "call_settled":
                self._open.pop(event["call_id"], None)

    def pass_on(self, text: str) -> None:
        """Pass on what a host says, the line out of its way.

        Contract: cli:progress:aside
        """
        with self.aside():
            self._terminal.pass_on(text)

    def complain(self, text: str) -> None:
        """Say what a person must read now, the line out of its way."""
        with self.aside():
            self._terminal.complain(text)

    def line(self) -> str:
        """Return what there is to say now, without mark or colour."""
        servers, calls, now = self._servers.copy().values(), self._open.copy().values(), time.monotonic()
        if servers:
            return f"connecting {waits(servers, now)}"
        if calls:
            return f"{counted(len(calls), 'open call')}: {waits(calls, now)}"
        return f"{self._doing}, {duration((now - self._began) * 1000)}"

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep the line out of the way of what is written meanwhile."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
            yield
            if self._live is not None:
                self._live.start(refresh=True)

    def _show(self) -> None:
        from rich.live import Live  # in the timer's thread, while the host works

        with self._lock:
            if not self._over:
                console = self._terminal.err_console()
                self._live = Live(_Line(self), console=console, refresh_per_second=_REDRAWS_PER_S, transient=True)
                self._live.start(refresh=True)


class _Line:
    """The line as rich draws it, anew each time."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __rich__(self) -> "Text":
        from rich.text import Text

        mark = MARKS[int(time.monotonic() * _REDRAWS_PER_S) % len(MARKS)]
        text = one_line(self.progress.line(), 200)
        return Text.assemble(
            (f"{mark} ", "cyan"), (f"{text} (Ctrl-C aborts)", "dim"), no_wrap=True, overflow="ellipsis"
        )
