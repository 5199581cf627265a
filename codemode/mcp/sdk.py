"""The official SDK, as far as we use it: transports, handshake, raw requests, and what its errors mean.

The only module that imports `mcp`, which costs half a second: `connection` imports this one when a
server is really connected, while that server starts. Requests go through the SDK's dispatcher
and not through `ClientSession.call_tool`, which checks results against schemas, raises on a
mismatch and lists tools by itself: a result is passed on exactly as the server sent it.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import anyio
import httpx2
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, Dispatcher, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    Implementation,
    InitializeResult,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
)
from mcp_types import jsonrpc_message_adapter as message_adapter
from pydantic import ValidationError

from codemode import __version__
from codemode.core.limits import MAX_MCP_MESSAGE_BYTES
from codemode.core.types import Json
from codemode.mcp import oauth
from codemode.mcp.failures import BAD_STATUS, FailureKind, RequestFailed, explain_status
from codemode.mcp.greeting import Listener, read_line
from codemode.mcp.process import ServerProcess

FAILURES = (
    *(MCPError, httpx2.HTTPError, anyio.BrokenResourceError, anyio.ClosedResourceError),
    *(OSError, RuntimeError, ValueError, ExceptionGroup),
    *oauth.FAILURES,
)
"""What the SDK and its transports raise when a server cannot be talked to."""

_CONNECT_S = 30.0  # of one HTTP connection; the answer itself is bounded by the server's own timeouts
Item = SessionMessage | Exception


class _Items(Protocol):
    """What a transport's reading half must offer; the SDK names its own protocol privately."""

    async def __anext__(self) -> Item: ...
    async def aclose(self) -> None: ...


StreamPair = tuple[_Items, Any]  # the reading half and the writing half
Streams = AbstractAsyncContextManager[StreamPair]

for _name in ("mcp", "client"):  # the SDK logs tracebacks of what it also raises; without a handler they reach stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Conversation(NamedTuple):
    """An open conversation; `capabilities` are the server's, as it told them."""

    dispatcher: Dispatcher[Any]
    capabilities: dict[str, Json]

    async def request(
        self, method: str, params: Mapping[str, Json], timeout_ms: int, on_progress: Callable[[Json], None] | None
    ) -> dict[str, Json]:
        """Send a request and return the server's result untouched; a cancelled caller cancels it there too.

        `on_progress` hears `{"progress", "total"?, "message"?}`.

        Raises:
            RequestFailed: No answer in time, the connection is over, or the server answered with an error.
        """
        options: CallOptions = {"timeout": timeout_ms / 1000}
        if on_progress is not None:
            options["on_progress"] = _report_to(on_progress)
        try:
            return await self.dispatcher.send_raw_request(method, params, options)
        except MCPError as error:
            if _is_closed(error):
                raise RequestFailed("closed") from error
            if _is_cut(error):
                raise RequestFailed("cut") from error
            if (error.code, error.message) == (REQUEST_TIMEOUT, f"Request {method!r} timed out"):
                raise RequestFailed("timeout") from error
            raise RequestFailed("refused", _told(error)) from error


@asynccontextmanager
async def converse(
    streams: Streams, listener: Listener, hello: dict[str, Json] | None = None
) -> AsyncIterator[Conversation]:
    """Shake hands over a transport and keep the conversation until the block ends.

    Capabilities for elicitation, sampling and roots are not offered, and a server that asks all
    the same gets an error at once: nobody is there to answer.

    Args:
        streams: The transport.
        listener: Told what happens beside requests.
        hello: The result of a handshake that was made already.

    Raises:
        Exception: One of `FAILURES`.
    """
    async with streams as (read, write):
        dispatcher: Dispatcher[Any] = JSONRPCDispatcher(_Reader(read, listener), write)
        me = Implementation(name="codemode", version=__version__)
        async with ClientSession(dispatcher=dispatcher, client_info=me) as session:
            if hello is None:
                told = await session.initialize()
            else:
                told = InitializeResult.model_validate(hello, by_name=False)
                session.adopt(told)
            yield Conversation(dispatcher, told.capabilities.model_dump(by_alias=True, mode="json", exclude_none=True))


@asynccontextmanager
async def open_stdio(process: ServerProcess, on_noise: Callable[[str], None]) -> AsyncIterator[StreamPair]:
    """Offer a process's pipes as the SDK's pair of streams; `on_noise` hears lines that are no messages."""
    yield _read_messages(process, on_noise), _Writer(process)


@asynccontextmanager
async def open_http(
    url: str, headers: Mapping[str, str], on_status: Callable[[int], None], auth: httpx2.Auth | None = None
) -> AsyncIterator[StreamPair]:
    """Open a streamable HTTP transport; `on_status` hears each response's status."""
    async with (
        _client(dict(headers), on_status, auth) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MCP_MESSAGE_BYTES) as streams,
    ):
        yield streams


