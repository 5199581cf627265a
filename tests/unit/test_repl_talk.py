"""How the REPL talks: what it prints, what it asks, what its commands do, how it reads lines, when it ends."""

import asyncio
import io
import os
import signal
from pathlib import Path

import pytest

from codemode.core.errors import Aborted, InvalidInput
from codemode.core.events import CallParked, CallStarted, ExecStarted
from codemode.core.types import Completed, Failed, OutputItem
from codemode.repl import states as states_module
from codemode.repl.cells import Cell
from codemode.repl.commands import COMMANDS, Commands, Desk, Leave, find_command
from codemode.repl.driver import Driver, Stage
from codemode.repl.evaluator import Evaluated, Evaluator
from codemode.repl.interrupts import Interrupts
from codemode.repl.loop import Repl
from codemode.repl.printer import Printer
from codemode.repl.reader import Input, LineReader
from codemode.repl.record import Record
from codemode.repl.saving import read_file, write_file
from codemode.repl.states import State
from codemode.repl.syntax import Verdict
from codemode.repl.ticker import Ticker
from tests.requirements import requirement
from tests.support.repl import (
    BracketJudge,
    RecordingLookup,
    RecordingScreen,
    ScriptedEngine,
    ScriptedReader,
    completed,
    waiting,
)

CELL = Cell(3, "1 +\nfail()")
WHOLE = Verdict("complete")


def failed(run_id: str | None = "cm_f") -> Failed:
    return Failed("Error: no (cell.js:2:1)", None, "guest", False, run_id, (OutputItem("text", "before"),), {})


class Room:
    """A REPL with a scripted engine and reader, and everything that can be looked at."""

    def __init__(self, *results, inputs=(), answers=()) -> None:
        self.engine = ScriptedEngine(*results)
        self.screen, self.lookup, self.record = RecordingScreen(), RecordingLookup(), Record()
        self.evaluator = Evaluator(self.engine)
        self.printer = Printer(self.screen)
        self.reader = ScriptedReader(inputs, answers)
        self.aborted: list[str] = []
        self.warnings: list[str] = []
        self.interrupts = Interrupts()
        ticker = Ticker(self.record, None)
        stage = Stage(
            self.evaluator, self.printer, self.reader, self.record, ticker, self.interrupts, self.aborted.append
        )
        self.driver = Driver(stage)
        desk = Desk(
            self.driver, self.interrupts, self.evaluator, self.record, self.screen, self.lookup, BracketJudge(),
            self.aborted.append,
        )  # fmt: skip
        self.commands = Commands(desk)
        self.repl = Repl(self.reader, self.driver, self.commands, self.printer, self.warnings)

    async def command(self, line: str) -> str:
        with self.interrupts:
            await self.commands.run(line)
        return self.screen.all()

    async def go(self, *, alone: bool = False):
        with self.interrupts:
            return await self.repl.run(to_first_failure=alone, declare=lambda: None)


# Printing


@requirement("repl:value:prints")
def test_outputs_come_before_the_value_and_null_says_nothing() -> None:
    screen = RecordingScreen()
    printer = Printer(screen)
    printer.result(Evaluated(completed("cm_1", {"a": 1}, "one", "two"), CELL))
    printer.result(Evaluated(completed("cm_1", None), CELL))

    assert screen.shown == ["text one", "text two", "value {'a': 1}"]


@requirement("repl:output:streams")
def test_what_was_streamed_is_not_printed_again() -> None:
    screen = RecordingScreen()
    printer = Printer(screen)
    outputs = (OutputItem("text", "one"), OutputItem("json", [2]), OutputItem("text", "three"))
    printer.stream(outputs[:1])
    printer.stream(outputs[:2])
    printer.result(Evaluated(Completed("cm_1", 5, outputs, {}), CELL))
    printer.stream(outputs[:1])

    assert screen.shown == ["text one", "value [2]", "text three", "value 5", "text one"]


@requirement("repl:errors:go-on")
def test_an_error_shows_the_line_of_the_cell_under_the_number_of_the_prompt() -> None:
    screen = RecordingScreen()
    Printer(screen).result(Evaluated(failed(), CELL))

    assert screen.shown[0] == "text before"
    assert screen.shown[1].splitlines() == ["error: Error: no", "  at [3]:2:1", "  1 | 1 +", "  2 | fail()", "    | ^"]


