"""The plain twins of every renderable: text for pipes, logs and dumb terminals.

No colour, no box, no folding: what goes into a pipe is whole. Standard library only, since a
command whose output is no terminal never loads rich.
"""

import json
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import NamedTuple

from codemode.core.types import Json
from codemode.render.report import ErrorReport
from codemode.render.timeline import timeline_of
from codemode.render.words import counted, duration, one_line, printable, size


def value_text(value: Json) -> str:
    """Return a cell's value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def status_text(result: Mapping[str, Json], session: str = "default") -> str:
    """Return what became of a run and, where it waits, how to go on."""
    lines = [status_line(result)]
    if result["status"] == "waiting":
        lines += [f"  {_pending_text(call)}" for call in result["pendingToolCalls"]]
        for step in next_steps(result, session):
            lines.append(f"next: {step.command}")
            lines += [f"      or {step.instead}"] if step.instead else []
    return "\n".join(lines)


def status_line(result: Mapping[str, Json]) -> str:
    """Return `completed in 84 ms, 3 calls`, `waiting: …` or `failed after 84 ms`."""
    telemetry = result.get("telemetry") or {}
    took = duration(float(telemetry.get("durationMs", 0)))
    if result["status"] == "waiting":
        reason = "it yielded" if result["reason"] == "yield" else counted(len(result["pendingToolCalls"]), "open call")
        return f"waiting: {reason}, {took} so far"
    calls = telemetry.get("callCount", 0)
    after = f", {counted(calls, 'call')}" if calls else ""
    return f"{result['status']} {'in' if result['status'] == 'completed' else 'after'} {took}{after}"


class NextStep(NamedTuple):
    """A command that goes on with a run, and what may stand at its end instead; "" where nothing may."""

    command: str
    instead: str = ""


def next_steps(result: Mapping[str, Json], session: str) -> list[NextStep]:
    """Return what goes on with a waiting run: a decision for each call that awaits one, else the next wait."""
    wait = f"codemode wait {result['runId']}" + ("" if session == "default" else f" --session {quote(session)}")
    asked = [call["id"] for call in result["pendingToolCalls"] if call["state"] == "awaiting_approval"]
    return [NextStep(f"{wait} --approve {id_}", f"--deny {id_}") for id_ in asked] or [NextStep(wait)]


def _pending_text(call: Mapping[str, Json]) -> str:
    return f"{call['id']}  {call['method']}  {printable(str(call.get('toolId', '')))}  {call['state']}".replace(
        "    ", "  "
    )


def telemetry_text(telemetry: Mapping[str, Json]) -> str:
    """Return the counts of an agent run, one line for each subject."""
    return "\n".join(f"{label:<9} {text}" for label, text in telemetry_rows(telemetry))


def telemetry_rows(telemetry: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return label and text of each line of the telemetry; what never happened is left out."""
    sources = [f"{source} {count:,}" for source, count in telemetry["sources"].items() if count]
    limits = [f"{name} {count}" for name, count in telemetry["limitFailures"].items() if count]
    snapshots = dict(telemetry["snapshots"])
    last = snapshots.pop("lastBytes", 0)
    changes = [f"{name} {count}" for name, count in snapshots.items() if count]
    asked = [
        f"{name} {telemetry[key]}"
        for name, key in (("exec", "execCount"), ("wait", "waitCount"), ("search", "searchCount"),
                          ("describe", "describeCount"), ("call", "callCount"))
        if telemetry[key]
    ]  # fmt: skip
    rows = [
        ("catalog", ", ".join([counted(telemetry["catalogSize"], "tool"), *sources])),
        ("counts", ", ".join(asked)),
        ("called", ", ".join(printable(id_) for id_ in telemetry["nestedToolIds"])),
        ("time", f"{duration(telemetry['guestMs'])} in the cell of {duration(telemetry['durationMs'])}"),
        ("snapshots", ", ".join([*changes, f"last {size(last)}"]) if changes else ""),
        ("limits", ", ".join(limits)),
    ]
    return [row for row in rows if row[1]]


def trajectory_text(trajectory: Mapping[str, Json], *, inputs: bool = False) -> str:
    """Return each run with its calls, waits and suspended spans, one line for each."""
    lines: list[str] = []
    for run in trajectory["runs"]:
        timeline = timeline_of(run, inputs=inputs)
        lines.append(timeline.title)
        for row in timeline.rows:
            lines.append("  " + ", ".join(part for part in (row.label, row.state, row.took, row.detail) if part))
            lines += [f"    {note}" for note in row.notes]
    return "\n".join(lines)


def error_text(report: ErrorReport) -> str:
    """Return an error in its one layout: what, where, what to do."""
    code = f" [{report.code}]" if report.code else ""
    lines = [f"error{code}: {report.what}"]
    if report.place:
        lines.append(f"  at {report.place}")
    width = len(str(report.source[-1].number)) if report.source else 0
    for line in report.source:
        lines.append(f"  {line.number:>{width}} | {line.text}".rstrip())
        if line.caret is not None:
            lines.append(f"  {'':>{width}} | {'':>{line.caret}}^")
    if report.advice:
        lines.append(f"  {report.advice}")
    return "\n".join(lines)


def table_text(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return columns padded with spaces, the last one as long as it is."""
    cells = [[heading.upper() for heading in headings], *([one_line(cell, 1 << 16) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def check_text(name: str, state: str, says: str, fix: str) -> str:
    """Return one check of `doctor`: `ok       engine: …`, with what to do on a line of its own."""
    return f"{state:<8} {name}: {printable(says)}" + (f"\n         {fix}" if fix else "")
