"""Does a text match a schema's pattern? Decided here where that is quick, else in a process that can be killed.

Python's engine tries every way to split a text among the loops of a pattern, and nothing ends it
before it is done: a cell that knows the pattern of an address could hold its host for years.
Called by `validation` alone.
"""

import functools
import json
import re
import subprocess
import sys

from codemode.core.limits import PATTERN_MS

_QUICK_STEPS = 1_000_000  # of the engine: some 20 ms
_ONE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # an escape or a set: it takes one character
_LOOP = re.compile(r"[*+]|\{\d*,\d*\}")
_LOOPED_GROUP = re.compile(r"\)(?:[*+]|\{)")
_APART = "import json, re, sys; pattern, text = json.load(sys.stdin); sys.exit(7 if re.search(pattern, text) else 8)"
_FOUND, _NOT_FOUND = 7, 8


class Undecided(Exception):
    """Whether a text matches is not known within `PATTERN_MS`; its text is the pattern."""


def matches(pattern: str, text: str) -> bool:
    """Say whether a pattern is found in a text.

    Raises:
        Undecided: It takes too long.

    Contract: executor:schema:bounded
    """
    if count_steps(pattern, len(text)) <= _QUICK_STEPS:
        return re.search(pattern, text) is not None
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _APART], input=json.dumps([pattern, text]).encode(),
            capture_output=True, check=False, timeout=PATTERN_MS / 1000,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Undecided(pattern) from None
    if done.returncode not in (_FOUND, _NOT_FOUND):
        raise Undecided(pattern)
    return done.returncode == _FOUND


def count_steps(pattern: str, length: int) -> int:
    """Return how many steps the engine may need at most, roughly, for a text of this length."""
    loops, choices, each_round = _weigh(pattern)
    return int((length + 1) ** loops) << min(choices + (length if each_round else 0), 64)


@functools.lru_cache(maxsize=1024)
def _weigh(pattern: str) -> tuple[int, int, bool]:
    """Return how many loops a pattern has, how many choices, and whether each round of a loop may go either way."""
    plain = _ONE.sub("x", pattern).replace("(?", "(")
    loops, choices = len(_LOOP.findall(plain)), plain.count("|") + plain.count("?")
    each_round = bool(_LOOPED_GROUP.search(plain)) and loops + choices > 1
    return min(loops + (not plain.startswith("^")), 9), choices, each_round
