"""The parts of the command line, without a process of their own."""

import inspect
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import pytest
import typer

from codemode.cli import app
from codemode.cli.options import LimitFlags, takes
from codemode.cli.progress import Progress
from codemode.cli.source import Cell, read_cell
from codemode.cli.status import STATUS_OF_CODE, ExitStatus, status_of_result
from codemode.cli.terminal import Terminal
from codemode.cli.versions import versions
from codemode.core.errors import ErrorCode, InvalidInput
from codemode.core.limits import LIMITS
from tests.requirements import requirement
from tests.support.streams import Stream


def terminal_of(out: Stream | None = None, err: Stream | None = None, **environ: str) -> Terminal:
    return Terminal(out or Stream(), err or Stream(), environ)


# Exit statuses


@requirement("cli:status:table")
@pytest.mark.parametrize(
    ("status", "codes"),
    [
        (1, ["typescript_transform_failed", "module_access_denied", "nested_tool_failed", "snapshot_expired",
             "snapshot_restore_failed"]),
        (2, ["invalid_config", "invalid_input", "unsupported_language"]),
        (4, ["timeout", "memory_limit_exceeded", "output_limit_exceeded", "snapshot_limit_exceeded",
             "too_many_pending_tool_calls"]),
        (5, ["runtime_unavailable"]),
        (70, ["internal_error"]),
        (130, ["aborted"]),
    ],
)  # fmt: skip
def test_each_code_has_the_status_of_the_contract(status: int, codes: list[str]) -> None:
    assert [status_of_result({"status": "failed", "code": code}) for code in codes] == [status] * len(codes)


@requirement("cli:status:table")
def test_completion_waiting_and_a_throw_have_their_status_and_no_code_is_forgotten() -> None:
    assert status_of_result({"status": "completed"}) == 0
    assert status_of_result({"status": "waiting"}) == 3
    assert status_of_result({"status": "failed"}) == 1
    assert set(STATUS_OF_CODE) == set(ErrorCode)


# Where a cell comes from


@requirement("cli:run:sources")
def test_a_cell_is_a_file_or_the_text_of_e(tmp_path: Path) -> None:
    path = tmp_path / "cell.js"
    path.write_bytes(b"\xef\xbb\xbfreturn '\xc3\xbc'")

    assert read_cell(str(path), None) == Cell("return 'ü'", str(path), None)
    assert read_cell(None, "return 1") == Cell("return 1", "cell.js", None)


@requirement("cli:run:sources")
def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"return 3")))

    assert read_cell("-", None) == Cell("return 3", "cell.js", None)


@requirement("cli:run:typescript-suffix")
@pytest.mark.parametrize(
    ("name", "language"), [("a.ts", "typescript"), ("a.mts", "typescript"), ("a.js", None), ("ts", None)]
)
def test_the_suffix_implies_typescript(tmp_path: Path, name: str, language: str | None) -> None:
    (tmp_path / name).write_text("return 1")

    assert read_cell(str(tmp_path / name), None).language == language


@requirement("cli:run:sources", "cli:errors:did-you-mean")
def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "report.js").write_text("return 1")
    (tmp_path / "latin.js").write_bytes(b"// one\nreturn '\xe9'")
    (tmp_path / "blank.ts").touch()

    for file, code, message in [
        (None, None, "there is no cell; give a file, - for standard input, or -e CODE"),
        ("a.js", "return 1", 'there are two cells, "a.js" and that of -e'),
        (str(tmp_path / "reprot.js"), None, r'there is no file ".*reprot.js"\. Did you mean "report.js"'),
        (str(tmp_path / "none" / "x.js"), None, r'there is no file ".*x.js"\.$'),
        (str(tmp_path), None, "is a folder; give the file of a cell"),
        (str(tmp_path / "latin.js"), None, "is not UTF-8 text: byte 0xe9 in line 2; save it as UTF-8"),
        ("nul\0byte", None, "cannot be read: embedded null byte"),
        (None, " \n", "the cell of -e is empty; write a program, such as: return 1"),
        (str(tmp_path / "blank.ts"), None, r'blank.ts" is empty; write a program'),
    ]:
        with pytest.raises(InvalidInput, match=message):
            read_cell(file, code)


def test_an_empty_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))

    with pytest.raises(InvalidInput, match="standard input is empty or closed; pipe a cell into it"):
        read_cell("-", None)


# The terminal


