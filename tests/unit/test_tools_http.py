"""HTTP tools against a real server on loopback."""

import asyncio
import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from codemode.core.errors import InvalidConfig, InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES
from codemode.core.tables import Where
from codemode.definitions import HttpTemplate
from codemode.tools import http
from codemode.tools.http import HttpClient, HttpTool
from codemode.tools.templates import Placeholders, Variables
from codemode.tools.threads import Threads
from tests.requirements import requirement
from tests.support.tools import make_context

CONTEXT = make_context()
WHERE = Where("codemode.toml", "tool[0].http")


class Echo(BaseHTTPRequestHandler):
    """Say what was asked; some paths misbehave."""

    protocol_version = "HTTP/1.1"

    def _serve(self):  # noqa: C901  # one case for each path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        self.server.connections.add(self.client_address)
        match path.strip("/").split("/"):
            case ["status", code]:
                self._answer(int(code), b'{"error": "no   such\n order"}')
            case ["text"]:
                self._answer(200, b"12", "text/plain")
            case ["untyped"]:
                self._answer(200, b'{"a": 1}', None)
            case ["broken"]:
                self._answer(200, b'{"a":')
            case ["empty"]:
                self._answer(204, b"")
            case ["latin"]:
                self._answer(200, "café".encode("latin-1"), 'text/plain; charset="ISO-8859-1"')
            case ["unknown-charset"]:
                self._answer(200, "café".encode(), "text/plain; charset=x-made-up")
            case ["marked"]:
                self._answer(200, b"\xef\xbb\xbf" + b'{"a": 1}')
            case ["latin-failure"]:
                self._answer(500, "café".encode("latin-1"), "text/plain; charset=iso-8859-1")
            case ["login"]:
                self._answer(200, b"{}", headers={"Set-Cookie": "sid=7; Path=/"})
            case ["packed", *codings]:
                packed = json.dumps("x" * 1000).encode()
                for _ in codings:
                    packed = gzip.compress(packed)
                self._answer(200, packed, headers={"Content-Encoding": ", ".join(codings)})
            case ["nowhere"]:
                self._redirect("http://[::1/x")
            case ["moved-to-a-file"]:
                self._redirect("file:///etc/passwd")
            case ["image"]:
                self._answer(200, b"\x89PNG", "image/png")
            case ["huge"]:
                self._answer(200, b"x" * (MAX_BRIDGE_BYTES + 1), "text/plain")
            case ["loop"]:
                self._redirect("/loop")
            case ["moved"]:
                self._redirect("/echo/there")
            case ["away"]:
                self._redirect(f"http://localhost:{self.server.server_address[1]}/echo/away")
            case ["hang"]:
                self.server.release.wait(30)
                self._answer(200, b"null")
            case _:
                seen = {
                    "method": self.command,
                    "path": path,
                    "query": parse_qs(urlsplit(self.path).query, keep_blank_values=True),
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": body.decode(),
                }
                self._answer(200, json.dumps(seen).encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  # the server's names

    def _redirect(self, to):
        self._answer(302, b"", None, {"Location": to})

    def _answer(self, status, body, kind="application/json", headers=None):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    made.daemon_threads = True
    made.connections = set()
    made.release = threading.Event()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.release.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
async def build(server):
    threads, learned = Threads(), set()
    client = HttpClient(threads)

    def make(path="/echo", method="GET", headers=None, body="json", properties=("id",)):
        url = path if "://" in path else f"http://127.0.0.1:{server.server_address[1]}{path}"
        template = HttpTemplate(method, url, headers or {}, body)
        tool = HttpTool(template, Placeholders(properties), WHERE, Variables(learned.update), client)
        tool.learned = learned
        return tool

    yield make
    await client.close()
    threads.close()


@requirement("tools:http:placement")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_rest_goes_to_the_query(build, method):
    given = {"id": "a/b?c", "text": "é &=", "many": [1, "x"], "flag": True, "nested": {"k": 1}, "none": None, "n": 1.5}

    seen = await build("/echo/{id}", method)(given, CONTEXT)

    assert (seen["method"], seen["path"], seen["body"]) == (method, "/echo/a%2Fb%3Fc", "")
    assert seen["query"] == {
        "text": ["é &="],
        "many": ["1", "x"],
        "flag": ["true"],
        "nested": ['{"k": 1}'],
        "n": ["1.5"],
    }


async def test_a_query_in_the_template_is_kept(build):
    seen = await build("/echo?page=1&id={id}")({"id": "x&y=1", "more": "2"}, CONTEXT)

    assert seen["query"] == {"page": ["1"], "id": ["x&y=1"], "more": ["2"]}


@requirement("tools:http:placement")
async def test_the_rest_goes_to_a_json_body(build):
    seen = await build("/echo/{id}", "POST")({"id": "7", "text": "é", "none": None}, CONTEXT)

    assert json.loads(seen["body"]) == {"text": "é", "none": None}
    assert seen["headers"]["content-type"] == "application/json"
    assert seen["query"] == {}


@requirement("tools:http:placement")
async def test_the_rest_goes_to_a_form(build):
    seen = await build("/echo", "PUT", body="form")({"a": "x y", "many": [1, 2], "none": None}, CONTEXT)

    assert seen["body"] == "a=x+y&many=1&many=2"
    assert seen["headers"]["content-type"] == "application/x-www-form-urlencoded"


async def test_head_gives_status_and_headers(build):
    answer = await build("/text", "HEAD")({}, CONTEXT)

    assert (answer["status"], answer["headers"]["content-type"]) == (200, "text/plain")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/text", "12"),
        ("/untyped", {"a": 1}),
        ("/broken", '{"a":'),
        ("/empty", None),
        ("/latin", "café"),
        ("/unknown-charset", "café"),
        ("/marked", {"a": 1}),
        ("/packed/gzip", "x" * 1000),
    ],
)
async def test_an_answer_is_json_or_text_or_nothing(build, path, value):
    assert await build(path)({}, CONTEXT) == value