def test_a_cell_that_waits_says_what_for_and_how_to_go_on() -> None:
    screen = RecordingScreen()
    printer = Printer(screen)
    printer.result(Evaluated(waiting("cm_1"), CELL))
    printer.result(Evaluated(waiting("cm_1", "4", state="running"), CELL))
    printer.result(Evaluated(waiting("cm_1", "5"), CELL, True))

    assert screen.shown == [
        "note the cell yielded; :wait goes on with it",
        "note   4  plugin:billing:refund  running",
        "note the cell waits for 1 open call; :wait goes on with it",
        "note   5  plugin:billing:refund  awaiting approval",
        "note the cell waits for 1 open call; :approve or :deny decides",
        "note variables are now those of cell [3]; :undo goes back to the later cells",
    ]


# Asking


def park(room: Room, call_id: int, reason: str | None = None) -> None:
    given = {"order": f"o-{call_id}"}
    room.record.hear(CallParked("cm_1", 1.0, call_id, "call", "plugin:billing:refund", given, reason))


@requirement("repl:approvals:in-place", "approvals:run:shown")
async def test_a_person_is_asked_about_each_call_with_its_input_and_why_a_hook_asks() -> None:
    room = Room(waiting("cm_1", "1", "2"), completed("cm_1", "done"), inputs=["pay()"], answers=["maybe", "Yes", "n"])
    park(room, 1)
    park(room, 2, "a large sum")
    await room.go()

    assert room.engine.decided == [{"1": True, "2": False}]
    assert room.reader.discarded == 2  # before each question, and not before it is asked once more
    assert room.screen.shown == [
        "note plugin:billing:refund wants to run (call 1), with",
        "value {'order': 'o-1'}",
        "note plugin:billing:refund wants to run (call 2), with",
        "value {'order': 'o-2'}",
        "note a hook asks: a large sum",
        "value 'done'",
    ]


@requirement("repl:approvals:in-place")
async def test_a_decision_can_be_put_off_and_made_later() -> None:
    room = Room(
        waiting("cm_1", "1", "2"), waiting("cm_1", "2"), completed("cm_1", 7),
        inputs=["pay()", ":approve"], answers=["y", "later"],
    )  # fmt: skip
    await room.go()

    assert room.engine.decided == [{"1": True}, {"2": True}]
    assert "note   2  plugin:billing:refund  awaiting approval" in room.screen.shown
    assert room.screen.shown[-1] == "value 7"


@requirement("repl:approvals:in-place")
@pytest.mark.parametrize("answer", ["", EOFError()])
async def test_no_answer_leaves_the_run_waiting(answer) -> None:
    room = Room(waiting("cm_1", "1"), inputs=["pay()"], answers=[answer])
    await room.go()

    assert (room.engine.decided, list(room.evaluator.waiting)) == ([], ["cm_1"])
    assert room.screen.shown[-1] == "note it waits; :approve and :deny decide"


@requirement("repl:approvals:in-place", "repl:ctrl-c:aborts")
async def test_ctrl_c_at_a_question_aborts_the_run() -> None:
    room = Room(waiting("cm_1", "1"), completed("cm_2"), inputs=["pay()", "2"], answers=[KeyboardInterrupt()])
    await room.go()

    assert (room.aborted, room.evaluator.waiting) == (["cm_1"], {})
    assert room.engine.bases == [None, None]


@requirement("repl:approvals:always")
async def test_an_approval_can_hold_for_the_session_and_be_taken_back() -> None:
    room = Room(
        waiting("cm_1", "1", "2"), completed("cm_1"), waiting("cm_2", "3"), completed("cm_2"), waiting("cm_3", "4"),
        completed("cm_3"), inputs=["pay()", "pay()", ":ask", "pay()"], answers=["a", "n"],
    )  # fmt: skip
    await room.go()
    notes = [shown for shown in room.screen.shown if "wants to run" not in shown and shown.startswith("note")]

    assert room.engine.decided == [{"1": True, "2": True}, {"3": True}, {"4": False}]
    assert room.engine.always == [True, True, False]
    assert notes == [
        "note 1 call of plugin:billing:refund approved: you said always",
        "note plugin:billing:refund runs without asking until you leave; :ask asks again",
        "note 1 call of plugin:billing:refund approved: you said always",
        "note plugin:billing:refund will be asked about again",
    ]


