"""Files of other clients that define servers: read them, find the servers in them.

Editors and agents keep their servers in JSON (often with comments, OpenClaw in JSON5) under different
roots; Codex keeps them in TOML. What a single server's table means is the business of `servers`.
"""

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from codemode.core.errors import InvalidConfig
from codemode.core.files import readable
from codemode.core.jsonsafe import clean_escapes
from codemode.core.tables import Where
from codemode.core.types import Json

_ROOTS = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp_servers",), ("mcp",))
_EDITOR_FOLDERS = frozenset({".vscode", ".cursor", ".codex", ".gemini", ".roo", ".kiro"})
_TELLING_KEYS = ("command", "url", "serverUrl", "httpUrl", "baseUrl")
_TRIVIA = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])""", re.DOTALL
)
_JSON5 = re.compile(r"""("(?:\\.|[^"\\])*")|'((?:\\.|[^'\\])*)'|([A-Za-z_$][\w$]*)(?=\s*:)""", re.DOTALL)
_QUOTES = re.compile(r"""\\.|\"""", re.DOTALL)


class Included(NamedTuple):
    """The servers of one file: `folder` is the workspace, `inputs` the defaults of VS Code's inputs.

    repeated: Names that the file defines again; the first definition counts.
    """

    where: Where
    folder: Path
    servers: Mapping[str, Json]
    inputs: Mapping[str, str]
    repeated: tuple[str, ...] = ()


class _Object(dict[str, Json]):
    """A JSON object that remembers which keys came again."""

    repeated: tuple[str, ...] = ()


def read_include(path: Path, whose: str = "") -> Included:
    """Read a file of another client and find its servers.

    The root is `mcpServers`, `servers` (VS Code), `mcp.servers`, `mcp_servers`, `mcp`, or the map itself.

    Args:
        path: JSON, JSON with comments, JSON5 or TOML.
        whose: Who named it, for an error, such as `, which mcp.include names`.

    Raises:
        InvalidConfig: The file cannot be read or parsed, or defines no servers.

    Contract: mcp:config:roots
    """
    path = path.expanduser().absolute()
    document = _parse(path, _read(path, whose))
    folder = path.parent.parent if path.parent.name in _EDITOR_FOLDERS else path.parent
    keys, servers = _find_root(document)
    if servers is None:
        raise InvalidConfig(
            f"{path}: no servers found; allowed is a map of servers, alone or under mcpServers or servers."
        )
    repeated = servers.repeated if isinstance(servers, _Object) else ()  # TOML has none
    return Included(Where(str(path), ".".join(keys)), folder, servers, _default_inputs(document), repeated)


def _read(path: Path, whose: str) -> str:
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidConfig(f"cannot read {path}{whose}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is not UTF-8 text (byte {error.start}).") from error


def _parse(path: Path, text: str) -> Json:
    try:
        if path.suffix == ".toml":
            return tomllib.loads(text)
        return _json(clean_escapes(_TRIVIA.sub(_blank, text)))
    except json.JSONDecodeError as error:
        raise InvalidConfig(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path}: not TOML: {error}.") from error
    except RecursionError as error:
        raise InvalidConfig(f"{path}: nested too deeply.") from error


def _json(text: str) -> Json:
    """Parse JSON, or JSON with bare keys and single quotes, as OpenClaw writes it; an error is that of JSON."""
    try:
        return json.loads(text, object_pairs_hook=_keep_first)
    except json.JSONDecodeError as error:
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(_JSON5.sub(_quoted, text), object_pairs_hook=_keep_first)
        raise error from None


def _quoted(token: re.Match[str]) -> str:
    """Return a text as it is, one in single quotes in double ones, and a bare key in quotes."""
    if token[2] is not None:
        return f'"{_QUOTES.sub(_escaped, token[2])}"'
    return token[1] or f'"{token[3]}"'


def _escaped(quote: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(quote[0], quote[0])


def _blank(trivia: re.Match[str]) -> str:
    """Keep strings; turn a comment or a trailing comma into spaces, so that positions stay true."""
    return trivia[1] or re.sub(r"[^\n]", " ", trivia[0])


def _keep_first(pairs: list[tuple[str, Json]]) -> _Object:
    kept = _Object()
    for key, value in pairs:
        if key in kept:
            kept.repeated = (*kept.repeated, key)
        else:
            kept[key] = value
    return kept


def _find_root(document: Json) -> tuple[tuple[str, ...], dict[str, Json] | None]:
    for keys in _ROOTS:
        found = document
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and not _is_server(found):
            return keys, found
    is_bare_map = isinstance(document, dict) and any(map(_is_server, document.values()))
    return (), document if is_bare_map else None


def _is_server(table: Json) -> bool:
    return isinstance(table, dict) and any(isinstance(table.get(key), (str, list)) for key in _TELLING_KEYS)


def _default_inputs(document: Json) -> dict[str, str]:
    inputs = document.get("inputs") if isinstance(document, dict) else None
    return {
        entry["id"]: entry["default"]
        for entry in (inputs if isinstance(inputs, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and isinstance(entry.get("default"), str)
    }
