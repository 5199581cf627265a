"""What signing in needs before any protocol: settings, files, a port, a browser."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codemode.cli.person import is_person_here
from codemode.core.errors import InvalidConfig
from codemode.core.tables import Where
from codemode.mcp.oauth_settings import OAuthSettings
from codemode.mcp.servers import ServerSpec, parse_server, resolve
from codemode.mcp.signin import Callback, SignInFailed, TokenFile, Turn, invite, open_browser
from tests.requirements import requirement
from tests.support.mcp import eventually

URL = "https://shop.test/mcp"


def _parse(**facts: Any) -> ServerSpec:
    where = Where("/shop/codemode.toml", "mcp.servers.shop")
    return parse_server("shop", {"url": URL, **facts}, where, Path("/shop"))


@requirement("mcp:auth:spellings")
@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        ({}, OAuthSettings()),
        ({"auth": "oauth"}, OAuthSettings(is_wanted=True)),
        ({"oauth": True}, OAuthSettings(is_wanted=True)),
        ({"auth": "none"}, None),
        ({"oauth": False}, None),
        ({"oauth": {"enabled": False, "clientId": "x"}}, None),
        ({"headers": {"authorization": "Bearer t"}}, None),
        ({"bearer_token_env_var": "TOKEN"}, None),
        ({"auth": "oauth", "bearer_token_env_var": "TOKEN"}, OAuthSettings(is_wanted=True)),
        ({"oauth": {"clientId": "c", "callbackPort": 8080}}, OAuthSettings(True, "c", port=8080)),
        (
            {"auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "${S}", "scopes": ["a", "b"]}},
            OAuthSettings(True, "c", "${S}", "a b"),
        ),
        (
            {"oauth": {"enabled": True, "clientId": "c", "scopes": ["a"], "tokenUrl": "https://x.test"}},
            OAuthSettings(True, "c", scope="a"),
        ),
        ({"oauth": {"clientId": "c", "scope": "a b"}}, OAuthSettings(True, "c", scope="a b")),
        ({"scopes": ["a"]}, OAuthSettings(scope="a")),
    ],
)
def test_every_spelling_of_the_known_clients_is_understood(facts: dict[str, Any], settings: OAuthSettings) -> None:
    """Ours, Cursor's, Claude's, Gemini's, OpenCode's, Codex's."""
    assert _parse(**facts).oauth == settings


@requirement("mcp:auth:spellings")
@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"auth": "very-secret-token"}, 'mcp.servers.shop.auth in /shop/codemode.toml: allowed is "oauth", "none"'),
        ({"oauth": 7}, 'mcp.servers.shop.oauth in /shop/codemode.toml: allowed is "oauth", "none"'),
        ({"auth": {"clientID": "x"}}, 'unknown key "clientID"; known keys are clientId, clientSecret, scopes'),
        ({"auth": {"clientId": 7}}, "clientId and clientSecret are texts."),
        ({"auth": {"scopes": 7}}, "found 7 as scopes; allowed is a text or a list of texts."),
        ({"auth": {"callbackPort": 70_000}}, "found 70000 as callbackPort; allowed is a port, 1 to 65535."),
    ],
)
def test_anything_else_is_an_error_that_shows_no_token(facts: dict[str, Any], sentence: str) -> None:
    """A token written where only a word may stand is not repeated."""
    with pytest.raises(InvalidConfig) as caught:
        _parse(**facts)

    assert sentence in caught.value.message
    assert "very-secret-token" not in caught.value.message


@requirement("mcp:auth:spellings")
def test_a_server_without_a_url_has_nobody_to_sign_in(tmp_path: Path) -> None:
    """Its key has no meaning there."""
    where = Where("/shop/codemode.toml", "mcp.servers.shop")
    with pytest.raises(InvalidConfig, match='"auth" has no meaning beside command'):
        parse_server("shop", {"command": "x", "auth": "oauth"}, where, tmp_path)


@requirement("mcp:auth:redacted", "mcp:config:interpolation")
def test_a_client_secret_comes_from_a_variable_and_is_a_secret() -> None:
    """Filled in only to connect."""
    spec = _parse(oauth={"clientId": "${ID}", "clientSecret": "${SECRET}"})
    resolved = resolve(spec, {"ID": "me-1234", "SECRET": "quiet-99"})

    assert resolved.oauth == OAuthSettings(True, "me-1234", "quiet-99")
    assert "quiet-99" in resolved.secrets
    both = r"mcp\.servers\.shop in .*: the variables ID \(auth\.client_id\) and SECRET \(.*\) are not set"
    with pytest.raises(InvalidConfig, match=both):
        resolve(spec, {})


@requirement("mcp:cache:key")
def test_another_client_is_another_server() -> None:
    """Its list may be another one."""
    assert _parse(oauth={"clientId": "a"}).fingerprint({}) != _parse(oauth={"clientId": "b"}).fingerprint({})
    assert _parse(auth="none").fingerprint({}) == _parse(oauth=False).fingerprint({})


@requirement("mcp:auth:private")
def test_a_token_file_is_the_users_alone_and_one_servers_alone(tmp_path: Path) -> None:
    """Whatever it held is replaced as a whole."""
    file, other = TokenFile(tmp_path / "mcp", URL), TokenFile(tmp_path / "mcp", "https://other.test/mcp")
    file.write({"tokens": {"access_token": "a"}, "expires_at": 1.0})
    file.write({"tokens": {"access_token": "b"}})

    assert file.read()["tokens"] == {"access_token": "b"}
    assert "expires_at" not in file.read()
    assert other.read() == {}
    (path,) = (tmp_path / "mcp").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"url": "x"}), encoding="utf-8")
    assert file.read() == {}


