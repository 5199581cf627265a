"""Signing in at a server: a real authorization server, a browser without a screen, files in a folder of the test."""

import asyncio
import json
import os
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.auth import OAuthFlowError
from mcp.server.auth.provider import AccessToken
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from codemode.core.errors import NestedToolFailed
from codemode.core.redact import MASK, Redactor
from codemode.mcp import oauth
from codemode.mcp.connections import McpListing, McpServers
from codemode.mcp.shared import SharedServers
from codemode.mcp.signin import HOW_TO_SIGN_IN, SignIn, Turn
from tests.requirements import requirement
from tests.support.cells import clean_environment, run_command
from tests.support.http_servers import Recorded, build_shop, serve, take_port
from tests.support.mcp import call_listed, define, eventually
from tests.support.oauth_server import Browser, Doorkeeper, guarded_shop
from tests.support.terminal import run_in_terminal

TEA = {"item": "tea"}


def _shared(folder: Path, browser: Browser | None, environment: Mapping[str, str] = os.environ) -> SharedServers:
    return SharedServers(folder / "cache", environment, sign_in=SignIn(folder / "mcp", browser))


@asynccontextmanager
async def _servers(
    folder: Path, url: str, browser: Browser | None = None, redactor: Redactor | None = None, **facts: Any
) -> AsyncIterator[McpServers]:
    """Open the shop's server as a new process would: what it knows lies in `folder`."""
    specs = [define("shop", {"url": url, **facts})]
    servers = McpServers(specs, redactor or Redactor(), _shared(folder, browser))
    try:
        yield servers
    finally:
        await servers.close()


async def _listed(folder: Path, url: str, browser: Browser | None = None, **facts: Any) -> McpListing:
    async with _servers(folder, url, browser, **facts) as servers:
        return await servers.tools(refresh=True)


def _age(folder: Path) -> None:
    """Let the stored token have expired long ago."""
    (file,) = (folder / "mcp").iterdir()
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"expires_at": 1.0}), encoding="utf-8")


@requirement("mcp:auth:oauth", "mcp:auth:private", "mcp:auth:redacted")
@pytest.mark.parametrize("facts", [{}, {"auth": "oauth"}])
async def test_a_person_signs_in_once_and_later_processes_need_none(tmp_path: Path, facts: dict[str, Any]) -> None:
    """With the browser, through a port of the loopback; the tokens are the user's alone and are never shown."""
    door, redactor = Doorkeeper(), Redactor()
    async with guarded_shop(door) as url:
        browser = Browser()
        async with _servers(tmp_path, url, browser, redactor, **facts) as servers:
            listing = await servers.tools()
            price = await call_listed(servers, listing, "shop.price", TEA)
        await browser.rest()
        later = await _listed(tmp_path, url, **facts)

    assert (listing.failures, listing.warnings, price["structuredContent"]) == ((), (), {"result": 3})
    assert "mcp:shop:price" in {tool.id for tool in later.tools}
    assert [server for server, _ in browser.visits] == ["shop"]
    assert "<p>You are signed in. You can close this page and return to the terminal.</p>" in browser.pages[0]
    (asked,) = door.requested
    assert str(asked.redirect_uri).startswith("http://localhost:")
    assert asked.code_challenge
    (file,) = (tmp_path / "mcp").iterdir()
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert all(redactor.text(secret) == MASK for secret in door.secrets)
    assert not any(secret in str(listing) for secret in door.secrets)


@requirement("mcp:auth:nobody")
@pytest.mark.parametrize("facts", [{}, {"auth": "oauth"}, {"oauth": {"clientId": "me"}}])
async def test_where_nobody_is_there_the_failure_says_what_to_run(tmp_path: Path, facts: dict[str, Any]) -> None:
    """And nothing is registered in their name."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        (failure,) = (await _listed(tmp_path, url, **facts)).failures

    assert failure.kind == "auth"
    assert failure.message == f'MCP server "shop" asks for a sign-in; {HOW_TO_SIGN_IN}.'
    assert "`codemode catalog --refresh`" in failure.message
    assert not door.clients


@requirement("mcp:auth:spellings")
async def test_a_definition_that_wants_no_sign_in_gets_none(tmp_path: Path) -> None:
    """The refusal is passed on as it is."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        browser = Browser()
        (failure,) = (await _listed(tmp_path, url, browser, oauth=False)).failures

    assert failure.message == (
        'MCP server "shop" refused the credentials (HTTP 401); check the headers of its definition.'
    )
    assert not browser.visits


