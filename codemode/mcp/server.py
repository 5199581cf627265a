"""One server as all sessions of this process share it: its connection, its tool list, its last failure.

It connects when a listing or a call needs it and not before, and again when a connection has ended.
A request's progress, cancellation and deadline are the request's own, so that sessions which share a
server learn nothing of each other here. `shared` keeps the servers; nothing here imports the SDK.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

from codemode.core.limits import MCP_RETRY_MS
from codemode.core.redact import Redactor
from codemode.core.types import Json
from codemode.mcp.connection import Connection, Surroundings
from codemode.mcp.failures import ServerFailure, ServerUnavailable
from codemode.mcp.guard import Guard
from codemode.mcp.listings import Listing, ListingCache
from codemode.mcp.servers import ServerSpec
from codemode.mcp.shared import Onlooker
from codemode.mcp.signin import SignIn

_CLOSING_LIST_S = 1.0  # for one last look at a list that changed, before its server is closed


Look = Callable[[str, Literal["asked", "answered", "failed"]], None]
"""Hears of the server of this name that it is connected and asked for its tools, and what became of it."""


class Grounds(NamedTuple):
    """What all servers stand on: Unix seconds, kept listings, the watchdog, who may sign in, and who looks on."""

    clock: Callable[[], float]
    cache: ListingCache
    guard: Guard
    sign_in: SignIn
    onlooker: Onlooker


class Everyone(Redactor):
    """Redacts for all sessions that use a server: each learns its secrets, and none sees another's."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._members: list[Redactor] = []
        self._learned: set[str] = set()
        super().__init__()

    @property
    def is_empty(self) -> bool:
        """Whether nobody is left."""
        return not self._members

    def admit(self, member: Redactor) -> None:
        """Let a session's redactor learn what there is, and what will come."""
        self._members.append(member)
        member.learn(self._learned)

    def dismiss(self, member: Redactor) -> None:
        """Let a session go."""
        self._members.remove(member)

    def learn(self, secrets: Iterable[str]) -> None:
        """Remember values to mask, and tell all members.

        Contract: mcp:sharing:redacted
        """
        self._learned |= (new := set(secrets))
        super().learn(new)
        for member in self._members:
            member.learn(new)

    def text(self, text: str) -> str:
        """Return the text without what any member keeps secret.

        Contract: mcp:sharing:redacted
        """
        for member in self._members:
            text = member.text(text)
        return super().text(text)


class Server:
    """A server, used from one event loop. `everyone` are the sessions that use it, `warnings` are for people."""

    def __init__(self, spec: ServerSpec, environment: Mapping[str, str], grounds: Grounds) -> None:
        """Prepare it; nothing is started.

        Args:
            spec: Its definition.
            environment: What the variables in it stand for.
            grounds: What it shares with the others.
        """
        self.everyone = Everyone()
        self.warnings: list[str] = []
        self._spec = spec
        self._grounds = grounds
        self._fingerprint = spec.fingerprint(environment)
        self._around = Surroundings(environment, self.everyone, grounds.guard, self._warn, grounds.sign_in)
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._asking = asyncio.Lock()
        self._listing: Listing | None = None
        self._failed: tuple[float, ServerFailure] | None = None
        self._is_closed = False

    async def ask(self, refresh: bool) -> Listing:
        """Return its tools, from the cache where they are known, else by asking it; once for all who want it now.

        Raises:
            InvalidConfig: Its definition cannot be filled in.
            ServerUnavailable: It cannot be listed, or could not be a moment ago.

        Contract: mcp:cache:no-start, mcp:cache:refresh, mcp:sharing:changes
        """
        async with self._asking:
            doubtful = self._connection is not None and self._connection.is_alive and self._connection.tools_changed
            if not refresh and not doubtful:
                self._listing = self._listing or self._grounds.cache.load(self._fingerprint)
                if self._listing is not None:
                    return self._listing
                self._recall_failure()
            try:
                with self._looked_on():
                    return await self._fetch(await self._connect(to_call=False))
            except ServerUnavailable as error:
                failure = error.failure.in_one_line()
                self._failed = self._grounds.clock(), failure
                raise ServerUnavailable(failure) from error

    async def request(
        self, method: str, params: Mapping[str, Json], on_progress: Callable[[Json], None] | None
    ) -> dict[str, Json]:
        """Send a request and return the server's result untouched; a cancelled caller cancels only this one.

        Raises:
            InvalidConfig: Its definition cannot be filled in.
            ServerUnavailable: No answer, or an error for one.

        Contract: mcp:sharing:reconnect, mcp:sharing:own-requests
        """
        connection = await self._connect(to_call=True)
        return await connection.request(method, params, on_progress)

    async def close(self) -> None:
        """End its connection and its process, after a last look at a list that changed; it opens no more.

        Contract: mcp:close:no-process-left
        """
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._part()

    def _warn(self, warning: str) -> None:
        """Keep a warning for the listing that is under way; none will tell it where a call brings it up.

        Contract: mcp:warnings:told
        """
        self.warnings.append(warning)
        if not self._asking.locked():
            self._grounds.onlooker.warn(warning)

    @contextmanager
    def _looked_on(self) -> Iterator[None]:
        look, name = self._grounds.onlooker.look, self._spec.name
        look(name, "asked")
        try:
            yield
        except BaseException:
            look(name, "failed")
            raise
        look(name, "answered")

    def _recall_failure(self) -> None:
        if self._failed is not None and (self._grounds.clock() - self._failed[0]) * 1000 < MCP_RETRY_MS:
            raise ServerUnavailable(self._failed[1])

    async def _fetch(self, connection: Connection) -> Listing:
        connection.tools_changed = False
        listing = await connection.list_tools(self._grounds.clock())
        self._listing = listing
        self._grounds.cache.save(self._fingerprint, listing)
        return listing

    async def _connect(self, to_call: bool) -> Connection:
        if self._connection is not None and self._connection.is_alive:
            return self._connection
        if self._is_closed:
            words = f'MCP server "{self._spec.name}" is closed, as is what opened it.'
            raise ServerUnavailable(ServerFailure(self._spec.name, "offline", words, origin=self._spec.where.file))
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open(to_call))
            self._opening.add_done_callback(_retrieve)
        return await asyncio.shield(self._opening)  # a caller that gives up leaves it to the others

    async def _open(self, to_call: bool) -> Connection:
        await self._part()
        connection = Connection(self._spec, self._around)
        await connection.open(to_call)
        connection.tools_changed = True  # a list from the cache may be older than this server
        self._connection = connection
        return connection

    async def _part(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.is_alive and connection.tools_changed:
            with suppress(ServerUnavailable, TimeoutError):
                await asyncio.wait_for(self._fetch(connection), _CLOSING_LIST_S)
        await connection.close()


def _retrieve(opening: "asyncio.Task[Connection]") -> None:
    """Look at the outcome, so that one that nobody awaits any more is no warning."""
    if not opening.cancelled():
        opening.exception()
