"""Command tools: real programs, in groups of their own."""

import asyncio
import os
import signal
import sys

import pytest

from codemode.core.errors import InvalidConfig, InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES, STDERR_TAIL_BYTES
from codemode.core.tables import Where
from codemode.definitions import CommandTemplate
from codemode.tools.command import CommandTool, run_program
from codemode.tools.templates import Placeholders, Variables
from tests.requirements import requirement
from tests.support.processes import has_ended
from tests.support.tools import make_context

CONTEXT = make_context()
WHERE = Where("codemode.toml", "tool[0]")


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", source, *arguments]


@pytest.fixture
def build(tmp_path):
    learned: set[str] = set()

    def make(argv: list[str], properties=()) -> CommandTool:
        template = CommandTemplate(tuple(argv))
        tool = CommandTool(template, Placeholders(properties), tmp_path, WHERE, Variables(learned.update))
        tool.learned = learned
        return tool

    return make


@requirement("tools:command:json-in-and-out")
async def test_the_input_comes_as_json_on_stdin(build):
    source = "import json, sys; print(json.dumps({'got': json.load(sys.stdin)}))"

    assert await build(python(source))({"a": ["é", None]}, CONTEXT) == {"got": {"a": ["é", None]}}


@requirement("tools:command:json-in-and-out")
@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("[1, 2]\\n", [1, 2]),
        ("12", 12),
        ("two\\nlines\\n", "two\nlines"),
        ("{not json}", "{not json}"),
        ("", None),
        ("\\n  \\n", None),
        ("[" * 100000, "[" * 100000),
        ("\\ufeff[1]", [1]),
    ],
)
async def test_what_it_prints_is_json_or_text_or_nothing(build, printed, value):
    assert await build(python(f"print('{printed}', end='')"))({}, CONTEXT) == value


async def test_a_program_that_does_not_read_its_input_is_no_error(build):
    assert await build(["true"])({"large": "x" * 1_000_000}, CONTEXT) is None


async def test_it_runs_in_the_manifests_folder(build, tmp_path):
    assert await build(["pwd"])({}, CONTEXT) == str(tmp_path)


@requirement("tools:command:placeholders")
async def test_properties_fill_arguments_and_no_shell_reads_them(build):
    source = "import json, sys; print(json.dumps(sys.argv[1:]))"
    argv = python(source, "{a}", "--n={n}", "{a}/{b}", "{other}", "{ a }", "$HOME", "*")

    result = await build(argv, ["a", "b", "n"])({"a": "$(rm -rf /); `x`", "b": [1, "é"], "n": 5}, CONTEXT)

    assert result == [
        "$(rm -rf /); `x`",
        "--n=5",
        '$(rm -rf /); `x`/[1, "é"]',
        "{other}",
        "{ a }",
        "$HOME",
        "*",
    ]


@requirement("tools:command:placeholders")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the property a is needed and was not given"),
        ({"a": "x\0y"}, "the property a holds a NUL character, which no argument can"),
    ],
)
async def test_a_value_that_cannot_be_an_argument_is_refused(build, given, message):
    with pytest.raises(InvalidInput, match=message):
        await build(["echo", "{a}"], ["a"])(given, CONTEXT)


@requirement("tools:command:options")
@pytest.mark.parametrize(
    ("arguments", "value", "printed"),
    [
        (["{a}"], "--output=/etc/passwd", None),
        (["{a}"], "-rf", None),
        (["{a}"], "-5", -5),
        (["{a}"], "-1.5", -1.5),
        (["--", "{a}"], "-rf", "-- -rf"),
        (["--a={a}"], "-rf", "--a=-rf"),
        (["-{a}"], "n1", "-n1"),
        (["x{a}"], "-rf", "x-rf"),
    ],
)
async def test_a_property_cannot_turn_an_argument_into_an_option(build, arguments, value, printed):
    tool = build(python("import sys; print(*sys.argv[1:])", *arguments), ["a"])
    if printed is None:
        with pytest.raises(InvalidInput, match='the property a would be read as an option: it begins with "-"'):
            await tool({"a": value}, CONTEXT)
    else:
        assert await tool({"a": value}, CONTEXT) == printed


@requirement("tools:command:failures")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (python("import sys; print('no order 7', file=sys.stderr); sys.exit(3)"), "exited with status 3: no order 7"),
        (["false"], '"false" exited with status 1.'),
        (["sh", "-c", "kill -TERM $$$$"], '"sh" was ended by SIGTERM.'),
        (["sh", "-c", "kill -40 $$$$"], '"sh" was ended by signal 40.'),
        (["sh", "-c", "echo no order 7; exit 3"], '"sh" exited with status 3: no order 7'),
        (["/no/such/program"], 'cannot run "/no/such/program": No such file or directory.'),
        (["."], 'cannot run ".": Permission denied.'),
    ],
)
async def test_a_program_that_fails_says_how(build, argv, message):
    with pytest.raises(NestedToolFailed) as caught:
        await build(argv)({}, CONTEXT)

    assert message in str(caught.value)


