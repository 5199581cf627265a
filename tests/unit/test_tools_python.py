"""Python tools: real modules in the manifest's folder."""

import asyncio
import contextlib
import subprocess
import sys
import textwrap
import threading

import pytest

from codemode.core.errors import InvalidConfig, NestedToolFailed
from codemode.core.tables import Where
from codemode.definitions import PythonTarget
from codemode.tools.python import PythonFunction, PythonTool
from codemode.tools.threads import Threads
from tests.requirements import requirement
from tests.support.tools import make_context

WHERE = Where("codemode.toml", "tool[0].python")
CONTEXT = make_context()


@pytest.fixture
def threads():
    made = Threads()
    yield made
    made.close()


@pytest.fixture
def write(tmp_path, monkeypatch, threads):
    """Write a module and return a maker of tools for its functions."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def build(source: str, function: str = "run", module: str = "made_up_tools") -> PythonTool:
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        target = PythonFunction(PythonTarget(module, function), tmp_path, WHERE, threads)
        return PythonTool(target, WHERE)

    yield build
    for name in set(sys.modules) - before:
        if name.startswith("made_up"):
            del sys.modules[name]


@requirement("tools:python:conventions")
@pytest.mark.parametrize(
    ("signature", "given", "expected"),
    [
        ("def run(a, b=2): return [a, b]", {"a": 1}, [1, 2]),
        ("def run(**all): return all", {"a": 1, "context": 2}, {"a": 1, "context": 2}),
        ("def run(**all): return all", {"self": 1, "args": 2, "function": 3}, {"self": 1, "args": 2, "function": 3}),
        ("def run(a, context): return [a, context.run_id]", {"a": 1}, [1, "cm_1"]),
        ("def run(context): return context.agent_id", {}, "main"),
        ("def run(input: dict): return input", {"a": 1}, {"a": 1}),
        ("def run(input: dict[str, int]): return input", {"a": 1}, {"a": 1}),
        ("def run(input: 'dict[str, int]', context=None): return [input, context.run_id]", {}, [{}, "cm_1"]),
        ("def run(input: str): return input", {"input": "text"}, "text"),
        ("def run(input): return input", {"input": "text"}, "text"),
        ("async def run(a): return a", {"a": 1}, 1),
        ("class run:\n    def __init__(self, a): pass\n    def __iter__(self): return iter(())", {"a": 1}, ...),
    ],
)
async def test_how_an_input_becomes_arguments(write, signature, given, expected):
    result = await write(signature)(given, CONTEXT)

    assert expected is ... or result == expected


async def test_the_tool_cannot_change_the_callers_input(write):
    given = {"a": 1}

    await write("def run(**all): all.clear()")(given, CONTEXT)

    assert given == {"a": 1}


@requirement("tools:python:async-natively")
async def test_an_async_function_runs_in_the_loop_and_is_cancelled_with_its_call(write):
    tool = write(
        """
        import asyncio, threading
        log, started = [], asyncio.Event()
        async def run():
            log.append(threading.current_thread() is threading.main_thread())
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append("ended")
        """
    )
    tool.probe()
    task = asyncio.create_task(tool({}, CONTEXT))
    await asyncio.wait_for(sys.modules["made_up_tools"].started.wait(), 60)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert sys.modules["made_up_tools"].log == [True, "ended"]


async def test_an_object_with_an_async_call_is_async(write):
    tool = write("class Tool:\n    async def __call__(self, a): return a\nrun = Tool()")

    assert await tool({"a": 1}, CONTEXT) == 1


async def test_a_decorated_function_that_returns_an_awaitable_is_awaited(write):
    tool = write("async def inner(a): return a\ndef run(a): return inner(a)")

    assert await tool({"a": 1}, CONTEXT) == 1


@requirement("tools:python:sync-in-a-thread")
async def test_synchronous_tools_run_side_by_side_off_the_loop(write):
    tool = write(
        """
        import threading
        barrier = threading.Barrier(3, timeout=60)
        def run():
            barrier.wait()
            return threading.current_thread() is threading.main_thread()
        """
    )

    assert await asyncio.gather(*(tool({}, CONTEXT) for _ in range(3))) == [False] * 3


async def test_a_method_of_a_class_can_be_named(write):
    tool = write("class Shop:\n    @staticmethod\n    def look(a): return a", "Shop.look")

    assert await tool({"a": 1}, CONTEXT) == 1


@requirement("tools:python:first-call")
async def test_a_module_is_imported_at_the_first_call_and_once(write, tmp_path):
    tool = write(
        "from pathlib import Path\nwith open(Path(__file__).with_name('log'), 'a') as f: f.write('x')\ndef run(): pass"
    )

    assert "made_up_tools" not in sys.modules
    await tool({}, CONTEXT)
    await tool({}, CONTEXT)

    assert (tmp_path / "log").read_text() == "x"


@requirement("tools:python:folder-importable")
async def test_a_module_may_import_its_neighbours(write, tmp_path):
    (tmp_path / "made_up_neighbour.py").write_text("PRICE = 7")

    assert await write("def run():\n    import made_up_neighbour\n    return made_up_neighbour.PRICE")({}, CONTEXT) == 7


@requirement("tools:python:import-errors", "tools:python:folder-importable")
@pytest.mark.parametrize(
    ("source", "function", "module", "message"),
    [
        ("def run(: pass", "run", "made_up_tools", "cannot import made_up_tools: SyntaxError: "),
        ("import nothing_like_it", "run", "made_up_tools", "ModuleNotFoundError: No module named 'nothing_like_it'."),
        ("raise SystemExit(3)", "run", "made_up_tools", "cannot import made_up_tools: SystemExit: 3."),
        ("1 / 0", "run", "made_up_tools", "cannot import made_up_tools: ZeroDivisionError: division by zero."),
        ("def look_up(): pass", "lookup", "made_up_tools", 'made_up_tools has no lookup. Did you mean "look_up"?'),
        ("run = 5", "run", "made_up_tools", "made_up_tools:run is a int, not a function."),
        ("def run(a, /): pass", "run", "made_up_tools", "the function has positional-only parameters"),
        ("def run(): pass", "run", "queue", "queue is the name of another module that came first"),
    ],
)
async def test_a_target_that_cannot_be_used_is_one_sentence(write, source, function, module, message):
    with pytest.raises(InvalidConfig) as caught:
        await write(source, function, module)({}, CONTEXT)

    assert str(caught.value).startswith("tool[0].python in codemode.toml: ")
    assert message in str(caught.value)


@requirement("tools:python:exits", "executor:errors:exit")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys\ndef run(): sys.exit(3)", "it raised SystemExit: 3"),
        ("def run(): raise StopIteration('x')", "it raised StopIteration: x"),
        ("import sys\nasync def run(): sys.exit(3)", "it raised SystemExit: 3"),
        ("def run(): raise KeyboardInterrupt('x')", "it raised KeyboardInterrupt: x"),
        ("def run(): raise GeneratorExit('x')", "it raised GeneratorExit: x"),
        ("class Odd(BaseException): pass\ndef run(): raise Odd('x')", "it raised Odd: x"),
        ("class Odd(BaseException): pass\nasync def run(): raise Odd('x')", "it raised Odd: x"),
    ],
)
async def test_a_tool_that_exits_only_fails(write, source, message):
    with pytest.raises(RuntimeError, match=message):
        await write(source)({}, CONTEXT)


async def test_context_variables_reach_the_thread(write):
    from contextvars import ContextVar

    variable = ContextVar("made_up", default=0)
    variable.set(5)
    seen = []

    threads = Threads()
    await threads.run(lambda: seen.append(variable.get()))
    threads.close()

    assert seen == [5]


async def test_a_cancelled_wait_leaves_the_thread_usable(threads):
    release = threading.Event()
    future = threads.run(release.wait, 60)
    future.cancel()
    release.set()

    assert await asyncio.wait_for(threads.run(lambda: 5), 60) == 5


@requirement("tools:python:threads-held")
async def test_calls_that_never_return_are_told_of_once_they_hold_every_thread(threads, monkeypatch):
    monkeypatch.setattr("codemode.tools.threads.MAX_TOOL_THREADS", 2)
    release, busy = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        busy.release()
        release.wait(60)

    held = [threads.run(hold) for _ in range(2)]
    for _ in held:
        assert await asyncio.to_thread(busy.acquire, timeout=60)  # one that has not begun would never hold a thread
    for future in held:
        future.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    with pytest.raises(NestedToolFailed, match="2 synchronous calls were given up"):
        threads.run(int)
    release.set()
    await until_it_runs(threads)

    assert await threads.run(int) == 0


async def until_it_runs(threads: Threads) -> None:
    """Try until a thread is there again."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(NestedToolFailed):
                await threads.run(int)
                return
            await asyncio.sleep(0.005)


