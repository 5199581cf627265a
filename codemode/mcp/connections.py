"""All MCP servers of one session: what they offer, and calls to them.

`McpServers` is what the composition root gives a session. Which tools the session may use, which
servers it requires and what it keeps secret are its own; the servers themselves, their connections
and their tool lists are shared with the other sessions of the process (`shared`). Nothing here
imports the SDK.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from codemode.core.errors import InvalidConfig
from codemode.core.redact import Redactor
from codemode.core.types import GuestScope, Json, RunContext, ToolSpec
from codemode.mcp.adapter import adapt_server
from codemode.mcp.failures import ServerFailure, ServerUnavailable
from codemode.mcp.scope import build_guest_scope
from codemode.mcp.server import Server
from codemode.mcp.servers import ServerSpec
from codemode.mcp.shared import SharedServers


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

    def __init__(self, specs: Iterable[ServerSpec], redactor: Redactor, shared: SharedServers) -> None:
        """Take the servers by precedence; those that are not enabled are ignored.

        Args:
            specs: From `servers.gather_servers`.
            redactor: The session's; learns each value that is filled into a definition.
            shared: The servers of this process, which this session joins until `close`.
        """
        self._specs = {spec.name: spec for spec in specs if spec.enabled}
        self._redactor = redactor
        self._shared = shared
        self._servers: dict[str, Server] = {name: shared.join(spec, redactor) for name, spec in self._specs.items()}
        self._is_open = True

    @property
    def warnings(self) -> tuple[str, ...]:
        """What servers did that a person should know, so far."""
        redact = self._redactor.text
        return tuple(redact(warning) for server in self._servers.values() for warning in server.warnings)

    async def tools(self, refresh: bool = False) -> McpListing:
        """Return what all servers offer, from the cache where it is known, else by asking all at the same time.

        Args:
            refresh: Ask every server.

        Raises:
            InvalidConfig: A definition cannot be filled in, or a `required` server failed.

        Contract: mcp:start:isolated, mcp:start:required
        """
        found = await asyncio.gather(
            *(server.ask(refresh) for server in self._servers.values()), return_exceptions=True
        )
        if faulty := [outcome.message for outcome in found if isinstance(outcome, InvalidConfig)]:
            raise InvalidConfig(" ".join(faulty))
        tools: list[ToolSpec] = []
        failures: list[ServerFailure] = []
        warnings: list[str] = []
        listed_at: dict[str, float] = {}
        for spec, outcome in zip(self._specs.values(), found, strict=True):
            if isinstance(outcome, ServerUnavailable):
                failures.append(outcome.failure)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                adapted, faults = adapt_server(spec, outcome, self._send)
                tools += adapted
                warnings += (f'MCP server "{spec.name}": {fault}' for fault in faults)
                listed_at[spec.name] = outcome.listed_at
        self._check_required(failures)
        now = self._shared.clock()
        return McpListing(
            tools=tuple(sorted(tools, key=lambda tool: tool.id)),
            failures=tuple(failures),
            warnings=(*self.warnings, *map(self._redactor.text, warnings)),
            ages={name: max(0.0, now - then) for name, then in listed_at.items()},
        )

    def guest_scope(self, tools: Iterable[ToolSpec]) -> GuestScope:
        """Return what the guest sees of these tools; those of other sources are passed over."""
        return build_guest_scope(tool for tool in tools if tool.source == "mcp")

    async def close(self) -> None:
        """Leave all servers; those that no other session uses are closed.

        Contract: mcp:sharing:last-closes
        """
        if self._is_open:
            self._is_open = False
            await self._shared.leave(self._servers.values(), self._redactor)

    def _check_required(self, failures: list[ServerFailure]) -> None:
        for failure in failures:
            if self._specs[failure.server].required:
                raise InvalidConfig(f"{failure.sentence()} It is required by {failure.origin}.")

    async def _send(self, server: str, method: str, params: dict[str, Json], context: RunContext) -> Json:
        return await self._servers[server].request(method, params, context.progress)