@requirement("mcp:auth:refresh")
async def test_an_expired_token_is_renewed_without_a_person(tmp_path: Path) -> None:
    """In a new process, at the endpoint that the first one found."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        await _listed(tmp_path, url, Browser())
        _age(tmp_path)
        listing = await _listed(tmp_path, url)
        again = await _listed(tmp_path, url)

    assert (listing.failures, again.failures) == ((), ())
    assert door.refreshes == 1


@requirement("mcp:auth:refresh")
async def test_a_token_that_is_taken_away_early_is_renewed_in_mid_call(tmp_path: Path) -> None:
    """The call that finds out goes through; the server never said how long a token lasts."""
    door = Doorkeeper()
    door.lifetime_s = None
    async with guarded_shop(door) as url, _servers(tmp_path, url, Browser()) as servers:
        listing = await servers.tools()
        door.access.clear()
        price = await call_listed(servers, listing, "shop.price", TEA)

    assert price["structuredContent"] == {"result": 3}
    assert door.refreshes == 1


@requirement("mcp:auth:refresh")
async def test_what_another_process_renewed_is_used(tmp_path: Path) -> None:
    """A refresh token is good once: the loser of the race takes the winner's."""
    door = Doorkeeper()
    async with guarded_shop(door) as url, _servers(tmp_path, url, Browser()) as first:
        listing = await first.tools()
        _age(tmp_path)
        await _listed(tmp_path, url)
        old, _new = door.access
        del door.access[old]
        price = await call_listed(first, listing, "shop.price", TEA)

    assert price["structuredContent"] == {"result": 3}
    assert door.refreshes == 1


@requirement("mcp:auth:one-renewal")
async def test_processes_that_find_a_token_stale_at_once_renew_it_once(tmp_path: Path) -> None:
    """The server takes a refresh token once, so that a second renewal would sign everybody out."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        await _listed(tmp_path, url, Browser())
        _age(tmp_path)
        turn = Turn(tmp_path / "mcp")
        await turn.take()
        listings = [asyncio.create_task(_listed(tmp_path, url)) for _ in range(4)]
        await asyncio.sleep(0)  # they may come as far as they can
        turn.give_back()
        found = await asyncio.gather(*listings)

    assert [listing.failures for listing in found] == [()] * 4
    assert door.refreshes == 1


@requirement("mcp:auth:nobody", "mcp:auth:refresh")
async def test_a_sign_in_that_was_taken_back_rejects_the_call_and_is_asked_for_at_the_next_listing(
    tmp_path: Path,
) -> None:
    """No browser opens in mid-call."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        browser = Browser()
        async with _servers(tmp_path, url, browser) as servers:
            listing = await servers.tools()
            door.access.clear()
            door.refresh.clear()
            with pytest.raises(NestedToolFailed, match=f"asks for a sign-in; {HOW_TO_SIGN_IN}.$"):
                await call_listed(servers, listing, "shop.price", TEA)
            visits = len(browser.visits)
            (client,) = door.clients.values()
            assert client.redirect_uris
        with take_port(client.redirect_uris[0].port or 0):
            listing = await _listed(tmp_path, url, browser)
        await browser.rest()

    assert (visits, len(browser.visits), listing.failures) == (1, 2, ())
    assert len(door.clients) == 1  # the registration, and with it the port of the redirect, is used again


@requirement("mcp:auth:nobody")
@pytest.mark.parametrize("requests", [1, 2])  # the handshake is one, and then another
async def test_a_sign_in_that_ends_while_a_server_is_listed_is_told_as_what_it_is(
    tmp_path: Path, requests: int
) -> None:
    """Whichever request of the handshake or of the listing is the first to be refused."""

    class Forgetful(Doorkeeper):
        left = 1000

        async def load_access_token(self, token: str) -> AccessToken | None:
            self.left -= 1
            return await super().load_access_token(token) if self.left >= 0 else None

    door = Forgetful()
    async with guarded_shop(door) as url:
        await _listed(tmp_path, url, Browser())
        door.left = requests
        door.refresh.clear()
        (failure,) = (await _listed(tmp_path, url)).failures

    assert (failure.kind, failure.message) == ("auth", f'MCP server "shop" asks for a sign-in; {HOW_TO_SIGN_IN}.')


