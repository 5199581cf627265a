"""MCP servers over HTTP, in the tests' own event loop: real sockets, the SDK's own server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

App = Callable[[Any, Any, Any], Awaitable[None]]


def build_shop() -> MCPServer:
    """Return a server with one plain tool and one that reports progress."""
    shop = MCPServer("shop")

    @shop.tool()
    def price(item: str) -> int:
        """Say what an item costs."""
        return {"tea": 3, "cake": 5}[item]

    @shop.tool()
    async def bake(context: Context) -> str:
        """Take a while."""
        await context.report_progress(1, 2, "mixing")
        await context.report_progress(2, 2, "baking")
        return "done"

    return shop


class Recorded:
    """An app in front of another: it notes each request, and may answer with a bare status instead."""

    def __init__(
        self, app: App, status: Callable[[str, dict[str, str]], int | None] = lambda method, headers: None
    ) -> None:
        self._app = app
        self._status = status
        self.requests: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], headers))
            status = self._status(scope["method"], headers)
            if status is not None:
                await send(
                    {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]}
                )
                await send({"type": "http.response.body", "body": b"no"})
                return
        await self._app(scope, receive, send)


def take_port(port: int = 0) -> socket.socket:
    """Take a port of the loopback, a free one if none is given, without listening there.

    While it is held nobody is given this port, and who asks for it by its number, as `serve` or a
    program under test, can still listen there: on Linux, where neither listens yet.
    """
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", port))
    return taken


@asynccontextmanager
async def serve(app: App, port: int = 0) -> AsyncIterator[str]:
    """Serve an app on a port of the loopback, a free one if none is given; gives its address."""
    listener = take_port(port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(60):
        while True:
            if server.started:
                break
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()
