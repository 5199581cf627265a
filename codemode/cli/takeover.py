"""Importing servers from the files to the report: read, convert, write, say what is left to do."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from codemode.cli.import_ import ImportOptions
from codemode.cli.listing import manifest_path
from codemode.cli.status import ExitStatus
from codemode.cli.terminal import Terminal
from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.types import Json
from codemode.importing.conversion import Import, ImportedServer, SkippedServer, import_files
from codemode.importing.manifests import add_servers, build_bare_manifest, build_tables
from codemode.manifest import FILE_NAME, load_manifest
from codemode.mcp.servers import gather_servers
from codemode.render.words import counted, printable


def take_over(terminal: Terminal, options: ImportOptions) -> ExitStatus:
    """Write the servers of the files into the manifest, or show them; say what was skipped and what to set.

    Contract: importing:write:no-overwrite, importing:report:complete
    """
    terminal.json = options.json
    target = manifest_path(terminal, options.manifest) or Path(FILE_NAME)
    found = _choose(import_files(options.files, target.absolute().parent), options.only)
    if not options.show:
        found = _leave_what_is_there(found, target, force=options.force)
        if found.servers:
            _write(target, found.servers)
    report = _build_report(found, None if options.show else str(target))
    tables = build_tables(found.servers, target.absolute().parent) if options.show else ""
    if terminal.json:
        terminal.write_json(report | ({"toml": tables} if options.show else {}))
    else:
        _show(terminal, report, tables)
    return ExitStatus.OK if found.servers else ExitStatus.FAILED


def _choose(found: Import, only: Sequence[str]) -> Import:
    if not only:
        return found
    known = [*(each.name for each in found.servers), *(each.name for each in found.skipped)]
    for name in only:
        if name not in known:
            listed = ", ".join(known)
            raise InvalidInput(f'no file has a server "{name}"; there are {listed}.{did_you_mean(name, known)}')
    return Import(
        tuple(each for each in found.servers if each.name in only),
        tuple(each for each in found.skipped if each.name in only),
    )


def _leave_what_is_there(found: Import, target: Path, *, force: bool) -> Import:
    """Skip the servers that the manifest has already, unless they are to be replaced."""
    if not target.exists():
        return found
    tables = load_manifest(target).mcp
    specs = () if force else gather_servers(tables.servers, tables.include).specs
    there = {spec.name: spec.where for spec in specs}
    skipped = tuple(
        SkippedServer(each.name, each.origin.file, f"{there[each.name]} defines it already; --force replaces it")
        for each in found.servers
        if each.name in there
    )
    return Import(tuple(each for each in found.servers if each.name not in there), (*found.skipped, *skipped))


def _write(target: Path, servers: Sequence[ImportedServer]) -> None:
    """Write the manifest with the servers, once it is known that it loads with them."""
    target = target.resolve()  # a link stays one
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        before = target.read_bytes().decode("utf-8-sig") if target.exists() else build_bare_manifest()
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(add_servers(before, servers, target).encode())
        gather_servers(load_manifest(draft).mcp.servers)
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o7777)
        draft.replace(target)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _build_report(found: Import, manifest: str | None) -> dict[str, Json]:
    """Return `{"manifest", "servers", "skipped", "variables"}`; no value of a secret is in it."""
    moved = {each.variable: (server, each.key) for server in found.servers for each in server.moved}
    variables: list[Json] = []
    for name in dict.fromkeys(name for server in found.servers for name in server.variables):
        entry: dict[str, Json] = {"name": name, "isSet": name in os.environ}
        if name in moved:
            server, key = moved[name]
            entry["valueIn"] = str(server.origin.at(key))
        variables.append(entry)
    return {
        "manifest": manifest,
        "servers": [
            {"name": each.name, "from": str(each.origin), "leftOut": list(each.left_out)} for each in found.servers
        ],
        "skipped": [each._asdict() for each in found.skipped],
        "variables": variables,
    }


def _show(terminal: Terminal, report: Mapping[str, Json], tables: str) -> None:
    """Show the tables or what was written on stdout, the rest on stderr."""
    names = ", ".join(printable(each["name"]) for each in report["servers"])
    if tables:
        terminal.write(tables.rstrip("\n"))
    elif report["servers"]:
        terminal.write(f"wrote {counted(len(report['servers']), 'server')} to {report['manifest']}: {names}")
    elif not report["skipped"]:
        terminal.complain("there is no server to import: the map of servers is empty")
    for each in report["skipped"]:
        terminal.complain(f"skipped {printable(each['name'])} of {each['file']}: {printable(each['why'])}")
    for each in report["servers"]:
        if each["leftOut"]:
            keys = ", ".join(map(printable, each["leftOut"]))
            terminal.note(f"left out of {printable(each['name'])}: {keys}, without a meaning here")
    missing = [each for each in report["variables"] if not each["isSet"]]
    for each in missing:
        where = f"; its value is at {printable(each['valueIn'])}" if "valueIn" in each else ""
        terminal.note(f"set {each['name']}{where}")
    if report["servers"] and not tables:
        terminal.note("next: codemode catalog")
