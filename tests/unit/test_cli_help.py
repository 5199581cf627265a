"""The page of help that is written by hand says what the commands are; the rooms are loaded one by one."""

import inspect
import io
import sys
from typing import Any

import pytest
import typer

from codemode.__main__ import main
from codemode.cli.app import app
from codemode.cli.group import LazyGroup
from codemode.cli.options import examples
from codemode.cli.overview import COMMANDS, ROOMS, is_asked_for, overview, paint
from codemode.cli.terminal import Terminal
from tests.requirements import requirement
from tests.support.streams import Stream

GROUP: Any = typer.main.get_command(app)
BOLD, CYAN, END = "\x1b[1m", "\x1b[36m", "\x1b[0m"


def context_of(*, terminal: bool, **environ: str) -> typer.Context:
    world = Terminal(Stream(terminal=terminal), Stream(), environ)
    return typer.Context(GROUP, info_name="codemode", obj=world, help_option_names=["-h", "--help"])


def leaves() -> list[Any]:
    """Return every command, those of `catalog` for itself."""
    context = context_of(terminal=False)
    commands = [GROUP.get_command(context, name) for name in GROUP.list_commands(context)]
    return [leaf for command in commands for leaf in getattr(command, "commands", {"": command}).values()]


# What is on the page


@requirement("cli:help:examples")
def test_every_command_has_a_sentence_and_examples() -> None:
    assert len(leaves()) >= 16
    for command in leaves():
        assert "\nExamples:\n" in str(command.epilog), command.name
        assert inspect.cleandoc(command.help or ""), command.name
    assert examples("codemode runs") == "\b\nExamples:\n  codemode runs"


@requirement("cli:start:overview")
def test_the_overview_names_every_command_of_every_room() -> None:
    context = context_of(terminal=False)

    assert GROUP.list_commands(context) == list(ROOMS)
    for name in ROOMS:
        assert GROUP.get_command(context, name).name == name
    assert all(len(line) <= 80 for line in overview().splitlines())
    for commands in COMMANDS.values():
        for name, (_, summary) in commands.items():
            assert f"\n  {name:<14} {summary}\n" in overview()
            assert summary.endswith(".")


@requirement("cli:start:overview")
def test_the_overview_shows_every_option_with_its_help() -> None:
    context = context_of(terminal=False)
    section = overview().partition("Options:\n")[2].partition("\n\nExamples:")[0]
    records = [option.get_help_record(context) for option in GROUP.get_params(context)]

    shown = " ".join(section.split())
    assert shown == " ".join(f"{names} {help_}" for names, help_ in records)


def test_there_is_no_command_beside_those_of_the_overview() -> None:
    assert GROUP.get_command(context_of(terminal=False), "list") is None


# How it looks


def test_a_terminal_sees_headings_and_terms() -> None:
    page = GROUP.get_help(context_of(terminal=True))

    assert f"{BOLD}Usage:{END} codemode" in page
    assert f"{BOLD}Set-up:{END}\n  {CYAN}init{END}   " in page
    assert f"  {CYAN}-m, --manifest FILE{END}  " in page
    assert "\n  codemode run -e" in page


def test_the_help_of_a_command_is_painted_too() -> None:
    context = context_of(terminal=True)
    group = GROUP.get_command(context, "catalog")
    for command in (GROUP.get_command(context, "run"), group, group.commands["lint"]):
        page = command.get_help(typer.Context(command, info_name=command.name, parent=context))
        assert f"{BOLD}Options:{END}\n" in page
        assert f"  {BOLD}Examples:{END}\n" in page


@requirement("cli:output:no-color")
def test_no_color_leaves_the_headings_bold_and_nothing_else() -> None:
    page = GROUP.get_help(context_of(terminal=True, NO_COLOR="1"))

    assert BOLD in page
    assert CYAN not in page
    assert page.replace(BOLD, "").replace(END, "") == overview()


@requirement("cli:output:plain")
def test_a_pipe_gets_the_page_as_it_is() -> None:
    assert GROUP.get_help(context_of(terminal=False)) == overview()


def test_what_stands_in_an_example_is_no_term() -> None:
    assert paint("  a word here\n  -x  yes\n  codemode run -x", colour=True) == (
        f"  a word here\n  {CYAN}-x{END}  yes\n  codemode run -x"
    )


# When it is asked for


@pytest.mark.parametrize(
    ("line", "asked"),
    [("--help", True), ("-h", True), ("", False), ("run --help", False), ("--quiet --help", False), ("-hq", False)],
)
def test_only_a_help_flag_alone_is_shown_without_the_parser(line: str, asked: bool) -> None:
    assert is_asked_for(line.split()) is asked


@requirement("cli:start:overview")
def test_the_page_is_printed_by_the_console_entry(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["codemode", "--help"])

    assert main() == 0
    assert capfd.readouterr() == (overview() + "\n", "")


@requirement("cli:errors:no-traceback")
def test_a_page_that_cannot_be_written_is_one_sentence(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

        def fileno(self) -> int:
            return 9_999

    monkeypatch.setattr("codemode.cli.terminal._forget", lambda _stream: None)
    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(sys, "argv", ["codemode", "-h"])

    assert main() == 1
    assert capfd.readouterr().err == "error: the output could not be written: No space left on device\n"


@requirement("cli:start:one-room")
def test_a_command_is_built_once_and_alone() -> None:
    group = LazyGroup(name="codemode")
    context = context_of(terminal=False)
    first = group.get_command(context, "doctor")

    assert group.get_command(context, "doctor") is first
    assert list(group.commands) == ["doctor"]


@requirement("cli:quiet:errors-only", "cli:verbose:events")
def test_every_command_takes_quiet_and_verbose() -> None:
    for command in leaves():
        taken = {option for parameter in command.params for option in parameter.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= taken, command.name


def test_no_summary_of_a_command_is_cut() -> None:
    context = context_of(terminal=False)
    catalog = GROUP.get_command(context, "catalog")
    page = catalog.get_help(typer.Context(catalog, info_name="catalog", parent=context))

    assert "\n  describe  Show one tool: what it does, how it is called, what it takes.\n" in page
    assert "..." not in page.partition("Commands:")[2]
