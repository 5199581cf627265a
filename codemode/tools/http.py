"""HTTP tools: one request from a template, one JSON value or text back.

Properties fill `{placeholders}` in URL and headers; the others go to the query of a GET, HEAD
or DELETE, else to a JSON or form body. A template with `places` says of each property where it
goes. Redirects and sizes are bounded, configured headers never follow a redirect to another
origin, and one client serves all calls of a session.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from codemode.core.errors import CodeModeError, InvalidInput, NestedToolFailed, words_of
from codemode.core.limits import (
    ERROR_EXCERPT_CHARS,
    HTTP_CONNECT_MS,
    HTTP_SILENCE_MS,
    MAX_BRIDGE_BYTES,
    MAX_HTTP_REDIRECTS,
)
from codemode.core.tables import Where, shown
from codemode.core.types import Json, RunContext
from codemode.definitions import HttpTemplate, Place
from codemode.tools.templates import Placeholders, Variables, as_text
from codemode.tools.threads import Threads

if TYPE_CHECKING:
    import httpx2

_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "user-agent"}
)
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_IN_QUERY = frozenset({"GET", "HEAD", "DELETE"})
_CODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})  # a piece grows a thousandfold at most
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHARSET = re.compile(r'charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")


class Request(NamedTuple):
    """A request ready to be sent; `body` is None for none."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None = None


