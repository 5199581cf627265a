"""The prompt: keys in, inputs out, through prompt-toolkit with a keyboard and a display in memory."""

import asyncio
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.validation import ValidationError

from codemode.catalog import build_catalog
from codemode.policy import Policy
from codemode.repl import history as history_module
from codemode.repl.evaluator import Evaluator
from codemode.repl.history import PrivateHistory
from codemode.repl.lexer import CellLexer
from codemode.repl.prompt import Parts, PromptReader
from codemode.repl.reader import Input
from codemode.repl.record import Record
from codemode.repl.states import State
from codemode.repl.syntax import Verdict
from codemode.repl.toolbar import Toolbar
from codemode.repl.validator import CellValidator
from codemode.repl.vocabulary import Vocabulary
from tests.requirements import requirement
from tests.support.person import ALT_ENTER, CTRL_C, CTRL_D, CTRL_E, CTRL_X, ENTER, TAB, UP, pasted
from tests.support.repl import BracketJudge, ScriptedEngine, catalog_with_everything, waiting

WHOLE = Verdict("complete")


class Desk:
    """A reader with its keyboard; `reads` gives what comes of keys."""

    def __init__(self, keyboard: PipeInput, folder: Path) -> None:
        self.keyboard = keyboard
        self.judge = BracketJudge({"let a": ("a",)})
        catalog = catalog_with_everything()
        self.evaluator = Evaluator(ScriptedEngine())
        self.toolbar = Toolbar(catalog, self.evaluator, Record())
        parts = Parts(
            self.judge, Vocabulary(catalog), self.toolbar, lambda: self.evaluator.language, lambda _kind: [],
            folder / "state" / "history", keyboard, DummyOutput(),
        )  # fmt: skip
        self.reader = PromptReader(parts)

    @property
    def buffer(self):
        return self.reader._session.default_buffer

    async def reads(self, keys: str) -> Input:
        self.keyboard.send_text(keys)
        async with asyncio.timeout(60):
            return await self.reader.read(1)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator["asyncio.Task[Input]"]:
        """Let a read go on in the background."""
        task = asyncio.ensure_future(self.reader.read(1))
        try:
            async with asyncio.timeout(60):
                yield task
        finally:
            task.cancel()

    async def until(self, holds) -> None:
        while not holds():  # noqa: ASYNC110  # what happens inside prompt-toolkit sets no event
            await asyncio.sleep(0)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(tmp_path) as desk:
        yield desk


@contextmanager
def opened_desk(folder: Path) -> Iterator[Desk]:
    with create_pipe_input() as keyboard:
        yield Desk(keyboard, folder)


# Enter


@requirement("repl:input:parser")
async def test_enter_runs_a_whole_input_with_what_the_parser_said(desk: Desk) -> None:
    assert await desk.reads("let a" + ENTER) == Input("let a", Verdict("complete", names=("a",)))


@requirement("repl:input:parser")
async def test_enter_goes_on_with_half_an_input_indented(desk: Desk) -> None:
    async with desk.reading() as task:
        for line in ("f({", "a: 1,", "b: [", "1", "]"):
            typed = len(desk.buffer.text)
            desk.keyboard.send_text(line)
            await desk.until(lambda typed=typed, line=line: len(desk.buffer.text) >= typed + len(line) - 2)
            lines = desk.buffer.text.count("\n")
            desk.keyboard.send_text(ENTER)
            await desk.until(lambda lines=lines: desk.buffer.text.count("\n") > lines)
        desk.keyboard.send_text("})" + ENTER)

        assert (await task).text == "f({\n  a: 1,\n  b: [\n    1\n  ]\n})"


@requirement("repl:input:wrong")
async def test_what_is_wrong_stays_with_the_cursor_on_it_and_runs_the_second_time(desk: Desk) -> None:
    async with desk.reading() as task:
        desk.keyboard.send_text("a !b" + ENTER)
        await desk.until(lambda: desk.buffer.validation_error)
        assert desk.buffer.validation_error.message.startswith("Unexpected token. Enter once more")
        assert desk.buffer.cursor_position == 2
        desk.keyboard.send_text(ENTER)

        assert (await task).text == "a !b"


async def test_nothing_and_commands_are_not_parsed(desk: Desk) -> None:
    assert await desk.reads(ENTER) == Input("")
    assert await desk.reads("  " + ENTER) == Input("  ")
    assert await desk.reads(":undo" + ENTER) == Input(":undo")
    assert desk.judge.judged == []


