"""A server on loopback that says what it was asked, for tools made of OpenAPI documents."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """One request: `query` in its order, `headers` by lower-case name, `body` as it came."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: str


class Petstore(ThreadingHTTPServer):
    """Serves until it is closed; `asked` is what it was asked, `url` where it is."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Asked] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Petstore

    def _serve(self) -> None:
        split = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(
            Asked(self.command, split.path, parse_qsl(split.query, keep_blank_values=True), headers, body)
        )
        if split.path.endswith("/missing"):
            self._answer(404, {"error": "no such pet"})
        elif self.command == "DELETE":
            self._answer(204, None)
        else:
            self._answer(200, {"path": split.path, "sent": json.loads(body) if body.startswith("{") else body})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  # the server's names

    def _answer(self, status: int, value: Any) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Petstore]:
    """Serve in a thread; closed afterwards."""
    server = Petstore()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
