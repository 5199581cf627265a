"""Figures and texts as people read them: durations, sizes, counts, and text made harmless.

Pure, standard library only; both the rich renderables and their plain twins use it.
"""

import re
from collections.abc import Iterable

MARKS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"  # turn before a line that says what is awaited
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text with control characters spelled out, so that it cannot steer a terminal.

    Line feeds and tabs stay. What a cell, a tool or a server says is never trusted with a terminal.

    Contract: cli:output:harmless
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def one_line(text: str, max_chars: int) -> str:
    """Return the text as one harmless line of at most `max_chars` characters, an ellipsis where it is cut."""
    joined = " ".join(printable(text).split())
    return joined if len(joined) <= max_chars else joined[: max(max_chars - 1, 0)] + "…"


def duration(ms: float) -> str:
    """Return `0.4 ms`, `84 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min` or `3 d 4 h`; `?` where the clock was set back."""
    if ms < 0:
        return "?"
    if ms < 10:
        return f"{ms:.1f} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min {int(seconds % 60)} s"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"


def age(ms: float) -> str:
    """Return how long ago something was, in one unit: `12 s`, `8 min`, `2 h`, `3 d`."""
    seconds = int(ms / 1000)
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def size(count: int) -> str:
    """Return `812 B`, `1.4 kB` or `10.2 MB`; a kilobyte has 1000 bytes."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def waits(since: Iterable[tuple[str, float]], now: float) -> str:
    """Return the first three of what is awaited, the longest first, each with its time: `memory 2.1 s, weather 2 s`.

    Args:
        since: What each is called, and the second since when it is awaited.
        now: The second that it is.
    """
    longest = sorted(since, key=lambda each: each[1])
    named = ", ".join(f"{label} {duration((now - began) * 1000)}" for label, began in longest[:3])
    return f"{named} and {len(longest) - 3} more" if len(longest) > 3 else named


def counted(count: int, noun: str) -> str:
    """Return `1 call` or `12,000 calls`."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"
