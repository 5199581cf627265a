"""Servers over streamable HTTP and SSE, on real sockets."""

import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from codemode.core.errors import NestedToolFailed
from codemode.core.redact import Redactor
from codemode.mcp.failures import ServerFailure
from tests.requirements import requirement
from tests.support.http_servers import Recorded, build_shop, serve, take_port
from tests.support.mcp import CONTEXT, call, call_listed, define, servers_of, shelf


async def _failure(tmp_path: Path, url: str, **facts: Any) -> ServerFailure:
    async with servers_of(define("shop", {"url": url, **facts}), cache=tmp_path) as servers:
        (failure,) = (await servers.tools()).failures
    return failure


@requirement("mcp:transport:http", "mcp:call:progress")
@pytest.mark.parametrize("json_response", [False, True])
async def test_a_server_over_streamable_http_works_end_to_end(tmp_path: Path, json_response: bool) -> None:
    """Beside one over stdio; progress comes where the server streams."""
    updates: list[Any] = []
    async with (
        serve(build_shop().streamable_http_app(json_response=json_response)) as base,
        servers_of(define("shop", {"url": f"{base}/mcp"}), shelf(), cache=tmp_path) as servers,
    ):
        listing = await servers.tools()
        price = await call_listed(servers, listing, "shop.price", {"item": "cake"})
        await call_listed(
            servers, listing, "shop.bake", context=CONTEXT._replace(report=lambda _, update: updates.append(update))
        )
        failed = await call_listed(servers, listing, "shop.price", {"item": "gold"})

    assert price["structuredContent"] == {"result": 5}
    assert failed["isError"] is True
    assert [update["message"] for update in updates] == ([] if json_response else ["mixing", "baking"])


@requirement("mcp:transport:sse")
@pytest.mark.parametrize("facts", [{}, {"type": "sse"}])
async def test_a_server_that_only_speaks_sse_works(tmp_path: Path, facts: dict[str, Any]) -> None:
    """Found out by asking, or known by its type."""
    async with (
        serve(build_shop().sse_app()) as base,
        servers_of(define("shop", {"url": f"{base}/sse", **facts}), cache=tmp_path) as servers,
    ):
        price = await call(servers, "shop.price", {"item": "tea"})

    assert price["structuredContent"] == {"result": 3}


@requirement("mcp:config:interpolation", "mcp:config:redacted")
async def test_headers_reach_the_server_filled_in(tmp_path: Path) -> None:
    """And are masked from then on."""
    app = Recorded(build_shop().streamable_http_app())
    redactor = Redactor()
    async with serve(app) as base:
        spec = define(
            "shop",
            {"url": f"{base}/mcp", "headers": {"Authorization": "Bearer ${SHOP_TOKEN}", "X-Shop": "corner-shop"}},
        )
        environment = {"SHOP_TOKEN": "very-secret"}
        async with servers_of(spec, cache=tmp_path, redactor=redactor, environment=environment) as servers:
            await servers.tools()

    assert all(headers["authorization"] == "Bearer very-secret" for _, headers in app.requests)
    assert redactor.text("very-secret at corner-shop") == "[redacted] at [redacted]"


@requirement("mcp:start:failure-kinds")
@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [
        (401, "auth", 'MCP server "shop" refused the credentials (HTTP 401); check the headers of its definition.'),
        (403, "auth", 'MCP server "shop" refused the credentials (HTTP 403); check the headers of its definition.'),
        (404, "http", 'MCP server "shop" answered with HTTP 404.'),
        (500, "http", 'MCP server "shop" answered with HTTP 500.'),
    ],
)
async def test_a_bare_status_is_a_failure_of_its_kind(tmp_path: Path, status: int, kind: str, sentence: str) -> None:
    """One line, whatever the body says."""
    async with serve(Recorded(build_shop().streamable_http_app(), lambda method, headers: status)) as base:
        failure = await _failure(tmp_path, f"{base}/mcp")

    assert (failure.kind, failure.message) == (kind, sentence)


