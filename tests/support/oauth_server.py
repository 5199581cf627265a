"""An MCP server that asks for a sign-in, its authorization server beside it, and a browser without a screen."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from tests.support.http_servers import serve, take_port


class Doorkeeper:
    """Lets everybody in who asks, by the rules; `answer` is what the page of the sign-in sends back instead of a code.

    It keeps everything in memory, where a test can look and can take tokens away.
    """

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.requested: list[AuthorizationParams] = []
        self.refreshes = 0
        self.lifetime_s: int | None = 3600
        self.answer: dict[str, str] | None = None

    @property
    def secrets(self) -> set[str]:
        """Every token and code that was ever given and is still good."""
        return {*self.access, *self.refresh}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.requested.append(params)
        if self.answer is not None:
            return construct_redirect_uri(str(params.redirect_uri), state=params.state, **self.answer)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._grant(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.refreshes += 1
        return self._grant(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _grant(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime_s)


@asynccontextmanager
async def guarded_shop(door: Doorkeeper) -> AsyncIterator[str]:
    """Serve a shop that asks for a sign-in at `door`; gives the address of its MCP endpoint."""
    held = take_port()
    port = held.getsockname()[1]
    base = AnyHttpUrl(f"http://127.0.0.1:{port}")
    settings = AuthSettings(
        issuer_url=base,
        resource_server_url=AnyHttpUrl(f"{base}mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    )
    shop = MCPServer("shop", auth=settings, auth_server_provider=door)

    @shop.tool()
    def price(item: str) -> int:
        """Say what an item costs."""
        return {"tea": 3}[item]

    with held:
        async with serve(shop.streamable_http_app(), port):
            yield f"{base}mcp"


class Browser:
    """A person's browser without a screen: it follows redirects, from a thread of its own as a real one would."""

    def __init__(self) -> None:
        self.visits: list[tuple[str, str]] = []
        self.pages: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._pending: list[Any] = []

    def __call__(self, server: str, url: str) -> None:
        """Take an invitation; come back at once."""
        self.visits.append((server, url))
        self._pending.append(asyncio.run_coroutine_threadsafe(self._visit(url), self._loop))

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as client:
            self.pages.append((await client.get(url)).text)

    async def rest(self) -> None:
        """Wait until every visit has ended."""
        for visit in self._pending:
            await asyncio.wrap_future(visit)