@asynccontextmanager
async def open_sse(
    url: str, headers: Mapping[str, str], on_status: Callable[[int], None], auth: httpx2.Auth | None = None
) -> AsyncIterator[StreamPair]:
    """Open the older SSE transport; `on_status` hears each response's status."""

    def build(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 -- the SDK's signature; ours has none
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return _client(headers or {}, on_status, auth)

    async with sse_client(url, headers=dict(headers), httpx_client_factory=build, auth=auth) as streams:
        yield streams


def explain(error: BaseException, status: int) -> tuple[FailureKind, str]:
    """Return the kind of an error of `FAILURES`, and what to say behind the server's name.

    A bad HTTP `status` that came last explains more than what the SDK makes of it, but for a sign-in.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, oauth.FAILURES):
        return "auth", oauth.explain(error)
    if status >= BAD_STATUS:
        return explain_status(status)
    if isinstance(error, MCPError):
        if _is_closed(error) or _is_cut(error):
            return "offline", "closed the connection during the handshake."
        return "protocol", f"answered the handshake with {_told(error)}."
    if isinstance(error, httpx2.HTTPStatusError):
        return explain_status(error.response.status_code)
    if isinstance(error, httpx2.TimeoutException):
        return "timeout", "did not answer an HTTP request in time."
    if isinstance(error, (httpx2.TransportError, OSError)):
        return "offline", f"cannot be reached: {_explain_reach(error)}."
    if isinstance(error, ValidationError):
        return "protocol", f"sent what is not MCP: {error.errors()[0]['msg']}."
    return "protocol", f"does not speak MCP as expected: {error}."


def _explain_reach(error: BaseException) -> str:
    """Return what the system said beneath the libraries, whose own words for a closed port name neither."""
    place = "its address"
    with suppress(AttributeError, RuntimeError):  # no error of HTTP, or one without a request
        place = error.request.url.netloc.decode()  # type: ignore[attr-defined]
    root = error
    while (beneath := root.__cause__ or root.__context__) is not None:
        root = beneath
    if isinstance(root, ConnectionRefusedError):
        return f"{place} refuses connections"
    if isinstance(root, socket.gaierror):
        return f"no host is known as {place}"
    return str(error) or type(error).__name__


def _told(error: MCPError) -> str:
    """Return what an answer was that is an error, or that the SDK could not read."""
    if error.code == PARSE_ERROR and error.message.startswith("Failed to parse "):
        return "what is not MCP"
    return f"error {error.code}: {error.message}"


def _is_closed(error: MCPError) -> bool:
    """Tell the SDK's own error from a server's, which may use the same code."""
    return (error.code, error.message) == (CONNECTION_CLOSED, "Connection closed")


def _is_cut(error: MCPError) -> bool:
    """Tell whether an answer over HTTP broke off, which the SDK reports in the server's place."""
    return error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream ")


def parse_message(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line; None when it is none of JSON-RPC.

    Lone surrogates and bad bytes become U+FFFD, so that one odd character costs no answer; an
    answer that is malformed otherwise becomes an error under its id, so that nobody waits for it.
    """
    with suppress(ValueError):
        return message_adapter.validate_json(line, by_name=False)
    found = read_line(line)
    with suppress(ValueError):
        return message_adapter.validate_python(found, by_name=False)
    if not isinstance(found, dict) or not isinstance(found.get("id"), (int, str)) or "method" in found:
        return None
    fault = ErrorData(code=INTERNAL_ERROR, message="the server's answer is not a JSON-RPC response")
    return JSONRPCError(jsonrpc="2.0", id=found["id"], error=fault)


def _report_to(on_progress: Callable[[Json], None]) -> ProgressFnT:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        update = {"progress": progress, "total": total, "message": message}
        on_progress({key: value for key, value in update.items() if value is not None})

    return report


def _client(headers: dict[str, str], on_status: Callable[[int], None], auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    async def hear(response: httpx2.Response) -> None:
        on_status(response.status_code)

    timeout = httpx2.Timeout(_CONNECT_S, read=None)
    return httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [hear]}, auth=auth)


async def _read_messages(process: ServerProcess, on_noise: Callable[[str], None]) -> AsyncGenerator[Item, None]:
    while (line := await process.read_line()) is not None:
        message = parse_message(line)
        if message is not None:
            yield SessionMessage(message)
        elif line.strip():
            on_noise(line.decode("utf-8", "replace").strip())
        await asyncio.sleep(0)  # a server that floods us must not hold the loop


class _Reader:
    """The reading half of a transport, which also tells the listener what passes by."""

    def __init__(self, items: _Items, listener: Listener) -> None:
        self._items = items
        self._listener = listener

    async def __anext__(self) -> Item:
        try:
            item = await self._items.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._listener.ended()
            raise StopAsyncIteration from None
        if isinstance(item, SessionMessage):
            self._notice(item.message)
        return item

    def _notice(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest) and message.method != "ping":
            self._listener.asked(message.method)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/tools/list_changed":
            self._listener.tools_changed()

    async def receive(self) -> Item:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> "_Reader":
        return self

    async def aclose(self) -> None:
        await self._items.aclose()

    async def __aenter__(self) -> "_Reader":
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Writer:
    """The writing half of a process's pipes."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._process.write(f"{line}\n".encode())
        except BrokenPipeError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Leave the pipe to the process's own `close`."""

    async def __aenter__(self) -> "_Writer":
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
