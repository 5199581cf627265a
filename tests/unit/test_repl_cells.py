"""Cells, the states that they leave, and how a cell becomes a result."""

import asyncio

import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from codemode.core.errors import InvalidInput, RuntimeUnavailable
from codemode.core.events import CallParked, CallSettled, CallStarted, ExecStarted, RunEnded
from codemode.core.types import Failed
from codemode.repl import record as record_module
from codemode.repl import states as states_module
from codemode.repl.cells import Cell, choose, declared_twice, needed
from codemode.repl.evaluator import Decision, Evaluator
from codemode.repl.record import Record
from codemode.repl.saving import program
from codemode.repl.states import State, States
from codemode.repl.syntax import Syntax, Verdict
from tests.requirements import requirement
from tests.support.repl import ScriptedEngine, completed, waiting

A = Cell(1, "const a = 1", names=("a",))
B = Cell(2, "const b = a + 1", names=("b",))
JUNK = Cell(3, "const junk = 9", names=("junk",))
LAST = Cell(4, "a + b", is_expression=True)


def failed(run_id: str | None = "cm_f") -> Failed:
    return Failed("Error: no (cell.js:1:1)", None, "guest", False, run_id, (), {})


# Which cells a file needs


@requirement("repl:save:needed")
def test_the_last_cell_takes_along_what_it_mentions_and_what_that_mentions() -> None:
    assert needed([A, B, JUNK, LAST]) == [A, B, LAST]
    assert needed([A, JUNK, Cell(5, "b => b", names=())]) == [Cell(5, "b => b")]


@requirement("repl:save:needed")
def test_only_the_latest_declaration_of_a_name_is_taken() -> None:
    again = Cell(3, "const a = 2", names=("a",))

    assert needed([A, again, Cell(4, "a")]) == [again, Cell(4, "a")]


def test_cells_are_chosen_by_numbers_ranges_or_all() -> None:
    cells = [A, B, JUNK, LAST]

    assert choose(cells, "all") == cells
    assert choose(cells, "1-2 4") == [A, B, LAST]
    assert choose(cells, "") == [A, B, LAST]


@pytest.mark.parametrize(
    ("cells", "asked", "says"),
    [([], "", "nothing to save"), ([A], "2", "there are: 1"), ([A], "x", "numbers and ranges"), ([A], "1-", "ranges")],
)
def test_what_cannot_be_chosen_is_refused(cells: list[Cell], asked: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        choose(cells, asked)


def test_names_that_would_clash_in_one_file_are_known() -> None:
    assert declared_twice([A, B, Cell(5, "let a = 3", names=("a",))]) == ["a"]


# The text of a file


class ExpressionJudge:
    """Takes what has no declaration and no semicolon as an expression."""

    async def judge(self, source: str, _language: str) -> Verdict:
        text = source.strip().rstrip(";")
        is_plain = bool(text) and not text.startswith(("const", "//")) and ";" not in text
        return Verdict("incomplete" if source.count("(") != source.count(")") else "complete", is_expression=is_plain)


@requirement("repl:save:runs")
@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(1, "a + b;\n", is_expression=True), "return a + b;\n"),
        (Cell(1, "// why\na", is_expression=True), "return (\n// why\na\n);\n"),
        (Cell(1, "const x = 1; x + 1"), "const x = 1; return x + 1;\n"),
        (Cell(1, "const x = 1\nf(x)\n"), "const x = 1\nreturn f(x);\n"),
        (Cell(1, "const x = f(1,\n2)"), "const x = f(1,\n2)\n"),
        (Cell(1, "const x = 1;"), "const x = 1;\n"),
    ],
)
async def test_what_would_print_is_returned(cell: Cell, text: str) -> None:
    assert await program([cell], ExpressionJudge()) == text


@requirement("repl:save:runs")
async def test_cells_stand_in_their_order_in_one_file() -> None:
    assert await program([A, B, LAST], ExpressionJudge()) == "const a = 1\n\nconst b = a + 1\n\nreturn a + b;\n"


# States


def state(number: int) -> State:
    return State(b"x" * number, number)


@requirement("repl:undo:state", "repl:redo:state")
def test_undo_and_redo_move_along_the_states() -> None:
    states = States()
    for number in (1, 2, 3):
        states.push(state(number))

    assert states.undo() == state(3)
    assert states.undo() == state(2)
    assert (states.current, states.undone) == (state(1), {2, 3})
    assert states.redo() == state(2)
    assert states.current == state(2)


@requirement("repl:undo:state", "repl:redo:state")
def test_there_is_nothing_before_the_first_and_nothing_undone_after_a_new_cell() -> None:
    states = States()
    states.push(state(1))
    states.undo()

    assert states.undo() is None
    states.push(state(2))
    assert states.redo() is None
    assert states.undo() == state(2)
    assert states.current == State()


