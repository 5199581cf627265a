"""Server definitions of other clients as tables of a manifest.

Reading is the business of `codemode.mcp`, which knows every client's format; here a definition
that it accepts is written anew, with variables and folders as they are right for the manifest.
A definition that cannot be used is skipped with its reason, and the others are imported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codemode.core.errors import InvalidConfig, InvalidInput
from codemode.core.limits import MCP_CALL_MS, MCP_START_MS
from codemode.core.names import did_you_mean
from codemode.core.tables import Where
from codemode.core.types import Json
from codemode.importing.dialects import dialect_of, translate
from codemode.importing.secrets import Moved, Vault
from codemode.mcp.includes import Included, read_include
from codemode.mcp.servers import ServerSpec, parse_server

_KEPT_AS_WRITTEN = ("auth", "oauth", "scopes")
_OBVIOUS = frozenset({"type", "transport", "enabled", "disabled", "required"})  # saying what is so anyway loses nothing
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_TWICE = "the file defines it twice; the first one is taken"
_PLACES = frozenset({"workspaceFolder", "userHome"})


class ImportedServer(NamedTuple):
    """A server as the manifest is to have it.

    origin: Where it was defined: key and file.
    variables: Names that must be set before it starts.
    moved: Which of them hold what stood in clear in the file.
    left_out: Keys of the other client that mean nothing here.
    """

    name: str
    table: dict[str, Json]
    origin: Where
    variables: tuple[str, ...]
    moved: tuple[Moved, ...]
    left_out: tuple[str, ...]


class SkippedServer(NamedTuple):
    """A server that is not imported, and why."""

    name: str
    file: str
    why: str


class Import(NamedTuple):
    """All servers of all files: what can be written, and what not."""

    servers: tuple[ImportedServer, ...]
    skipped: tuple[SkippedServer, ...]


def import_files(files: Iterable[Path], manifest_folder: Path) -> Import:
    """Read the servers of other clients' files; the first definition of a name counts.

    Args:
        files: JSON, JSON with comments, or TOML.
        manifest_folder: Where the manifest is; relative folders are written from there.

    Raises:
        InvalidInput: There is no such file.
        InvalidConfig: A file cannot be parsed, or defines no servers.

    Contract: importing:clients:seven, importing:servers:isolated
    """
    vault = Vault()
    servers: dict[str, ImportedServer] = {}
    skipped: list[SkippedServer] = []
    for file in files:
        _check_file(file)
        found = read_include(file)
        skipped += (SkippedServer(name, found.where.file, _TWICE) for name in found.repeated)
        for name, table in found.servers.items():
            try:
                server = _convert(name, table, found, manifest_folder, vault)
            except (InvalidConfig, ValueError) as error:
                skipped.append(SkippedServer(name, found.where.file, _reason(error)))
                continue
            first = servers.setdefault(name, server)
            if first is not server:
                skipped.append(SkippedServer(name, found.where.file, f"{first.origin} defines the same name before it"))
    return Import(tuple(servers.values()), tuple(skipped))


def _check_file(file: Path) -> None:
    if file.is_dir():
        raise InvalidInput(f'"{file}" is a folder; give the file that defines the servers')
    if file.exists():  # a pipe, too: `import <(jq …)`
        return
    siblings = [each.name for each in file.parent.iterdir()] if file.parent.is_dir() else []
    raise InvalidInput(f'there is no file "{file}".{did_you_mean(file.name, siblings)}')


def _reason(error: Exception) -> str:
    """Return an error's sentence without the place, which is told beside it."""
    text = error.message if isinstance(error, InvalidConfig) else str(error)
    return text.partition(": ")[2] if isinstance(error, InvalidConfig) else text


