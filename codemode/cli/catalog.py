"""`catalog`: what a cell can reach, where each tool came from, and what is wrong with the rest.

What a command needs beyond its options is imported inside it: help must come at once.
"""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.completion import complete_server, complete_tool, complete_words
from codemode.cli.group import PaintedCommand, PaintedGroup
from codemode.cli.options import JsonFlag, Manifest, Quiet, Refresh, Verbose, examples, refuse_no_name, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class ListOptions(NamedTuple):
    """Options of `codemode catalog` and `codemode catalog list`."""

    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


class SearchOptions(NamedTuple):
    """Options of `codemode catalog search`."""

    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Plain words, a name or an id.")]
    limit: Annotated[int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="How many at most.")] = None
    explain: Annotated[bool, typer.Option("--explain", help="Say why each result ranks where it does.")] = False
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


class DescribeOptions(NamedTuple):
    """Options of `codemode catalog describe`."""

    tool: Annotated[
        str,
        typer.Argument(
            metavar="TOOL", help="A tool's id, or its name where only one has it.", autocompletion=complete_tool
        ),
    ]
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


class TypesOptions(NamedTuple):
    """Options of `codemode catalog types`."""

    server: Annotated[
        str | None,
        typer.Argument(metavar="SERVER", help="Only the declarations of this server.", autocompletion=complete_server),
    ] = None
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


class LintOptions(NamedTuple):
    """Options of `codemode catalog lint`."""

    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="openai, anthropic or gemini; all of them when left out.",
            autocompletion=complete_words("openai", "anthropic", "gemini"),
        ),
    ] = None
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show each warning with its tool and path.")] = False


class DiffOptions(NamedTuple):
    """Options of `codemode catalog diff`."""

    old: Annotated[
        str, typer.Argument(metavar="OLD", help="What catalog --json printed earlier; - reads it from standard input.")
    ]
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


def _listing(terminal: "Terminal", options: ListOptions) -> ExitStatus:
    """List what a cell can reach, where it came from, what is wrong."""
    from codemode.cli.listing import build_listing, load_toolbox
    from codemode.cli.show import show_catalog

    terminal.json = terminal.json or options.json
    listing = build_listing(load_toolbox(terminal, options.manifest, refresh=options.refresh))
    if terminal.json:
        terminal.write_json(listing)
    else:
        show_catalog(terminal, listing)
    return ExitStatus.OK


@takes(SearchOptions)
def search(terminal: "Terminal", options: SearchOptions) -> ExitStatus:
    """Rank the tools that a query means, best first.

    As tools.search does in a cell, but with the tools of MCP servers.
    """
    from codemode.cli.listing import build_ranking, load_toolbox
    from codemode.cli.show import show_ranking

    terminal.json = terminal.json or options.json
    box = load_toolbox(terminal, options.manifest, refresh=options.refresh)
    found = box.catalog.explain(" ".join(options.query), options.limit)
    ranking = build_ranking(box, found, reasons=options.explain)
    if terminal.json:
        terminal.write_json(ranking)
    elif ranking:
        show_ranking(terminal, ranking)
    else:
        terminal.note("nothing matches; codemode catalog lists all there is")
    return ExitStatus.OK


@takes(DescribeOptions)
def describe(terminal: "Terminal", options: DescribeOptions) -> ExitStatus:
    """Show one tool: what it does, how it is called, what it takes."""
    from codemode.cli.listing import build_calls, build_tool, find_tool, load_toolbox
    from codemode.cli.show import show_tool

    terminal.json = terminal.json or options.json
    box = load_toolbox(terminal, options.manifest, refresh=options.refresh)
    tool = find_tool(box.catalog, options.tool)
    shown = build_tool(box, tool, build_calls(box.catalog)[tool.id])
    if terminal.json:
        terminal.write_json(shown)
    else:
        show_tool(terminal, shown)
    return ExitStatus.OK