async def test_a_job_that_was_cancelled_before_its_turn_never_runs(monkeypatch):
    monkeypatch.setattr("codemode.tools.threads.MAX_TOOL_THREADS", 1)
    threads, release, ran = Threads(), threading.Event(), []

    first = threads.run(release.wait, 60)
    second = threads.run(ran.append, "second")
    third = threads.run(ran.append, "third")
    second.cancel()
    release.set()
    await asyncio.wait_for(asyncio.gather(first, third), 60)
    threads.close()

    assert ran == ["third"]


def test_a_built_in_that_does_not_say_its_parameters_takes_keywords(tmp_path, threads):
    function = PythonFunction(PythonTarget("builtins", "dict"), tmp_path, WHERE, threads)

    assert PythonTool(function, WHERE).probe() == (False, False)


async def test_a_thread_that_has_answered_is_reused(threads):
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(20)}

    assert len(names) == 1


@requirement("tools:python:hanging-thread")
def test_a_hanging_tool_does_not_keep_the_process_alive():
    program = """
import asyncio, threading
from codemode.tools.threads import Threads
async def main():
    future = Threads().run(threading.Event().wait)
    await asyncio.sleep(0)
    future.cancel()
asyncio.run(main())
print("ended")
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_a_result_that_comes_after_the_loop_ended_is_dropped():
    program = """
import asyncio, threading
from codemode.tools.threads import Threads
release, done = threading.Event(), threading.Event()
async def main():
    def work():
        release.wait()
        done.set()
    Threads().run(work)
    await asyncio.sleep(0)
asyncio.run(main())
release.set()
done.wait(60)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stderr == ""
