"""`import`: its options; what follows is in `takeover`, loaded only by a command that got this far."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.options import JsonFlag, Manifest, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal

_PLACES = """\
\b
Where clients keep their servers:
  Claude Desktop  claude_desktop_config.json, in ~/.config/Claude
                  or ~/Library/Application Support/Claude
  Claude Code     .mcp.json, ~/.claude.json
  Cursor          .cursor/mcp.json, ~/.cursor/mcp.json
  VS Code         .vscode/mcp.json, mcp.json in the user's settings
  Windsurf        ~/.codeium/windsurf/mcp_config.json
  Codex           ~/.codex/config.toml
  OpenCode        opencode.json, ~/.config/opencode/opencode.json
  Gemini CLI      .gemini/settings.json, ~/.gemini/settings.json
  OpenClaw        ~/.openclaw/openclaw.json
  mcporter        config/mcporter.json, ~/.mcporter/mcporter.json
  toolplane       toolplane.toml

"""


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


@takes(ImportOptions)
def import_(terminal: "Terminal", options: ImportOptions) -> ExitStatus:
    """Take over the MCP servers of other clients into the manifest.

    Secrets in them become variables, which it lists. The manifest is made if there is none; every line that it has
    stays. Nothing is started.
    """
    from codemode.cli.takeover import take_over

    return take_over(terminal, options)


import_.__name__ = "import"  # which is a keyword, so that no function can be defined with it
COMMANDS = (
    (
        import_,
        _PLACES
        + examples(
            "codemode import .mcp.json",
            "codemode import ~/.cursor/mcp.json ~/.codex/config.toml",
            "codemode import .vscode/mcp.json --only github --print",
            "codemode import ~/Library/Application\\ Support/Claude/claude_desktop_config.json",
        ),
    ),
)
