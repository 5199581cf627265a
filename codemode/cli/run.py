"""`run` and `wait`: their options, and how they become requests to a host.

What follows is in `drive`, loaded only by a command that got this far: help must come at once.
"""

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.completion import complete_run, complete_words
from codemode.cli.options import (
    JsonFlag,
    LimitFlags,
    Manifest,
    Refresh,
    Session,
    examples,
    say_clamped,
    takes,
)
from codemode.cli.person import is_person_here
from codemode.cli.status import ExitStatus
from codemode.cli.which import choose_waiting, listing_command, open_store
from codemode.core.errors import InvalidInput

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal

_LANGUAGES = complete_words("javascript", "typescript")
Trace = Annotated[bool, typer.Option("--trace", help="Show the trajectory with the redacted input of each call.")]
Record = Annotated[
    str | None, typer.Option("--record", metavar="FILE", help="Write the nested calls to this file, redacted.")
]
NoInput = Annotated[
    bool, typer.Option("--no-input", help="Deny what needs a person's approval; CI in the environment does too.")
]


class RunOptions(NamedTuple):
    """Options of `codemode run`."""

    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The cell; - reads it from standard input.")] = None
    code: Annotated[str | None, typer.Option("-e", "--eval", metavar="CODE", help="The cell itself.")] = None
    language: Annotated[
        str | None,
        typer.Option(
            "-l",
            "--language",
            metavar="NAME",
            help="javascript or typescript; .ts files are TypeScript.",
            autocompletion=_LANGUAGES,
        ),
    ] = None
    manifest: Manifest = None
    session: Session = "default"
    wait: Annotated[bool, typer.Option("--wait", help="Go on until the run has ended.")] = False
    no_input: NoInput = False
    refresh: Refresh = False
    record: Record = None
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="FILE", help="Answer nested calls from this recording; nothing is started."),
    ] = None
    json: JsonFlag = False
    trace: Trace = False
    limits: LimitFlags = MappingProxyType({})


class WaitOptions(NamedTuple):
    """Options of `codemode wait`."""

    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="The runId of a waiting result; the run that waits when only one does.",
            autocompletion=complete_run,
        ),
    ] = None
    approve: Annotated[
        list[str], typer.Option("--approve", metavar="CALL", help="Approve this call; may be repeated.")
    ] = []  # noqa: RUF012  # typer reads the default and never writes to it
    deny: Annotated[list[str], typer.Option("--deny", metavar="CALL", help="Deny this call; may be repeated.")] = []  # noqa: RUF012
    always: Annotated[
        bool, typer.Option("--always", help="With --approve: approve every call of these tools in this run.")
    ] = False
    timeout_ms: Annotated[
        int | None, typer.Option("--timeout-ms", metavar="N", help="Wall clock of this wait; 100 to 60,000.")
    ] = None
    session: Session = "default"
    wait: Annotated[bool, typer.Option("--wait", help="Go on until the run has ended.")] = False
    no_input: NoInput = False
    record: Record = None
    json: JsonFlag = False
    trace: Trace = False


@takes(RunOptions)
def run(terminal: "Terminal", options: RunOptions) -> ExitStatus:
    """Run one cell and print its outputs and its value.

    Outputs and value go to stdout; status, telemetry and trajectory to stderr.
    """
    from codemode.cli.drive import Go, drive
    from codemode.cli.source import read_cell

    terminal.json = options.json
    if options.record and options.replay:
        raise InvalidInput("--record and --replay were both given; record a run that asks the real tools")
    cell = read_cell(options.file, options.code)
    say_clamped(terminal, options.limits)
    request = {
        "op": "exec",
        "input": {"code": cell.text, "language": options.language or cell.language},
        "manifest": options.manifest or terminal.manifest,
        "limits": dict(options.limits),
        "refresh": options.refresh,
        "record": options.record,
        "replay": options.replay,
        "session": options.session,
        "noInput": _is_alone(options.no_input),
        "person": is_person_here(),
    }
    return drive(terminal, request, cell, Go(options.wait, options.trace, options.session))


@takes(WaitOptions)
def wait(terminal: "Terminal", options: WaitOptions) -> ExitStatus:
    """Go on with a run that waits: deliver what settled, and print what is new.

    It works from any folder: the run remembers its manifest.
    """
    from codemode.cli.drive import Go, drive
    from codemode.cli.source import Cell

    terminal.json = options.json
    if options.always and not options.approve:
        raise InvalidInput("--always was given without --approve; say which call to approve, and its tool goes with it")
    limits = {} if options.timeout_ms is None else {"timeout_ms": options.timeout_ms}
    say_clamped(terminal, limits)
    request = {
        "op": "wait",
        "input": {"runId": options.run or _only_waiting(options.session)},
        "approve": list(options.approve),
        "deny": list(options.deny),
        "always": options.always,
        "record": options.record,
        "limits": limits,
        "session": options.session,
        "noInput": _is_alone(options.no_input),
        "person": is_person_here(),
    }
    advice = f"{listing_command(options.session)} lists the runs of this session, and what they wait for."
    return drive(terminal, request, Cell("", "cell.js", None), Go(options.wait, options.trace, options.session, advice))


def _only_waiting(session: str) -> str:
    """Return the run that is meant where none is named; whoever names one need not load the store."""
    with open_store() as store:
        return choose_waiting(store, session)


def _is_alone(no_input: bool) -> bool:
    """Say whether nobody can be asked for an approval: as told, or on a CI machine.

    Contract: approvals:alone:denied
    """
    return no_input or bool(os.environ.get("CI"))


COMMANDS = (
    (
        run,
        examples(
            "codemode run -e 'return 1 + 1'",
            "codemode run report.ts --timeout-ms 5000",
            "codemode run -m shop/codemode.toml report.ts --json",
            "echo 'return ALL_TOOLS.length' | codemode run -",
            "codemode run slow.js --wait",
            "codemode run report.ts --record report.jsonl",
            "codemode run report.ts --replay report.jsonl",
        ),
    ),
    (
        wait,
        examples(
            "codemode wait",
            "codemode wait cm_0c1f8a34-…",
            "codemode wait cm_0c1f8a34-… --wait --json",
            "codemode wait cm_0c1f8a34-… --approve 13",
            "codemode wait cm_0c1f8a34-… --approve 13 --always --wait",
        ),
    ),
)