@requirement("tools:command:failures")
async def test_only_the_tail_of_a_long_stderr_is_shown(build):
    with pytest.raises(NestedToolFailed) as caught:
        await build(python("import sys; sys.exit('x' * 100000 + ' the end')"))({}, CONTEXT)

    assert str(caught.value).endswith("x the end")
    assert len(str(caught.value)) < STDERR_TAIL_BYTES + 200


async def test_binary_output_is_named_as_such(build):
    with pytest.raises(NestedToolFailed, match="printed binary data; binary is not supported, print base64"):
        await build(python("import os; os.write(1, bytes([255]))"))({}, CONTEXT)


@requirement("tools:command:output-bounded")
async def test_a_program_that_prints_without_end_is_ended(build):
    with pytest.raises(NestedToolFailed, match=f"printed more than {MAX_BRIDGE_BYTES} bytes; ask it for less"):
        await asyncio.wait_for(build(["yes"])({}, CONTEXT), 60)


SPAWNING = """
import pathlib, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
print("started", flush=True)
pathlib.Path("pid").write_text(str(child.pid))
{ending}
"""


@requirement("tools:command:group-killed")
async def test_cancelling_kills_the_whole_group(build, tmp_path):
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    task = asyncio.create_task(build(python(SPAWNING.format(ending="time.sleep(600)")))({}, CONTEXT))
    child = int(await asyncio.wait_for(asyncio.to_thread(pid.read_text), 60))
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert has_ended(child)


@requirement("tools:command:group-killed")
async def test_a_call_that_is_cancelled_while_its_program_starts_leaves_no_child_of_it(build, tmp_path):
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    task = asyncio.create_task(build(python(SPAWNING.format(ending="time.sleep(600)")))({}, CONTEXT))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    child = int(pid.read_text())  # the loop stands still meanwhile, so for it the program has hardly started
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert has_ended(child)


@requirement("tools:command:group-killed")
async def test_a_child_that_holds_the_pipes_neither_delays_nor_survives_the_answer(build, tmp_path):
    result = await asyncio.wait_for(build(python(SPAWNING.format(ending="")))({}, CONTEXT), 60)

    assert result == "started"
    assert has_ended(int((tmp_path / "pid").read_text()))


async def test_a_program_is_not_in_our_group(tmp_path):
    finished = await run_program(python("import os; print(os.getpgid(0), os.getpid())"), b"", tmp_path)

    group, pid = map(int, finished.stdout.split())
    assert group == pid != os.getpgid(0)


async def test_many_run_side_by_side(build):
    tool = build(python("import sys; print(sys.stdin.read())"))

    assert await asyncio.gather(*(tool({"n": n}, CONTEXT) for n in range(8))) == [{"n": n} for n in range(8)]


@requirement("tools:variables:at-use")
async def test_variables_are_filled_at_the_first_call_and_learned(build, monkeypatch):
    tool = build(["echo", "${MADE_UP_TOKEN}"])
    monkeypatch.setenv("MADE_UP_TOKEN", "hunter2-hunter2")

    assert await tool({}, CONTEXT) == "hunter2-hunter2"
    assert tool.learned == {"hunter2-hunter2"}


async def test_a_value_of_the_input_is_never_expanded(build, monkeypatch):
    monkeypatch.setenv("MADE_UP_TOKEN", "hunter2-hunter2")

    assert await build(["echo", "{a}"], ["a"])({"a": "${MADE_UP_TOKEN}"}, CONTEXT) == "${MADE_UP_TOKEN}"


async def test_an_unset_variable_names_variable_key_and_file(build):
    with pytest.raises(InvalidConfig) as caught:
        await build(["echo", "${MADE_UP_MISSING}"])({}, CONTEXT)

    assert str(caught.value).startswith("tool[0].command[1] in codemode.toml: the variable MADE_UP_MISSING is not set")


def test_a_probe_looks_for_the_program_and_runs_nothing(build, tmp_path):
    (tmp_path / "own").touch()
    build(["sh", "-c", "touch ran"]).probe()
    build(["own"]).probe()

    with pytest.raises(InvalidConfig, match='there is no program "made-up-program"; install it or give its path'):
        build(["made-up-program"]).probe()
    assert not (tmp_path / "ran").exists()


async def test_a_signal_number_is_named(tmp_path):
    finished = await run_program(["sh", "-c", "kill -KILL $$"], b"", tmp_path)

    assert finished.status == -signal.SIGKILL
