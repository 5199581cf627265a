"""What is shown: each value in its rich and in its plain form, on the stream where it belongs."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from codemode.cli import show
from codemode.cli.checks.check import Check
from codemode.cli.terminal import Terminal
from codemode.core.types import Json
from codemode.render.report import report_of_usage
from codemode.telemetry import fold
from tests.requirements import requirement
from tests.support.streams import Stream

TELEMETRY = fold(()) | {"catalogSize": 3}
TOOL: Json = {
    "id": "client:app:add", "name": "add", "description": "Add two numbers.", "source": "client", "sourceName": "app",
    "call": "tools.add(input)", "approval": "ask", "score": 1.0,
    "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
}  # fmt: skip
LISTING: Json = {
    "manifest": None, "size": 1, "sources": {"client": 1}, "tools": [TOOL], "ages": {}, "namespaces": [],
    "notes": [{"toolId": "client:app:then", "kind": "reserved", "text": "taken"}], "warnings": [],
    "failures": [{"server": "gone", "kind": "offline", "message": "It is not there.", "origin": "x"}],
}  # fmt: skip
TRAJECTORY: Json = {
    "version": 1,
    "runs": [
        {
            "runId": "cm_1", "agentRunId": "", "language": "javascript", "source": "", "state": "completed",
            "code": None, "error": None, "startMs": 0.0, "endMs": 1.0, "durationMs": 1.0, "guestMs": 1.0,
            "calls": [], "waits": [],
            "suspended": [],
        }
    ],
}  # fmt: skip
COMPLETED: Json = {"status": "completed", "value": [1], "output": [], "telemetry": TELEMETRY}
FILES: Json = [{"path": "mcp/index.d.ts", "text": "type A = 1;\n"}, {"path": "mcp/x.d.ts", "text": "type B = 2;\n"}]


def shown(
    *, rich: bool, quiet: bool = False, function: Callable[..., None], arguments: tuple[Any, ...]
) -> tuple[str, str]:
    """Call a function of `show` and return what each stream got."""
    out, err = Stream(terminal=rich), Stream(terminal=rich)
    terminal = Terminal(out, err, {})
    terminal.quiet = quiet
    function(terminal, *arguments)
    return out.getvalue(), err.getvalue()


ON_STDOUT = [
    pytest.param(show.show_value, ([{"a": 1}, {"a": 2}],), "a", id="value"),
    pytest.param(show.show_outputs, (COMPLETED,), "[", id="outputs"),
    pytest.param(show.show_runs, ([("cm_1", "waiting", "3 s", "yielded")],), "cm_1", id="runs"),
    pytest.param(show.show_tool, (TOOL,), "tools.add(input)", id="tool"),
    pytest.param(show.show_ranking, ([TOOL],), "client:app:add", id="ranking"),
    pytest.param(show.show_declarations, (FILES,), "// mcp/x.d.ts", id="declarations"),
    pytest.param(show.show_table, (("a", "b"), [("1", "2")]), "1", id="table"),
    pytest.param(show.show_check, (Check("store", "failed", "no room", "Make room."),), "Make room.", id="check"),
]
ON_STDERR = [
    pytest.param(show.show_status, (COMPLETED,), "completed in 0.0 ms", id="status"),
    pytest.param(show.show_telemetry, (TELEMETRY,), "3 tools", id="telemetry"),
]


@requirement("cli:output:streams", "cli:output:plain")
@pytest.mark.parametrize(("function", "arguments", "text"), ON_STDOUT)
def test_what_was_asked_for_is_on_stdout(function: Callable[..., None], arguments: tuple[Any, ...], text: str) -> None:
    rich_out, rich_err = shown(rich=True, function=function, arguments=arguments)
    plain_out, plain_err = shown(rich=False, function=function, arguments=arguments)

    assert text in re.sub(r"\x1b\[[0-9;]*m", "", rich_out)
    assert text in plain_out
    assert (rich_err, plain_err) == ("", "")
    assert "\x1b[" in rich_out
    assert not re.search(r"[\x1b│─╭✓✗]", plain_out)


@requirement("cli:output:streams", "cli:output:plain")
@pytest.mark.parametrize(("function", "arguments", "text"), ON_STDERR)
def test_what_is_said_about_a_run_is_on_stderr_unless_quiet(
    function: Callable[..., None], arguments: tuple[Any, ...], text: str
) -> None:
    rich_out, rich_err = shown(rich=True, function=function, arguments=arguments)
    plain_out, plain_err = shown(rich=False, function=function, arguments=arguments)

    assert text in re.sub(r"\x1b\[[0-9;]*m", "", rich_err)
    assert text in plain_err
    assert (rich_out, plain_out) == ("", "")
    assert not re.search(r"[\x1b│─╭✓✗]", plain_err)
    for rich in (True, False):
        assert shown(rich=rich, quiet=True, function=function, arguments=arguments) == ("", "")


@requirement("cli:trace:tree")
@pytest.mark.parametrize("rich", [True, False])
def test_a_trajectory_goes_where_it_is_asked_for(rich: bool) -> None:
    def trace(terminal: Terminal, *, on_stdout: bool) -> None:
        show.show_trajectory(terminal, TRAJECTORY, inputs=False, on_stdout=on_stdout)

    asked = shown(rich=rich, quiet=True, function=lambda terminal: trace(terminal, on_stdout=True), arguments=())
    beside = shown(rich=rich, function=lambda terminal: trace(terminal, on_stdout=False), arguments=())
    quiet = shown(rich=rich, quiet=True, function=lambda terminal: trace(terminal, on_stdout=False), arguments=())

    assert "cm_1" in asked[0]
    assert "cm_1" in beside[1]
    assert (asked[1], beside[0], quiet) == ("", "", ("", ""))


@requirement("cli:catalog:list")
def test_what_is_wrong_with_a_catalog_is_in_the_picture_on_a_terminal_and_on_stderr_in_a_pipe() -> None:
    rich_out, rich_err = shown(rich=True, function=show.show_catalog, arguments=(LISTING,))
    plain_out, plain_err = shown(rich=False, function=show.show_catalog, arguments=(LISTING,))

    assert "MCP server gone [offline]" in rich_out
    assert rich_err == ""
    assert plain_out == "ID              DESCRIPTION\nclient:app:add  Add two numbers.\n"
    assert plain_err.splitlines() == [
        "MCP server gone [offline], from x: It is not there.",
        "client:app:then (reserved): taken",
        "1 tool (client 1); there is no codemode.toml here",
    ]


def test_an_empty_catalog_has_no_table() -> None:
    empty = LISTING | {"tools": [], "size": 0, "sources": {}, "notes": [], "failures": []}

    assert shown(rich=False, function=show.show_catalog, arguments=(empty,)) == (
        "", "0 tools; there is no codemode.toml here\n",
    )  # fmt: skip


@requirement("cli:errors:layout")
def test_an_error_is_shown_even_when_quiet() -> None:
    report = report_of_usage("No such option: --x", "codemode run")

    for rich in (True, False):
        out, err = shown(rich=rich, quiet=True, function=show.show_error, arguments=(report,))
        assert out == ""
        assert "No such option: --x" in err


@requirement("cli:catalog:types")
def test_one_file_of_declarations_is_printed_as_it_is() -> None:
    out, _ = shown(rich=False, function=show.show_declarations, arguments=(FILES[:1],))

    assert out == "type A = 1;\n"


@requirement("cli:output:harmless")
def test_a_text_is_raw_in_a_pipe_and_harmless_on_a_terminal() -> None:
    hostile = COMPLETED | {"value": None, "output": [{"type": "text", "text": "\x1b[2J"}, {"type": "json", "value": 1}]}

    assert shown(rich=False, function=show.show_outputs, arguments=(hostile,))[0] == "\x1b[2J\n1\n"
    assert "\x1b[2J" not in shown(rich=True, function=show.show_outputs, arguments=(hostile,))[0]