async def test_a_wrong_command_stays_for_mending(desk: Desk) -> None:
    async with desk.reading():
        desk.keyboard.send_text(":serach" + ENTER)
        await desk.until(lambda: desk.buffer.validation_error)

        assert "Did you mean :search" in desk.buffer.validation_error.message


@requirement("repl:keys:order")
async def test_keys_that_come_while_the_parser_is_asked_wait_for_its_answer(desk: Desk) -> None:
    desk.judge.gate.clear()
    async with desk.reading() as task:
        desk.keyboard.send_text("f({" + ENTER + "a: 1" + ENTER + "})" + ENTER + "next" + ENTER)
        await desk.until(lambda: desk.judge.judged)
        assert desk.buffer.text == "f({"
        desk.judge.gate.set()

        assert (await task).text == "f({\na: 1\n})"
        assert (await desk.reader.read(2)).text == "next"


async def test_enter_above_the_last_line_makes_a_line(desk: Desk) -> None:
    assert (await desk.reads(pasted("a\nb") + UP + ENTER + "c" + "\x1b[B" + ENTER)).text == "a\nc\nb"


async def test_alt_enter_makes_a_line_whatever_the_parser_says(desk: Desk) -> None:
    assert (await desk.reads("a" + ALT_ENTER + "b" + ENTER)).text == "a\nb"


@requirement("repl:input:paste")
async def test_a_paste_of_many_lines_is_one_input_as_it_is(desk: Desk) -> None:
    text = "function f() {\n      return 1\n}\nf()"

    assert (await desk.reads(pasted(text) + ENTER)).text == text


async def test_tab_indents_a_line_and_completes_a_word(desk: Desk) -> None:
    assert (await desk.reads(pasted("a\n") + TAB + "b" + ENTER)).text == "a\n  b"
    async with desk.reading() as task:
        desk.keyboard.send_text("tools.loo")
        await desk.until(lambda: desk.buffer.text == "tools.loo" and desk.buffer.complete_state)
        await desk.until(lambda: desk.buffer.complete_state.completions)
        desk.keyboard.send_text(TAB)
        await desk.until(lambda: desk.buffer.text == "tools.lookup_order")
        desk.keyboard.send_text(ENTER)  # takes what was chosen from the menu
        await desk.until(lambda: desk.buffer.complete_state is None)
        desk.keyboard.send_text("({})" + ENTER)

        assert (await task).text == "tools.lookup_order({})"


@requirement("repl:ctrl-c:clears", "repl:ctrl-d:leaves")
async def test_ctrl_c_and_ctrl_d_are_told_apart(desk: Desk) -> None:
    with pytest.raises(KeyboardInterrupt):
        await desk.reads("half" + CTRL_C)
    with pytest.raises(EOFError):
        await desk.reads(CTRL_D)