@requirement("mcp:auth:oauth")
async def test_a_port_that_is_taken_means_a_new_registration(tmp_path: Path) -> None:
    """The server knows us by the address of our redirect."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        await _listed(tmp_path, url, Browser())
        (client,) = door.clients.values()
        assert client.redirect_uris
        with socket.create_server(("127.0.0.1", client.redirect_uris[0].port or 0)):
            door.access.clear()
            door.refresh.clear()
            listing = await _listed(tmp_path, url, Browser())

    assert listing.failures == ()
    assert len(door.clients) == 2


@requirement("mcp:auth:spellings")
async def test_a_client_that_was_registered_by_hand_is_used(tmp_path: Path) -> None:
    """With its secret, its scopes and its port; the secret is a variable's."""
    held = take_port()
    port = held.getsockname()[1]
    door = Doorkeeper()
    door.clients["me"] = OAuthClientInformationFull(
        client_id="me",
        client_secret="keep-it-quiet",
        redirect_uris=[AnyUrl(f"http://localhost:{port}/callback")],
        token_endpoint_auth_method="client_secret_post",
    )
    wanted = {"clientId": "me", "clientSecret": "keep-it-quiet", "callbackPort": port}
    async with guarded_shop(door) as url:
        with held:
            listing = await _listed(tmp_path, url, Browser(), oauth=wanted)
        with socket.create_server(("127.0.0.1", port)):
            (failure,) = (await _listed(tmp_path / "other", url, Browser(), oauth=wanted)).failures

    assert listing.failures == ()
    assert failure.message.startswith(
        f'MCP server "shop" cannot be signed in at: callbackPort = {port} is taken (Address already in use'
    )


@requirement("mcp:auth:oauth")
async def test_a_person_who_says_no_is_a_failure_in_one_line(tmp_path: Path) -> None:
    """With the server's own words."""
    door = Doorkeeper()
    door.answer = {"error": "access_denied", "error_description": "not today"}
    async with guarded_shop(door) as url:
        browser = Browser()
        (failure,) = (await _listed(tmp_path, url, browser)).failures
        await browser.rest()

    assert (failure.kind, failure.message) == (
        "auth",
        'MCP server "shop" refused the sign-in: access_denied: not today.',
    )
    assert "You are not signed in." in browser.pages[0]


@requirement("mcp:auth:oauth")
async def test_a_person_who_takes_longer_than_a_server_may_is_waited_for(tmp_path: Path) -> None:
    """startTimeoutMs bounds the server, not the person."""

    class SlowBrowser(Browser):
        async def _visit(self, url: str) -> None:
            late = time.monotonic() + 2.1
            await eventually(lambda: time.monotonic() > late)
            await super()._visit(url)

    async with guarded_shop(Doorkeeper()) as url:
        listing = await _listed(tmp_path, url, SlowBrowser(), startTimeoutMs=2000)

    assert listing.failures == ()


@requirement("mcp:auth:oauth")
async def test_a_server_that_asks_but_registers_nobody_is_a_failure_in_one_line(tmp_path: Path) -> None:
    """It wants a token that somebody made by hand."""
    refuse = Recorded(build_shop().streamable_http_app(), lambda method, headers: 401)
    async with serve(refuse) as base:
        (failure,) = (await _listed(tmp_path, f"{base}/mcp", Browser(), auth="oauth")).failures

    assert failure.kind == "auth"
    assert failure.message.startswith('MCP server "shop" could not be signed in at: Registration failed: 401')
    assert failure.message.endswith(
        '; register a client there and name it, as auth = { clientId = "…" }, or give a token in headers.'
    )
    assert "\n" not in failure.message


@requirement("mcp:auth:oauth")
def test_a_server_that_explains_itself_with_a_page_gets_one_line() -> None:
    """It is a sentence, and not a page."""
    sentence = oauth.explain(OAuthFlowError("Token exchange failed (500): <html>\n" + "oh no " * 900))

    assert sentence.startswith("could not be signed in at: Token exchange failed (500): <html> oh no")
    assert len(sentence) < 350
    assert "\n" not in sentence


