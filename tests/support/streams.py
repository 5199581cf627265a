"""Streams in memory that claim to be a terminal, or not."""

import io


class Stream(io.StringIO):
    """What a command writes to; with `terminal` it is styled as for a person."""

    def __init__(self, *, terminal: bool = False) -> None:
        """Begin empty."""
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """Say what the test wants the command to believe."""
        return self._terminal
