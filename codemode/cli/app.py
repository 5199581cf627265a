"""The command line as a whole: its options, and the one ladder that ends every command.

What only an error or a version needs is imported where it is needed: help must come at once.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from codemode.cli.bash_words import whole_words
from codemode.cli.group import LazyGroup
from codemode.cli.options import Manifest, Quiet, Verbose, refuse_no_name
from codemode.cli.overview import overview, paint
from codemode.cli.status import STATUS_OF_CODE, ExitStatus
from codemode.cli.terminal import OutputLost, Terminal
from codemode.core.errors import CodeModeError, ErrorCode, Internal, InvalidInput

if TYPE_CHECKING:
    from codemode.core.types import Json

app = typer.Typer(
    name="codemode",
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # help must come at once, and rich alone takes 80 ms
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_versions(ctx: typer.Context, asked: bool) -> None:
    if asked:
        from codemode.cli.versions import show_versions

        show_versions(ctx.obj)
        raise typer.Exit


@app.callback()
def _before_the_command(
    ctx: typer.Context,
    manifest: Manifest = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_versions, help="Show what this is built on."),
    ] = False,
) -> None:
    terminal: Terminal = ctx.obj
    refuse_no_name("--manifest", manifest)
    terminal.manifest = manifest
    terminal.speak(quiet, verbose)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; nothing ever leaves as an exception.

    Args:
        argv: The arguments without the program's name; None for those of this process.

    Contract: cli:errors:no-traceback, cli:status:table
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    terminal = Terminal.of_process()
    terminal.json = "--json" in arguments  # until the command, if it is ever reached, knows better
    try:
        status = _run(arguments, terminal)
    except typer.TyperException as error:
        status = _refuse(terminal, error)
    except CodeModeError as error:
        status = _fail(terminal, error)
    except OutputLost as error:
        terminal.complain(f"error: {error}")
        status = ExitStatus.FAILED
    except (KeyboardInterrupt, typer.Abort):
        status = ExitStatus.ABORTED
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else ExitStatus.OK
    except Exception as error:  # the last resort: a fault of ours must still end in one sentence
        if os.environ.get("CODEMODE_DEBUG") == "1":
            raise
        status = _fail(terminal, Internal(f"{type(error).__name__}: {error}"))
    terminal.close()
    return int(status)


def _run(arguments: list[str], terminal: Terminal) -> int:
    with whole_words(os.environ):
        return typer.main.get_command(app).main(arguments, "codemode", standalone_mode=False, obj=terminal) or 0


def _refuse(terminal: Terminal, error: typer.TyperException) -> int:
    """Explain a wrong command line; asking for nothing at all shows the help instead."""
    from codemode.cli.show import show_error
    from codemode.render.report import report_of_usage

    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        terminal.complain(paint(overview(), terminal.coloured) if terminal.styled_err else overview())
    elif terminal.json:
        return _fail(terminal, InvalidInput(_sentence_of(error)))
    else:
        show_error(terminal, report_of_usage(_sentence_of(error), context.command_path if context else "codemode"))
    return ExitStatus.USAGE


def _sentence_of(error: typer.TyperException) -> str:
    """Return what is wrong; near options are asked for as near commands are."""
    near = sorted(getattr(error, "possibilities", None) or ())
    named = ", ".join(f"'{option}'" for option in near)
    return f"{error.message}. Did you mean {named}?" if near else error.format_message()


def _fail(terminal: Terminal, error: CodeModeError) -> int:
    """Show an error of ours; with `--json` as the failed result that it is."""
    from codemode.cli.show import show_error
    from codemode.render.report import report_of_error

    if terminal.json:
        terminal.write_json(_failed_result(error))
    else:
        show_error(terminal, report_of_error(error))
    return STATUS_OF_CODE[error.code or ErrorCode.INTERNAL_ERROR]


def _failed_result(error: CodeModeError) -> "Json":
    from codemode.core.types import Failed
    from codemode.telemetry import fold

    failed = Failed(error.message, error.code, error.phase, error.dispatched, None, (), fold(()))
    return failed.to_json()