class Answer(NamedTuple):
    """A response, read to its end."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes

    def text(self, errors: str = "strict") -> str:
        """Return the body in the charset that the answer names, else UTF-8.

        Raises:
            UnicodeDecodeError: It is no text.
        """
        named = _CHARSET.search(self.headers.get("content-type", ""))
        charset = named[1].lower() if named else "utf-8"
        try:
            return self.body.decode("utf-8-sig" if charset in {"utf-8", "utf8"} else charset, errors)
        except LookupError:
            return self.body.decode("utf-8-sig", errors)


class HttpClient:
    """One client for all HTTP tools of a session, opened at the first request; it keeps no cookies."""

    def __init__(self, threads: Threads) -> None:
        """Keep the threads that the client is opened in: importing and reading certificates takes 100 ms."""
        self._threads = threads
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def send(self, request: Request) -> Answer:
        """Send a request, follow a few redirects, and read the answer within bounds.

        Raises:
            InvalidInput: A header cannot be one.
            NestedToolFailed: The host cannot be reached, answers too much, or redirects too often.

        Contract: tools:http:redirects-bounded, tools:http:size-bounded, tools:http:one-client
        """
        request = request._replace(headers={name: _header(name, text) for name, text in request.headers.items()})
        async with self._opening:
            client = self._client = self._client or await self._threads.run(_open_client)
        try:
            following = client.build_request(request.method, request.url, headers=request.headers, content=request.body)
            for _ in range(MAX_HTTP_REDIRECTS + 1):
                response = await client.send(following, stream=True)
                try:
                    if response.next_request is None:
                        return await _read(response)
                    following = _carry_on(response.next_request, following, request.headers)
                finally:
                    await response.aclose()
        except CodeModeError:
            raise
        except Exception as error:  # the client, and what it stands on, fail with whatever they like
            raise NestedToolFailed(f"{_place(request)} failed: {_reason(error)}.") from error
        raise NestedToolFailed(f"{_place(request)} was redirected more than {MAX_HTTP_REDIRECTS} times.")

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


class HttpTool:
    """One request template: call it with an input, or `probe` it without sending anything."""

    def __init__(
        self, template: HttpTemplate, placeholders: Placeholders, where: Where, variables: Variables, client: HttpClient
    ) -> None:
        """Keep the template; `where` is its place, and variables are expanded at the first call."""
        self._template = template
        self._placeholders = placeholders
        self._where = where
        self._variables = variables
        self._client = client
        self._expanded: HttpTemplate | None = None
        self._named = placeholders.used(template.url, *template.headers.values())

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:  # noqa: ARG002
        """Send the request and return what came back: JSON, else text, else null.

        Raises:
            InvalidInput: A placeholder's value is missing or may not stand there.
            NestedToolFailed: No answer, a status of 300 or more, or an answer that is neither.
            InvalidConfig: A variable is not set.

        Contract: tools:http:placement, tools:http:failures
        """
        try:
            request = self._request(given)
        except ValueError as error:
            raise NestedToolFailed(f"{self._where.at('url')}: this is no URL once it is filled in: {error}.") from error
        answer = await self._client.send(request)
        if answer.status >= 300:  # a redirect that leads somewhere was followed
            raise NestedToolFailed(_describe_failure(request, answer))
        if request.method == "HEAD":
            return {"status": answer.status, "headers": answer.headers}
        return _parse_body(request, answer)

    def probe(self) -> None:
        """Say whether all variables are set.

        Raises:
            InvalidConfig: One is not.
        """
        self._template_with_variables()

    def _template_with_variables(self) -> HttpTemplate:
        if self._expanded is None:
            template, expand = self._template, self._variables.expand
            filled = expand({"url": template.url, "headers": dict(template.headers)}, self._where)
            self._variables.learn(_secrets(filled["headers"]))
            self._expanded = template._replace(url=filled["url"], headers=filled["headers"])
        return self._expanded

    def _request(self, given: dict[str, Json]) -> Request:
        template, fill = self._template_with_variables(), self._placeholders.fill
        if template.places is not None:
            return self._placed(template, template.places, given)
        headers = {name: fill(text, given, _header_text) for name, text in template.headers.items()}
        url = self._fill_url(template.url, given)
        rest = {name: value for name, value in given.items() if name not in self._named}
        if template.method in _IN_QUERY:
            return Request(template.method, _with_query(url, _encode(rest)), headers)
        if template.body == "form":
            return Request(template.method, url, {"Content-Type": _FORM} | headers, _encode(rest).encode())
        return Request(template.method, url, {"Content-Type": _JSON} | headers, _json_body(rest))

    def _placed(self, template: HttpTemplate, places: Mapping[str, Place], given: dict[str, Json]) -> Request:
        """Put each property where its place is; the configured headers win over those of the input."""
        in_path: dict[str, Json] = {}
        pairs: dict[str, list[tuple[str, str]]] = {"query": [], "header": []}
        body: bytes | None = None
        headers: dict[str, str] = {}
        for name, value in given.items():
            place = places[name]
            if place.kind == "path":  # the URL names the property, which need not have the parameter's name
                in_path.update((name, text) for _, text in _pairs(place, value))
            elif place.kind != "body":
                pairs[place.kind] += _pairs(place, value)
            elif template.body == "form":
                headers["Content-Type"], body = _FORM, _encode(value).encode()
            else:
                headers["Content-Type"], body = _JSON, _json_body(value)
        headers |= {name: _header_text(name, text) for name, text in pairs["header"]} | template.headers
        url = self._fill_url(template.url, in_path)
        return Request(template.method, _with_query(url, urlencode(pairs["query"])), headers, body)

    def _fill_url(self, url: str, given: Mapping[str, Json]) -> str:
        """Fill the URL; what is filled in is quoted, so that the path keeps its parts.

        Contract: tools:http:path-kept
        """
        filled = self._placeholders.fill(url, given, lambda _, text: quote(text, safe=""))
        for written, part in zip(urlsplit(url).path.split("/"), urlsplit(filled).path.split("/"), strict=False):
            if part != written and part in {"", ".", ".."}:
                found = "empty" if not part else f'"{part}"'
                raise InvalidInput(f"{written} of the URL's path would be {found}, which leads elsewhere")
        return filled


def _open_client() -> "httpx2.AsyncClient":
    # Imported here: 100 ms that a session without HTTP calls never pays.
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx2

    silence = httpx2.Timeout(HTTP_SILENCE_MS / 1000, connect=HTTP_CONNECT_MS / 1000)
    headers = {"User-Agent": "codemode", "Accept-Encoding": "gzip, deflate"}
    # Cookies of one call would log in another, of another run perhaps.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return httpx2.AsyncClient(timeout=silence, headers=headers, cookies=no_cookies)


def _carry_on(following: Any, before: Any, configured: dict[str, str]) -> Any:
    def origin(request: Any) -> tuple[str, str, int | None]:
        return request.url.scheme, request.url.host, request.url.port

    if origin(following) != origin(before):
        for name in configured:
            following.headers.pop(name, None)
    return following


async def _read(response: Any) -> Answer:
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in _CODINGS:
        raise NestedToolFailed(
            f"the answer of {response.url.host} is compressed as {shown(coding)}, which is not read."
        )
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BRIDGE_BYTES:
            raise NestedToolFailed(f"the answer of {response.url.host} is larger than {MAX_BRIDGE_BYTES} bytes.")
    return Answer(response.status_code, response.reason_phrase, dict(response.headers), bytes(body))


def _parse_body(request: Request, answer: Answer) -> Json:
    if not answer.body.strip():
        return None
    try:
        text = answer.text()
    except UnicodeDecodeError as error:
        kind = answer.headers.get("content-type", "binary data")
        raise NestedToolFailed(f"{_place(request)} answered {kind}; binary is not supported.") from error
    if answer.headers.get("content-type", "json").startswith("text/"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _describe_failure(request: Request, answer: Answer) -> str:
    beginning = answer._replace(body=answer.body[: 4 * ERROR_EXCERPT_CHARS]).text("replace")
    excerpt = " ".join(beginning.split())[:ERROR_EXCERPT_CHARS]
    status = f"{answer.status} {answer.reason}".strip()
    return f"{_place(request)} answered {status}" + (f": {excerpt}" if excerpt else ".")


def _place(request: Request) -> str:
    parts = urlsplit(request.url)
    return f"{request.method} {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _reason(error: Exception) -> str:
    """Return why no answer came, without the client's own words where they say little."""
    kind = type(error).__name__
    if kind == "ConnectTimeout":
        return f"no connection within {HTTP_CONNECT_MS} ms"
    if kind.endswith("Timeout"):
        return f"nothing came for {HTTP_SILENCE_MS} ms"
    return _ERROR_NUMBER.sub("", words_of(error)).rstrip(".")