def _convert(name: str, table: Json, found: Included, manifest_folder: Path, vault: Vault) -> ImportedServer:
    where = found.where.at(name)
    dialect = dialect_of(Path(found.where.file), found.folder, manifest_folder, found.inputs)
    translated = translate(table, dialect)
    spec = parse_server(name, translated, where, found.folder)
    vault.enter(name)
    written = dict(_facts(spec, manifest_folder, vault)) | _signing_in(spec, translated, vault)
    return ImportedServer(
        name=name,
        table=written,
        origin=where,
        variables=tuple(_variables(written)),
        moved=tuple(vault.moved),
        left_out=tuple(_left_out(spec, translated)),
    )


def _facts(spec: ServerSpec, manifest_folder: Path, vault: Vault) -> Iterator[tuple[str, Json]]:
    """Yield the keys of a server's table in the order in which people write them, defaults left out."""
    if spec.command:
        yield "command", spec.command[0]
        if spec.command[1:]:
            yield "args", vault.hide_args(spec.command[1:])
    if spec.transport in ("http", "sse"):
        yield "type", spec.transport
    if spec.url:
        yield "url", vault.hide_url(spec.url)
    if spec.env:
        yield "env", vault.hide_env(spec.env)
    if spec.env_file:
        yield "envFile", _from_manifest(spec.env_file, spec.folder, manifest_folder)
    if spec.headers:
        yield "headers", vault.hide_headers(spec.headers)
    if cwd := _folder(spec, manifest_folder):
        yield "cwd", cwd
    rest: tuple[tuple[str, Json, Json], ...] = (
        ("enabled", spec.enabled, True),
        ("required", spec.required, False),
        ("allow", list(spec.allow), ["*"]),
        ("deny", list(spec.deny), []),
        ("startTimeoutMs", spec.start_timeout_ms, MCP_START_MS),
        ("callTimeoutMs", spec.call_timeout_ms, MCP_CALL_MS),
    )
    yield from ((key, value) for key, value, usual in rest if value != usual)


def _folder(spec: ServerSpec, manifest_folder: Path) -> str:
    """Return where a server must be started for its relative paths to hold; "" for the manifest's folder."""
    is_relative = any(not Path(part).is_absolute() and (spec.folder / part).is_file() for part in spec.command)
    if not spec.cwd and not is_relative:
        return ""
    folder = _from_manifest(spec.cwd, spec.folder, manifest_folder)
    return "" if folder == "." else folder


def _from_manifest(path: str, folder: Path, manifest_folder: Path) -> str:
    """Return a path of a definition in `folder` as it is written in a manifest, relative where it can be."""
    if path.startswith(("~", "${")):
        return path
    whole = (folder / path).resolve()
    try:
        return whole.relative_to(manifest_folder.resolve()).as_posix()
    except ValueError:
        return str(whole)


def _signing_in(spec: ServerSpec, table: Mapping[str, Json], vault: Vault) -> dict[str, Json]:
    """Return what a definition says of signing in, as it says it, without a client's secret."""
    said = {key: table[key] for key in _KEPT_AS_WRITTEN if spec.url and key in table}
    for key, value in said.items():
        if isinstance(value, dict):
            said[key] = {
                inner: vault.place(vault.own(inner), text, f"{key}.{inner}")
                if "secret" in inner.lower() and isinstance(text, str) and "${" not in text
                else text
                for inner, text in value.items()
            }
    return said


def _left_out(spec: ServerSpec, table: Mapping[str, Json]) -> Iterator[str]:
    """Yield the keys without which the definition would mean the same."""
    for key, value in table.items():
        if key in _OBVIOUS or key in _KEPT_AS_WRITTEN or key.startswith(("_", "$")) or not value:
            continue
        rest = {other: table[other] for other in table if other != key}
        try:
            if parse_server(spec.name, rest, spec.where, spec.folder) == spec:
                yield key
        except InvalidConfig:  # it is needed
            continue


def _variables(value: Json) -> list[str]:
    """Return the variables without a default that a table names, in order, each once."""
    if isinstance(value, str):
        return [name for name in dict.fromkeys(_VARIABLE.findall(value)) if name not in _PLACES]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return list(dict.fromkeys(name for item in inner for name in _variables(item)))
