"""From a request to an exit status: ask a host, show what it answers, and go on if asked to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from codemode.cli.hostlink import run_request
from codemode.cli.progress import Progress
from codemode.cli.show import show_error, show_outputs, show_status, show_telemetry, show_trajectory
from codemode.cli.source import Cell
from codemode.cli.status import ExitStatus, status_of_result
from codemode.cli.terminal import Terminal
from codemode.core.errors import ErrorCode
from codemode.core.types import Json
from codemode.render.event import Narrator
from codemode.render.report import report_of_result


class Go(NamedTuple):
    """How far to go: `to_end` sends further waits, `trace` shows inputs of calls.

    `session` is that of the run; `advice` is what to do where the request is refused.
    """

    to_end: bool
    trace: bool
    session: str = "default"
    advice: str = ""


def drive(terminal: Terminal, request: dict[str, Json], cell: Cell, go: Go) -> ExitStatus:
    """Send a request, and those that follow it, to hosts; show what comes back.

    Args:
        terminal: Where to show it.
        request: `{"op": "exec" | "wait", "input", "limits", "session", "noInput", …}`.
        cell: What was sent, for the line of an error; its text is empty for a wait.
        go: How far.

    Contract: cli:run:wait, cli:json:one-document
    """
    output: list[Json] = []
    narrator = Narrator()
    while True:
        answer = _ask(terminal, request, narrator)
        result = answer["result"]
        output += result["output"]
        if not terminal.json:
            show_outputs(terminal, result)
        if not (go.to_end and _goes_on(result)):
            break
        request = _next_request(request, result["runId"])
    if terminal.json:
        terminal.write_json(result | {"output": output})
    _show_outcome(terminal, answer, go, cell)
    return status_of_result(result)


def _ask(terminal: Terminal, request: dict[str, Json], narrator: Narrator) -> dict[str, Any]:
    """Send one request to a host; what happens meanwhile is told, or shown as one line that goes again."""
    with Progress(terminal) as progress:

        def follow(event: dict[str, Json]) -> None:
            progress.follow(event)
            if terminal.verbose:
                terminal.tell(narrator.line(event))

        return run_request(request, follow, progress.pass_on)


def _goes_on(result: Mapping[str, Json]) -> bool:
    """Say whether another wait can bring the run further without a person."""
    return result["status"] == "waiting" and all(
        call["state"] != "awaiting_approval" for call in result["pendingToolCalls"]
    )


def _next_request(request: dict[str, Json], run_id: str) -> dict[str, Json]:
    timeout = request["limits"].get("timeout_ms")
    limits = {} if timeout is None else {"timeout_ms": timeout}
    kept = {key: request.get(key) for key in ("session", "noInput", "record", "person")}
    return kept | {
        "op": "wait",
        "input": {"runId": run_id},
        "approve": [],
        "deny": [],
        "always": False,
        "limits": limits,
    }


def _show_outcome(terminal: Terminal, answer: Mapping[str, Json], go: Go, cell: Cell) -> None:
    """Show on stderr what became of the run; with `--json` only what was asked for."""
    result, trajectory = answer["result"], answer["trajectory"]
    happened = any(run["calls"] or run["waits"] for run in trajectory["runs"])
    if go.trace or (happened and not terminal.json):
        show_trajectory(terminal, trajectory, inputs=go.trace, on_stdout=False)
    if terminal.json:
        return
    if result["telemetry"]["execCount"]:  # else it never began
        show_telemetry(terminal, result["telemetry"])
    if result["status"] == "failed":
        source = next((run["source"] for run in trajectory["runs"]), "")  # redacted, unlike the cell's own text
        report = report_of_result(result, source, cell.name)
        refused = result.get("code") == ErrorCode.INVALID_INPUT and not report.advice
        show_error(terminal, report._replace(advice=go.advice) if refused else report)
    else:
        show_status(terminal, result, go.session)