def _secrets(headers: Mapping[str, str]) -> set[str]:
    """Return what of configured headers is never shown: values, and credentials without their scheme."""
    telling = {name.lower(): text.strip() for name, text in headers.items() if name.lower() not in _HARMLESS_HEADERS}
    bare = {text.partition(" ")[2].strip() for name, text in telling.items() if name.endswith("authorization")}
    return set(telling.values()) | bare - {""}


def _header_text(name: str, text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(f"the property {name} holds a character that no header can")
    return text


def _header(name: str, text: str) -> str:
    """Return a header's text as it is sent, without blanks around it."""
    bare = text.strip()
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidInput(f"{shown(name)} is no name of a header")
    if not (bare.isascii() and bare.isprintable()):
        raise InvalidInput(f"the header {name} holds a character that no header can; printable ASCII is allowed")
    return bare


def _with_query(url: str, query: str) -> str:
    if not query:
        return url
    return url + ("&" if "?" in url else "?") + query


def _json_body(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _pairs(place: Place, value: Json) -> list[tuple[str, str]]:
    """Return what a value is written as, name by name; null is left out."""
    if value is None:
        return []
    if isinstance(value, dict):
        members = [(str(key), as_text(item)) for key, item in value.items()]
        if place.keyed:
            return [(f"{place.name}[{key}]", text) for key, text in members]
        return members if place.joint is None else [(place.name, place.joint.join(chain(*members)))]
    if not isinstance(value, list):
        return [(place.name, as_text(value))]
    texts = [as_text(item) for item in value]
    return [(place.name, text) for text in texts] if place.joint is None else [(place.name, place.joint.join(texts))]


def _encode(rest: dict[str, Json]) -> str:
    pairs = {
        name: [as_text(item) for item in value] if isinstance(value, list) else as_text(value)
        for name, value in rest.items()
        if value is not None
    }
    return urlencode(pairs, doseq=True)
