"""Completion in bash, which splits a word at each colon, and tool ids are full of them.

Bash asks about the last piece and replaces only that. So the pieces are put together before the
completion looks at them, and what it offers is cut to the part that bash is to replace.
"""

import io
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, redirect_stdout
from typing import NamedTuple

ASKED = "_CODEMODE_COMPLETE"  # set by the shell's script that --show-completion prints


class Words(NamedTuple):
    """The words of a command line, the one that is typed, and how much of it bash has set aside."""

    words: list[str]
    at: int
    aside: str


def join_words(pieces: list[str], at: int) -> Words:
    """Put the pieces of a command line together where bash has split them at a colon.

    Args:
        pieces: As in `COMP_WORDS`: `["codemode", "wait", "a", ":", "b"]`.
        at: Which of them is typed, as in `COMP_CWORD`.
    """
    words: list[str] = []
    place = at
    goes_on = False
    for number, piece in enumerate(pieces[: at + 1]):
        is_colon = piece != "" and not piece.strip(":")
        if words and number > 1 and (goes_on or is_colon):
            words[-1] += piece
            place -= 1
        else:
            words.append(piece)
        goes_on = is_colon
    split = place < at
    typed = words[-1] if words else ""
    return Words(words, place, typed[: typed.rfind(":") + 1] if split else "")


@contextmanager
def whole_words(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Answer a question of bash with whole words in mind; whatever else is asked is left alone.

    Contract: cli:completion:colons
    """
    if environ.get(ASKED) != "complete_bash" or not environ.get("COMP_CWORD", "").isdigit():
        yield
        return
    whole = join_words(environ.get("COMP_WORDS", "").split("\n"), int(environ["COMP_CWORD"]))
    if not whole.aside:
        yield
        return
    environ["COMP_WORDS"], environ["COMP_CWORD"] = "\n".join(whole.words), str(whole.at)
    offered = io.StringIO()
    try:
        with redirect_stdout(offered):
            yield
    finally:
        for line in offered.getvalue().splitlines():
            print(line.removeprefix(whole.aside))