@requirement("repl:approvals:always")
@pytest.mark.parametrize("leaves", [EOFError(), KeyboardInterrupt()])
async def test_a_question_that_is_left_remembers_nothing(leaves: BaseException) -> None:
    room = Room(waiting("cm_1", "1", "2"), inputs=["pay()"])
    room.reader._answers = iter(["a", leaves])
    both = waiting("cm_1", "1", "2")
    room.engine._results = [both._replace(pending=(both.pending[0], both.pending[1]._replace(tool_id="client:a:b")))]
    await room.go()

    assert (room.engine.decided, room.driver.approvals.always) == ([], set())


@requirement("repl:approvals:always")
async def test_what_is_approved_always_with_something_else_is_not_approved_with_it() -> None:
    """The run would take `always` for all calls that one wait approves."""
    both = waiting("cm_1", "1", "2")
    mixed = both._replace(pending=(both.pending[0], both.pending[1]._replace(tool_id="client:a:b")))
    room = Room(mixed, completed("cm_1"), inputs=["pay()"], answers=["a", "y"])
    await room.go()

    assert (room.engine.decided, room.engine.always) == ([{"1": True, "2": True}], [False])
    assert room.driver.approvals.always == {"plugin:billing:refund"}


@requirement("repl:approvals:always")
async def test_a_call_that_waits_is_approved_always() -> None:
    room = Room(waiting("cm_1", "1"), completed("cm_1", 7), inputs=["pay()", ":approve --always 1"], answers=["l"])
    await room.go()

    assert (room.engine.decided, room.engine.always) == ([{"1": True}], [True])
    assert [word.text for word in room.commands.words("remembered")] == ["plugin:billing:refund"]
    assert next(iter(room.commands.words("approval"))).text == "--always"


# The loop


@requirement("repl:errors:go-on")
async def test_with_a_person_nothing_that_fails_ends_the_loop() -> None:
    room = Room(failed(), completed("cm_2", 2), inputs=["bad()", ":nothing", KeyboardInterrupt(), "  ", "2"])

    assert await room.go() is None
    assert "there is no command :nothing" in room.screen.all()
    assert room.screen.shown[-1] == "value 2"


@requirement("repl:pipe:status")
async def test_without_a_person_the_first_failure_ends_it() -> None:
    assert await Room(failed(), inputs=["bad()", "2"]).go(alone=True) == failed()
    assert isinstance(await Room(inputs=[":nothing", "2"]).go(alone=True), InvalidInput)
    assert isinstance(await Room(inputs=[KeyboardInterrupt()]).go(alone=True), Aborted)
    assert await Room(completed("cm_1"), waiting("cm_2"), inputs=["1", "2"]).go(alone=True) is None


@requirement("repl:ctrl-c:aborts")
async def test_a_cell_that_has_not_begun_is_given_up_with_ctrl_c() -> None:
    room = Room(inputs=["1"])

    async def hang(raw, *, keep):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    room.engine.exec = hang
    assert await room.go() is None
    assert (room.engine.stopped, room.screen.shown) == (1, ["note aborted"])


@requirement("repl:ctrl-c:aborts")
async def test_ctrl_c_ends_a_long_printing_and_nothing_else() -> None:
    room = Room(completed("cm_1", 1), completed("cm_2", 2), inputs=["1", "2"])
    room.screen.value = lambda _value: os.kill(os.getpid(), signal.SIGINT)
    assert await room.go() is None

    assert room.screen.shown == ["note … the rest was not printed"] * 2


async def test_what_breaks_beside_the_loop_is_told_before_the_next_input() -> None:
    room = Room(inputs=["  ", "  "])
    asyncio.get_running_loop().call_soon(lambda: {}["lost"])
    original = room.reader.read

    async def read(number):
        await asyncio.sleep(0)
        return await original(number)

    room.reader.read = read
    await room.go()
    asyncio.get_running_loop().set_exception_handler(None)

    assert "KeyError: 'lost'" in room.screen.all()


# Commands


@requirement("repl:commands:table")
async def test_every_command_of_the_contract_is_there() -> None:
    promised = (
        "help tools search describe types wait approve deny abort trace stats payload undo fresh load save quit redo"
    )

    assert set(promised.split()) <= {command.name for command in COMMANDS}
    assert set(Room().commands._handlers) == {command.name for command in COMMANDS}


@requirement("repl:commands:table")
def test_a_command_is_found_by_its_beginning_and_refused_with_a_near_one() -> None:
    assert find_command("q").name == "quit"
    assert find_command("undo").name == "undo"
    assert (find_command("sav").name, find_command("save!").name) == ("save", "save!")
    for name, says in (("t", ":tools or :types or :trace"), ("serach", "Did you mean :search"), ("", "no command :.")):
        with pytest.raises(InvalidInput, match=says):
            find_command(name)


