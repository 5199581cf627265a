"""Signing in at a server, without the SDK: who may be asked, where tokens lie, and the browser's way back.

`oauth` speaks the protocol; here is what it needs of this machine. Front ends say with a `SignIn`
whether a person is there. The redirect of the browser comes to a port of ours that is open for
that long and no longer.
"""

import asyncio
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from codemode.core.limits import MCP_SIGN_IN_MS
from codemode.core.types import Json
from codemode.mcp.private import write_private

HOW_TO_SIGN_IN = "run `codemode catalog --refresh` in a terminal to sign in with the browser"
_PATH = "/callback"
_FORMAT = 1
_TURN_S = 15.0  # more than a renewal takes; a process that hangs in one must not stop the others for good
_LOOK_S = 0.02  # between two looks at whose turn it is
_MAX_REQUEST_BYTES = 1 << 16
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Connection: close\r\n\r\n{body}"
)
Invite = Callable[[str, str], None]
"""Asks the person at this terminal to sign in at the server of this name, at this address."""


class SignIn(NamedTuple):
    """Where tokens lie, and how to ask a person; None where nobody is there to be asked."""

    folder: Path
    invite: Invite | None = None


class SignInFailed(Exception):
    """Nobody is signed in at a server; the text says why, behind the server's name."""


class TokenFile:
    """What a server gave us, in a file of its own: the user's alone, under the server's address."""

    def __init__(self, folder: Path, url: str) -> None:
        """Name the file of the server at `url`; it need not exist."""
        self._file = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
        self._url = url

    def read(self) -> dict[str, Json]:
        """Return what was kept; nothing where there is none, or it is damaged."""
        with suppress(OSError, ValueError, RecursionError):
            kept = json.loads(self._file.read_bytes())
            if isinstance(kept, dict) and (kept.get("format"), kept.get("url")) == (_FORMAT, self._url):
                return kept
        return {}

    def write(self, kept: Mapping[str, Json]) -> None:
        """Keep this instead.

        Raises:
            OSError: It cannot be written: the next process would have to sign in again.

        Contract: mcp:auth:private
        """
        write_private(self._file, json.dumps({"format": _FORMAT, "url": self._url, **kept}))


class Turn:
    """Lets one process at a time renew tokens: a refresh token is good once."""

    def __init__(self, folder: Path) -> None:
        """Prepare for the tokens in a folder."""
        self._folder = folder
        self._held: int | None = None

    async def take(self) -> None:
        """Wait until it is ours, for a while; where the system knows no locks it is at once.

        Contract: mcp:auth:one-renewal
        """
        try:
            import fcntl

            self._held = os.open(self._folder, os.O_RDONLY)
        except (ImportError, OSError):  # Windows; or there is no such folder, and so no token
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_TURN_S):
                while True:
                    with suppress(BlockingIOError):
                        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        return
                    await asyncio.sleep(_LOOK_S)

    def give_back(self) -> None:
        """Let the next one have it."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


class Callback:
    """A port of the loopback that waits for the browser, sent back by the server with the state that it was given."""

    def __init__(self, port: int = 0) -> None:
        """Take a port, any where 0 is given.

        Raises:
            OSError: It is taken.
        """
        self._socket = socket.create_server(("127.0.0.1", port))
        self.address = f"http://localhost:{self._socket.getsockname()[1]}{_PATH}"
        self._visit: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._state = ""
        self._has_strayed = False

    async def listen(self, state: str) -> None:
        """Begin to answer the visit that brings this state; call it before the browser is sent away."""
        self._state = state
        self._server = await asyncio.start_server(self._answer, sock=self._socket)

    def close(self) -> None:
        """Let go of the port."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    async def wait(self) -> dict[str, str]:
        """Return the query of the visit.

        Raises:
            SignInFailed: Nobody came in time, or the server said no.
        """
        try:
            async with asyncio.timeout(MCP_SIGN_IN_MS / 1000):
                query = await self._visit
        except TimeoutError:
            stray = "; a browser came back with another sign-in" if self._has_strayed else ""
            raise SignInFailed(f"was not signed in at within {MCP_SIGN_IN_MS // 60_000} minutes{stray}.") from None
        if "code" not in query:
            words = ": ".join(query[key] for key in ("error", "error_description") if query.get(key))
            raise SignInFailed(f"refused the sign-in: {words or 'it sent no code'}.")
        return query

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            target = urlsplit(head[:_MAX_REQUEST_BYTES].split(b" ")[1].decode("ascii"))
            query = dict(parse_qsl(target.query))
            if target.path != _PATH:
                writer.write(_page("404 Not Found", "There is nothing here."))
            elif query.get("state", "" if "code" in query else self._state) != self._state:
                self._has_strayed = True  # a page that was left open, or one that means harm
                writer.write(_page("400 Bad Request", "This is not the sign-in that codemode waits for. "
                                   "Open the address that stands in the terminal."))  # fmt: skip
            else:
                words = "You are signed in." if "code" in query else "You are not signed in."
                writer.write(_page("200 OK", f"{words} You can close this page and return to the terminal."))
                if not self._visit.done():
                    self._visit.set_result(query)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def invite(server: str, url: str, tell: Callable[[str], None]) -> None:
    """Tell the person at this machine where to sign in at a server, and open their browser there."""
    tell(f'codemode: the MCP server "{server}" asks you to sign in. If no browser opens, open this address:\n  {url}')
    open_browser(url)


def open_browser(url: str, environment: Mapping[str, str] = os.environ) -> None:
    """Open the person's browser on a screen; where there is none they open the address elsewhere.

    Python's own launcher is used, in a process of its own: what a browser prints is not for us.
    """
    has_screen = sys.platform == "darwin" or any(map(environment.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if has_screen:
        launch = [sys.executable, "-P", "-m", "webbrowser", url]
        threading.Thread(target=_run_quietly, args=(launch,), daemon=True).start()


def _run_quietly(command: list[str]) -> None:
    nothing = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, check=False)


def _page(status: str, words: str) -> bytes:
    body = f"<!doctype html><title>codemode</title><p>{words}</p>"
    return _PAGE.format(status=status, length=len(body.encode()), body=body).encode()