@requirement("repl:undo:bounded")
def test_the_oldest_states_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states_module, "MAX_STATES", 2)
    monkeypatch.setattr(states_module, "MAX_BYTES", 10)
    states = States()
    for number in (1, 2, 3, 9, 4):
        states.push(state(number))

    assert states.undo() == state(4)
    assert states.current == state(9)
    assert states.undo() is None
    assert states.has_let_go


@requirement("repl:undo:bounded")
def test_as_long_as_all_states_are_kept_none_was_let_go() -> None:
    states = States()
    states.push(state(1))
    states.undo()

    assert (states.undo(), states.has_let_go) == (None, False)


def test_a_state_knows_when_its_vm_began_and_what_is_declared() -> None:
    first = State().then(b"1", 1, ("a",), 100.0)
    second = first.then(b"22", 2, ("b",), 160.0)

    assert (second.began_s, second.cells, second.size) == (100.0, 2, 2)
    assert second.names == {"a", "b"}


class StatesMachine(RuleBasedStateMachine):
    """Whatever one does and undoes, the states are a list with a finger in it."""

    def __init__(self) -> None:
        super().__init__()
        self.states = States()
        self.model = [State()]
        self.finger = 0

    @rule()
    def push(self) -> None:
        number = max(each.number for each in self.model) + 1
        del self.model[self.finger + 1 :]
        self.model.append(state(number))
        self.finger += 1
        self.states.push(state(number))

    @rule()
    def undo(self) -> None:
        left = self.states.undo()
        assert left == (self.model[self.finger] if self.finger else None)
        self.finger = max(self.finger - 1, 0)

    @rule()
    def redo(self) -> None:
        can = self.finger + 1 < len(self.model)
        assert self.states.redo() == (self.model[self.finger + 1] if can else None)
        self.finger += can

    @invariant()
    def the_finger_points_at_the_current_state(self) -> None:
        assert self.states.current == self.model[self.finger]
        assert self.states.undone == {each.number for each in self.model[self.finger + 1 :]}


TestStates = requirement("repl:undo:state", "repl:redo:state")(StatesMachine.TestCase)


# Evaluating


def evaluator_of(engine: ScriptedEngine) -> Evaluator:
    return Evaluator(engine, clock=lambda: 7.0)


@requirement("repl:variables:live-on")
async def test_each_cell_starts_from_what_the_last_one_left() -> None:
    engine = ScriptedEngine(completed("cm_1"), completed("cm_2"), completed("cm_3"))
    engine.snapshots = {"cm_1": b"one", "cm_3": b"three"}
    evaluator = evaluator_of(engine)
    for cell in (A, B, LAST):
        await evaluator.run(cell)

    assert engine.bases == [None, b"one", b"one"]
    assert evaluator.states.current.snapshot == b"three"
    assert evaluator.completed == [A, B, LAST]


@requirement("repl:fresh:own-vm")
async def test_a_fresh_cell_neither_starts_from_a_state_nor_leaves_one() -> None:
    engine = ScriptedEngine(completed("cm_1"), completed("cm_2"), completed("cm_3"))
    engine.snapshots = {"cm_1": b"one"}
    evaluator = evaluator_of(engine)
    await evaluator.run(A)
    evaluator.fresh = True
    await evaluator.run(B)
    evaluator.fresh = False
    await evaluator.run(LAST)

    assert engine.bases == [None, "fresh", b"one"]


@requirement("repl:undo:state")
async def test_an_undone_cell_neither_counts_nor_is_the_ground_of_the_next() -> None:
    engine = ScriptedEngine(completed("cm_1"), completed("cm_2"), completed("cm_3"))
    engine.snapshots = {"cm_1": b"one", "cm_2": b"two"}
    evaluator = evaluator_of(engine)
    await evaluator.run(A)
    await evaluator.run(B)
    evaluator.states.undo()

    assert evaluator.completed == [A]
    await evaluator.run(LAST)
    assert engine.bases == [None, b"one", b"one"]


async def test_a_failed_cell_that_keeps_its_vm_moves_the_state_but_is_not_saved() -> None:
    engine = ScriptedEngine(failed("cm_1"), failed(None))
    engine.snapshots = {"cm_1": b"half"}
    evaluator = evaluator_of(engine)
    await evaluator.run(A)
    await evaluator.run(B)

    assert evaluator.states.current.snapshot == b"half"
    assert evaluator.completed == []
    assert evaluator.last == failed(None)


