"""The REPL on a real session: what lives on, what is undone, what waits, in one process and without a terminal."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codemode.composition import Setup, build_parts, open_pool, open_store, open_toolbox
from codemode.core.types import CodeModeResult, Completed, Failed
from codemode.repl.commands import Commands, Desk
from codemode.repl.driver import Driver, Stage
from codemode.repl.evaluator import Evaluator
from codemode.repl.interrupts import Interrupts
from codemode.repl.loop import Outcome, Repl
from codemode.repl.printer import Printer
from codemode.repl.reader import LineReader
from codemode.repl.record import Record
from codemode.repl.syntax import Syntax, Verdict
from codemode.repl.ticker import Ticker
from codemode.session import Identity, Session
from tests.requirements import requirement
from tests.support.repl import RecordingLookup, RecordingScreen

MANIFEST = """
[tools.codeMode]
enabled = true

[[tool]]
name = "seven"
description = "Returns 7."
value = 7

[[tool]]
name = "pay"
description = "Pays."
approval = "ask"
value = "paid"

[[tool]]
name = "gate"
description = "Returns once it is opened."
python = "gate:gate"
"""
GATE = """
import asyncio
from pathlib import Path

async def gate(path):
    while not Path(path).exists():
        await asyncio.sleep(0.005)
    return "open"