async def test_help_lists_commands_and_keys_or_explains_one() -> None:
    shown = await Room().command(":help")

    assert ":save FILE [CELLS] | write the last cell" in shown
    assert "await MCP.SERVER.TOOL(input) | call an MCP tool; ALL_TOOLS leaves these out" in shown
    assert "Ctrl-D | leave" in shown
    assert (await Room().command(":help :undo")).startswith("note :undo\nnote   go back to the variables")


async def test_what_is_asked_of_the_catalog_is_passed_on() -> None:
    room = Room()
    for line in (":tools ord", ":search open orders", ":describe x", ":types", ":payload gemini"):
        await room.command(line)

    assert room.lookup.asked == [
        ("tools", "ord"), ("search", "open orders"), ("describe", "x"), ("types", ""), ("payload", "gemini"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (":undo", "no cell to undo"), (":redo", "nothing was undone"), (":wait", "no run of this session waits"),
        (":abort", "no run of this session waits"), (":approve", "no call awaits approval"),
        (":deny 4", 'no call "4" awaits approval'), (":trace", "nothing to trace"), (":trace cm_x", '"cm_x" was seen'),
        (":stats", "nothing to count"), (":fresh maybe", "neither on nor off"), (":language perl", "no language"),
        (":save", "name of a file"), (":save x.js", "nothing to save"), (":load", "name of a file"),
        (":ask", "asked about already"), (":approve --always", "no call awaits"), (":approve 3 4", 'no call "3 4"'),
        (":load /nowhere/x.js", "cannot be read: No such file"),
    ],
)  # fmt: skip
async def test_a_command_that_means_nothing_now_says_why(line: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await Room().command(line)


@requirement("repl:undo:state", "repl:redo:state")
async def test_undo_and_redo_say_where_the_variables_are() -> None:
    room = Room()
    room.evaluator.states.push(State(b"x", 4))

    assert "before cell [4]" in await room.command(":undo")
    assert "after cell [4]" in await room.command(":redo")


@requirement("repl:undo:bounded")
async def test_undo_says_where_the_kept_states_end(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    with pytest.raises(InvalidInput, match=r"there is no cell to undo$"):
        await room.command(":undo")
    monkeypatch.setattr(states_module, "MAX_STATES", 1)
    room.evaluator.states.push(State(b"x", 1))
    room.evaluator.states.push(State(b"y", 2))
    await room.command(":undo")
    with pytest.raises(InvalidInput, match="no cell to undo: no more than 100 cells, or 128 MB of their variables"):
        await room.command(":undo")


@requirement("repl:commands:habits")
async def test_words_of_other_shells_mean_commands_unless_a_cell_declared_them() -> None:
    assert await Room(inputs=["exit", "never"]).go() is None
    assert await Room(inputs=["quit()", "never"]).go() is None
    room = Room(inputs=["help"])
    await room.go()
    assert ":undo | go back" in room.screen.all()
    declared = Room(completed("cm_1", 1), inputs=["help"])
    declared.evaluator.states.push(State(b"x", 1, frozenset({"help"})))
    await declared.go()
    assert declared.screen.shown == ["value 1"]


@requirement("repl:fresh:own-vm")
async def test_fresh_is_switched_on_and_off() -> None:
    room = Room()
    states = []
    for line in (":fresh", ":fresh", ":fresh on", ":fresh on", ":fresh off"):
        await room.command(line)
        states.append(room.evaluator.fresh)

    assert states == [True, False, True, True, False]


async def test_the_language_is_shown_and_changed() -> None:
    room = Room()
    shown = await room.command(":language typescript")

    assert (room.evaluator.language, shown) == ("typescript", "note cells are read as typescript")
    assert (await room.command(":language")).endswith("note cells are read as typescript")


async def test_a_run_that_waits_goes_on_is_decided_or_is_aborted() -> None:
    room = Room(waiting("cm_1"), waiting("cm_2", "7"), completed("cm_1", 1), completed("cm_2", 2), inputs=["1", "2"])
    await room.go()
    await room.command(":wait cm_1")
    await room.command(":deny 7")

    assert room.engine.decided == [{}, {"7": False}]
    assert room.screen.shown[-2:] == ["value 1", "value 2"]


async def test_the_latest_run_that_waits_is_aborted() -> None:
    room = Room(waiting("cm_1"), waiting("cm_2"), inputs=["1", "2"])
    await room.go()
    await room.command(":abort")

    assert (room.aborted, list(room.evaluator.waiting)) == (["cm_2"], ["cm_1"])


@requirement("repl:completion:commands")
async def test_commands_know_what_their_arguments_can_be() -> None:
    room = Room(waiting("cm_1", "7"), inputs=["1"])
    await room.go()
    offered = {
        kind: [word.text for word in room.commands.words(kind)]
        for kind in ("run", "call", "approval", "switch", "language")
    }

    assert offered == {
        "run": ["cm_1"],
        "call": ["7"],
        "approval": ["--always", "7"],
        "switch": ["on", "off"],
        "language": ["javascript", "typescript"],
    }
    assert "openai" in [word.text for word in room.commands.words("provider")]
    assert "undo" in [word.text for word in room.commands.words("command")]


async def test_a_run_is_traced_and_the_session_counted() -> None:
    room = Room(completed("cm_1"), inputs=["1"])
    room.record.hear(ExecStarted("cm_1", 1.0, "ar_1", "javascript", "1", 0, {}, []))
    await room.go()

    assert "trajectory of ['cm_1']" in await room.command(":trace")
    assert "telemetry {'execCount': 1}" in await room.command(":stats")


@requirement("repl:save:runs")
async def test_cells_are_saved_and_loaded(tmp_path: Path) -> None:
    room = Room(completed("cm_1"), completed("cm_2"), completed("cm_3", 3), inputs=["let a = 1", "a; let a = 2"])
    await room.go()
    room.evaluator._completed[:] = [cell._replace(names=("a",)) for cell in room.evaluator._completed]
    file = tmp_path / "new" / "cells.ts"
    shown = await room.command(f":save {file} all")
    await room.command(f":load {file}")

    assert file.read_text() == "let a = 1\n\na; let a = 2\n"
    assert "more than one of these cells declares a" in shown
    assert room.evaluator.completed[-1].language == "typescript"


def test_what_is_no_text_cannot_be_loaded(tmp_path: Path) -> None:
    image = tmp_path / "image.png"
    image.write_bytes(b"\x89PNG\xff")
    for path, says in ((Path("/dev/zero"), "is no file"), (tmp_path, "is no file"), (image, "no text in UTF-8")):
        with pytest.raises(InvalidInput, match=says):
            read_file(path)


async def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    room = Room(completed("cm_1"), inputs=["1"])
    await room.go()
    for line in (f":save {tmp_path}", f":save! {tmp_path}"):
        with pytest.raises(InvalidInput, match="is no file; give the name of one"):
            await room.command(line)
    with pytest.raises(InvalidInput, match="cannot be written: File exists"):
        await room.command(":save /dev/null/x.js")


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@requirement("repl:save:refuses")
async def test_a_file_that_is_there_stays_until_it_is_to_be_replaced(tmp_path: Path) -> None:
    room = Room(completed("cm_1"), completed("cm_2"), inputs=["1", "2"])
    await room.go()
    file, link = tmp_path / "check.js", tmp_path / "link.js"
    file.write_text("// @value 41\nreturn 41\n", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    for name in (file, link):
        with pytest.raises(InvalidInput, match=f'"{name}" is there already; :save! {name} 1 replaces it'):
            await room.command(f":save {name} 1")
    assert file.read_text(encoding="utf-8") == "// @value 41\nreturn 41\n"
    await room.command(f":save! {link} 1")

    assert file.read_text(encoding="utf-8") == "1\n"
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o640)
    assert names_in(tmp_path) == ["check.js", "link.js"]
    await room.command(f":save! {tmp_path / 'new.js'}")
    assert (tmp_path / "new.js").read_text(encoding="utf-8") == "2\n"


@requirement("repl:save:refuses")
def test_a_replacement_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "check.js"
    file.write_text("kept", encoding="utf-8")
    with pytest.raises(InvalidInput, match="surrogates not allowed"):
        write_file(file, "half \ud800", replace=True)

    assert (names_in(tmp_path), file.read_text(encoding="utf-8")) == (["check.js"], "kept")


async def test_quit_leaves() -> None:
    with pytest.raises(Leave):
        await Room().command(":quit")
    assert await Room(inputs=[":q", "never"]).go() is None


# Reading lines


class Lines:
    """A reader of lines on a pipe, with a judge and what was prompted."""

    def __init__(self, data: bytes, *, at_end: bool = True) -> None:
        self.theirs, self.ours = os.pipe()
        os.write(self.ours, data)
        if at_end:
            os.close(self.ours)
        self.prompted: list[str] = []
        self.judge = BracketJudge()
        self.reader = LineReader(self.theirs, self.judge, lambda: "javascript", Interrupts(), self.prompted.append)


@requirement("repl:pipe:lines")
async def test_lines_are_gathered_until_they_are_whole() -> None:
    lines = Lines(b"1 + 1\r\nf({\n  a: 1\n})\n\n:undo \nlast")
    inputs = [await lines.reader.read(12) for _ in range(5)]

    assert [given.text for given in inputs] == ["1 + 1", "f({\n  a: 1\n})", "", ":undo", "last"]
    assert [given.verdict for given in inputs] == [WHOLE, WHOLE, None, None, WHOLE]
    assert lines.prompted[:4] == ["[12]> ", "[12]> ", "....> ", "....> "]
    with pytest.raises(EOFError):
        await lines.reader.read(1)
    assert lines.prompted[-2:] == ["[1]> ", "\n"]  # so that the shell's own prompt begins a line


@requirement("repl:approvals:typed-ahead")
async def test_what_a_pipe_holds_is_no_typing() -> None:
    lines = Lines(b"1\nyes\n")
    await lines.reader.read(1)
    lines.reader.discard()

    assert await lines.reader.ask("sure?") == "yes"


@requirement("repl:pipe:lines")
async def test_half_an_input_at_the_end_is_run_as_it_is() -> None:
    assert await Lines(b"f({\n  a").reader.read(1) == Input("f({\n  a", Verdict("incomplete"))


@requirement("repl:pipe:lines")
@pytest.mark.parametrize("name", ["cells.js", "/dev/null"])
async def test_a_file_and_nothing_at_all_are_read_too(name: str, tmp_path: Path) -> None:
    path = tmp_path / name if name != "/dev/null" else Path(name)
    if name != "/dev/null":
        path.write_bytes("text('é')".encode())
    with path.open("rb") as file:
        reader = LineReader(file.fileno(), BracketJudge(), lambda: "javascript", Interrupts())
        if name == "/dev/null":
            with pytest.raises(EOFError):
                await reader.read(1)
        else:
            assert (await reader.read(1)).text == "text('é')"


async def test_an_answer_is_one_line() -> None:
    assert await Lines(b" yes \nno\n").reader.ask("sure?") == "yes"


@requirement("repl:ctrl-c:clears")
async def test_ctrl_c_gives_up_the_line_that_is_awaited() -> None:
    lines = Lines(b"", at_end=False)
    asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGINT)
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        await lines.reader.read(1)
    os.write(lines.ours, b"2\n")

    assert (await lines.reader.read(1)).text == "2"


# Ctrl-C and the line while a cell runs


async def test_between_the_phases_ctrl_c_does_nothing_and_afterwards_what_it_did_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    assert signal.getsignal(signal.SIGINT) is before


async def test_ctrl_c_at_the_very_end_of_a_wait_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop gives the signal back to Python, which would raise, a moment before it is ours again."""
    loop = asyncio.get_running_loop()
    give_back = loop.remove_signal_handler
    monkeypatch.setattr(
        loop, "remove_signal_handler", lambda number: (give_back(number), signal.raise_signal(signal.SIGINT))
    )
    with Interrupts() as interrupts, interrupts.calling(lambda: None):
        pass


async def test_the_line_tells_of_open_calls_and_is_taken_away_before_anything_is_printed() -> None:
    record, stream = Record(clock=lambda: 10.0), io.StringIO()
    ticker = Ticker(record, stream, clock=lambda: 12.5)
    with ticker.running():
        ticker._draw()
        for call_id in range(1, 6):
            record.hear(CallStarted("cm_1", 1.0, call_id, "call", f"plugin:shop:t{call_id}", None))
        ticker._draw()
        line = ticker.line()
        ticker.take_away()
        ticker.take_away()

    assert "running, 0.0 ms (Ctrl-C aborts)" in stream.getvalue()
    assert line.startswith("5 open calls: plugin:shop:t1 2.5 s, plugin:shop:t2 2.5 s")
    assert line.endswith("and 2 more (Ctrl-C aborts)")
    assert stream.getvalue().endswith("\r\x1b[K")
    assert stream.getvalue().count("\r\x1b[K") == 3


async def test_without_a_terminal_no_line_is_drawn() -> None:
    ticker = Ticker(Record(), None)
    with ticker.running():
        ticker.take_away()

    assert ticker.line().startswith("running")
