"""What can be read to its end, and what a person is told of the rest, wherever a file is named."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from codemode.core.files import readable
from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, clean_environment
from tests.support.command import command_within

TOOL = '[[tool]]\nname = "t"\ndescription = "d"\nvalue = 1\n'


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A named pipe that nobody writes to."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe.js")
    return tmp_path / "pipe.js"


@requirement("manifest:load:special-file")
def test_a_file_and_what_a_shell_opened_can_be_read_and_the_rest_says_what_it_is(pipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path, Path("/dev/null")):
        assert readable(path) == path
    ours, theirs = os.pipe()
    assert readable(Path(f"/dev/fd/{ours}"))
    os.close(ours), os.close(theirs)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path, kind in ((pipe, "named pipe"), (Path("socket"), "socket"), (Path("/dev/zero"), "device")):
            with pytest.raises(OSError, match=f"it is a {kind}, not a file"):
                readable(path)
    with pytest.raises(FileNotFoundError):
        readable(tmp_path / "none")


@requirement("manifest:load:special-file")
@pytest.mark.parametrize(
    ("manifest", "arguments", "said"),
    [
        ("", ["run", "pipe.js"], '"pipe.js" cannot be read: it is a named pipe, not a file'),
        (
            "",
            ["-m", "pipe.js", "catalog"],
            "cannot read the manifest {folder}/pipe.js: it is a named pipe, not a file.",
        ),
        ("", ["-m", "/dev/stdin", "run", "-e", "1"], "the manifest /dev/stdin is open in the command only, not where"),
        ("", ["smoke", "pipe.js"], "pipe.js:1: the file cannot be read: it is a named pipe, not a file"),
        ("", ["smoke", "."], "pipe.js:1: the file cannot be read: it is a named pipe, not a file"),
        ("", ["run", "-e", "1", "--replay", "pipe.js"], "pipe.js is no recording"),
        ("", ["import", "pipe.js"], "cannot read {folder}/pipe.js: it is a named pipe, not a file."),
        ("", ["catalog", "diff", "pipe.js"], '"pipe.js" cannot be read: it is a named pipe, not a file'),
        (f'{TOOL}parametersFile = "pipe.js"', ["catalog"], "cannot read {folder}/pipe.js: it is a named pipe"),
        ('[[openapi]]\nspec = "pipe.js"\nowner = "o"', ["catalog"], "cannot read {folder}/pipe.js: it is a named pipe"),
        ('[mcp]\ninclude = ["pipe.js"]', ["catalog"], "cannot read {folder}/pipe.js, which mcp.include names: it is a"),
        (
            '[mcp.servers.s]\ncommand = "true"\nenvFile = "pipe.js"',
            ["catalog"],
            "{folder}/pipe.js cannot be read: it is a named pipe, not a file; correct the path",
        ),
    ],
)
def test_a_named_pipe_is_one_error_wherever_a_file_is_named(
    pipe: Path,
    manifest: str,
    arguments: list[str],
    said: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (pipe.parent / "codemode.toml").write_text(manifest)
    done = command_within(pipe.parent, capfd, monkeypatch)(*arguments)

    assert done.status == 2, done
    assert said.format(folder=pipe.parent) in done.err
    assert done.err.count("\n") == 1


@requirement("manifest:load:special-file")
def test_a_pipe_of_the_shell_is_a_file_to_read(tmp_path: Path) -> None:
    script = """
        "$@" run <(echo 'return 1') && echo 'return 2' | "$@" run /dev/stdin && "$@" -m /dev/null run -e 3 &&
        echo "$MANIFEST" | "$@" -m /dev/stdin catalog --json | grep -o client:app:t &&
        "$@" catalog diff <("$@" catalog --json)
    """
    environment = clean_environment(tmp_path / "s") | {"MANIFEST": TOOL}
    done = subprocess.run(
        ["bash", "-c", script, "bash", *COMMAND], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=BOUND_S, check=False,
    )  # fmt: skip

    assert done.stdout == "1\n2\n3\nclient:app:t\n", done.stderr
