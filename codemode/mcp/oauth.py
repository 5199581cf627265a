"""OAuth for a server over HTTP: the SDK's provider, our files, and a person only where one is there.

The SDK's provider knows the protocol: discovery, registration, PKCE, exchange, refresh. Four things
it leaves to us. It forgets when a stored token expires and where it is renewed, so both are
stored too. It signs in anew where a refused token could be renewed, so that is tried first. It
wants its redirect before it knows whether it needs one, so a port is opened only then. And it
takes a person for granted. This module imports the SDK, as `sdk` does.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from codemode.core.types import Json
from codemode.mcp.oauth_settings import OAuthSettings
from codemode.mcp.signin import HOW_TO_SIGN_IN, Callback, SignIn, SignInFailed, TokenFile, Turn

FAILURES = (SignInFailed, OAuthFlowError)
_Flow = AsyncGenerator[httpx2.Request, httpx2.Response]
_MAX_WORDS_CHARS = 300  # of a server that explains itself with a page
_REGISTER = '; register a client there and name it, as auth = { clientId = "…" }, or give a token in headers'
_LONG_AGO = 1.0  # Unix seconds: a token that expired then is renewed
_NO_REDIRECT = AnyUrl("http://localhost/callback")  # until a port is open
_METADATA: dict[str, type[BaseModel]] = {
    "client_info": OAuthClientInformationFull,
    "oauth_metadata": OAuthMetadata,
    "protected_resource_metadata": ProtectedResourceMetadata,
}


class Desk(NamedTuple):
    """What signing in at one server needs of its connection.

    name: The server's.
    learn: Takes secrets, never to be shown.
    is_open: Whether a person may be asked now: while a connection is opened, not in mid-call.
    busy: Told when a person begins to sign in, and when that is over.
    fail: Told why nobody is signed in; the SDK does not always pass that on.
    """

    name: str
    sign_in: SignIn
    learn: Callable[[Iterable[str]], None]
    is_open: Callable[[], bool]
    busy: Callable[[bool], None]
    fail: Callable[[str], None]


class BrowserAuth(httpx2.Auth):
    """Sends a token with each request; gets a new one, without a person where that is possible.

    Contract: mcp:auth:oauth, mcp:auth:refresh, mcp:auth:nobody
    """

    requires_response_body = True

    def __init__(self, url: str, settings: OAuthSettings, desk: Desk) -> None:
        """Prepare for the server at `url`; the variables of `settings` are filled in."""
        self._settings = settings
        self._desk = desk
        self._callback: Callback | None = None
        self._file = TokenFile(desk.sign_in.folder, url)
        metadata = OAuthClientMetadata(
            client_name="codemode", redirect_uris=[_NO_REDIRECT], scope=settings.scope or None
        )
        self._provider = OAuthClientProvider(url, metadata, self, self._send_away, self._welcome_back)
        self._context = self._provider.context

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with what we have; where that is refused renew it, then ask a person, each once."""
        if not self._context.is_token_valid():
            self._load()  # another process may have renewed it
        turn = Turn(self._desk.sign_in.folder)
        flow, step = await self._begin(request, turn)
        was_renewed = was_asked = False
        try:
            while True:
                response = yield step
                if step is request and _is_refused(response):
                    if not (was_renewed or was_asked) and response.status_code == 401 and self._can_renew(request):
                        was_renewed = True
                        await flow.aclose()
                        flow, step = await self._begin(request, turn)
                        continue
                    if was_asked or not self._wants_a_person(response):
                        return
                    was_asked = True
                    self._prepare_to_ask()
                step = await flow.asend(response)
                turn.give_back()
        except StopAsyncIteration:
            return
        except FAILURES as error:
            self._desk.fail(explain(error))
            raise
        finally:
            turn.give_back()
            await flow.aclose()
            if self._callback is not None:
                self._callback.close()
                self._callback = None

    async def _begin(self, request: httpx2.Request, turn: Turn) -> tuple[_Flow, httpx2.Request]:
        """Begin to send a request; return the SDK's part in it and its first step.

        Where that is a renewal the turn is ours, and nobody has renewed the token before us.
        """
        while True:
            flow = self._provider.async_auth_flow(request)
            step = await anext(flow)
            if step is request:
                return flow, step
            known = self._context.current_tokens
            await turn.take()
            self._load()
            if self._context.current_tokens == known:
                return flow, step
            turn.give_back()
            await flow.aclose()

    # ---- the SDK's TokenStorage ----

    async def get_tokens(self) -> OAuthToken | None:
        """Return what is kept; expiry and endpoints go into the provider's context directly."""
        self._load()
        return self._context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:  # noqa: ARG002 -- the context holds them already
        """Keep new tokens."""
        self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client that we are registered as, or that the definition names."""
        return self._context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:  # noqa: ARG002 -- the same
        """Keep a new registration."""
        self._save()

    # ---- tokens ----

    def _load(self) -> None:
        kept = self._file.read()
        context = self._context
        with suppress(ValidationError):
            tokens = OAuthToken.model_validate(kept["tokens"]) if kept.get("tokens") else None
            parts = {name: kind.model_validate(kept[name]) for name, kind in _METADATA.items() if kept.get(name)}
            for name, part in parts.items():
                setattr(context, name, part)
            context.current_tokens = tokens
            context.token_expiry_time = kept.get("expires_at")
        if self._settings.client_id:
            context.client_info = _client_of(self._settings)
        self._learn()

    def _save(self) -> None:
        context = self._context
        parts: dict[str, BaseModel | None] = {name: getattr(context, name) for name in _METADATA}
        parts["tokens"] = context.current_tokens
        kept: dict[str, Json] = {
            name: part.model_dump(mode="json", exclude_none=True) for name, part in parts.items() if part is not None
        }
        self._learn()
        with suppress(OSError):  # a folder that takes nothing costs a sign-in, not the run
            self._file.write(kept | {"expires_at": context.token_expiry_time})

    def _learn(self) -> None:
        tokens, client = self._context.current_tokens, self._context.client_info
        found = [tokens.access_token, tokens.refresh_token] if tokens else []
        found += [client.client_secret] if client else []
        self._desk.learn(secret for secret in found if secret)

    def _can_renew(self, request: httpx2.Request) -> bool:
        """Say whether a refused request may go through with another token, and see to it that it gets one."""
        sent = request.headers.get("Authorization")
        self._load()
        tokens = self._context.current_tokens
        if sent is None or tokens is None:
            return False
        if sent == f"Bearer {tokens.access_token}" and self._context.can_refresh_token():
            self._context.token_expiry_time = _LONG_AGO
            return True
        return sent != f"Bearer {tokens.access_token}"

    # ---- a person ----

    def _wants_a_person(self, response: httpx2.Response) -> bool:
        """Say whether the server asks for a sign-in, and not just refuses."""
        challenge = response.headers.get("www-authenticate", "").lower()
        return self._settings.is_wanted or self._context.current_tokens is not None or "bearer" in challenge

    def _prepare_to_ask(self) -> None:
        if self._desk.sign_in.invite is None or not self._desk.is_open():
            raise SignInFailed(f"asks for a sign-in; {HOW_TO_SIGN_IN}.")
        self._callback = self._open_callback()
        self._context.client_metadata.redirect_uris = [AnyUrl(self._callback.address)]

    def _open_callback(self) -> Callback:
        """Open the port that the client is registered with; where that is taken, one for a new registration."""
        client = self._context.client_info
        registered = client.redirect_uris[0].port if client and client.redirect_uris else None
        try:
            return Callback(self._settings.port or registered or 0)
        except OSError as error:
            if self._settings.port:
                raise SignInFailed(
                    f"cannot be signed in at: callbackPort = {self._settings.port} is taken ({error.strerror})."
                ) from error
        self._context.client_info = None
        return Callback()

    async def _send_away(self, url: str) -> None:
        invite, callback = self._desk.sign_in.invite, self._callback
        assert invite is not None
        assert callback is not None
        self._desk.busy(True)
        await callback.listen(dict(parse_qsl(urlsplit(url).query)).get("state", ""))
        await asyncio.to_thread(invite, self._desk.name, url)

    async def _welcome_back(self) -> AuthorizationCodeResult:
        assert self._callback is not None
        try:
            query = await self._callback.wait()
        finally:
            self._desk.busy(False)
        self._desk.learn([query["code"]])
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


def explain(error: BaseException) -> str:
    """Return what to say of one of `FAILURES` behind the server's name."""
    if isinstance(error, SignInFailed):
        return str(error)
    words = " ".join(str(error).split()).rstrip(".")
    shown = words if len(words) <= _MAX_WORDS_CHARS else f"{words[:_MAX_WORDS_CHARS]}…"
    advice = _REGISTER if isinstance(error, OAuthRegistrationError) else ""
    return f"could not be signed in at: {shown}{advice}."


def _is_refused(response: httpx2.Response) -> bool:
    """Say whether other credentials could help."""
    lacks_scope = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401 or (response.status_code == 403 and lacks_scope)


def _client_of(settings: OAuthSettings) -> OAuthClientInformationFull:
    """Return a client that was registered by hand, as the definition names it."""
    facts: dict[str, Any] = {"client_id": settings.client_id, "token_endpoint_auth_method": "none"}
    if settings.client_secret:
        facts |= {"client_secret": settings.client_secret, "token_endpoint_auth_method": "client_secret_post"}
    return OAuthClientInformationFull(**facts)
