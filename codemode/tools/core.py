"""The core tools: files inside declared roots, a shell, HTTP. Off until `[core] tools` lists them."""

import base64
import fnmatch
from collections.abc import Awaitable, Callable, Iterator
from threading import Event
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from codemode.core.errors import InvalidInput, NestedToolFailed
from codemode.core.limits import CORE_EXEC_MS, MAX_LISTED_FILES, MAX_SEARCHED_FILE_BYTES
from codemode.core.names import build_tool_id
from codemode.core.types import Invoke, Json, RunContext, ToolSpec
from codemode.definitions import CoreEntry
from codemode.tools.command import run_program
from codemode.tools.http import HttpClient, Request
from codemode.tools.roots import Found, Roots, read_at
from codemode.tools.threads import Threads

_TEXT = {"type": "string"}
_PATH = {"type": "string", "minLength": 1, "description": "Relative to the first root, or absolute inside a root."}
_EXCERPT_CHARS = 500
T = TypeVar("T")


class _Definition(NamedTuple):
    """What a core tool says of itself."""

    description: str
    properties: dict[str, Json]
    required: tuple[str, ...] = ()
    timeout_ms: int | None = None


_DEFINITIONS = {
    "read_file": _Definition("Read a text file.", {"path": _PATH}, ("path",)),
    "write_file": _Definition(
        "Write a text file, whole; folders on the way are created.", {"path": _PATH, "text": _TEXT}, ("path", "text")
    ),
    "list_files": _Definition(
        "List a folder: path, kind (file, folder, link, other) and bytes of each entry.",
        {"path": _PATH, "deep": {"type": "boolean", "description": "Folders in folders too."}},
    ),
    "search_files": _Definition(
        "Find files by a glob over their path, and lines that contain a text.",
        {"path": _PATH, "glob": {"type": "string", "description": "Such as *.py or src/**/*.py"}, "text": _TEXT},
    ),
    "exec": _Definition(
        "Run a shell command in the first root; returns status, stdout and stderr.",
        {"command": {"type": "string", "minLength": 1}},
        ("command",),
        CORE_EXEC_MS,
    ),
    "http_request": _Definition(
        "Send an HTTP request; returns status, headers and body (text, or base64 where it is no text).",
        {
            "url": _TEXT,
            "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]},
            "headers": {"type": "object", "additionalProperties": _TEXT},
            "body": _TEXT,
        },
        ("url",),
    ),
}