@takes(TypesOptions)
def types(terminal: "Terminal", options: TypesOptions) -> ExitStatus:
    """Print the TypeScript declarations of the MCP servers.

    As API.read gives them in a cell.
    """
    from codemode.cli.listing import build_failures, find_declarations, load_toolbox
    from codemode.cli.show import show_declarations, show_failures

    terminal.json = terminal.json or options.json
    box = load_toolbox(terminal, options.manifest, refresh=options.refresh)
    files = find_declarations(box, options.server)
    if options.server is None:
        show_failures(terminal, build_failures(box))
    if terminal.json:
        terminal.write_json(files)
    elif files:
        show_declarations(terminal, files)
    else:
        terminal.note("no MCP server is visible, so there are no declarations")
    return ExitStatus.OK


@takes(LintOptions)
def lint(terminal: "Terminal", options: LintOptions) -> ExitStatus:
    """Check each tool's schema against what providers take.

    That is for direct exposure: with code mode on a model gets exec and wait alone. An error is a schema that a
    provider refuses in any form, and ends with status 1; a warning one that OpenAI or Anthropic refuses as strict, or
    Gemini in its OpenAPI form. Warnings are summed up by rule.
    """
    from codemode.cli.catalog_lint import build_lint, parse_linted
    from codemode.cli.listing import load_toolbox
    from codemode.cli.show import show_lint

    terminal.json = terminal.json or options.json
    providers = parse_linted(options.provider)
    report = build_lint(load_toolbox(terminal, options.manifest, refresh=options.refresh), providers)
    if terminal.json:
        terminal.write_json(report)
    else:
        show_lint(terminal, report)
    return ExitStatus.OK if report["ok"] else ExitStatus.FAILED


@takes(DiffOptions)
def diff(terminal: "Terminal", options: DiffOptions) -> ExitStatus:
    """Compare the catalog with a saved one, field by field.

    Ends with status 1 where they differ.
    """
    from codemode.cli.catalog_diff import compare, load_saved
    from codemode.cli.listing import build_listing, load_toolbox
    from codemode.cli.show import show_diff

    terminal.json = terminal.json or options.json
    saved = load_saved(options.old)
    listing = build_listing(load_toolbox(terminal, options.manifest, refresh=options.refresh))
    difference = compare(saved, {tool["id"]: tool for tool in listing["tools"]})
    if terminal.json:
        terminal.write_json(difference)
    else:
        show_diff(terminal, difference, listing)
    return ExitStatus.OK if difference["same"] else ExitStatus.FAILED


app = typer.Typer(
    name="catalog",
    cls=PaintedGroup,
    add_completion=False,
    help="Show what a cell can reach: tools, MCP servers, their types, and what is wrong with them.",
    epilog=examples(
        "codemode catalog",
        "codemode catalog --json > catalog.json",
        "codemode catalog search 'open orders' --explain",
        "codemode catalog describe plugin:shop:lookup_order",
        "codemode catalog types everything",
        "codemode catalog diff catalog.json",
    ),
    rich_markup_mode=None,
)
_COMMANDS = (
    ("list", takes(ListOptions)(_listing), ("codemode catalog list", "codemode catalog list --json --refresh")),
    ("search", search, ("codemode catalog search refund", "codemode catalog search 'ship a parcel' --explain")),
    (
        "describe",
        describe,
        ("codemode catalog describe lookup_order", "codemode catalog describe mcp:github:create_issue"),
    ),
    ("types", types, ("codemode catalog types", "codemode catalog types everything > everything.d.ts")),
    (
        "lint",
        lint,
        ("codemode catalog lint", "codemode catalog lint --verbose", "codemode catalog lint --provider openai --json"),
    ),
    (
        "diff",
        diff,
        (
            "codemode catalog --json > catalog.json",
            "codemode catalog diff catalog.json",
            "git show main:catalog.json | codemode catalog diff - --json",
        ),
    ),
)
for name, command, shown in _COMMANDS:
    app.command(name, cls=PaintedCommand, epilog=examples(*shown))(command)


@app.callback(invoke_without_command=True)
def _before_the_command(
    ctx: typer.Context,
    manifest: Manifest = None,
    refresh: Refresh = False,
    json: JsonFlag = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> ExitStatus | None:
    """Take the options before a subcommand; without one, list."""
    terminal: Terminal = ctx.obj
    terminal.speak(quiet, verbose)
    refuse_no_name("--manifest", manifest)
    terminal.manifest = manifest or terminal.manifest
    terminal.json = terminal.json or json
    if ctx.invoked_subcommand is not None:
        return None
    return _listing(terminal, ListOptions(manifest, refresh, json))