@requirement("cli:output:plain")
def test_only_a_real_terminal_is_styled() -> None:
    assert terminal_of(Stream(terminal=True)).styled_out
    assert not terminal_of(Stream(terminal=True), TERM="dumb").styled_out
    assert not terminal_of(Stream()).styled_out
    assert not terminal_of(Stream(terminal=True)).styled_err


def test_quiet_silences_notes_but_no_complaint() -> None:
    err = Stream()
    terminal = terminal_of(err=err)
    terminal.quiet = True
    terminal.note("a note")
    terminal.complain("an error")

    assert err.getvalue() == "an error\n"


@requirement("cli:json:one-document")
def test_json_is_compact_in_a_pipe_and_indented_on_a_terminal() -> None:
    pipe, screen = Stream(), Stream(terminal=True)
    terminal_of(pipe).write_json({"a": ["ü"]})
    terminal_of(screen).write_json({"a": ["ü"]})

    assert pipe.getvalue() == '{"a":["ü"]}\n'
    assert screen.getvalue() == '{\n  "a": [\n    "ü"\n  ]\n}\n'


@requirement("cli:output:broken-pipe")
def test_a_reader_that_is_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        terminal = Terminal(stream, Stream(), {})
        terminal.write("nobody reads this")
        terminal.write("nor this")
        terminal.close()


# Options


class SomeOptions(NamedTuple):
    name: Annotated[str, typer.Argument()]
    loud: Annotated[bool, typer.Option("--loud")] = False
    limits: LimitFlags = {}  # noqa: RUF012


@requirement("cli:run:limits")
def test_a_tuple_of_options_becomes_a_signature_with_all_limit_flags() -> None:
    got: list[SomeOptions] = []

    @takes(SomeOptions)
    def command(_terminal: Terminal, options: SomeOptions) -> ExitStatus:
        """Say it."""
        got.append(options)
        return ExitStatus.OK

    parameters = inspect.signature(command).parameters
    flags = {get_args(parameters[limit.name].annotation)[1].default for limit in LIMITS}

    assert list(parameters)[:3] == ["ctx", "name", "loud"]
    assert list(parameters)[-2:] == ["quiet", "verbose"]
    assert {"--timeout-ms", "--memory-limit-bytes", "--max-output-bytes", "--snapshot-ttl-seconds"} <= flags
    assert command.__doc__ == "Say it."

    given = dict.fromkeys((limit.name for limit in LIMITS), None) | {"timeout_ms": 500}
    terminal = terminal_of()
    command(type("Context", (), {"obj": terminal}), name="x", loud=True, quiet=True, verbose=False, **given)

    assert (terminal.quiet, terminal.verbose) == (True, False)
    assert got == [SomeOptions("x", True, {"timeout_ms": 500})]


@requirement("cli:version:engine")
def test_the_versions_name_engine_parsers_and_libraries() -> None:
    found = versions()

    assert list(found) == ["codemode", "python", "quickjs-wasi", "acorn", "sucrase", "wasmtime", "mcp", "typer", "rich"]
    assert not [version for version in found.values() if "missing" in version]


# Progress


def test_the_progress_line_names_open_calls_with_their_time() -> None:
    progress = Progress(terminal_of())
    assert progress.line().startswith("starting servers and tools, ")

    for id_, tool in enumerate(["a:b:quote", None, "a:b:x", "a:b:y"], 1):
        progress.follow({"event": "call_started", "call_id": id_, "method": "timer", "tool_id": tool})
    assert progress.line().startswith("4 open calls: a:b:quote ")
    assert " timer " in progress.line()
    assert progress.line().endswith(" and 1 more")

    for id_ in (1, 2, 3, 99):
        progress.follow({"event": "call_settled", "call_id": id_})
    progress.follow({"event": "turn_measured"})
    assert progress.line().startswith("1 open call: a:b:y ")

    progress.follow({"event": "call_settled", "call_id": 4})
    assert progress.line().startswith("running, ")


@requirement("cli:progress:servers")
def test_the_progress_line_names_the_servers_that_are_awaited_before_all_else() -> None:
    progress = Progress(terminal_of())
    for server in ("a", "b", "c", "d"):
        progress.follow({"event": "server", "server": server, "state": "asked"})
    assert re.fullmatch(r"connecting a [\d.]+ \w+, b [\d.]+ \w+, c [\d.]+ \w+ and 1 more", progress.line())

    for server, state in (("a", "answered"), ("b", "failed"), ("d", "answered")):
        progress.follow({"event": "server", "server": server, "state": state})
    assert progress.line().startswith("connecting c ")

    progress.follow({"event": "server", "server": "c", "state": "answered"})
    assert progress.line().startswith("starting servers and tools, ")


