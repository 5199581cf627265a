"""A model provider on loopback that says what a test scripts, in the wire format of each provider.

`Provider` is the server; `converse` is the agent's side of one turn: it sends what the library's
payload adapter builds, lets the library carry out the tool calls, and stops at a plain answer.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import httpx2

from codemode import CodeMode
from codemode.payload.closed import offered_tools
from codemode.payload.messages import ChatRequest, Message, UserMessage
from codemode.payload.providers import PROVIDERS

PATIENCE_S = 60
MODEL = "scripted-1"


class Says(NamedTuple):
    """The model ends its turn with this text."""

    text: str


class Calls(NamedTuple):
    """The model calls a tool."""

    name: str
    input: dict[str, Any]


Move = Callable[[str], Says | Calls]  # from the request's text, as a model reads it


class Provider:
    """Answers each request with the next move of its script, and keeps what it was sent."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url
        self.script: list[Move] = []
        self.requests: list[dict[str, Any]] = []

    @property
    def offers(self) -> list[list[str]]:
        """The names of the tools of each request so far, sorted."""
        return [sorted(offered_tools(request)) for request in self.requests]

    def answer(self, text: str) -> dict[str, Any]:
        """Return the body of a response."""
        self.requests.append(json.loads(text))
        return _BODIES[self.kind](self.script.pop(0)(text), f"call_{len(self.requests)}")


@contextmanager
def open_provider(kind: str) -> Iterator[Provider]:
    """Serve on a free port of loopback; on leaving, the whole script must have been asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            data = json.dumps(provider.answer(text)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(kind, f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
        assert provider.script == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def converse(code_mode: CodeMode, provider: Provider, prompt: str, *script: Move) -> tuple[str, list[Message]]:
    """Carry one turn to the model's answer; return it with everything that was said before."""
    provider.script = list(script)
    said: list[Message] = [UserMessage(prompt)]
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        while True:
            body = code_mode.payload(provider.kind, ChatRequest(MODEL, tuple(said), ()))
            response = await client.post(provider.url, json=body)
            reply = PROVIDERS[provider.kind].parse_reply(response.raise_for_status().json())
            said.append(reply.message)
            if not reply.message.tool_uses:
                return reply.message.text, said
            said += [await code_mode.answer(use) for use in reply.message.tool_uses]


def _openai(move: Says | Calls, call_id: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(move, Says):
        message["content"] = move.text
    else:
        function = {"name": move.name, "arguments": json.dumps(move.input)}
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
    return {"choices": [{"index": 0, "message": message}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}


def _openai_responses(move: Says | Calls, call_id: str) -> dict[str, Any]:
    if isinstance(move, Says):
        item: dict[str, Any] = {"type": "message", "content": [{"type": "output_text", "text": move.text}]}
    else:
        arguments = json.dumps(move.input)
        item = {"type": "function_call", "call_id": call_id, "name": move.name, "arguments": arguments}
    return {"output": [item], "usage": {"input_tokens": 9, "output_tokens": 1}}


def _anthropic(move: Says | Calls, call_id: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": move.text} if isinstance(move, Says) else {
        "type": "tool_use", "id": call_id, "name": move.name, "input": move.input,
    }  # fmt: skip
    return {"role": "assistant", "content": [block], "usage": {"input_tokens": 9, "output_tokens": 1}}


def _gemini(move: Says | Calls, call_id: str) -> dict[str, Any]:
    part: dict[str, Any] = {"text": move.text} if isinstance(move, Says) else {
        "functionCall": {"id": call_id, "name": move.name, "args": move.input}
    }  # fmt: skip
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}}], "usageMetadata": usage}


_BODIES: dict[str, Callable[[Says | Calls, str], dict[str, Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