@requirement("mcp:auth:private")
async def test_a_damaged_token_file_is_no_sign_in(tmp_path: Path) -> None:
    """And is replaced by the next one."""
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        await _listed(tmp_path, url, Browser())
        (file,) = (tmp_path / "mcp").iterdir()
        for text in ("{", "[]", file.read_text(encoding="utf-8").replace('"access_token"', '"no"')):
            file.write_text(text, encoding="utf-8")
            (failure,) = (await _listed(tmp_path, url)).failures
            assert "asks for a sign-in" in failure.message
        assert (await _listed(tmp_path, url, Browser())).failures == ()


@requirement("mcp:auth:headers", "mcp:auth:redacted")
@pytest.mark.parametrize(
    "facts",
    [
        {"bearer_token_env_var": "SHOP_TOKEN", "env_http_headers": {"X-Shop": "SHOP_KEY"}},
        {"bearerTokenEnv": "SHOP_TOKEN", "http_headers": {"X-Shop": "${SHOP_KEY}"}},
        {"headers": {"Authorization": "Bearer ${env:SHOP_TOKEN}", "X-Shop": "${SHOP_KEY}"}},
    ],
)
async def test_tokens_and_headers_from_variables_reach_a_server_that_demands_them(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    """Without the right ones it answers 401, in one line, and nobody is asked to sign in."""
    redactor, browser = Redactor(), Browser()

    def judge(_method: str, headers: dict[str, str]) -> int | None:
        good = (headers.get("authorization"), headers.get("x-shop")) == ("Bearer tok-123456", "key-123456")
        return None if good else 401

    async def ask(environment: dict[str, str]) -> McpListing:
        specs = [define("shop", {"url": f"{base}/mcp", **facts})]
        servers = McpServers(specs, redactor, _shared(tmp_path, browser, environment))
        try:
            return await servers.tools(refresh=True)
        finally:
            await servers.close()

    async with serve(Recorded(build_shop().streamable_http_app(), judge)) as base:
        right = await ask({"SHOP_TOKEN": "tok-123456", "SHOP_KEY": "key-123456"})
        wrong = await ask({"SHOP_TOKEN": "tok-654321", "SHOP_KEY": "key-123456"})

    assert right.failures == ()
    assert [failure.message for failure in wrong.failures] == [
        'MCP server "shop" refused the credentials (HTTP 401); check the headers of its definition.'
    ]
    assert not browser.visits
    assert redactor.text("tok-123456 key-123456") == f"{MASK} {MASK}"


_BROWSER = """
import sys, httpx2
print("a browser's noise", httpx2.get(sys.argv[1], follow_redirects=True, timeout=60).text)
"""


@requirement("mcp:auth:oauth", "mcp:auth:nobody", "mcp:auth:redacted")
@pytest.mark.parametrize("command", [["catalog", "--refresh", "--json"], ["run", "-e", "return 1", "--json"]])
async def test_the_command_line_signs_in_where_a_person_types_and_says_so_where_nobody_does(
    tmp_path: Path, command: list[str]
) -> None:
    """Piped it fails in one line; on a terminal the browser opens; from then on piped works too."""
    (tmp_path / "browser.py").write_text(_BROWSER, encoding="utf-8")
    manifest = tmp_path / "codemode.toml"
    environment = clean_environment(tmp_path / "state") | {
        "BROWSER": f"{sys.executable} {tmp_path / 'browser.py'} %s",
        "CODEMODE_CACHE_DIR": str(tmp_path / "cache"),
    }
    environment.pop("CI", None)
    cell = ["run", "-e", "return (await MCP.shop.price({item: 'tea'})).structuredContent.result", "--json"]
    cell += ["--timeout-ms", "60000"]
    door = Doorkeeper()
    async with guarded_shop(door) as url:
        manifest.write_text(f'[mcp.servers.shop]\nurl = "{url}"\n', encoding="utf-8")
        before = await asyncio.to_thread(run_command, command, environment, tmp_path)
        there = await asyncio.to_thread(run_in_terminal, command, environment, tmp_path, 200, typing=True)
        after = await asyncio.to_thread(run_command, cell, environment, tmp_path)

    assert "asks for a sign-in; run `codemode catalog --refresh`" in json.dumps(before.result) + before.stderr
    assert there.exit_status == 0
    assert (
        f'the MCP server "shop" asks you to sign in. If no browser opens, open this address:\n  {url[:-3]}'
        in there.text
    )
    assert "noise" not in there.text
    assert (after.exit_status, after.result["value"], after.stderr) == (0, 3, "")
    assert not any(secret in there.text + after.stderr for secret in door.secrets)