@requirement("mcp:start:failure-kinds")
async def test_a_port_that_refuses_is_offline(tmp_path: Path) -> None:
    """Nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        failure = await _failure(tmp_path, f"http://127.0.0.1:{port}/mcp")

    assert failure.kind == "offline"
    assert failure.message == f'MCP server "shop" cannot be reached: 127.0.0.1:{port} refuses connections.'


@requirement("mcp:start:timeout")
async def test_a_port_that_accepts_and_is_silent_times_out(tmp_path: Path) -> None:
    """By the name of the setting."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        failure = await _failure(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", startTimeoutMs=300)

    assert failure.kind == "timeout"
    assert failure.message == 'MCP server "shop" did not answer within startTimeoutMs = 300 ms.'


@requirement("mcp:start:failure-kinds")
async def test_a_web_page_is_not_mcp(tmp_path: Path) -> None:
    """An address that answers everything with 200."""
    async with serve(Recorded(build_shop().streamable_http_app(), lambda method, headers: 200)) as base:
        failure = await _failure(tmp_path, f"{base}/mcp")

    assert failure.kind == "protocol"
    assert "Unexpected content type: text/plain" in failure.message


@requirement("mcp:call:reconnect")
async def test_a_session_that_the_server_forgot_is_begun_anew(tmp_path: Path) -> None:
    """The call that found out rejects; the next one works."""
    forgotten: list[str] = []

    def status(method: str, headers: dict[str, str]) -> int | None:
        return 404 if method == "POST" and headers.get("mcp-session-id") in forgotten else None

    app = Recorded(build_shop().streamable_http_app(), status)
    async with serve(app) as base, servers_of(define("shop", {"url": f"{base}/mcp"}), cache=tmp_path) as servers:
        listing = await servers.tools()
        forgotten += [headers["mcp-session-id"] for _, headers in app.requests if "mcp-session-id" in headers]
        with pytest.raises(NestedToolFailed, match=r"answered with HTTP 404\."):
            await call_listed(servers, listing, "shop.price", {"item": "tea"})
        price = await call_listed(servers, listing, "shop.price", {"item": "tea"})

    assert price["structuredContent"] == {"result": 3}


@requirement("mcp:call:death", "mcp:call:reconnect")
async def test_an_answer_that_breaks_off_rejects_at_once_and_the_next_call_begins_anew(tmp_path: Path) -> None:
    """As where a server is killed in mid-call and another one stands there: it knows no session of ours."""
    app, cuts = Recorded(build_shop().streamable_http_app()), []

    async def or_cut(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and cuts:
            cuts.pop()
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b": nothing\n\n"})
            return
        await app(scope, receive, send)

    async with serve(or_cut) as base, servers_of(define("shop", {"url": f"{base}/mcp"}), cache=tmp_path) as servers:
        listing = await servers.tools()
        cuts.append(True)
        with pytest.raises(NestedToolFailed, match="broke off its answer to tools/call, which may have taken effect"):
            await call_listed(servers, listing, "shop.price", {"item": "tea"})
        price = await call_listed(servers, listing, "shop.price", {"item": "tea"})

    assert price["structuredContent"] == {"result": 3}
    assert len({headers["mcp-session-id"] for _, headers in app.requests if "mcp-session-id" in headers}) == 2


@requirement("mcp:call:death", "mcp:call:reconnect")
async def test_a_server_that_went_away_rejects_and_its_return_is_noticed(tmp_path: Path) -> None:
    """Another server at the same address, later."""
    async with AsyncExitStack() as first:
        held = first.enter_context(take_port())
        port = held.getsockname()[1]
        server = await first.enter_async_context(AsyncExitStack())
        base = await server.enter_async_context(serve(build_shop().streamable_http_app(), port))
        async with servers_of(define("shop", {"url": f"{base}/mcp"}), cache=tmp_path) as servers:
            listing = await servers.tools()
            await server.aclose()
            with pytest.raises(NestedToolFailed, match=r"cannot be reached: .* during tools/call"):
                await call_listed(servers, listing, "shop.price", {"item": "tea"})
            with pytest.raises(NestedToolFailed, match="cannot be reached: "):
                await call_listed(servers, listing, "shop.price", {"item": "tea"})
            async with serve(build_shop().streamable_http_app(), port):
                price = await call_listed(servers, listing, "shop.price", {"item": "tea"})

    assert price["structuredContent"] == {"result": 3}
