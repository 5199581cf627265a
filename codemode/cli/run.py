"""`run` and `wait`: one `exec` or `wait` in a host process, shown, and turned into an exit status."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, NamedTuple

import typer

from codemode.cli.options import JsonFlag, LimitFlags, Manifest, Quiet, Refresh, Session, examples, takes
from codemode.cli.progress import Progress
from codemode.cli.show import show_error, show_outputs, show_status, show_telemetry, show_trajectory
from codemode.cli.source import Cell, read_cell
from codemode.cli.status import ExitStatus, status_of_result
from codemode.cli.terminal import Terminal
from codemode.core.types import Json
from codemode.render.report import report_of_result

Trace = Annotated[bool, typer.Option("--trace", help="Show the trajectory with the redacted input of each call.")]
NoInput = Annotated[bool, typer.Option("--no-input", help="Deny what would need a person's approval.")]


class RunOptions(NamedTuple):
    """Options of `codemode run`."""

    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The cell; - reads it from standard input.")] = None
    code: Annotated[str | None, typer.Option("-e", "--eval", metavar="CODE", help="The cell itself.")] = None
    language: Annotated[
        str | None,
        typer.Option("-l", "--language", metavar="NAME", help="javascript or typescript; .ts files are TypeScript."),
    ] = None
    manifest: Manifest = None
    session: Session = "default"
    wait: Annotated[bool, typer.Option("--wait", help="Go on until the run has ended.")] = False
    no_input: NoInput = False
    refresh: Refresh = False
    json: JsonFlag = False
    trace: Trace = False
    quiet: Quiet = False
    limits: LimitFlags = MappingProxyType({})


class WaitOptions(NamedTuple):
    """Options of `codemode wait`."""

    run: Annotated[str, typer.Argument(metavar="RUN", help="The runId of a waiting result.")]
    approve: Annotated[
        list[str], typer.Option("--approve", metavar="CALL", help="Approve this call; may be repeated.")
    ] = []  # noqa: RUF012  # typer reads the default and never writes to it
    deny: Annotated[list[str], typer.Option("--deny", metavar="CALL", help="Deny this call; may be repeated.")] = []  # noqa: RUF012
    timeout_ms: Annotated[
        int | None, typer.Option("--timeout-ms", metavar="N", help="Wall clock of this wait; 100 to 60,000.")
    ] = None
    session: Session = "default"
    wait: Annotated[bool, typer.Option("--wait", help="Go on until the run has ended.")] = False
    no_input: NoInput = False
    json: JsonFlag = False
    trace: Trace = False
    quiet: Quiet = False


@takes(RunOptions)
def run(terminal: Terminal, options: RunOptions) -> ExitStatus:
    """Run one cell and print its outputs and its value.

    Outputs and value go to stdout; status, telemetry and trajectory to stderr.
    """
    terminal.json, terminal.quiet = options.json, options.quiet
    cell = read_cell(options.file, options.code)
    request: dict[str, Json] = {
        "op": "exec",
        "input": {"code": cell.text, "language": options.language or cell.language},
        "manifest": options.manifest or terminal.manifest,
        "limits": dict(options.limits),
        "refresh": options.refresh,
    }
    return _drive(terminal, request, options, cell)


@takes(WaitOptions)
def wait(terminal: Terminal, options: WaitOptions) -> ExitStatus:
    """Go on with a run that waits: deliver what settled, and print what is new.

    It works from any folder: the run remembers its manifest.
    """
    terminal.json, terminal.quiet = options.json, options.quiet
    request: dict[str, Json] = {
        "op": "wait",
        "input": {"runId": options.run},
        "approve": list(options.approve),
        "deny": list(options.deny),
        "limits": {} if options.timeout_ms is None else {"timeout_ms": options.timeout_ms},
    }
    return _drive(terminal, request, options, Cell("", "cell.js", None))


def _drive(terminal: Terminal, request: dict[str, Json], options: RunOptions | WaitOptions, cell: Cell) -> ExitStatus:
    """Send a request, and with `--wait` those that follow it, to hosts; show what comes back."""
    from codemode.cli.hostlink import run_request

    request |= {"session": options.session, "noInput": options.no_input}
    output: list[Json] = []
    while True:
        with Progress(terminal) as progress:
            answer = run_request(request, progress.follow)
        result = answer["result"]
        output += result["output"]
        if not terminal.json:
            show_outputs(terminal, result)
        if not (options.wait and _goes_on(result)):
            break
        request = _next_request(request, result["runId"])
    if terminal.json:
        terminal.write_json(result | {"output": output})
    _show_outcome(terminal, answer, options.trace, cell)
    return status_of_result(result)


def _goes_on(result: Mapping[str, Json]) -> bool:
    """Say whether another wait can bring the run further without a person."""
    return result["status"] == "waiting" and all(
        call["state"] != "awaiting_approval" for call in result["pendingToolCalls"]
    )


def _next_request(request: dict[str, Json], run_id: str) -> dict[str, Json]:
    timeout = request["limits"].get("timeout_ms")
    limits = {} if timeout is None else {"timeout_ms": timeout}
    kept = {key: request[key] for key in ("session", "noInput")}
    return kept | {"op": "wait", "input": {"runId": run_id}, "approve": [], "deny": [], "limits": limits}


def _show_outcome(terminal: Terminal, answer: Mapping[str, Json], trace: bool, cell: Cell) -> None:
    """Show on stderr what became of the run; with `--json` only what was asked for."""
    result, trajectory = answer["result"], answer["trajectory"]
    happened = any(run["calls"] or run["waits"] for run in trajectory["runs"])
    if trace or (happened and not terminal.json):
        show_trajectory(terminal, trajectory, inputs=trace, on_stdout=False)
    if terminal.json:
        return
    show_telemetry(terminal, result["telemetry"])
    if result["status"] == "failed":
        show_error(terminal, report_of_result(result, cell.text, cell.name))
    else:
        show_status(terminal, result)


COMMANDS = (
    (
        run,
        examples(
            "codemode run -e 'return 1 + 1'",
            "codemode run report.ts --timeout-ms 5000",
            "codemode run -m shop/codemode.toml report.ts --json",
            "echo 'return ALL_TOOLS.length' | codemode run -",
            "codemode run slow.js --wait",
        ),
    ),
    (
        wait,
        examples(
            "codemode wait cm_0c1f8a34-…",
            "codemode wait cm_0c1f8a34-… --wait --json",
            "codemode wait cm_0c1f8a34-… --approve 13",
        ),
    ),
)