@requirement("repl:wait:state")
async def test_a_run_that_waited_leaves_its_state_and_says_whether_it_overtook_later_cells() -> None:
    engine = ScriptedEngine(waiting("cm_1"), completed("cm_2"), completed("cm_1"))
    engine.snapshots = {"cm_2": b"two"}
    evaluator = evaluator_of(engine)
    await evaluator.run(A)
    assert list(evaluator.waiting) == ["cm_1"]
    await evaluator.run(B)
    engine.snapshots = {"cm_1": b"one"}
    evaluated = await evaluator.wait("cm_1", Decision({}))

    assert (evaluated.overtook, evaluated.cell) == (True, A)
    assert evaluator.waiting == {}
    assert evaluator.states.current == State(b"one", 1, frozenset({"a"}), 7.0, 1)
    evaluator.states.undo()
    assert evaluator.states.current.snapshot == b"two"


@requirement("repl:wait:state")
async def test_a_run_of_an_earlier_session_goes_on_without_touching_the_state() -> None:
    engine = ScriptedEngine(completed("cm_old", 5))
    engine.snapshots = {"cm_old": b"old"}
    evaluated = await evaluator_of(engine).wait("cm_old", Decision({"1": True}))

    assert (evaluated.cell.source, evaluated.overtook) == ("", False)
    assert engine.decided == [{"1": True}]


# The record of what happened


def started(call_id: int, tool_id: str | None = "plugin:shop:x") -> CallStarted:
    return CallStarted("cm_1", 1.0, call_id, "call" if tool_id else "search", tool_id, {"a": 1})


def ran(run_id: str, duration_ms: float = 5.0) -> list[ExecStarted | RunEnded]:
    return [
        ExecStarted(run_id, 1.0, "ar_1", "javascript", "1", 0, {}, []),
        RunEnded(run_id, 2.0, "completed", None, None, duration_ms),
    ]


def test_open_calls_are_those_that_started_and_did_not_settle() -> None:
    record = Record(clock=lambda: 3.0)
    for event in (started(1), started(2, None), started(3), CallSettled("cm_1", 2.0, 1, "ok", 3, None)):
        record.hear(event)
    parked = CallParked("cm_1", 2.0, 3, "call", "plugin:shop:x", {"order": "o-1"})
    record.hear(parked)

    assert record.open == {("cm_1", 2): ("search", 3.0)}
    assert record.parked("cm_1", "3") == parked
    assert record.parked("cm_1", "4") is None


def test_the_record_draws_a_run_and_knows_the_last_one() -> None:
    record = Record()
    for event in ran("cm_1", 12.0):
        record.hear(event)

    assert (record.last_run, record.last_ms) == ("cm_1", 12.0)
    assert record.trajectory("cm_1").runs[0].run_id == "cm_1"
    assert (record.knows("cm_1"), record.knows("cm_2")) == (True, False)


def test_only_the_latest_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "_MAX_RUNS", 2)
    record = Record()
    for run_id in ("cm_1", "cm_2", "cm_3"):
        for event in ran(run_id):
            record.hear(event)

    assert [record.knows(run_id) for run_id in ("cm_1", "cm_2", "cm_3")] == [False, True, True]


# What the parser's answers mean


class ScriptedPool:
    """One worker whose parser gives one answer, or that cannot be had."""

    def __init__(self, answer: dict | None) -> None:
        self.answer = answer
        self.released = 0

    async def acquire(self) -> "ScriptedPool":
        if self.answer is None:
            raise RuntimeUnavailable("no worker")
        return self

    async def inspect(self, source: str, wants: list[str]) -> dict:
        await asyncio.sleep(0)
        return self.answer

    def release(self, worker: object) -> None:
        self.released += 1


def error(**more: object) -> dict:
    return {"error": {"message": "Unexpected token", "line": 2, "column": 3, "incomplete": False, **more}}


@requirement("repl:input:parser")
@pytest.mark.parametrize(
    ("answer", "source", "language", "verdict"),
    [
        ({"form": "statements", "names": ["a"]}, "let a", "javascript", Verdict("complete", names=("a",))),
        ({"form": "expression", "names": []}, "1", "javascript", Verdict("complete", is_expression=True)),
        ({"form": "function", "names": []}, " async function f() {}", "javascript", Verdict("complete", names=("f",))),
        ({"form": "expression", "names": []}, "class C {}", "javascript", Verdict("complete", names=("C",))),
        (error(incomplete=True), "f(", "javascript", Verdict("incomplete")),
        (error(), "a b", "javascript", Verdict("wrong", "Unexpected token", 2, 3)),
        (error(typescript=True), "let a: x", "javascript",
         Verdict("wrong", "Unexpected token; is it TypeScript? :language typescript", 2, 3)),
        (error(typescript=True), "interface A {", "typescript", Verdict("incomplete")),
        (error(typescript=True), "interface A {}", "typescript", Verdict("complete")),
        (None, "anything", "javascript", Verdict("complete")),
    ],
)  # fmt: skip
async def test_an_answer_of_the_parser_becomes_a_verdict(answer, source, language, verdict) -> None:
    pool = ScriptedPool(answer)

    assert await Syntax(pool).judge(source, language) == verdict
    assert pool.released == (answer is not None)
