"""A run of a trajectory as rows in the order of time: calls, suspended spans, waits.

Pure; `trajectory.py` draws the rows with bars on a terminal, `plain.py` writes them as lines.
"""

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

from codemode.core.types import Json
from codemode.render.words import counted, duration, one_line, printable, size

_MAX_NOTE_CHARS = 400


class Row(NamedTuple):
    """One thing that happened: when (Unix ms, None where unknown), what, how it ended, how large it was.

    `notes` are lines that belong under it: an input, an error. `input` is a call's, whole and redacted.
    """

    kind: Literal["call", "suspended", "wait"]
    label: str
    state: str
    start_ms: float | None
    end_ms: float | None
    detail: str
    notes: tuple[str, ...] = ()
    input: Json = None

    @property
    def took(self) -> str:
        """How long it took, in words; empty where it did not end or never began."""
        if self.start_ms is None or self.end_ms is None:
            return ""
        return duration(self.end_ms - self.start_ms)


class Timeline(NamedTuple):
    """A run: one line about it, its rows, and the span that they cover."""

    title: str
    state: str
    rows: tuple[Row, ...]
    start_ms: float
    end_ms: float


def timeline_of(run: Mapping[str, Json], *, inputs: bool) -> Timeline:
    """Build the rows of one run.

    Args:
        run: One of `runs` in a trajectory's JSON.
        inputs: Whether to note the redacted input of each call; that of one which awaits approval always is.

    Contract: approvals:run:shown
    """
    numbers = {wait["id"]: number for number, wait in enumerate(run["waits"], 1)}
    rows = [
        *(_call_row(call, numbers, inputs) for call in run["calls"]),
        *(_suspended_row(span) for span in run["suspended"]),
        *(Row("wait", f"wait {numbers[wait['id']]}", "", wait["startMs"], wait["endMs"], "") for wait in run["waits"]),
    ]
    rows.sort(key=lambda row: (row.start_ms is None, row.start_ms or 0.0))
    moments = [moment for row in rows for moment in (row.start_ms, row.end_ms) if moment is not None]
    start = run["startMs"] if run["startMs"] is not None else min(moments, default=0.0)
    title = f"{run['runId']}  {run['language'] or 'cell'}, {run['state']}, {duration(run['durationMs'])}"
    return Timeline(printable(title), run["state"], tuple(rows), start, max([start, run["endMs"] or start, *moments]))


def _call_row(call: Mapping[str, Json], numbers: Mapping[str, int], inputs: bool) -> Row:
    method = call["method"] or "call"
    target = (
        call["toolId"] if call["toolId"] and method in ("call", "namespace") else f"{method} {call['toolId'] or ''}"
    )
    parts = [size(call["resultBytes"]) if call["resultBytes"] else ""]
    if call["deliverer"] in numbers:
        parts.append(f"by wait {numbers[call['deliverer']]}")
    if call["updates"]:
        parts.append(counted(call["updates"], "update"))
    notes = []
    is_asked = call["state"] == "awaiting_approval"  # nobody can decide on what is not shown
    if (inputs or is_asked) and call["input"] is not None:
        notes.append(one_line(json.dumps(call["input"], ensure_ascii=False), _MAX_NOTE_CHARS))
    if is_asked and call["reason"]:
        notes.append(one_line(f"a hook asks: {call['reason']}", _MAX_NOTE_CHARS))
    if call["error"]:
        notes.append(one_line(call["error"], _MAX_NOTE_CHARS))
    label = printable(f"{target.strip()} #{call['id']}")
    detail = ", ".join(part for part in parts if part)
    state, span = call["state"].replace("_", " "), (call["startMs"], call["endMs"])
    return Row("call", label, state, *span, detail, tuple(notes), call["input"])


def _suspended_row(span: Mapping[str, Json]) -> Row:
    return Row("suspended", "suspended", span["end"] or "waiting", span["startMs"], span["endMs"], size(span["bytes"]))
