"""The REPL as a person has it: the real command on a pseudo-terminal, and in pipes."""

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, clean_environment, run_command
from tests.support.person import ALT_ENTER, CTRL_C, CTRL_E, CTRL_X, DOWN, ENTER, TAB, UP, Person, pasted
from tests.support.processes import children_of, has_ended

MANIFEST = """
[tools.codeMode]
enabled = true

[[tool]]
name = "lookup_order"
description = "One order by its id."
source = "plugin"
owner = "shop"
python = "shop:lookup_order"

[tool.parameters]
type = "object"
required = ["id"]
properties = { id = { type = "string", description = "Such as o-1." }, verbose = { type = "boolean" } }

[[tool]]
name = "refund"
description = "Pay money back."
source = "plugin"
owner = "billing"
approval = "ask"
python = "shop:refund"

[[tool]]
name = "wait_for"
description = "Returns once a file says something."
python = "shop:wait_for"
"""
SHOP = """
import asyncio
from pathlib import Path

def lookup_order(id, verbose=False):
    return {"id": id, "lines": 3}

def refund(order, token=""):
    return f"refunded {order}"

async def wait_for(path):
    while not Path(path).exists() or not Path(path).read_text():  # it is there before it says anything
        await asyncio.sleep(0.01)
    return Path(path).read_text()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return clean_environment(tmp_path / "state")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a manifest: the REPL finds it by itself."""
    (tmp_path / "codemode.toml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return tmp_path


Sit = Callable[..., Person]


@pytest.fixture
def sit(folder: Path, environment: dict[str, str]) -> Iterator[Sit]:
    """Seat a person at a REPL; whoever still sits there in the end is sent away."""
    seated: list[Person] = []

    def seat(
        *flags: str, columns: int = 80, rows: int = 40, term: str = "xterm-256color", color: bool = False
    ) -> Person:
        chosen = {key: value for key, value in environment.items() if not (color and key == "NO_COLOR")}
        seated.append(Person(["repl", *flags], chosen, folder, columns=columns, rows=rows, term=term))
        return seated[-1]

    yield seat
    for person in seated:
        person.__exit__(None, None, None)


def line_after(screen: str, line: str) -> str:
    """Return the line that stands below the last one like this."""
    lines = screen.splitlines()
    return lines[len(lines) - lines[::-1].index(line)]


# Cells


@requirement("repl:variables:live-on", "repl:value:prints", "repl:value:await", "repl:ctrl-d:leaves")
def test_what_a_cell_declares_lives_on_and_its_last_expression_prints(sit: Sit) -> None:
    person = sit()
    person.runs(1, "const order = await tools.lookup_order({id: 'o-1'})")
    person.runs(2, "class Box { constructor(n) { this.n = n } twice() { return double(this.n) } }")
    person.runs(3, "function double(n) { return 2 * n }")
    screen = person.runs(4, "new Box(order.lines).twice()")
    assert line_after(screen, "[4]> new Box(order.lines).twice()") == "6"
    assert line_after(person.runs(5, "_ + 1"), "[5]> _ + 1") == "7"
    person.runs(6, "const order = 'again'")
    assert line_after(person.runs(7, "order"), "[7]> order") == '"again"'
    assert person.leaves() == 0


@requirement("repl:input:parser", "repl:input:highlighted")
def test_the_parser_decides_where_an_input_ends(sit: Sit) -> None:
    person = sit(color=True)
    person.sees_prompt(1)
    person.types("const f = n => {" + ENTER)
    person.sees("\n...>")
    person.types("return `${n}" + ENTER)
    person.sees("...>   return `${n}\n...>")
    person.types("!` }" + ENTER)
    person.sees_prompt(2)
    screen = person.runs(2, "f(1)")

    assert "\n1\n!\n" in screen  # nothing is added inside a template
    assert person.display.colours >= {"0;35"}  # keywords


@requirement("repl:input:parser")
def test_a_line_that_the_terminal_wraps_does_not_look_like_two(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("text('" + "x" * 100 + "')" + ENTER)
    screen = person.sees("\n" + "x" * 80)
    person.sees_prompt(2)

    assert "...>" not in screen
    assert f"\n     {'x' * 31}')\n" in screen


@requirement("repl:input:wrong", "repl:errors:go-on")
def test_what_does_not_parse_stays_and_what_fails_is_shown_with_its_place(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("let a b" + ENTER)
    person.sees("Unexpected token. Enter once more runs it all the same")
    person.types(ENTER)
    person.sees("error: SyntaxError: Unexpected token\n  at [1]:1:7", "1 │ let a b\n    │       ^")
    person.sees_prompt(2)
    person.runs(2, "const early = 1")
    person.sees_prompt(3)
    person.types("early;" + ALT_ENTER + "nobody.knows" + ENTER)
    person.sees("ReferenceError: nobody is not defined", "at [3]:2:1", "2 │ nobody.knows")
    assert line_after(person.runs(4, "early"), "[4]> early") == "1"


@requirement("repl:input:paste")
def test_many_lines_can_be_pasted_and_edited(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types(pasted("const xs = [1, 2, 3]\n\nxs.map(x => {\n    return x * 2\n})"))
    person.sees("...> })")
    person.types(ENTER)
    person.sees("[2, 4, 6]")
    person.sees_prompt(2)


@requirement("repl:input:editor")
def test_an_input_is_edited_in_the_editor_of_the_environment(folder: Path, environment: dict[str, str]) -> None:
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\ncase "$1" in *.js) echo "40 + 2" > "$1";; esac\n', encoding="utf-8")
    editor.chmod(0o755)
    with Person(["repl"], environment | {"EDITOR": str(editor), "VISUAL": ""}, folder) as person:
        person.sees_prompt(1)
        person.types(CTRL_X + CTRL_E)
        person.sees("[1]> 40 + 2")
        person.types(ENTER)
        person.sees("\n42")


@requirement("repl:output:streams")
def test_outputs_are_shown_while_the_cell_goes_on(sit: Sit, folder: Path) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types('text("asking"); const got = await tools.wait_for({path: "answer"}); text(got); got.length' + ENTER)
    person.sees("\nasking", "1 open call: client:app:wait_for")
    (folder / "answer").write_text("forty-two", encoding="utf-8")
    screen = person.sees("\nforty-two\n9")
    person.sees_prompt(2)

    assert screen.count("\nasking") == 1
    assert "open call:" not in person.display.text()


# Completion


@requirement("repl:completion:names", "repl:completion:fuzzy")
def test_tools_are_offered_while_one_types(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("await tools.lkup")
    person.sees("lookup_order", "One order by its id.")
    person.types(TAB + "({i")
    person.sees("[1]> await tools.lookup_order({i", "string, required · Such as o-1.")
    person.types(TAB + '"o-7"})' + ENTER)
    person.sees('{"id": "o-7", "lines": 3}')
    person.sees_prompt(2)


@requirement("repl:completion:names", "repl:completion:commands")
def test_declared_names_and_commands_are_offered(sit: Sit) -> None:
    person = sit()
    person.runs(1, "const remembered = 5")
    person.types("rem")
    person.sees("remembered", "declared here")
    person.types(CTRL_C)
    person.sees_prompt(2)
    person.types(":describe refu")
    person.sees("plugin:billing:refund")
    person.types(DOWN + ENTER + ENTER)
    person.sees("Pay money back.", "approval")


@requirement("repl:bar:shows")
@pytest.mark.parametrize("columns", [80, 160])
def test_a_bar_shows_how_things_stand(sit: Sit, columns: int) -> None:
    person = sit(columns=columns)
    person.sees(" 3 tools  ·  no VM yet")
    person.runs(1, "1")
    bar = person.sees("VM ", "kB, 1 cell, ", "last ").splitlines()[-1]

    assert bar.startswith(" 3 tools  ·  VM ")


# Going back, going on


@requirement("repl:undo:state", "repl:redo:state")
def test_a_cell_is_undone_and_redone(sit: Sit) -> None:
    person = sit()
    person.runs(1, "let n = 1")
    person.runs(2, "n = 2; const more = true")
    person.types(":undo" + ENTER)
    person.sees("as they were before cell [2]")
    screen = person.runs(3, "[n, typeof more]")
    assert line_after(screen, "[3]> [n, typeof more]") == '[1, "undefined"]'
    person.types(":undo" + ENTER)
    person.sees("before cell [3]")
    person.types(":undo" + ENTER)
    person.sees("before cell [1]")
    person.types(":redo" + ENTER)
    person.sees("after cell [1]")
    assert line_after(person.runs(4, "n"), "[4]> n") == "1"


@requirement("repl:fresh:own-vm")
def test_fresh_cells_know_nothing_of_each_other(sit: Sit) -> None:
    person = sit("--fresh")
    person.runs(1, "globalThis.kept = 1; return 'model'")
    person.sees('"model"', "a fresh VM for each cell")
    assert line_after(person.runs(2, "return typeof kept"), "[2]> return typeof kept") == '"undefined"'
    person.types(":fresh off" + ENTER)
    person.sees("variables live on")
    person.runs(3, "const now = 1")
    assert line_after(person.runs(4, "now"), "[4]> now") == "1"


@requirement("repl:wait:state")
def test_a_cell_that_waits_goes_on_with_wait(sit: Sit) -> None:
    person = sit()
    person.runs(1, "await yield_control(); var late = 3; late + 1")
    person.sees("the cell yielded; :wait goes on with it", "1 open run")
    person.runs(2, "const between = 1")
    person.types(":wait" + ENTER)
    person.sees("\n4\n", "variables are now those of cell [1]")
    screen = person.runs(3, "[late, typeof between]")
    assert line_after(screen, "[3]> [late, typeof between]") == '[3, "undefined"]'


# Approvals


@requirement("repl:approvals:in-place")
def test_an_approval_is_asked_in_place(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("await tools.refund({order: 'o-1', token: 's3cr3t-t0k3n'})" + ENTER)
    screen = person.sees("plugin:billing:refund wants to run", '"order": "o-1"', "run it? [y]es, [n]o, [a]lways")
    assert "s3cr3t" not in screen.rsplit("wants to run", 1)[1]
    person.types("y" + ENTER)
    person.sees('"refunded o-1"')
    person.sees_prompt(2)
    person.types("await tools.refund({order: 'o-2'})" + ENTER)
    person.sees("(call 2)")
    person.types("n" + ENTER)
    person.sees("plugin:billing:refund was not approved")
    person.sees_prompt(3)
    person.types("await tools.refund({order: 'o-3'})" + ENTER)
    person.sees("(call 3)")
    person.types("l" + ENTER)
    person.sees("it waits; :approve and :deny decide")
    person.sees_prompt(4)
    person.types(":approve" + ENTER)
    person.sees('"refunded o-3"')


@requirement("repl:approvals:always")
def test_always_holds_until_it_is_taken_back(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("for (const order of ['o-1', 'o-2', 'o-3']) text(await tools.refund({order}))" + ENTER)
    person.sees("run it?")
    person.types("a" + ENTER)
    person.sees("runs without asking until you leave", "refunded o-1", "refunded o-2", "refunded o-3")
    screen = person.runs(2, "await tools.refund({order: 'o-4'})")
    assert "1 call of plugin:billing:refund approved: you said always" in screen
    assert '"refunded o-4"' in screen
    person.types(":ask" + ENTER)
    person.sees("plugin:billing:refund will be asked about again")
    person.sees_prompt(3)
    person.types("await tools.refund({order: 'o-5'})" + ENTER)
    person.sees("(call 5)", '{"order": "o-5"}')
    person.types("l" + ENTER)
    person.sees_prompt(4)
    person.types(":approve --always" + ENTER)
    person.sees('"refunded o-5"')
    assert '"refunded o-6"' in person.runs(4, "await tools.refund({order: 'o-6'})")


@requirement("repl:approvals:typed-ahead")
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_what_was_typed_before_a_question_does_not_answer_it(sit: Sit, folder: Path, term: str) -> None:
    person = sit(term=term)
    person.sees_prompt(1)
    cell = "text('asking'); text(await tools.wait_for({path: 'go'})); await tools.refund({order: 'o-1'})"
    person.types(cell + ENTER)
    person.sees("\nasking")
    person.types("y" + ENTER)
    (folder / "go").write_text("went", encoding="utf-8")
    person.sees("\nwent", "run it?")
    person.types("n" + ENTER)
    person.sees("plugin:billing:refund was not approved")
    person.sees_prompt(2)
    assert "refunded" not in person.display.text()


# Ctrl-C


@requirement("repl:ctrl-c:aborts")
@pytest.mark.parametrize(
    "cell", ["n = 2; while (true) {}", "n = 2; await tools.wait_for({path: 'never'})"], ids=["computing", "waiting"]
)
def test_ctrl_c_aborts_the_cell_and_keeps_the_session(sit: Sit, cell: str) -> None:
    person = sit()
    person.runs(1, "let n = 1")
    person.types(cell + ENTER)
    person.sees("(Ctrl-C aborts)")
    person.types(CTRL_C)
    person.sees("the cell was aborted with Ctrl-C")
    assert line_after(person.runs(3, "n"), "[3]> n") == "1"
    assert person.leaves() == 0


@requirement("repl:ctrl-c:clears")
def test_ctrl_c_at_the_prompt_gives_the_input_up(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("half(" + ENTER)
    person.sees("...>")
    person.types(CTRL_C)
    person.sees_prompt(1)
    assert line_after(person.runs(1, "1 + 1"), "[1]> 1 + 1") == "2"


# Files and history


@requirement("repl:save:runs", "repl:save:needed")
def test_a_saved_cell_runs_by_itself_and_gives_what_the_repl_printed(
    sit: Sit, folder: Path, environment: dict[str, str]
) -> None:
    person = sit()
    person.runs(1, "const order = await tools.lookup_order({id: 'o-5'})")
    person.runs(2, "const unrelated = 1")
    person.runs(3, "const lines = order.lines; [order.id, lines]")
    person.types(":save saved.js" + ENTER)
    person.sees("saved.js holds [1], [3]")
    person.sees_prompt(4)
    person.types(":load saved.js" + ENTER)
    person.sees_prompt(5)
    ran = run_command(["run", "saved.js", "--json"], environment, folder)

    assert (ran.exit_status, ran.result["value"]) == (0, ["o-5", 3])
    assert person.display.text().count('["o-5", 3]') == 2


@requirement("repl:save:refuses")
def test_a_file_is_replaced_only_by_who_says_so(sit: Sit, folder: Path) -> None:
    file = folder / "check.js"
    file.write_text("// @value 41\nreturn 41\n", encoding="utf-8")
    person = sit()
    person.runs(1, "40 + 2")
    person.types(":save check.js" + ENTER)
    person.sees('"check.js" is there already; :save! check.js replaces it')
    assert file.read_text(encoding="utf-8") == "// @value 41\nreturn 41\n"
    person.types(":save! check.js" + ENTER)
    person.sees("check.js holds [1]")

    assert file.read_text(encoding="utf-8") == "return 40 + 2;\n"


@requirement("repl:history:private")
def test_inputs_are_there_in_the_next_session(sit: Sit, tmp_path: Path) -> None:
    first = sit()
    first.runs(1, "'said before'.length")
    assert first.leaves() == 0
    second = sit()
    second.sees_prompt(1)
    second.types(UP)
    second.sees("[1]> 'said before'.length")
    file = tmp_path / "state" / "codemode" / "repl_history"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@requirement("repl:commands:table")
def test_the_commands_answer(sit: Sit) -> None:
    person = sit()
    person.runs(1, "await tools.lookup_order({id: 'o-1'})")
    for command, *shown in (
        (":tools order", "lookup_order"),
        (":search give money back", "plugin:billing:refund"),
        (":types", "no MCP server is visible"),
        (":trace", "plugin:shop:lookup_order #1", '{"id": "o-1"}'),
        (":stats", "exec 1, call 1"),
        (":payload anthropic", "input_schema"),
        (":help undo", "go back to the variables before the last cell"),
        (":language", "cells are read as javascript"),
    ):
        answer = person.asks(2, command)
        assert [text for text in shown if text not in answer] == []
    person.types(":serach" + ENTER)
    person.sees("there is no command :serach. Did you mean :search")
    person.types(CTRL_C)
    person.sees_prompt(2)
    person.types(":quit" + ENTER)
    assert person.ends() == 0


# Terminals that can do less, and no terminal


@requirement("repl:input:small")
def test_a_window_of_few_lines_has_a_prompt_and_a_menu(sit: Sit) -> None:
    person = sit(columns=40, rows=6)
    person.runs(1, "20 + 1")
    person.types("tools.lkup")
    person.sees("lookup_order", " 3 tools")
    person.types(CTRL_C)
    assert "\n42\n" in person.runs(2, "_ * 2")


@requirement("repl:terminal:dumb")
def test_a_dumb_terminal_gets_lines_without_colours(sit: Sit) -> None:
    person = sit(term="dumb", color=True)
    person.runs(1, "const f = n => n")
    person.types("f({" + ENTER)
    person.sees("...>")
    person.types("a: 1})" + ENTER)
    person.sees_prompt(3)
    person.types("await tools.refund({order: 'o-1'})" + ENTER)
    person.sees("run it?")
    person.types("y" + ENTER)
    person.sees('"refunded o-1"')
    person.sees_prompt(4)
    person.types("half(" + ENTER)
    person.sees("...>")
    person.types(CTRL_C)
    person.sees_prompt(4)
    assert person.leaves() == 0
    assert person.display.colours == set()
    assert '  "a": 1' in person.display.text()


def fed(folder: Path, environment: dict[str, str], stdin: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "repl", *flags], cwd=folder, env=environment, input=stdin, capture_output=True, text=True,
        encoding="utf-8", timeout=BOUND_S, check=False,
    )  # fmt: skip


@requirement("repl:pipe:lines")
def test_a_pipe_is_read_line_by_line(folder: Path, environment: dict[str, str]) -> None:
    done = fed(
        folder,
        environment,
        "const f = n => {\n  return n + 1\n}\nf(1)\ntext('é')\n\n:undo\n"
        "(await tools.lookup_order({\n  id: 'o-1'\n})).lines",
    )

    assert (done.stdout, done.returncode) == ("2\né\n3\n", 0)
    assert done.stderr == "variables are as they were before cell [3]; what tools did stays done\n"


@requirement("repl:pipe:status")
@pytest.mark.parametrize(
    ("cells", "flags", "status"),
    [
        ("", [], 0),
        ("1\nthrow new Error('no')\ntext('never')", [], 1),
        ("f(", [], 1),
        (":nothing\ntext('never')", [], 2),
        ("await yield_control()", [], 3),
        ("await yield_control(); 1\n:wait", [], 0),
        ("while (true) {}\ntext('never')", ["--timeout-ms", "200"], 4),
        ("1", ["--language", "perl"], 2),
        ("let x: number = 1; x", ["--language", "typescript"], 0),
        ("await tools.refund({order: 'o-1'})", [], 1),
    ],
)
def test_without_a_person_the_status_is_that_of_the_first_failure(
    folder: Path, environment: dict[str, str], cells: str, flags: list[str], status: int
) -> None:
    done = fed(folder, environment, cells, *flags)

    assert (done.returncode, "never" in done.stdout) == (status, False), done.stderr
    assert "Traceback" not in done.stderr


@requirement("repl:start:lazy")
def test_a_repl_without_a_terminal_loads_nothing_for_one(folder: Path, environment: dict[str, str]) -> None:
    program = (
        "import sys; sys.argv = ['codemode', 'repl']; from codemode.__main__ import main; main(); "
        "print([name for name in ('prompt_toolkit', 'rich', 'pygments', 'mcp') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, input="1 + 1\n", capture_output=True, text=True,
        timeout=BOUND_S, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines() == ["2", "[]"], done.stderr


# Leaving


@requirement("repl:commands:habits")
def test_exit_leaves_and_help_helps(sit: Sit) -> None:
    person = sit()
    person.sees_prompt(1)
    person.types("help" + ENTER)
    person.sees(":save FILE [CELLS]", "Ctrl-X Ctrl-E")
    person.sees_prompt(1)
    person.types("exit" + ENTER)
    assert person.ends() == 0


@requirement("repl:ctrl-d:leaves")
def test_leaving_waits_for_calls_in_flight_and_says_so(sit: Sit, folder: Path, environment: dict[str, str]) -> None:
    """The run waits in the store with its answer; another process goes on with it."""
    person = sit("--timeout-ms", "300")
    person.runs(1, "text('asked'); return await tools.wait_for({path: 'late'})")
    person.sees("the cell waits for 1 open call; :wait goes on with it")
    person.types("\x04")
    person.sees("waiting for the calls that are in flight; Ctrl-C interrupts them")
    (folder / "late").write_text("came", encoding="utf-8")
    assert person.ends() == 0
    run_id = run_command(["runs", "--json"], environment, folder).result[0]["runId"]
    ran = run_command(["wait", run_id, "--json"], environment, folder)

    assert (ran.result["status"], ran.result["value"]) == ("completed", "came")


@requirement("repl:ctrl-d:leaves", "repl:ctrl-c:aborts")
def test_ctrl_c_interrupts_what_leaving_waits_for(sit: Sit) -> None:
    person = sit("--timeout-ms", "300")
    person.runs(1, "await tools.wait_for({path: 'never'})")
    person.types("\x04")
    person.sees("Ctrl-C interrupts them")
    person.types(CTRL_C)
    assert person.ends() == 0


@requirement("repl:ctrl-d:leaves")
def test_a_terminal_that_is_closed_leaves_no_process_behind(sit: Sit) -> None:
    person = sit()
    person.runs(1, "1")
    workers = children_of(person.process.pid)
    assert workers != []
    person.closes()
    person.process.wait(BOUND_S)

    assert all(map(has_ended, workers))


@requirement("repl:errors:go-on")
def test_a_server_that_does_not_start_is_named_and_the_prompt_comes(sit: Sit, folder: Path) -> None:
    with (folder / "codemode.toml").open("a", encoding="utf-8") as manifest:
        manifest.write('\n[mcp.servers.broken]\ncommand = "false"\n')
    person = sit()
    person.sees("MCP server broken [exited]")
    assert line_after(person.runs(1, "1 + 1"), "[1]> 1 + 1") == "2"


@requirement("repl:approvals:nobody")
def test_on_a_ci_machine_an_approval_is_denied_at_once(folder: Path, environment: dict[str, str]) -> None:
    with Person(["repl"], environment | {"CI": "true"}, folder, columns=160) as person:
        screen = person.runs(1, "await tools.refund({order: 'o-1'})")

        assert "needs approval; nobody can be asked here" in screen
        assert "run it?" not in screen
