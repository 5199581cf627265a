"""The inputs of this session and of earlier ones, in a file that only its owner reads."""

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory

MAX_BYTES = 1 << 20  # of the file; the older half goes when it is larger


class PrivateHistory(FileHistory):
    """prompt-toolkit's history file, made with mode 0600; inputs that begin with a space are not kept.

    Contract: repl:history:private
    """

    def __init__(self, path: Path) -> None:
        """Use this file; it and its folder are made when there is something to keep."""
        super().__init__(path)
        self._path = path

    def store_string(self, string: str) -> None:
        """Add an input to the file; where that fails, this session remembers it all the same."""
        if string.startswith(" "):
            return
        try:
            self._prepare()
            super().store_string(string)
        except OSError:
            return

    def _prepare(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._path.chmod(0o600)
        if self._path.stat().st_size > MAX_BYTES:
            self._halve()

    def _halve(self) -> None:
        data = self._path.read_bytes()
        half = data.find(b"\n# ", len(data) // 2)
        self._path.write_bytes(data[half:] if half >= 0 else b"")