"""


class House:
    """A REPL that reads lines from a pipe, over a session of its own."""

    def __init__(self, session: Session, syntax: Syntax, lines: int) -> None:
        self.session, self.syntax = session, syntax
        self.screen, self.record = RecordingScreen(), Record()
        self.evaluator = Evaluator(session)
        interrupts, printer = Interrupts(), Printer(self.screen)
        reader = LineReader(lines, syntax, lambda: self.evaluator.language, interrupts)
        stage = Stage(
            self.evaluator, printer, reader, self.record, Ticker(self.record, None), interrupts, session.abort
        )
        self.driver = Driver(stage)
        desk = Desk(
            self.driver, interrupts, self.evaluator, self.record, self.screen, RecordingLookup(), syntax, session.abort
        )
        self.commands = Commands(desk)
        self.repl = Repl(reader, self.driver, self.commands, printer, [])
        self._interrupts = interrupts
        session.listen(self.record.hear)

    async def go(self, *, alone: bool = False) -> Outcome:
        with self._interrupts:
            return await self.repl.run(to_first_failure=alone, declare=lambda: None)

    async def run(self, cell: str) -> CodeModeResult:
        """Run one cell as the loop would."""
        with self._interrupts:
            return await self.driver.run(cell, await self.syntax.judge(cell, "javascript"))

    async def value(self, cell: str) -> Any:
        result = await self.run(cell)
        assert isinstance(result, Completed), result
        return result.value

    async def command(self, line: str) -> None:
        with self._interrupts:
            await self.commands.run(line)


Open = Callable[..., Any]


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "gate.py").write_text(GATE, encoding="utf-8")
    path = tmp_path / "codemode.toml"
    path.write_text(MANIFEST, encoding="utf-8")
    return path


@asynccontextmanager
async def house(manifest: Path, lines: str = "", **limits: int) -> AsyncIterator[House]:
    theirs, ours = os.pipe()
    os.write(ours, lines.encode())
    os.close(ours)
    pool, store = open_pool(), open_store()
    try:
        async with open_toolbox(manifest) as box:
            setup = Setup(manifest, Identity(), limits)
            parts = build_parts(setup, box, pool, store)
            session = Session(parts, setup.who)
            built = House(session, Syntax(pool), theirs)
            parts.around.journal.watchers.append(built.driver.stream)
            yield built
            await session.close()
    finally:
        await pool.close()
        store.close()
        os.close(theirs)


@requirement("repl:variables:live-on", "repl:value:prints")
async def test_everything_that_can_be_declared_lives_on(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.run("let a = 1; const b = {c: [2]}; var d = new Map([[1, 2]])")
        await repl.run("function f() { return g() } const g = () => a + 1; class K { static n = 5 }")
        await repl.run("const { x, ...rest } = { x: 1, y: 2 }; const [first] = [9]")

        assert await repl.value("[a, b.c[0], d.get(1), f(), K.n, x, rest.y, first]") == [1, 2, 2, 2, 5, 1, 2, 9]
        assert await repl.value("_.length") == 8
        await repl.run("a = 10")
        assert await repl.value("f()") == 11
        assert set(repl.evaluator.states.current.names) >= {*"abdfgx", "K", "rest", "first"}


@requirement("repl:variables:live-on")
async def test_a_closure_a_promise_and_an_identity_survive_the_snapshot_between_cells(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.run("const list = [1]; const same = list; const count = (() => { let n = 0; return () => ++n })()")
        await repl.run("const later = tools.seven({}).then(n => n * 2); count()")
        await repl.run("list.push(2)")

        assert await repl.value("[same === list, same.length, count(), await later]") == [True, 2, 2, 14]


@requirement("repl:undo:state", "repl:redo:state")
async def test_what_is_undone_is_gone_from_the_vm_itself(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.run("const log = ['one']")
        await repl.run("log.push('two'); globalThis.extra = 1")
        await repl.command(":undo")
        assert await repl.value("[log.join(), typeof extra]") == ["one", "undefined"]
        await repl.command(":undo")
        await repl.command(":redo")
        await repl.run("log.push('three')")
        assert await repl.value("log.join()") == "one,three"


@requirement("repl:fresh:own-vm")
async def test_a_fresh_cell_is_the_models_cell(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.run("let n = 1")
        await repl.command(":fresh")
        assert await repl.value("n = 5; return typeof n") == "number"
        assert await repl.value("const hidden = 1; hidden") is None
        await repl.command(":fresh")
        assert await repl.value("n") == 1


@pytest.mark.usefixtures("no_kill")
async def test_a_cell_that_fails_keeps_what_it_did_and_one_that_was_cut_short_does_not(manifest: Path) -> None:
    async with house(manifest, timeout_ms=400) as repl:
        await repl.run("let n = 1")
        assert isinstance(await repl.run("n = 2; throw new Error('half way')"), Failed)
        assert await repl.value("n") == 2
        cut = await repl.run("n = 3; while (true) {}")
        assert isinstance(cut, Failed)
        assert cut.code == "timeout"
        assert await repl.value("n") == 2


@requirement("repl:wait:state")
async def test_a_cell_that_waits_and_cells_in_between(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.run("let n = 1")
        await repl.run("await yield_control(); n += 10; n")
        assert await repl.value("n += 100") == 101
        await repl.command(":wait")
        assert await repl.value("n") == 11
        await repl.command(":undo")
        await repl.command(":undo")
        assert await repl.value("n") == 101
        assert "variables are now those of cell [2]" in repl.screen.all()


@requirement("repl:output:streams")
async def test_outputs_come_while_a_call_is_open(manifest: Path, tmp_path: Path) -> None:
    file = tmp_path / "opened"
    async with house(manifest) as repl:
        cell = f"text('asked'); const got = await tools.gate({{path: {json.dumps(str(file))}}}); json(got); 'end'"
        running = asyncio.ensure_future(repl.run(cell))
        async with asyncio.timeout(60):
            while not (repl.screen.shown and repl.record.open):  # noqa: ASYNC110  # they are told, nobody else
                await asyncio.sleep(0.005)
        assert repl.screen.shown == ["text asked"]
        file.touch()
        await running

        assert repl.screen.shown == ["text asked", "value 'open'", "value 'end'"]
        assert repl.record.open == {}


@requirement("repl:approvals:in-place")
async def test_approvals_are_answered_from_the_lines(manifest: Path) -> None:
    lines = "await tools.pay({})\nyes\nawait tools.pay({a: 1})\nno\nawait tools.pay({})\nlater\n:approve\n"
    async with house(manifest, lines) as repl:
        assert await repl.go() is None
        shown = repl.screen.all()

        assert shown.count("value 'paid'") == 2
        assert "client:app:pay was not approved" in shown
        assert "value {'a': 1}" in shown
        assert repl.evaluator.waiting == {}


@requirement("repl:pipe:status")
async def test_alone_it_ends_with_what_failed_first(manifest: Path) -> None:
    async with house(manifest, "1\nnobody.knows\n2\n") as repl:
        outcome = await repl.go(alone=True)

        assert isinstance(outcome, Failed)
        assert "nobody is not defined" in outcome.error
        assert "value 2" not in repl.screen.shown


@requirement("repl:save:runs")
@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["const a = 2", "a * 3"], 6),
        (["const f = x => x + 1", "const g = x => f(f(x))", "const y = g(1); { y }\ny + 1 // three"], 4),
        (["const o = {a: [1, 2]}", "o"], {"a": [1, 2]}),
        (["const t = `;\n}`", "t.length; [t.length,\n t[0]]"], [3, ";"]),
        (["const n = await tools.seven({})", "if (n) { text('yes') }\nn % 2 ? 'odd' : 'even'"], "odd"),
        (["let z = 1;;", "z ;"], 1),
    ],
)
async def test_a_saved_cell_gives_the_same_value_in_a_vm_of_its_own(
    manifest: Path, tmp_path: Path, cells: list[str], value: Any
) -> None:
    file = tmp_path / "saved.js"
    async with house(manifest) as repl:
        for cell in cells:
            printed = await repl.value(cell)
        await repl.command(f":save {file}")
        await repl.command(":fresh on")

        assert printed == value
        assert await repl.value(file.read_text(encoding="utf-8")) == value


@requirement("repl:input:parser")
async def test_the_parser_of_a_worker_judges_inputs(manifest: Path) -> None:
    async with house(manifest) as repl:
        judged = {
            source: await repl.syntax.judge(source, "javascript")
            for source in ("f(", "let a, [b] = c", "a b", "1 + 1", "class K {}", "`${", "return 1", "/* ", "if (a)")
        }

        assert {source: verdict.state for source, verdict in judged.items()} == {
            "f(": "incomplete", "let a, [b] = c": "complete", "a b": "wrong", "1 + 1": "complete",
            "class K {}": "complete", "`${": "incomplete", "return 1": "complete", "/* ": "incomplete",
            "if (a)": "incomplete",
        }  # fmt: skip
        assert judged["let a, [b] = c"].names == ("a", "b")
        assert judged["class K {}"].names == ("K",)
        assert judged["1 + 1"].is_expression
        assert (judged["a b"].line, judged["a b"].column) == (1, 3)


async def test_typescript_lives_on_too(manifest: Path) -> None:
    async with house(manifest) as repl:
        await repl.command(":language typescript")
        for cell in ("interface Order { id: string }", "const o: Order = { id: 'o-1' }; enum E { A = 4 }"):
            assert (await repl.syntax.judge(cell, "typescript")).state == "complete"
            await repl.run(cell)

        assert await repl.value("(o as Order).id + E.A") == "o-14"


async def test_an_input_that_the_parser_refuses_is_explained_by_the_engine(manifest: Path) -> None:
    async with house(manifest) as repl:
        result = await repl.driver.run("a b", Verdict("wrong"))

        assert isinstance(result, Failed)
        assert "  at [1]:1:3" in repl.screen.all()
