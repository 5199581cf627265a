"""Does a text match a schema's pattern? Never for longer than one check may take.

Python's own engine tries every way to split a text among the loops of a pattern, and nothing ends it
before it is done: a cell that knows the pattern of an address could hold its host for years. The
library `regex` optimises most of these and gives up in time. Its clock, as ours, is the processor's,
so that a machine with much else to do refuses nothing. Called by `validation` alone.
"""

import time

from codemode.core.limits import PATTERN_MS


class Undecided(Exception):
    """Whether a text matches is not known within `PATTERN_MS`; its text is the pattern."""


class Patterns:
    """Matches the patterns of one schema; all matches of one check share their time."""

    def __init__(self) -> None:
        """Begin without a check."""
        self._left_s = 0.0

    def begin(self) -> None:
        """Give the check that begins now its time."""
        self._left_s = PATTERN_MS / 1000

    def match(self, pattern: str, text: str) -> bool:
        """Say whether a pattern is found in a text; one that the library does not know is left to the tool.

        Raises:
            Undecided: It takes too long.

        Contract: executor:schema:bounded
        """
        import regex  # 30 ms, for schemas with patterns

        began = time.thread_time()
        try:
            if self._left_s > 0:
                return regex.search(pattern, text, timeout=self._left_s) is not None
        except regex.error:
            return True
        except TimeoutError:
            pass
        finally:
            self._left_s -= time.thread_time() - began
        raise Undecided(pattern)