@requirement("tools:http:failures")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/status/404", '/status/404 answered 404 Not Found: {"error": "no such order"}'),
        ("/status/500", "/status/500 answered 500 Internal Server Error: "),
        ("/image", "/image answered image/png; binary is not supported."),
        ("/latin-failure", "/latin-failure answered 500 Internal Server Error: café"),
        ("/nowhere", "/nowhere answered 302 Found."),
        ("/moved-to-a-file", "/moved-to-a-file failed: Request URL has an unsupported protocol 'file://'."),
        ("/packed/gzip/gzip", 'the answer of 127.0.0.1 is compressed as "gzip, gzip", which is not read.'),
    ],
)
async def test_a_bad_answer_has_status_and_excerpt(build, path, message):
    with pytest.raises(NestedToolFailed) as caught:
        await build(path)({"secret": "x"}, CONTEXT)

    assert message in str(caught.value)
    assert str(caught.value).startswith(("GET http://127.0.0.1:", "the answer of"))
    assert "secret" not in str(caught.value)


@requirement("tools:http:failures")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x",
        "http://no-such-host.invalid/x",
        "http://[bad/x",
        "http://a b/",
        "http://127.0.0.1:99999/x",
        "http://127.0.0.1:port/x",
    ],
)
async def test_a_host_that_is_not_there_is_a_clear_error(build, url):
    with pytest.raises(NestedToolFailed, match=r"failed: |this is no URL") as caught:
        await asyncio.wait_for(build(url)({}, CONTEXT), 100)

    assert not re.search(r"Errno|TaskGroup|\.\.$", str(caught.value))


@requirement("tools:http:failures")
@pytest.mark.parametrize(
    ("kind", "words"),
    [("ConnectTimeout", "no connection within 10000 ms"), ("ReadTimeout", "nothing came for 300000 ms")],
)
async def test_a_host_that_is_silent_is_told_with_the_time_that_it_had(build, monkeypatch, kind, words):
    import httpx2

    async def time_out(*rest, **more):
        raise getattr(httpx2, kind)("")

    monkeypatch.setattr(httpx2.AsyncClient, "send", time_out)
    with pytest.raises(NestedToolFailed, match=f"/echo failed: {words}."):
        await build()({}, CONTEXT)


@requirement("tools:http:size-bounded")
async def test_an_answer_over_the_bound_is_refused(build):
    with pytest.raises(NestedToolFailed, match="is larger than 8388608 bytes"):
        await build("/huge")({}, CONTEXT)


@requirement("tools:http:redirects-bounded")
async def test_redirects_are_followed_a_few_times_only(build):
    assert (await build("/moved")({}, CONTEXT))["path"] == "/echo/there"

    with pytest.raises(NestedToolFailed, match="was redirected more than 5 times"):
        await build("/loop")({}, CONTEXT)


@requirement("tools:http:redirects-bounded")
async def test_configured_headers_do_not_follow_to_another_origin(build):
    headers = {"X-Api-Key": "hunter2-hunter2", "Authorization": "Bearer hunter2-hunter2"}

    stayed = await build("/moved", headers=headers)({}, CONTEXT)
    left = await build("/away", headers=headers)({}, CONTEXT)

    assert stayed["headers"]["x-api-key"] == "hunter2-hunter2"
    assert left["path"] == "/echo/away"
    assert not {"x-api-key", "authorization"} & left["headers"].keys()


