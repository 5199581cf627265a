"""The REPL in front of everything that a cell can reach at once: tools, an MCP server, a plugin's namespace."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.cells import FIXTURES, clean_environment
from tests.support.person import CTRL_C, TAB, Person

SERVER = FIXTURES / "servers" / "shelf.py"
MANIFEST = f"""
[tools.codeMode]
enabled = true

[[plugin]]
module = "desk"

[[tool]]
name = "greet"
description = "Say hello."
value = "hello"

[mcp.servers.shelf]
command = "{sys.executable}"
args = ["{SERVER}"]
"""


@pytest.fixture(params=[80, 160])
def person(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Person]:
    """Somebody in front of a desk, a shelf of books and a greeting."""
    (tmp_path / "codemode.toml").write_text(MANIFEST, encoding="utf-8")
    shutil.copy(FIXTURES / "manifests" / "plugins" / "desk.py", tmp_path)
    environment = clean_environment(tmp_path / "state") | {"DESK_LOG": str(tmp_path / "desk.log")}
    with Person(["repl"], environment, tmp_path, columns=request.param) as somebody:
        yield somebody


@requirement("repl:greeting:reach")
def test_the_greeting_says_how_all_that_is_there_is_reached(person: Person) -> None:
    person.sees_prompt(1)
    greeting = person.display.text().partition("[1]>")[0]

    assert "11 tools. :help lists commands" in greeting
    assert "\n7 MCP tools: MCP.shelf.TOOL(input); ALL_TOOLS leaves them out\n" in greeting
    assert "\nplugins bring Desk; :tools says what that is\n" in greeting


@requirement("repl:completion:names", "repl:completion:keys")
def test_servers_and_namespaces_complete_alike(person: Person) -> None:
    """A namespace is opened while the first keys are pressed: who asks too early asks again."""
    person.sees_prompt(1)
    person.types("MCP.sh")
    person.sees("7 tools of shelf")
    person.types(TAB + ".find")
    person.sees("findBooks", "Find books by author.")
    person.types(TAB + "({")
    person.sees("string, required · Part of the author's name")
    person.types(CTRL_C)
    person.sees_prompt(1)
    person.types("Des")
    person.sees("The support desk and its tickets.")
    person.types(CTRL_C)
    person.runs(1, "1")
    person.types("Desk.")
    person.sees("list", "The tickets of the support desk.", "Change a ticket.", "onCall")
    person.types("onCall.esc")
    person.sees("Ask the person on call to take a ticket.")
    person.types(CTRL_C)
    person.sees_prompt(2)
    person.types("Desk.list({")
    person.sees('"open" | "waiting" | "closed"')


@requirement("repl:completion:names", "namespaces:scope:once")
def test_a_namespace_is_opened_once_for_the_session_and_works(person: Person, tmp_path: Path) -> None:
    person.runs(1, "(await Desk.list({state: 'waiting'}))[0].number")
    screen = person.runs(2, "Desk.queue")

    assert "\n9\n" in screen
    assert '\n"support"\n' in screen
    assert (tmp_path / "desk.log").read_text(encoding="utf-8") == "scope\n"


@requirement("repl:commands:table")
def test_commands_know_namespaces_and_calls(person: Person) -> None:
    for command, *shown in (
        (":tools desk", "plugin desk", "namespace", "The support desk and its tickets."),
        (":describe MCP.shelf.findBooks", "mcp:shelf:find_books", "call  MCP.shelf.findBooks(input)"),
        (":describe tools.greet", "client:app:greet", "Say hello."),
        (":help", "await MCP.SERVER.TOOL(input)", "ALL_TOOLS leaves these out"),
    ):
        answer = person.asks(1, command)
        assert [text for text in shown if text not in answer] == []
