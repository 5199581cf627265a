"""`import`: its options; what follows is in `takeover`, loaded only by a command that got this far."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.options import JsonFlag, Manifest, Quiet, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class ImportOptions(NamedTuple):
    """Options of `codemode import`."""

    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="A client's file with MCP servers: JSON, JSONC or TOML.")
    ]
    manifest: Manifest = None
    only: Annotated[list[str], typer.Option("--only", metavar="NAME", help="Only this server; may be repeated.")] = []  # noqa: RUF012  # typer reads the default and never writes to it
    show: Annotated[bool, typer.Option("--print", help="Print the tables; write nothing.")] = False
    force: Annotated[bool, typer.Option("--force", help="Replace servers that the manifest has already.")] = False
    json: JsonFlag = False
    quiet: Quiet = False


@takes(ImportOptions)
def import_(terminal: "Terminal", options: ImportOptions) -> ExitStatus:
    """Take over the MCP servers of other clients into the manifest.

    It reads the files of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex, OpenCode and Gemini CLI.
    Secrets in them become variables, which it lists. The manifest is made if there is none; every line that it has
    stays. Nothing is started.
    """
    from codemode.cli.takeover import take_over

    return take_over(terminal, options)


import_.__name__ = "import"  # which is a keyword, so that no function can be defined with it
COMMANDS = (
    (
        import_,
        examples(
            "codemode import .mcp.json",
            "codemode import ~/.cursor/mcp.json ~/.codex/config.toml",
            "codemode import .vscode/mcp.json --only github --print",
            "codemode import ~/Library/Application\\ Support/Claude/claude_desktop_config.json",
        ),
    ),
)