@requirement("repl:input:editor")
async def test_an_input_is_edited_in_an_editor(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "// edited\\n$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with desk.reading() as task:
        desk.keyboard.send_text("1" + CTRL_X + CTRL_E)
        await desk.until(lambda: "edited" in desk.buffer.text)
        desk.keyboard.send_text(ENTER)

        assert (await task).text == "// edited\n1"


async def test_a_question_is_answered_with_a_line(desk: Desk) -> None:
    desk.keyboard.send_text(" yes " + ENTER)

    assert await desk.reader.ask("sure? ") == "yes"
    assert get_app_or_none() is None


@requirement("repl:completion:broken")
async def test_a_broken_vocabulary_is_told_in_the_bar_and_the_prompt_goes_on(desk: Desk) -> None:
    desk.reader._parts.vocabulary.names = None
    async with desk.reading() as task:
        desk.keyboard.send_text("too")
        await desk.until(lambda: desk.toolbar.fault)
        assert "completion broke: TypeError" in "".join(text for _, text in desk.toolbar())
        desk.keyboard.send_text(ENTER)

        assert (await task).text == "too"
    assert desk.toolbar.fault == ""


KEYS = st.sampled_from(
    [*"ab1.({[]})\"'`:;", " ", ENTER, TAB, UP, "\x1b[B", "\x1b[D", "\x1b[C", "\x7f", ALT_ENTER, "\x12", "\x07", "\x0b",
     "\x19", "\x1f", "tools.", "MCP.", ":un", pasted("x\n{"), "\x01", CTRL_E]
)  # fmt: skip


@requirement("repl:keys:order", "repl:completion:broken")
@settings(max_examples=60, deadline=None)
@given(st.lists(KEYS, max_size=30))
def test_whatever_keys_are_pressed_the_prompt_stays_alive(keys: list[str]) -> None:
    """Then Ctrl-C, a word and Enter still give that word."""

    async def drive(desk: Desk) -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        desk.keyboard.send_text("".join(keys) + "\x07" + CTRL_C)
        while True:  # each Enter among the keys gives an input
            try:
                await desk.reads("")
            except (KeyboardInterrupt, EOFError):
                break
        assert (await desk.reads("alive" + ENTER)).text == "alive"
        assert (faults, desk.toolbar.fault) == ([], "")

    with tempfile.TemporaryDirectory() as folder, opened_desk(Path(folder)) as desk:
        asyncio.run(drive(desk))


# History


@requirement("repl:history:private")
async def test_inputs_are_remembered_by_the_next_session_in_a_private_file(tmp_path: Path) -> None:
    with opened_desk(tmp_path) as first:
        await first.reads("let one" + ENTER)
        await first.reads(pasted("two(\n)") + ENTER)
    with opened_desk(tmp_path) as second:
        async with second.reading() as task:
            await second.until(lambda: len(second.buffer._working_lines) == 3)  # loaded in the background
            second.keyboard.send_text(UP + UP + UP + UP + ENTER)
            recalled = (await task).text

    file = tmp_path / "state" / "history"
    assert recalled == "let one"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@requirement("repl:history:private")
def test_an_input_that_begins_with_a_space_is_not_kept(tmp_path: Path) -> None:
    history = PrivateHistory(tmp_path / "history")
    history.append_string(" secret")
    history.append_string("plain")

    assert "secret" not in (tmp_path / "history").read_text()
    assert history.get_strings() == [" secret", "plain"]


def test_a_history_that_cannot_be_written_is_remembered_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = PrivateHistory(tmp_path / "file" / "history")
    history.append_string("one")

    assert history.get_strings() == ["one"]


def test_the_older_half_of_a_large_history_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_BYTES", 400)
    history = PrivateHistory(tmp_path / "history")
    for number in range(30):
        history.append_string(f"cell {number}")
    kept = list(PrivateHistory(tmp_path / "history").load_history_strings())

    assert kept[0] == "cell 29"
    assert 2 < len(kept) < 15


# The validator, the lexer and the bar by themselves


@requirement("repl:input:wrong")
def test_the_validator_refuses_the_same_input_only_once() -> None:
    validator = CellValidator()
    for text in ("a\nb !", "c !", "a\nb !"):
        validator.put(text, Verdict("wrong", "Unexpected token", 2 if "\n" in text else 1, 3))
        with pytest.raises(ValidationError) as refused:
            validator.validate(Document(text))
        assert refused.value.cursor_position == text.index("!")
        validator.validate(Document(text))
    validator.validate(Document("another"))

    assert validator.verdict_of("another") == WHOLE


@requirement("repl:input:highlighted")
@pytest.mark.parametrize(
    ("text", "language", "part"),
    [
        ("const a = 'x'", "javascript", ("class:pygments.keyword.declaration", "const")),
        ("x as number", "typescript", ("class:pygments.keyword.type", "number")),
        (":save file 1-2", "javascript", ("class:command", ":save")),
        (":save file 1-2", "javascript", ("class:command.argument", "file 1-2")),
    ],
)
def test_inputs_are_coloured_as_what_they_are(text: str, language, part: tuple[str, str]) -> None:
    lexer = CellLexer(lambda: language)

    assert part in lexer.lex_document(Document(text))(0)
    assert lexer.lex_document(Document(""))(0) == []
    assert lexer.invalidation_hash() == language


def bar(evaluator: Evaluator, record: Record, now: float = 100.0) -> str:
    toolbar = Toolbar(build_catalog((), Policy()), evaluator, record, clock=lambda: now)
    return "".join(text for _, text in toolbar())


@requirement("repl:bar:shows")
def test_the_bar_shows_what_there_is_and_how_it_fares() -> None:
    evaluator, record = Evaluator(ScriptedEngine()), Record()
    assert bar(evaluator, record) == " 0 tools  ·  no VM yet"
    evaluator.states.push(State(b"x" * 2100, 1, frozenset(), 35.0, 2))
    evaluator.waiting["cm_1"] = waiting("cm_1")
    record.last_ms = 47.0
    assert bar(evaluator, record) == " 0 tools  ·  1 open run  ·  VM 2.1 kB, 2 cells, 1 min 5 s  ·  last 47 ms"
    evaluator.fresh, evaluator.language = True, "typescript"
    assert bar(evaluator, record).endswith("a fresh VM for each cell  ·  TypeScript  ·  last 47 ms")