def test_progress_is_drawn_on_a_terminal_after_a_moment_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemode.cli.progress._PATIENCE_S", 0.0)
    err = Stream(terminal=True)
    with Progress(terminal_of(err=err), "thinking") as progress:
        progress._timer.join()
        assert "thinking" in err.getvalue()

    assert err.getvalue().endswith("\x1b[2K")


@requirement("cli:progress:aside")
def test_what_is_said_meanwhile_stands_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is taken away before, and drawn again behind."""
    monkeypatch.setattr("codemode.cli.progress._PATIENCE_S", 0.0)
    err = Stream(terminal=True)
    with Progress(terminal_of(err=err), "thinking") as progress:
        progress._timer.join()
        progress.pass_on("codemode: one\n")
        progress.complain("two")

    for words in ("codemode: one\n", "two\n"):
        before, _, after = err.getvalue().partition(words)
        assert before.endswith("\x1b[2K")
        assert "thinking" in after


@requirement("cli:output:plain")
def test_progress_says_nothing_in_a_pipe_or_when_quiet() -> None:
    quiet = terminal_of(err=Stream(terminal=True))
    quiet.quiet = True
    for terminal in (terminal_of(), quiet):
        with Progress(terminal) as progress:
            assert not progress._timer.is_alive()


# The ladder, in this process


@requirement("cli:errors:no-traceback", "cli:errors:did-you-mean")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run", "--timeout"], "No such option: --timeout. Did you mean '--timeout-ms'?"),
        (["run", "--zzzzzzzz"], "No such option: --zzzzzzzz\n"),
        (["run", "--timeout-ms", "soon"], "Invalid value for '--timeout-ms'"),
        (["run", "a.js", "b.js"], "unexpected extra argument"),
        (["catalog", "describe"], "Missing argument 'TOOL'"),
        (["catalog", "serach", "x"], "Did you mean 'search'?"),
        (["wait", "--approve"], "codemode wait --help shows"),
        (["catalog", "lint", "--provider"], "codemode catalog lint --help shows"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2_and_one_layout(
    capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    status = app.main(arguments)
    out, err = capfd.readouterr()

    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "--help shows what it takes, with examples." in err


@requirement("cli:usage:no-name")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("-m,,catalog", "--manifest"),
        ("catalog,--manifest,", "--manifest"),
        ("catalog,list,-m,", "--manifest"),
        ("run,-e,1,-m,", "--manifest"),
        ("run,-e,1,--replay,", "--replay"),
        ("run,-e,1,--record,", "--record"),
        ("trace,--html,", "--html"),
        ("run,", "FILE"),
        ("wait,,--approve,1", "RUN"),
        ("abort,", "RUN"),
    ],
)
def test_a_file_or_run_of_no_name_is_refused(capfd: pytest.CaptureFixture[str], command: str, shown: str) -> None:
    """As of a script whose variable is not set: `--replay "$RECORDING"`."""
    status = app.main(command.split(","))

    assert status == 2
    assert capfd.readouterr().err == (
        f"error [invalid_input]: {shown} is given without a name; name one, or leave it out\n"
    )


@requirement("cli:json:failed-result")
def test_with_json_a_wrong_command_line_is_a_failed_result(capfd: pytest.CaptureFixture[str]) -> None:
    status = app.main(["run", "--bogus", "--json"])
    out, err = capfd.readouterr()
    result = json.loads(out)

    assert (status, err) == (2, "")
    assert (result["status"], result["code"], result["phase"]) == ("failed", "invalid_input", "input")
    assert result["telemetry"]["callCount"] == 0


def test_no_arguments_show_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    status = app.main([])

    assert status == 2
    assert "Usage: codemode [-m FILE] COMMAND" in capfd.readouterr().err


@requirement("cli:errors:no-traceback", "cli:status:table")
def test_a_fault_of_ours_is_one_sentence_and_with_debug_a_traceback(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("codemode.cli.source.read_cell", fail)
    status = app.main(["run", "x.js"])

    assert status == 70
    assert capfd.readouterr().err.startswith("error [internal_error]: KeyError: 'lost'")

    monkeypatch.setenv("CODEMODE_DEBUG", "1")
    with pytest.raises(KeyError):
        app.main(["run", "x.js"])


@requirement("cli:status:table")
def test_an_interrupt_ends_with_130(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("codemode.cli.source.read_cell", interrupt)

    assert app.main(["run", "x.js"]) == 130
    assert capfd.readouterr().err == ""
