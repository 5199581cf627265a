"""What a command of ours came to, in a process of its own or in this one."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codemode.cli import app
from tests.support.cells import without_settings


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


def command_within(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """Return what runs `codemode …` in this process, within a folder and with a store of its own."""
    for name in os.environ.keys() - without_settings().keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(folder / "state"))
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        status = app.main(list(arguments))
        return Done(status, *capfd.readouterr())

    return run
