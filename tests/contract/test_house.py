"""The budget of the house, measured on its own files. Change a number only with a reason."""

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "codemode"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_MODULE_LINES, MEDIAN_MODULE_LINES = 400, 150
MAX_FUNCTION_LINES, MEDIAN_FUNCTION_LINES = 60, 10
MAX_ARGUMENTS = 6
DRAWERS = {"utils", "util", "helpers", "common", "base", "manager", "misc"}
MAY_CATCH_EVERYTHING = {
    "cli/app.py": "an exception becomes an exit status",
    "core/errors.py": "an exception whose own text is broken is told by its type",
    "executor.py": "a tool's exception becomes a rejection",
    "hooks.py": "a hook's exception becomes a refusal",
    "host.py": "a fault of ours before there is a session becomes a failed result",
    "library/mode.py": "a listener of the program around us, reported to its loop",
    "live/carrier.py": "a fault of ours in a call ends its run",
    "namespaces.py": "a plugin's exception in its scope or mapper becomes invalid_config or invalid_input",
    "plugins.py": "whatever a plugin does while it is loaded becomes invalid_config",
    "repl/completer.py": "a broken completer never ends a session",
    "sandbox/worker.py": "an exception becomes the event that ends a turn",
    "session.py": "an exception becomes a failed result",
    "tools/http.py": "whatever the client, and what it stands on, fails with becomes a rejection",
    "tools/python.py": "whatever a module does while it is imported becomes invalid_config",
    "tools/threads.py": "a thread's exception is raised where it is awaited",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions() -> Iterator[tuple[str, Function]]:
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Function):
                yield f"{name_of(path)}:{node.lineno} {node.name}", node


def public(path: Path) -> Iterator[tuple[str, ast.Module | ast.ClassDef | Function]]:
    """Yield what a reader of the module may use: itself, its classes, functions and methods."""
    tree = tree_of(path)
    yield name_of(path), tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield f"{name_of(path)} {node.name}", node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, Function) and not inner.name.startswith("_") and not is_setter(inner):
                    yield f"{name_of(path)} {node.name}.{inner.name}", inner


def is_setter(function: Function) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in function.decorator_list)


def argument_count(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in {"self", "cls"}])


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


@requirement("house:budget:size")
def test_no_module_is_longer_than_a_reader_holds_in_mind() -> None:
    assert {name_of(path): lines_of(path) for path in MODULES if lines_of(path) > MAX_MODULE_LINES} == {}
    assert statistics.median(lines_of(path) for path in MODULES) <= MEDIAN_MODULE_LINES


@requirement("house:budget:size")
def test_no_function_is_longer_than_a_screen() -> None:
    assert {name: length(node) for name, node in functions() if length(node) > MAX_FUNCTION_LINES} == {}
    assert statistics.median(length(node) for _, node in functions()) <= MEDIAN_FUNCTION_LINES


@requirement("house:budget:size")
def test_no_function_takes_more_arguments_than_one_reads_at_a_glance() -> None:
    assert {name: argument_count(node) for name, node in functions() if argument_count(node) > MAX_ARGUMENTS} == {}


@requirement("house:budget:docstrings")
def test_everything_public_says_what_it_does() -> None:
    assert [name for path in MODULES for name, node in public(path) if not ast.get_docstring(node)] == []


@requirement("house:budget:tests")
def test_the_tests_weigh_at_least_as_much_as_the_source() -> None:
    tests = sum(lines_of(path) for path in (ROOT / "tests").rglob("*.py"))
    programs = sum(
        lines_of(path) for name in ("cells", "hostile") for path in (ROOT / "fixtures" / name).rglob("*.[jt]s")
    )

    assert tests + programs >= sum(lines_of(path) for path in MODULES)


@requirement("house:names:modules")
def test_no_module_is_a_drawer() -> None:
    parts = {part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts}

    assert parts & DRAWERS == set()


@requirement("house:packages:inits")
def test_an_init_of_a_sub_package_holds_a_docstring_only() -> None:
    inits = [path for path in MODULES if path.name == "__init__.py" and path.parent != PACKAGE]

    assert [name_of(path) for path in inits if len(tree_of(path).body) != 1] == []


@requirement("house:print:where")
def test_only_the_command_line_and_rendering_print() -> None:
    printing = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }

    assert {name for name in printing if name.split("/")[0] not in {"cli", "render"}} == set()


@requirement("house:errors:broad")
def test_everything_is_caught_only_where_an_exception_becomes_data() -> None:
    catching = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and keeps_everything(node)
    }

    assert catching - set(MAY_CATCH_EVERYTHING) == set()


def keeps_everything(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler takes any exception at all and does not raise it again."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    is_broad = any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)
    last = handler.body[-1]
    return is_broad and not (isinstance(last, ast.Raise) and last.exc is None)


@requirement("house:imports:layers")
@pytest.mark.timeout(60)
def test_imports_go_down_the_house() -> None:
    """The contracts are in `pyproject.toml`; the graph is made anew, not taken from a cache."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)

    assert done.returncode == 0, done.stdout[-4000:]
