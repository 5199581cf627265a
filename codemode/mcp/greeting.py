"""The first words with a stdio server, without the SDK: the handshake and the tool list.

A listing takes three messages, and importing the SDK takes longer than most servers need to
start. So these few are exchanged here, line by line and one at a time. When the first call
comes, `connection` hands the pipes and the result of the handshake over to the SDK.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from codemode import __version__
from codemode.core.jsonsafe import clean_escapes
from codemode.core.types import Json
from codemode.mcp.failures import RequestFailed
from codemode.mcp.process import ServerProcess

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # newest first
_METHOD_NOT_FOUND = -32601


class Listener(NamedTuple):
    """Whom to tell what happens beside our requests: a stray line, a question, changed tools, the end."""

    noise: Callable[[str], None]
    asked: Callable[[str], None]
    tools_changed: Callable[[], None]
    ended: Callable[[], None]


class Greeting:
    """Requests over a server's pipes, one at a time; `hello` is the result of the handshake."""

    def __init__(self, process: ServerProcess, listener: Listener) -> None:
        """Use a process whose pipes nobody else reads."""
        self._process = process
        self._listener = listener
        self._count = 0
        self._turn = asyncio.Lock()
        self.hello: dict[str, Any] = {}

    async def shake_hands(self) -> None:
        """Initialize the conversation, offering no capabilities: nobody is there to answer a server.

        It waits for as long as it is let; whoever starts a server bounds the whole start.

        Raises:
            RequestFailed: The connection ended, a refusal, or an answer that is not MCP.
        """
        client = {"name": "codemode", "version": __version__}
        params = {"protocolVersion": PROTOCOL_VERSIONS[0], "capabilities": {}, "clientInfo": client}
        self.hello = await self.request("initialize", params, None)
        version = self.hello.get("protocolVersion")
        if version not in PROTOCOL_VERSIONS or not isinstance(self.hello.get("capabilities"), dict):
            raise RequestFailed("refused", f"protocol version {json.dumps(version)}, which is not known here")
        self._send({"method": "notifications/initialized"})

    async def request(self, method: str, params: Mapping[str, Json], timeout_ms: int | None) -> dict[str, Json]:
        """Send a request and return its result.

        Raises:
            RequestFailed: No answer in time, no connection any more, or an error for an answer.
        """
        async with self._turn:
            self._count += 1
            id_ = f"first-{self._count}"  # a text, so that it is never one of the SDK's numbers
            self._send({"id": id_, "method": method, "params": dict(params)})
            try:
                async with asyncio.timeout(timeout_ms and timeout_ms / 1000):
                    return await self._answer(id_)
            except TimeoutError as error:
                self._send({"method": "notifications/cancelled", "params": {"requestId": id_}})
                raise RequestFailed("timeout") from error

    async def finish(self) -> None:
        """Wait until no request is open, so that another may read the pipes."""
        async with self._turn:
            return

    async def _answer(self, id_: str) -> dict[str, Json]:
        while (line := await self._process.read_line()) is not None:
            message = read_line(line)
            match message:
                case {"id": answered, "result": dict(result)} if answered == id_:
                    return result
                case {"id": answered, "error": {"code": code, "message": words}} if answered == id_:
                    raise RequestFailed("refused", f"error {code}: {words}")
                case {"id": answered} if answered == id_:
                    raise RequestFailed("refused", "an answer that is no JSON-RPC response")
                case {"jsonrpc": "2.0", "method": str(method)}:
                    self._hear(method, message)
                case _ if line.strip():
                    self._listener.noise(line.decode("utf-8", "replace").strip())
        self._listener.ended()
        raise RequestFailed("closed")

    def _hear(self, method: str, message: dict[str, Json]) -> None:
        if "id" not in message:
            if method == "notifications/tools/list_changed":
                self._listener.tools_changed()
        elif method == "ping":
            self._send({"id": message["id"], "result": {}})
        else:
            self._listener.asked(method)
            self._send({"id": message["id"], "error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}})

    def _send(self, message: dict[str, Json]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        try:
            self._process.write(f"{text}\n".encode())
        except BrokenPipeError:
            self._listener.ended()


def read_line(line: bytes) -> Json:
    """Return the JSON of a line, None if it holds none; lone surrogates and bad bytes become U+FFFD."""
    try:
        return json.loads(clean_escapes(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None