class CoreTools:
    """The core tools of one session: they share its roots, threads and HTTP client."""

    def __init__(self, entry: CoreEntry, threads: Threads, client: HttpClient) -> None:
        """Keep what the tools work with; nothing is opened."""
        self._entry = entry
        self._roots = Roots(entry.roots)
        self._threads = threads
        self._client = client

    def specs(self) -> list[ToolSpec]:
        """Return the tools that the manifest lists.

        Contract: tools:core:off-until-listed
        """
        run: dict[str, Callable[[dict[str, Json]], Awaitable[Json]]] = {
            "read_file": self._in_thread(self._read_file),
            "write_file": self._in_thread(self._write_file),
            "list_files": self._in_thread(self._list_files),
            "search_files": self._in_thread(self._search_files),
            "exec": self._exec,
            "http_request": self._http_request,
        }
        return [_spec(name, run[name]) for name in self._entry.tools]

    def _in_thread(
        self, work: Callable[[dict[str, Json], Event], Json]
    ) -> Callable[[dict[str, Json]], Awaitable[Json]]:
        async def run(given: dict[str, Json]) -> Json:
            stop = Event()
            try:
                return await self._threads.run(work, given, stop)
            finally:
                stop.set()  # a walk whose call was cancelled goes no further

        return run

    def _read_file(self, given: dict[str, Json], stop: Event) -> Json:  # noqa: ARG002  # one file is read at once
        try:
            return self._roots.read(given["path"]).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise NestedToolFailed(f'"{given["path"]}" is not UTF-8 text.') from error

    def _write_file(self, given: dict[str, Json], stop: Event) -> Json:  # noqa: ARG002  # one file is written whole
        content = given["text"].encode("utf-8", "replace")
        self._roots.write(given["path"], content)
        return {"path": given["path"], "bytes": len(content)}

    def _list_files(self, given: dict[str, Json], stop: Event) -> Json:
        with self._roots.walk(given.get("path", "."), stop, deep=given.get("deep", False)) as entries:
            return [_bounded(at, found)._asdict() for at, (found, _) in enumerate(entries)]

    def _search_files(self, given: dict[str, Json], stop: Event) -> Json:
        glob, text = given.get("glob", "*"), given.get("text")
        if text == "":
            raise InvalidInput("an empty text is in every line; leave it out to find files by name")
        with self._roots.walk(given.get("path", "."), stop, deep=True) as entries:
            files = ((found, folder) for found, folder in entries if found.kind == "file" and _fits(found.path, glob))
            if text is None:
                return [{"path": _bounded(at, found).path} for at, (found, _) in enumerate(files)]
            lines = (line for found, folder in files for line in _lines_with(text, found, folder))
            return [line for at, line in enumerate(lines) if _bounded(at, line)]

    async def _exec(self, given: dict[str, Json]) -> Json:
        finished = await run_program(["/bin/sh", "-c", given["command"]], b"", self._roots.first)
        stdout = finished.stdout.decode(errors="replace")
        return {"status": finished.status, "stdout": stdout, "stderr": finished.stderr}

    async def _http_request(self, given: dict[str, Json]) -> Json:
        url = given["url"]
        try:
            parts = urlsplit(url)
            is_whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            is_whole = False
        if not is_whole:
            raise InvalidInput(f'the URL must begin with http:// or https:// and name a host, found "{url[:100]}"')
        body = given["body"].encode() if "body" in given else None
        answer = await self._client.send(Request(given.get("method", "GET"), url, given.get("headers", {}), body))
        try:
            shown: dict[str, Json] = {"body": answer.text()}
        except UnicodeDecodeError:
            shown = {"base64": base64.b64encode(answer.body).decode()}
        return {"status": answer.status, "headers": answer.headers} | shown


def _spec(name: str, run: Callable[[dict[str, Json]], Awaitable[Json]]) -> ToolSpec:
    definition = _DEFINITIONS[name]
    parameters = {
        "type": "object",
        "properties": definition.properties,
        "required": list(definition.required),
        "additionalProperties": False,
    }
    invoke: Invoke = _without_context(run)
    return ToolSpec(
        build_tool_id("openclaw", "core", name),
        name,
        definition.description,
        "openclaw",
        "core",
        parameters,
        invoke,
        timeout_ms=definition.timeout_ms,
        origin="[core]",
    )


def _without_context(run: Callable[[dict[str, Json]], Awaitable[Json]]) -> Invoke:
    async def invoke(given: dict[str, Json], context: RunContext) -> Json:  # noqa: ARG001  # core tools know no run
        return await run(given)

    return invoke


def _fits(path: str, glob: str) -> bool:
    """Say whether a glob is of the whole path or of the name; `**/` is any folders, none too."""
    whole = glob.removeprefix("./").replace("**/", "*")
    return fnmatch.fnmatchcase(path, whole) or fnmatch.fnmatchcase(path.rpartition("/")[2], glob)


def _lines_with(text: str, found: Found, folder: int) -> Iterator[dict[str, Json]]:
    if found.bytes > MAX_SEARCHED_FILE_BYTES:
        return
    try:
        content = read_at(folder, found.path.rpartition("/")[2], found.path).decode()
    except (OSError, UnicodeDecodeError, NestedToolFailed):
        return  # one that is not text, or went away, hides no other
    for number, line in enumerate(content.split("\n"), 1):
        if text in line:
            yield {"path": found.path, "line": number, "text": line.removesuffix("\r")[:_EXCERPT_CHARS]}


def _bounded(at: int, item: T) -> T:
    if at >= MAX_LISTED_FILES:
        raise NestedToolFailed(f"there are more than {MAX_LISTED_FILES} results; ask for a smaller part.")
    return item
