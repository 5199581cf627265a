"""All MCP servers of a session: listed, called, connected again, closed.

`McpServers` is the only thing that the composition root needs of this package. It connects a
server when a listing or a call needs it and not before, keeps each listing in a cache, and
shares one connection between all calls. Nothing here imports the SDK.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codemode.core.errors import InvalidConfig
from codemode.core.limits import MCP_RETRY_MS
from codemode.core.redact import Redactor
from codemode.core.types import GuestScope, Json, RunContext, ToolSpec
from codemode.mcp.adapter import adapt_server
from codemode.mcp.connection import Connection, Surroundings
from codemode.mcp.failures import ServerFailure, ServerUnavailable
from codemode.mcp.guard import Guard
from codemode.mcp.listings import Listing, ListingCache, list_tools
from codemode.mcp.scope import build_guest_scope
from codemode.mcp.servers import ServerSpec
from codemode.mcp.signin import SignIn
from codemode.store.place import state_dir

_CLOSING_LIST_S = 1.0  # for one last look at a list that changed, before its server is closed


class McpListing(NamedTuple):
    """What all servers offer.

    tools: Sorted by id.
    failures: One for each server that could not be listed.
    warnings: Sentences for people.
    ages: Server name → seconds since its list was fetched.
    """

    tools: tuple[ToolSpec, ...] = ()
    failures: tuple[ServerFailure, ...] = ()
    warnings: tuple[str, ...] = ()
    ages: Mapping[str, float] = {}


class McpServers:
    """The servers of one session, used from one event loop."""

    def __init__(
        self,
        specs: Iterable[ServerSpec],
        redactor: Redactor,
        cache_dir: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
        sign_in: SignIn | None = None,
    ) -> None:
        """Take the servers by precedence; those that are not enabled are ignored.

        Args:
            specs: From `servers.gather_servers`.
            redactor: Learns each value that is filled into a definition.
            cache_dir: Where listings are kept; the user's own cache when left out.
            environment: What the variables in definitions stand for.
            clock: Unix seconds.
            sign_in: Where tokens lie, and who may be asked to sign in; the user's own folder and nobody
                when left out.
        """
        self._specs = {spec.name: spec for spec in specs if spec.enabled}
        self._redactor = redactor
        self._cache = ListingCache(cache_dir)
        self._environment = environment
        self._clock = clock
        self._guard = Guard()
        self._warnings: list[str] = []
        self._around = Surroundings(
            environment, redactor, self._guard, self._warnings.append, sign_in or SignIn(state_dir() / "mcp")
        )
        self._connections: dict[str, Connection] = {}
        self._openings: dict[str, asyncio.Task[Connection]] = {}
        self._listings: dict[str, Listing] = {}
        self._failures: dict[str, tuple[float, ServerFailure]] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What servers did that a person should know, so far."""
        return tuple(self._warnings)

    async def tools(self, refresh: bool = False) -> McpListing:
        """Return what all servers offer, from the cache where it is known, else by asking all at the same time.

        Args:
            refresh: Ask every server.

        Raises:
            InvalidConfig: A definition cannot be filled in, or a `required` server failed.

        Contract: mcp:cache:no-start, mcp:cache:refresh, mcp:start:isolated, mcp:start:required
        """
        found = await asyncio.gather(
            *(self._list(spec, refresh) for spec in self._specs.values()), return_exceptions=True
        )
        tools: list[ToolSpec] = []
        failures: list[ServerFailure] = []
        warnings: list[str] = []
        for spec, outcome in zip(self._specs.values(), found, strict=True):
            if isinstance(outcome, ServerUnavailable):
                failures.append(outcome.failure)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                adapted, faults = adapt_server(spec, outcome, self._send)
                tools += adapted
                warnings += (f'MCP server "{spec.name}": {fault}' for fault in faults)
        self._check_required(failures)
        now = self._clock()
        return McpListing(
            tools=tuple(sorted(tools, key=lambda tool: tool.id)),
            failures=tuple(failures),
            warnings=(*self._warnings, *map(self._redactor.text, warnings)),
            ages={name: max(0.0, now - listing.listed_at) for name, listing in self._listings.items()},
        )

    def guest_scope(self, tools: Iterable[ToolSpec]) -> GuestScope:
        """Return what the guest sees of these tools; those of other sources are passed over."""
        return build_guest_scope(tool for tool in tools if tool.source == "mcp")

    async def close(self) -> None:
        """Close every connection and end every server, after a last look at lists that changed.

        Contract: mcp:close:no-process-left
        """
        for opening in self._openings.values():
            opening.cancel()
        await asyncio.gather(*self._openings.values(), return_exceptions=True)
        await asyncio.gather(*(self._part(name) for name in list(self._connections)))
        self._guard.close()

    async def _list(self, spec: ServerSpec, refresh: bool) -> Listing:
        connection = self._connections.get(spec.name)
        doubtful = connection is not None and connection.is_alive and connection.tools_changed
        if not refresh and not doubtful:
            known = self._listings.get(spec.name) or self._cache.load(spec.fingerprint(self._environment))
            if known is not None:
                self._listings[spec.name] = known
                return known
            self._recall_failure(spec.name)
        try:
            return await self._fetch(spec, await self._connect(spec, to_call=False))
        except ServerUnavailable as error:
            self._failures[spec.name] = self._clock(), error.failure
            raise

    def _recall_failure(self, name: str) -> None:
        failed_at, failure = self._failures.get(name, (0.0, None))
        if failure is not None and (self._clock() - failed_at) * 1000 < MCP_RETRY_MS:
            raise ServerUnavailable(failure)

    async def _fetch(self, spec: ServerSpec, connection: Connection) -> Listing:
        connection.tools_changed = False
        listing = await list_tools(connection.ask_list, connection.capabilities, self._clock())
        self._listings[spec.name] = listing
        self._cache.save(spec.fingerprint(self._environment), listing)
        return listing

    def _check_required(self, failures: list[ServerFailure]) -> None:
        for failure in failures:
            if self._specs[failure.server].required:
                raise InvalidConfig(f"{failure.sentence()} It is required by {failure.origin}.")

    async def _send(self, server: str, method: str, params: dict[str, Json], context: RunContext) -> Json:
        connection = await self._connect(self._specs[server], to_call=True)
        return await connection.request(method, params, context.progress)

    async def _connect(self, spec: ServerSpec, to_call: bool) -> Connection:
        connection = self._connections.get(spec.name)
        if connection is not None and connection.is_alive:
            return connection
        opening = self._openings.get(spec.name)
        if opening is None or opening.done():
            opening = self._openings[spec.name] = asyncio.create_task(self._open(spec, to_call))
            opening.add_done_callback(_retrieve)
        return await asyncio.shield(opening)  # a caller that gives up leaves it to the others

    async def _open(self, spec: ServerSpec, to_call: bool) -> Connection:
        await self._part(spec.name)
        connection = Connection(spec, self._around)
        await connection.open(to_call)
        connection.tools_changed = True  # a list from the cache may be older than this server
        self._connections[spec.name] = connection
        return connection

    async def _part(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is None:
            return
        if connection.is_alive and connection.tools_changed:
            with suppress(ServerUnavailable, TimeoutError):
                await asyncio.wait_for(self._fetch(self._specs[name], connection), _CLOSING_LIST_S)
        await connection.close()


def _retrieve(opening: "asyncio.Task[Connection]") -> None:
    """Look at the outcome, so that one that nobody awaits any more is no warning."""
    if not opening.cancelled():
        opening.exception()
