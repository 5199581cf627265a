"""Does a text match a schema's pattern? Never for longer than one check may take.

Python's own engine tries every way to split a text among the loops of a pattern, and nothing ends it
before it is done: a cell that knows the pattern of an address could hold its host for years. The
library `regex` optimises most of these and gives up in time. Called by `validation` alone.
"""

import time

from codemode.core.limits import PATTERN_MS


class Undecided(Exception):
    """Whether a text matches is not known within `PATTERN_MS`; its text is the pattern."""


class Patterns:
    """Matches the patterns of one schema; all matches of one check share their time."""

    def __init__(self) -> None:
        """Begin without a check."""
        self._due = 0.0

    def begin(self) -> None:
        """Give the check that begins now its time."""
        self._due = time.monotonic() + PATTERN_MS / 1000

    def match(self, pattern: str, text: str) -> bool:
        """Say whether a pattern is found in a text; one that the library does not know is left to the tool.

        Raises:
            Undecided: It takes too long.

        Contract: executor:schema:bounded
        """
        import regex  # 30 ms, for schemas with patterns

        left = self._due - time.monotonic()
        try:
            if left > 0:
                return regex.search(pattern, text, timeout=left) is not None
        except regex.error:
            return True
        except TimeoutError:
            pass
        raise Undecided(pattern)
