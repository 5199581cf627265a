"""Smoke checks as text for pipes, logs and dumb terminals; `smoke.py` is the twin in colour."""

from collections.abc import Iterator, Mapping

from codemode.core.types import Json
from codemode.render.words import counted, duration, one_line, printable

MAX_SHOWN = 10  # differences of one case; the rest is counted
_MAX_CHARS = 400
_WORDS = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}


def verdict_text(verdict: Mapping[str, Json]) -> str:
    """Return one case: `FAILED  checks/total.js  12 ms`, then each difference with its path."""
    line = f"{_WORDS[verdict['state']]:<8}{printable(verdict['name'])}  {verdict_note(verdict)}".rstrip()
    return "\n".join([line, *(f"  {text}" for place, texts in differences(verdict) for text in (place, *texts))])


def verdict_note(verdict: Mapping[str, Json]) -> str:
    """Return how long a case took, and its title."""
    took = "" if verdict["state"] == "skipped" else duration(verdict["durationMs"])
    return "  ".join(part for part in (took, one_line(verdict.get("title", ""), 100)) if part)


def differences(verdict: Mapping[str, Json]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the place of each difference and the two lines below it."""
    for each in verdict["differences"][:MAX_SHOWN]:
        place = one_line(f"@{each['tag']} {each.get('path', '')}".rstrip(), _MAX_CHARS)
        expected, found = one_line(each["expected"], _MAX_CHARS), one_line(each["found"], _MAX_CHARS)
        yield place, (f"  expected {expected}", f"  found    {found}")
    more = len(verdict["differences"]) - MAX_SHOWN
    if more > 0:
        yield f"and {counted(more, 'more difference')}", ()


def summary_text(report: Mapping[str, Json]) -> str:
    """Return `98 passed, 2 failed in 1.2 s`."""
    parts = [f"{report[state]:,} {state}" for state in ("passed", "failed", "skipped") if report[state]]
    return f"{', '.join(parts)} in {duration(report['durationMs'])}"