@requirement("mcp:auth:oauth")
async def test_the_port_answers_only_the_callback_and_takes_only_the_first() -> None:
    """Browsers ask for icons, and people press reload."""
    callback = Callback()
    await callback.listen("s")
    try:
        async with httpx2.AsyncClient() as client:
            icon = await client.get(callback.address.replace("/callback", "/favicon.ico"))
            first = await client.get(f"{callback.address}?code=a&state=s")
            await client.get(f"{callback.address}?code=b&state=s")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(callback.address.split(":")[2].split("/")[0]))
        writer.write(b"nonsense\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        query = await callback.wait()
    finally:
        callback.close()

    assert (icon.status_code, first.status_code) == (404, 200)
    assert query == {"code": "a", "state": "s"}


@requirement("mcp:auth:oauth")
async def test_nobody_who_comes_in_time_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how long was waited."""
    monkeypatch.setattr("codemode.mcp.signin.MCP_SIGN_IN_MS", 60)
    callback = Callback()
    await callback.listen("s")
    try:
        async with httpx2.AsyncClient() as client:
            await client.get(f"{callback.address}?code=a&state=old")
        with pytest.raises(
            SignInFailed, match=r"was not signed in at within .* minutes; a browser came back with another"
        ):
            await callback.wait()
    finally:
        callback.close()


@requirement("mcp:auth:oauth")
async def test_a_page_of_an_earlier_sign_in_is_told_so_and_ends_nothing() -> None:
    """People leave pages open, and any page may send a browser to a port of the loopback."""
    callback = Callback()
    await callback.listen("new")
    try:
        async with httpx2.AsyncClient() as client:
            strays = [
                await client.get(f"{callback.address}?{query}")
                for query in ("code=a&state=old", "code=a", "error=access_denied&state=old", "code=a&state=")
            ]
            await client.get(f"{callback.address}?code=b&state=new")
        query = await callback.wait()
    finally:
        callback.close()

    assert [stray.status_code for stray in strays] == [400] * 4
    assert "This is not the sign-in that codemode waits for." in strays[0].text
    assert query == {"code": "b", "state": "new"}


@requirement("mcp:auth:oauth")
async def test_a_refusal_may_lack_the_state() -> None:
    """Some servers forget it then."""
    callback = Callback()
    await callback.listen("s")
    try:
        async with httpx2.AsyncClient() as client:
            await client.get(f"{callback.address}?error=access_denied")
        with pytest.raises(SignInFailed, match=r"refused the sign-in: access_denied\."):
            await callback.wait()
    finally:
        callback.close()


@requirement("mcp:auth:one-renewal")
async def test_tokens_are_renewed_by_one_at_a_time_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no folder there is nothing to wait for."""
    first, second, third = Turn(tmp_path), Turn(tmp_path), Turn(tmp_path)
    await Turn(tmp_path / "none").take()
    await first.take()
    monkeypatch.setattr("codemode.mcp.signin._TURN_S", 600.0)
    waiting = asyncio.create_task(second.take())
    await asyncio.wait({waiting}, timeout=0.05)
    was_done = waiting.done()
    first.give_back()
    await asyncio.wait_for(waiting, 60)
    monkeypatch.setattr("codemode.mcp.signin._TURN_S", 0.0)
    await asyncio.wait_for(third.take(), 60)
    for turn in (second, third, third):
        turn.give_back()

    assert not was_done


@requirement("mcp:auth:oauth")
async def test_the_browser_is_opened_beside_us_and_the_address_is_told(tmp_path: Path) -> None:
    """What a browser prints is not for our streams."""
    script, told = tmp_path / "browser.py", []
    script.write_text(f"import sys; print('noise'); open({str(tmp_path / 'seen')!r}, 'w').write(sys.argv[1])", "utf-8")
    before = os.environ.get("BROWSER")
    os.environ["BROWSER"] = f"{sys.executable} {script} %s"
    try:
        await asyncio.to_thread(invite, "shop", "https://sign.in/here?a=1", told.append)
        await eventually(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text() != "")
    finally:
        os.environ.pop("BROWSER")
        if before is not None:
            os.environ["BROWSER"] = before

    assert (tmp_path / "seen").read_text() == "https://sign.in/here?a=1"
    (sentence,) = told
    assert 'the MCP server "shop" asks you to sign in.' in sentence
    assert "https://sign.in/here?a=1" in sentence


@requirement("mcp:auth:oauth")
def test_without_a_screen_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text browser would take the terminal over."""
    monkeypatch.setattr("codemode.mcp.signin.sys.platform", "linux")
    monkeypatch.setattr("codemode.mcp.signin.threading", None)

    open_browser("https://sign.in", {})


@requirement("mcp:auth:nobody")
def test_pipes_and_machines_of_a_ci_are_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal at both ends, and no CI, is somebody."""
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("CI", raising=False)
    assert is_person_here()
    monkeypatch.setenv("CI", "true")
    assert not is_person_here()
    monkeypatch.delenv("CI")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert not is_person_here()