@requirement("tools:http:no-cookies")
async def test_a_cookie_of_one_call_is_not_sent_with_another(build):
    await build("/login")({}, CONTEXT)

    assert "cookie" not in (await build()({}, CONTEXT))["headers"]


@requirement("tools:http:one-client")
async def test_calls_that_begin_together_open_one_client(build, monkeypatch):
    opened = []

    def count():
        opened.append(open_client())
        return opened[-1]

    open_client = http._open_client
    monkeypatch.setattr(http, "_open_client", count)
    await asyncio.gather(*(build()({}, CONTEXT) for _ in range(5)))

    assert len(opened) == 1


@requirement("tools:http:one-client")
async def test_one_connection_serves_calls_in_a_row(build, server):
    for _ in range(5):
        await build("/echo")({}, CONTEXT)

    assert len(server.connections) == 1


@requirement("tools:http:path-kept")
@pytest.mark.parametrize("value", [".", "..", "", None])
async def test_a_property_cannot_climb_out_of_the_path(build, value):
    found = f'"{value}"' if value else "empty"
    with pytest.raises(InvalidInput, match=re.escape(f"{{id}} of the URL's path would be {found}, which leads")):
        await build("/echo/{id}/secret")({"id": value}, CONTEXT)


async def test_an_empty_property_may_stand_where_the_path_does_not_hang_on_it(build):
    seen = await build("/echo/of-{id}?q={id}")({"id": ""}, CONTEXT)

    assert (seen["path"], seen["query"]) == ("/echo/of-", {"q": [""]})


@requirement("tools:http:path-kept")
async def test_a_property_cannot_add_a_header(build):
    tool = build(headers={"X-Id": "id-{id}"})

    assert (await tool({"id": 7}, CONTEXT))["headers"]["x-id"] == "id-7"
    for value in ("7\r\nX-Admin: yes", "é"):
        with pytest.raises(InvalidInput, match="the property id holds a character that no header can"):
            await tool({"id": value}, CONTEXT)


@requirement("tools:http:path-kept")
@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"X-Id": "a\nb"}, "the header X-Id holds a character that no header can"),
        ({"X-Id": "é"}, "the header X-Id holds a character that no header can"),
        ({"X Id": "a"}, '"X Id" is no name of a header'),
        ({"": "a"}, '"" is no name of a header'),
    ],
)
async def test_what_can_be_no_header_is_named_without_its_value(build, headers, message):
    with pytest.raises(InvalidInput) as caught:
        await build(headers=headers)({}, CONTEXT)

    assert str(caught.value).startswith(message)


async def test_a_line_break_at_the_end_of_a_variable_does_no_harm(build, monkeypatch):
    monkeypatch.setenv("CM_TOKEN", "hunter2-hunter2\n")
    tool = build(headers={"Authorization": "Bearer ${CM_TOKEN}"})

    assert (await tool({}, CONTEXT))["headers"]["authorization"] == "Bearer hunter2-hunter2"
    assert "hunter2-hunter2" in tool.learned


async def test_a_missing_property_of_the_url_is_named(build):
    with pytest.raises(InvalidInput, match="the property id is needed and was not given"):
        await build("/echo/{id}")({}, CONTEXT)


async def test_cancelling_ends_the_request(build):
    task = asyncio.create_task(build("/hang")({}, CONTEXT))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


@requirement("tools:variables:at-use")
async def test_variables_are_filled_and_headers_learned(build, monkeypatch):
    monkeypatch.setenv("MADE_UP_TOKEN", "hunter2-hunter2")
    tool = build(headers={"Authorization": "Bearer ${MADE_UP_TOKEN}", "X-Key": "literal-key", "Accept": "text/plain"})

    seen = await tool({}, CONTEXT)

    assert seen["headers"]["authorization"] == "Bearer hunter2-hunter2"
    assert tool.learned == {"hunter2-hunter2", "Bearer hunter2-hunter2", "literal-key"}


async def test_a_literal_credential_is_learned_without_its_scheme_too(build):
    tool = build(headers={"Authorization": "Bearer literal-token", "Proxy-Authorization": "bare"})
    await tool({}, CONTEXT)

    assert tool.learned == {"Bearer literal-token", "literal-token", "bare"}


def test_a_probe_names_an_unset_variable_and_its_key(server):
    template = HttpTemplate("GET", "http://x/", {"A": "${MADE_UP_MISSING}"})
    threads = Threads()
    tool = HttpTool(template, Placeholders(()), WHERE, Variables(lambda secrets: None), HttpClient(threads))

    with pytest.raises(
        InvalidConfig, match=r"tool\[0\]\.http\.headers\.A in codemode\.toml: the variable MADE_UP_MISS"
    ):
        tool.probe()
