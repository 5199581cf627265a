"""`init`: a first manifest and a first cell, both of which work at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.options import JsonFlag, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal

_CLIENT_FILES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".codex/config.toml", ".gemini/settings.json",
                 "opencode.json", "opencode.jsonc")  # fmt: skip  # of a project; those of a user are their own business


class InitOptions(NamedTuple):
    """Options of `codemode init`."""

    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if it is not there.")] = Path()
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False
    json: JsonFlag = False


@takes(InitOptions)
def init(terminal: "Terminal", options: InitOptions) -> ExitStatus:
    """Write a codemode.toml to begin with, and a cell that uses it.

    Nothing that is there is overwritten without --force.
    """
    from codemode.core.errors import InvalidInput
    from codemode.importing.manifests import FIRST_CELL, build_first_manifest
    from codemode.manifest import FILE_NAME

    terminal.json = options.json
    if options.folder.exists() and not options.folder.is_dir():
        raise InvalidInput(f'"{options.folder}" is no folder; give the name of one')
    texts = {
        options.folder / FILE_NAME: build_first_manifest(),
        options.folder / "checks" / "hello.js": FIRST_CELL,
    }
    there = [str(file) for file in texts if file.exists()]
    if there and not options.force:
        are = "is there already" if len(there) == 1 else "are there already"
        raise InvalidInput(f"{' and '.join(there)} {are}; --force overwrites, codemode import adds servers")
    for file, text in texts.items():
        _write(file, text)
    found = [name for name in _CLIENT_FILES if (options.folder / name).is_file()]
    if terminal.json:
        terminal.write_json({"written": [str(file) for file in texts], "importable": found})
        return ExitStatus.OK
    for file in texts:
        terminal.write(f"wrote {file}")
    manifest, cell = texts
    beside = "" if options.folder == Path() else f"-m {manifest} "
    terminal.note(f"next: codemode {beside}run {cell}")
    terminal.note(f"      codemode smoke {cell.parent}")
    for name in found:
        terminal.note(f"      codemode {beside}import {options.folder / name}")
    return ExitStatus.OK


def _write(file: Path, text: str) -> None:
    from codemode.core.errors import InvalidInput

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from error


COMMANDS = ((init, examples("codemode init", "codemode init shop", "codemode init --force")),)
