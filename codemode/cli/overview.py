"""The page of `codemode --help`: written here by hand, so that it needs no parser to be shown.

The commands with the room in which each is defined stand here too: the command line loads only the
room of the command that was asked for. Standard library only, and little of it.
"""

import re

from codemode.cli.terminal import OutputLost, Terminal

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {  # heading → command → room, summary
    "Cells": {
        "run": ("run", "Run one cell and print its outputs and its value."),
        "wait": ("run", "Go on with a run that waits; approve or deny its calls."),
        "runs": ("runs", "List the runs of a session, newest first."),
        "trace": ("runs", "Show what happened in a run: calls, waits, suspended spans."),
        "abort": ("runs", "End a run."),
        "repl": ("repl", "Explore: read cells, run them, print what they give."),
        "smoke": ("smoke", "Run cells and compare what they give with what they expect."),
    },
    "Tools": {
        "catalog": ("catalog", "Show what a cell can reach, and what is wrong with the rest."),
        "debug-payload": ("payload", "Show the exact request that a model would get."),
    },
    "Set-up": {
        "init": ("init", "Write a codemode.toml to begin with, and a first cell."),
        "import": ("import_", "Take over the MCP servers of other clients."),
        "doctor": ("doctor", "Try what a run needs on this machine; say what to fix."),
    },
}
ROOMS = {name: room for commands in COMMANDS.values() for name, (room, _) in commands.items()}
_INTRODUCTION = """\
Usage: codemode [-m FILE] COMMAND [OPTIONS] [ARGS]...

  Run small JavaScript and TypeScript programs over a hidden catalog of tools,
  in a locked-down sandbox.
"""
_REST = """\
Options:
  -m, --manifest FILE   The manifest; by default the nearest codemode.toml
                        upward.
  -q, --quiet           Say nothing on stderr but errors.
  -v, --verbose         Tell each step on stderr.
  --version             Show what this is built on.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation.
  -h, --help            Show this message and exit.

Examples:
  codemode run -e 'return 1 + 1'
  codemode run -m shop/codemode.toml report.ts --timeout-ms 5000
  codemode catalog search 'open orders'
  codemode --verbose run report.ts
  codemode COMMAND --help
"""
_HEADING = re.compile(r"^( *)([A-Z][\w-]*:)(?= |$)", re.MULTILINE)
_TERM = re.compile(r"^(  )((?:-|[a-z])[\w-]*(?:, --[\w-]+)?(?: [A-Z]+)?)(?=  |$)", re.MULTILINE)


def overview() -> str:
    """Return the page, plain and at most 80 columns wide."""
    sections = [
        "\n".join([f"{heading}:", *(f"  {name:<14} {summary}" for name, (_, summary) in commands.items())])
        for heading, commands in COMMANDS.items()
    ]
    return "\n\n".join([_INTRODUCTION.rstrip("\n"), *sections, _REST.rstrip("\n")])


def paint(page: str, colour: bool) -> str:
    """Return a page of help for a terminal: its headings bold and, where colours are wanted, its terms cyan."""
    page = _HEADING.sub("\\1\x1b[1m\\2\x1b[0m", page)
    return _TERM.sub("\\1\x1b[36m\\2\x1b[0m", page) if colour else page


def show_overview() -> int:
    """Print the page before anything else is loaded; return the exit status.

    Contract: cli:start:overview
    """
    terminal = Terminal.of_process()
    try:
        terminal.write(paint(overview(), terminal.coloured) if terminal.styled_out else overview())
    except OutputLost as error:
        terminal.complain(f"error: {error}")
        return 1  # `ExitStatus.FAILED`, which is not loaded yet
    return 0


def is_asked_for(arguments: list[str]) -> bool:
    """Say whether the arguments ask for this page and nothing else."""
    return arguments in (["--help"], ["-h"])
