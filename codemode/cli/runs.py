"""`runs`, `abort` and `trace`: what the store knows of the runs of a session.

What a command needs beyond its options is imported inside it: help must come at once.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.completion import complete_run
from codemode.cli.options import JsonFlag, Session, examples, takes
from codemode.cli.status import ExitStatus
from codemode.cli.which import choose_latest, listing_command, open_store, refuse_unnamed_abort
from codemode.core.errors import InvalidInput

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal
    from codemode.core.types import Json
    from codemode.store.port import RunRecord, Store

AGENT = "main"
_MAX_INPUT_CHARS = 120  # of what a call that awaits approval was asked; trace shows more, --json all


class RunsOptions(NamedTuple):
    """Options of `codemode runs`."""

    session: Session = "default"
    prune: Annotated[
        str | None,
        typer.Option(
            "--prune", metavar="AGE", help="Remove the runs that ended so long ago: 30d, 12h, 45m; 0d removes all."
        ),
    ] = None
    json: JsonFlag = False


class AbortOptions(NamedTuple):
    """Options of `codemode abort`."""

    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="The run's id, as `codemode runs` lists it.", autocompletion=complete_run),
    ] = None
    session: Session = "default"
    json: JsonFlag = False


class TraceOptions(NamedTuple):
    """Options of `codemode trace`."""

    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="The run's id; the latest run when left out.", autocompletion=complete_run),
    ] = None
    session: Session = "default"
    inputs: Annotated[bool, typer.Option("--inputs", help="Show the redacted input of each call.")] = False
    json: JsonFlag = False
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one line of JSON for each node.")] = False
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE", help="Write one page with a timeline to this file, - for standard output."
        ),
    ] = None


@takes(RunsOptions)
def runs(terminal: "Terminal", options: RunsOptions) -> ExitStatus:
    """List all runs of a session, newest first, finished ones too.

    With --prune, remove those that ended long ago, with their traces; what waits or runs stays.
    """
    from codemode.cli.prune import prune_runs
    from codemode.cli.show import show_runs

    terminal.json = options.json
    with open_store() as store:
        if options.prune is not None:
            return prune_runs(terminal, store, options.session, options.prune)
        records = store.runs(options.session)
        asked = {record.run_id: _asked(store, record) for record in records}
    if options.json:
        terminal.write_json([_with_inputs(record.to_json(), asked[record.run_id]) for record in records])
    elif records:
        show_runs(terminal, [_row(record, asked[record.run_id]) for record in records])
    else:
        terminal.note(f'session "{options.session}" has no runs yet')
    return ExitStatus.OK


@takes(AbortOptions)
def abort(terminal: "Terminal", options: AbortOptions) -> ExitStatus:
    """End a run: its worker is stopped, its open calls are cancelled, its snapshot is gone."""
    from codemode.store.port import Caller

    terminal.json = options.json
    with open_store() as store:
        if options.run is None:
            raise refuse_unnamed_abort(store, options.session)
        try:
            state = store.abort(options.run, Caller(options.session, AGENT))
        except InvalidInput as error:
            listing = listing_command(options.session)
            raise InvalidInput(f"{error.message}; {listing} lists those it has") from error
    if options.json:
        terminal.write_json({"runId": options.run, "state": state})
    elif state == "aborted":
        terminal.note(f"{options.run} is aborted")
    else:
        terminal.note(f"{options.run} was told to stop")
    return ExitStatus.OK


@takes(TraceOptions)
def trace(terminal: "Terminal", options: TraceOptions) -> ExitStatus:
    """Show what happened in a run: its calls, waits and suspended spans along one time axis."""
    from codemode.cli.show import show_trajectory
    from codemode.render.words import printable
    from codemode.store.port import Caller
    from codemode.trajectory import fold, to_json, to_jsonl

    terminal.json = options.json
    if options.json + options.jsonl + bool(options.html) > 1:
        raise InvalidInput("--json, --jsonl and --html exclude each other; give one of them")
    with open_store() as store:
        run_id = options.run or choose_latest(store, options.session)
        try:
            record = store.get(run_id, Caller(options.session, AGENT))
        except InvalidInput as error:  # the store's sentence is about runs that wait
            raise InvalidInput(
                f'session "{options.session}" has no run "{run_id[:60]}"; '
                f"{listing_command(options.session)} lists those it has"
            ) from error
        trajectory = fold(store.events(run_id))
    if options.html:
        _write_page(terminal, options.html, to_json(trajectory))
    elif options.jsonl:
        for line in to_jsonl(trajectory):
            terminal.write(line)
    elif options.json:
        terminal.write_json(to_json(trajectory))
    else:
        show_trajectory(terminal, to_json(trajectory), inputs=options.inputs, on_stdout=True)
        if record.error:
            terminal.write(f"error{f' [{record.code}]' if record.code else ''}: {printable(record.error)}")
    return ExitStatus.OK


def _write_page(terminal: "Terminal", file: str, trajectory: "Json") -> None:
    from codemode.render.page import render_page

    page = render_page(trajectory)
    if file == "-":
        terminal.write(page.removesuffix("\n"))
        return
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"cannot write the page {file}: {error.strerror}; name a file in a folder of yours"
        ) from error
    terminal.note(f"wrote {file}")


def _asked(store: "Store", record: "RunRecord") -> dict[str, "Json"]:
    """Return the id of each call that awaits approval, and `{"input", "reason"?}` of it, redacted.

    Contract: approvals:run:shown
    """
    from codemode.core.events import CallParked

    ids = {call.id for call in record.pending if call.state == "awaiting_approval"}
    events = store.events(record.run_id) if ids else ()
    parked = [event for event in events if isinstance(event, CallParked)]
    return {
        str(event.call_id): {"input": event.input} | ({"reason": event.reason} if event.reason else {})
        for event in parked
        if str(event.call_id) in ids
    }


def _with_inputs(record: dict[str, "Json"], asked: dict[str, "Json"]) -> dict[str, "Json"]:
    for call in record["pendingToolCalls"] if asked else ():
        call.update(asked.get(call["id"], {}))
    return record


def _row(record: "RunRecord", asked: dict[str, "Json"]) -> tuple[str, str, str, str]:
    from codemode.render.words import age

    return record.run_id, record.state, age(max(time.time() * 1000 - record.created_ms, 0.0)), _about(record, asked)


def _about(record: "RunRecord", asked: dict[str, "Json"]) -> str:
    """Return why a run waits or how it failed, in a few words."""
    parked = [call for call in record.pending if call.state == "awaiting_approval"]
    if parked:
        return ", ".join(f"call {call.id} ({call.tool_id}) awaits approval{_input(call.id, asked)}" for call in parked)
    if record.pending:
        return ", ".join(f"{call.tool_id or call.method} #{call.id}" for call in record.pending)
    if record.state == "waiting":
        return "yielded" if record.reason == "yield" else "its calls have settled"
    return ": ".join(part for part in (record.code, record.error) if part)


def _input(call_id: str, asked: dict[str, "Json"]) -> str:
    from codemode.render.words import one_line

    if call_id not in asked:
        return ""
    words = " with " + one_line(json.dumps(asked[call_id]["input"], ensure_ascii=False), _MAX_INPUT_CHARS)
    why = asked[call_id].get("reason")
    return words + (f", as a hook asks: {one_line(why, _MAX_INPUT_CHARS)}" if why else "")


COMMANDS = (
    (runs, examples("codemode runs", "codemode runs --session nightly --json", "codemode runs --prune 7d")),
    (abort, examples("codemode abort cm_0c1f8a34-…")),
    (
        trace,
        examples(
            "codemode trace", "codemode trace cm_0c1f8a34-… --inputs", "codemode trace cm_0c1f8a34-… --html run.html"
        ),
    ),
)
