"""How the REPL is tied to a terminal: what it shows with the functions of the command line."""

import io
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codemode.cli.interactive import TerminalScreen, ToolboxLookup, open_repl
from codemode.cli.repl import ReplOptions
from codemode.cli.terminal import Terminal
from codemode.composition import Toolbox, open_toolbox
from codemode.core.errors import InvalidConfig, InvalidInput, UnsupportedLanguage
from codemode.render.report import report_of_error
from codemode.telemetry import fold
from codemode.trajectory import Trajectory, to_json

MANIFEST = """
[tools.codeMode]
enabled = true

[[tool]]
name = "lookup_order"
label = "Look up an order"
description = "One order by its id."
approval = "ask"
value = 1
parameters = { type = "object", required = ["id"], properties = { id = { type = "string" } } }

[[tool]]
name = "refund"
description = "Pay money back."
value = 2
"""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Stream(io.StringIO):
    """A stream that claims to be a terminal, or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class World:
    """A terminal, or two pipes, and what was written to them."""

    def __init__(self, *, terminal: bool) -> None:
        self.out, self.err = Stream(terminal=terminal), Stream(terminal=terminal)
        self.terminal = Terminal(self.out, self.err, {"TERM": "xterm"})
        self.screen = TerminalScreen(self.terminal)

    @property
    def shown(self) -> str:
        """What went to the output, without styles."""
        return _STYLE.sub("", self.out.getvalue())

    @property
    def remarked(self) -> str:
        """What went beside it, without styles."""
        return _STYLE.sub("", self.err.getvalue())


@pytest.fixture(params=[False, True], ids=["pipe", "terminal"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return World(terminal=request.param)


@pytest.fixture
async def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Toolbox]:
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "codemode.toml"
    path.write_text(MANIFEST, encoding="utf-8")
    async with open_toolbox(path) as box:
        yield box


# Values


def test_what_a_cell_put_out_goes_to_the_output_and_cannot_steer_a_terminal(world: World) -> None:
    world.screen.text("plain\x1b[31m")
    world.screen.value({"a": [1, None]})

    if world.terminal.styled_out:
        assert world.shown == 'plain\\u001b[31m\n{"a": [1, null]}\n'
    else:
        assert world.out.getvalue() == 'plain\x1b[31m\n{\n  "a": [\n    1,\n    null\n  ]\n}\n'
    assert world.remarked == ""


def test_a_folded_value_says_how_to_see_it_all() -> None:
    world = World(terminal=True)
    world.screen.value([{"n": number} for number in range(100)])

    assert "80 more of 100 rows; folded; text(_) shows all of it" in world.shown


def test_remarks_and_errors_go_beside_the_output(world: World) -> None:
    world.screen.note("by the way [not markup]")
    world.screen.error(report_of_error(InvalidInput("it is wrong")))
    world.screen.telemetry(fold(()))

    assert world.shown == ""
    assert world.remarked.startswith("by the way [not markup]\nerror [invalid_input]: it is wrong\n")
    assert "0 tools" in world.remarked


def test_tables_and_trajectories_are_what_was_asked_for(world: World) -> None:
    world.screen.table(("command", "does"), [(":undo", "go back")])
    world.screen.trajectory(to_json(Trajectory(())))

    assert ":undo" in world.shown
    assert "go back" in world.shown


# The catalog


async def test_the_catalog_is_listed_whole_or_by_a_part_of_an_id(world: World, box: Toolbox) -> None:
    lookup = ToolboxLookup(world.terminal, box)
    lookup.tools("")
    whole = world.shown
    lookup.tools("REFU")
    part = world.shown[len(whole) :]
    lookup.tools("nothing-like-it")

    assert ("lookup_order" in whole, "refund" in whole) == (True, True)
    assert ("lookup_order" in part, "refund" in part) == (False, True)
    assert 'no id has "nothing-like-it" in it; :search asks for a meaning' in world.remarked


async def test_tools_are_found_by_meaning(world: World, box: Toolbox) -> None:
    lookup = ToolboxLookup(world.terminal, box)
    lookup.search("money back")
    lookup.search("zzzz")

    assert "client:app:refund" in world.shown
    assert "nothing matches; :tools lists all there is" in world.remarked


async def test_a_tool_is_described_with_how_to_call_it(world: World, box: Toolbox) -> None:
    lookup = ToolboxLookup(world.terminal, box)
    lookup.describe("lookup_order")
    shown = world.shown

    assert "tools.lookup_order(input)" in shown
    assert "One order by its id." in shown
    assert "ask" in shown
    with pytest.raises(InvalidInput, match="Near: client:app:lookup_order"):
        lookup.describe("lookup_oder")


async def test_types_and_payload_are_those_of_the_other_commands(world: World, box: Toolbox) -> None:
    lookup = ToolboxLookup(world.terminal, box)
    lookup.types("")
    lookup.payload("")
    with pytest.raises(InvalidInput, match="no MCP server"):
        lookup.types("nobody")
    with pytest.raises(InvalidInput):
        lookup.payload("nobody")

    assert "no MCP server is visible" in world.remarked
    assert "openai: 2 tools" in world.remarked
    assert '"exec"' in world.shown


# Opening


def test_a_language_or_a_manifest_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    terminal = World(terminal=False).terminal
    with pytest.raises(UnsupportedLanguage, match="javascript and typescript"):
        open_repl(terminal, ReplOptions(language="perl"), None)
    broken = tmp_path / "codemode.toml"
    broken.write_text("tools = 5\n", encoding="utf-8")
    with pytest.raises(InvalidConfig):
        open_repl(terminal, ReplOptions(manifest=str(broken)), None)
