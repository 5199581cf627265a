"""A trajectory as one HTML page: a timeline that tells more where the pointer, or the focus, is.

The page is complete in itself: no script, no request. What stands in it was said by cells, tools and
servers, so every text is escaped, and the page's own policy allows nothing but its style sheet.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

from codemode.core.types import Json
from codemode.render.timeline import Row, Timeline, timeline_of
from codemode.render.words import counted, duration, printable, size

_TEMPLATE = Path(__file__).with_name("page.html")
_TICKS = 5
_IDLE_SHARE = 0.25  # of the time that was worked: a longer suspension is drawn this long
_GOOD = ("ok", "completed", "restored", "")
_OPEN = ("running", "waiting", "awaiting approval")
_MAX_INPUT_CHARS = 20_000  # of one call, as indented JSON


def render_page(trajectory: Mapping[str, Json]) -> str:
    """Return the page of a trajectory's JSON, one section for each run.

    Contract: trace:page:complete, trace:page:self-contained, trace:page:escaped
    """
    runs = trajectory["runs"]
    title = runs[0]["runId"] if len(runs) == 1 else counted(len(runs), "run")
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=_text(f"{title} · codemode"), runs="\n".join(map(_section, runs)))


class Scale:
    """Places moments on the axis, in percent; idle time beyond a share of the rest is shortened."""

    def __init__(self, start_ms: float, end_ms: float, idle: Sequence[tuple[float, float]]) -> None:
        """Lay out the axis.

        Args:
            start_ms: Its beginning, as Unix milliseconds.
            end_ms: Its end.
            idle: Spans within it that may be drawn shorter, in order, none within another.
        """
        worked = max(end_ms - start_ms - sum(to - since for since, to in idle), 1.0)
        self._points = [(start_ms, 0.0)]  # moment → place; straight in between
        for since, to in idle:
            self._advance(since, since - self._points[-1][0])
            self._advance(to, min(to - since, worked * _IDLE_SHARE))
        self._advance(end_ms, end_ms - self._points[-1][0])
        self._length = self._points[-1][1] or 1.0

    def place(self, moment: float) -> float:
        """Return where a moment is, from 0 to 100.

        Contract: trace:page:scale
        """
        at = bisect_left(self._points, moment, lo=1, key=lambda point: point[0])  # a run may have waited for years
        if at == len(self._points):
            return 100.0
        (since, left), (to, right) = self._points[at - 1], self._points[at]
        part = (moment - since) / (to - since) if to > since else 0.0
        return (left + max(part, 0.0) * (right - left)) / self._length * 100

    def moment(self, place: float) -> float:
        """Return what is at a place; the inverse of `place`."""
        wanted = place / 100 * self._length
        for (since, left), (to, right) in zip(self._points, self._points[1:], strict=False):
            if wanted <= right and right > left:
                return since + (wanted - left) / (right - left) * (to - since)
        return self._points[-1][0]

    def _advance(self, moment: float, length: float) -> None:
        self._points.append((moment, self._points[-1][1] + max(length, 0.0)))


class _Fact(NamedTuple):
    name: str
    value: str


def _section(run: Mapping[str, Json]) -> str:
    timeline = timeline_of(run, inputs=False)
    scale = Scale(timeline.start_ms, timeline.end_ms, _idle(run, timeline))
    rows = [_row(row, timeline, scale) for row in timeline.rows]
    ticks = [f"<span>{duration(_at(scale, number, timeline))}</span>" for number in range(_TICKS)]
    parts = [
        f"<section>\n<h1>{_text(run['runId'])}</h1>",
        f'<ul class="facts">{"".join(_facts(run))}</ul>',
        f'<pre class="error">{_text(run["error"])}</pre>' if run["error"] else "",
        f'<ol>{"".join(rows)}</ol>\n<div class="axis"><div class="ticks">{"".join(ticks)}</div></div>' if rows else "",
        f"<details><summary>The cell</summary><pre>{_text(run['source'])}</pre></details>" if run["source"] else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _at(scale: Scale, number: int, timeline: Timeline) -> float:
    return scale.moment(100 * number / (_TICKS - 1)) - timeline.start_ms


def _idle(run: Mapping[str, Json], timeline: Timeline) -> list[tuple[float, float]]:
    """Return when the run was suspended, no wait went on, and no call was in flight."""
    parts = [part for part in (*run["calls"], *run["waits"]) if part["startMs"] is not None]
    busy = sorted((part["startMs"], part["endMs"] or timeline.end_ms) for part in parts)
    idle: list[tuple[float, float]] = []
    at, busy_until = 0, 0.0
    for span in run["suspended"]:
        since, to = max(span["startMs"], busy_until), span["endMs"] or timeline.end_ms
        while at < len(busy) and busy[at][0] < to:
            began, ended = busy[at]
            if since < began:
                idle.append((since, began))
            since, busy_until, at = max(since, ended), max(busy_until, ended), at + 1
        if since < to:
            idle.append((since, to))
    return idle


def _facts(run: Mapping[str, Json]) -> Iterator[str]:
    state = run["state"]
    facts = [
        _Fact("took", duration(run["durationMs"])),
        _Fact("in the cell", duration(run["guestMs"])),
        _Fact("", counted(len(run["calls"]), "request")),
    ]
    facts += [_Fact("code", run["code"])] if run["code"] else []
    yield f'<li class="{_tone(state)}">{_text(run["language"] or "cell")} <b>{_text(state)}</b></li>'
    yield from (f"<li>{_text(fact.name)} <b>{_text(fact.value)}</b></li>" for fact in facts)


def _row(row: Row, timeline: Timeline, scale: Scale) -> str:
    summary = ", ".join(part for part in (row.label, row.state, row.took) if part)
    return (
        f'<li class="row {row.kind} {_tone(row.state)}">'
        f'<span class="label" title="{_text(row.label)}"><bdi>{_text(row.label)}</bdi></span>'
        f'<span class="track">{_bar(row, timeline, scale, summary)}</span>'
        f'<span class="took">{_text(row.took or row.state)}</span>'
        f'<div class="tip">{_tip(row, timeline)}</div></li>\n'
    )


def _bar(row: Row, timeline: Timeline, scale: Scale, summary: str) -> str:
    """Draw when it was; what has not ended reaches to the end, and what never began is not drawn."""
    if row.start_ms is None:
        return ""
    left = scale.place(row.start_ms)
    width = scale.place(timeline.end_ms if row.end_ms is None else row.end_ms) - left
    kind = "bar" if row.end_ms is not None else "bar endless"
    style = f"left:{left:.2f}%;width:{max(width, 0):.2f}%"
    return f'<span class="{kind}" style="{style}" tabindex="0" role="img" aria-label="{_text(summary)}"></span>'


def _tip(row: Row, timeline: Timeline) -> str:
    facts = [_Fact(row.kind, row.label), _Fact("state", row.state)]
    if row.start_ms is not None:
        facts.append(_Fact("began", f"after {duration(max(row.start_ms - timeline.start_ms, 0.0))}"))
    facts += [_Fact("took", row.took), _Fact("more", row.detail)]
    listed = "".join(f"<dt>{_text(each.name)}</dt><dd>{_text(each.value)}</dd>" for each in facts if each.value)
    shown = "" if row.input is None else f"<pre>{_text(_indented(row.input))}</pre>"
    return f"<dl>{listed}</dl>{shown}" + "".join(f'<pre class="error">{_text(note)}</pre>' for note in row.notes)


def _indented(given: Json) -> str:
    text = json.dumps(given, ensure_ascii=False, indent=2)
    if len(text) <= _MAX_INPUT_CHARS:
        return text
    return f"{text[:_MAX_INPUT_CHARS]}…\n({size(len(text.encode()))} in all)"


def _tone(state: str) -> str:
    if state in _GOOD:
        return "good"
    return "open" if state in _OPEN else "bad"


def _text(text: Json) -> str:
    return escape(printable(str(text)))
