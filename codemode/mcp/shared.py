"""The servers that this process talks to: one connection each, whatever number of sessions use it.

Sessions that define a server alike, word for word, and fill it with the same values, join the same
one. The last that leaves it closes it. What this needs is imported when the first server is joined,
so that a program without servers need not wait for it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from codemode.core.redact import Redactor
    from codemode.mcp.server import Grounds, Look, Server
    from codemode.mcp.servers import ServerSpec
    from codemode.mcp.signin import Invite, SignIn


def _look_away(*_told: str) -> None:
    """Nobody looks on."""


class Onlooker(NamedTuple):
    """A person who is there while servers are used.

    invite: Asks them to sign in at a server; None where nobody can.
    look: Hears which servers are being asked for their tools.
    warn: Hears what they should know of a server, where no listing tells it: it comes up in a call.
    """

    invite: "Invite | None" = None
    look: "Look" = _look_away
    warn: Callable[[str], None] = _look_away


NOBODY = Onlooker()


class SharedServers:
    """All servers of a process, used from one event loop."""

    def __init__(
        self,
        cache_dir: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
        sign_in: "SignIn | None" = None,
        onlooker: Onlooker = NOBODY,
    ) -> None:
        """Begin without any.

        Args:
            cache_dir: Where listings are kept; the user's own cache when left out.
            environment: What the variables in definitions stand for.
            clock: Unix seconds.
            sign_in: Where tokens lie, and who may be asked to sign in; the user's own folder and nobody
                when left out.
            onlooker: Hears what goes on; `sign_in` asks.
        """
        self._cache_dir = cache_dir
        self._environment = environment
        self.clock = clock
        self._sign_in = sign_in
        self._onlooker = onlooker
        self._grounds: Grounds | None = None
        self._servers: dict[str, Server] = {}
        self._unclosed = 0

    def join(self, spec: "ServerSpec", redactor: "Redactor") -> "Server":
        """Return the server of a definition, for a session that leaves it in the end; nothing is started.

        Args:
            spec: What defines it. Which of its tools a session may use is the session's own business.
            redactor: The session's: it learns each secret of the connection.

        Contract: mcp:sharing:one-connection, mcp:sharing:alike
        """
        from codemode.mcp.server import Server  # a session without servers need not wait for it

        values = dict(self._environment)  # as they are now: a server that is connected again is still the same
        key = repr((spec._replace(allow=(), deny=(), required=False), spec.fingerprint(values)))
        if key not in self._servers:
            self._servers[key] = Server(spec, values, self._open_grounds())
            self._unclosed += 1
        server = self._servers[key]
        server.everyone.admit(redactor)
        return server

    async def leave(self, servers: "Iterable[Server]", redactor: "Redactor") -> None:
        """Let a session go; a server that nobody else uses is closed.

        Contract: mcp:sharing:last-closes
        """
        for server in servers:
            server.everyone.dismiss(redactor)
        await self._close({key: server for key, server in self._servers.items() if server.everyone.is_empty})

    async def close(self) -> None:
        """Close all servers, whoever uses them.

        Contract: mcp:close:no-process-left
        """
        await self._close(dict(self._servers))

    async def _close(self, servers: "Mapping[str, Server]") -> None:
        for key in servers:
            del self._servers[key]
        try:
            await asyncio.gather(*(server.close() for server in servers.values()))
        finally:  # whoever is cancelled here leaves the rest to the watchdog
            self._unclosed -= len(servers)
            if self._unclosed == 0 and self._grounds is not None:
                self._grounds.guard.close()

    def _open_grounds(self) -> "Grounds":
        if self._grounds is None:
            from codemode.mcp.guard import Guard
            from codemode.mcp.listings import ListingCache
            from codemode.mcp.server import Grounds
            from codemode.mcp.signin import SignIn
            from codemode.store.place import state_dir

            sign_in = self._sign_in or SignIn(state_dir() / "mcp")
            cache = ListingCache(self._cache_dir)
            self._grounds = Grounds(self.clock, cache, Guard(), sign_in, self._onlooker)
        return self._grounds
