"""Two engines, one language: the sandbox agrees with the native oracle.

Every cell of the fixtures that needs neither tools nor suspension runs on both, and so do
random programs over numbers, strings, arrays, objects, closures, generators and regexes.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.requirements import requirement
from tests.support.cells import FIXTURES, Cell, load_cells
from tests.support.guest import Guest
from tests.support.oracle import Unsupported, run_natively

CELLS = [
    cell
    for cell in load_cells(FIXTURES / "cells")
    if cell.path.suffix == ".js"
    and cell.one("status") == "completed"
    and cell.one("value") is not None
    and not {"manifest", "flags", "bare"} & set(cell.header)
    and "return" in cell.code
]
OURS_ALONE = (
    "tools", "ALL_TOOLS", "MCP", "API", "namespaces", "setTimeout", "yield_control", "Promise.reject",
    "json__",  # the adapter is ours
    "source__",  # the source forms too
    "_is_catchable",  # the older engine throws InternalError there
)  # fmt: skip


@pytest.fixture(scope="module")
def guest(engine_cache: Path) -> Guest:
    return Guest(engine_cache)


def plain(cell: Cell) -> bool:
    """Say whether a cell uses nothing but the language."""
    return not any(word in cell.code or word in cell.path.name for word in OURS_ALONE)


@requirement("sandbox:oracle:agrees")
@pytest.mark.parametrize("cell", [cell for cell in CELLS if plain(cell)], ids=lambda cell: cell.path.stem)
def test_a_plain_cell_gives_the_same_on_both_engines(guest: Guest, cell: Cell) -> None:
    try:
        expected = run_natively(cell.code)
    except Unsupported as reason:
        pytest.skip(f"the oracle cannot run it: {reason}")
    end = guest.start(cell.code)
    if expected.get("error", "").startswith(("TypeError: not a function", "ReferenceError")):
        pytest.skip("the oracle's library is older")
    assert end.state == "completed", end
    assert as_floats(end.value) == as_floats(expected["value"])


INTEGERS = st.integers(-100, 100).map(lambda n: f"({n})")
TEXTS = st.text("abcxyzäß ", max_size=6).map(json.dumps)
ATOMS = (
    INTEGERS | TEXTS | st.sampled_from(["true", "null", "undefined", "[]", "({})", "NaN", "0.1", "-0", "1e21", "/a+/"])
)
BINARY = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
    "<",
    "<=",
    "==",
    "===",
    "!=",
    "&&",
    "||",
    "??",
]
UNARY = ["-", "+", "!", "~", "typeof ", "void "]
METHODS = [
    "String({0})", "Number({0})", "Boolean({0})", "[{0}, {1}].join()", "[{0}, {1}].sort()", "JSON.stringify([{0}])",
    "[{0}, {1}].map(x => x)", "[...`${{{0}}}`]", "Object.entries({{a: {0}, b: {1}}})", "parseInt({0})",
    "Math.max({0}, {1})",
    "((a, b) => [b, a])({0}, {1})", "[{0}].concat({1})", "`${{{0}}}`.split('')", "[{0}, {1}].indexOf({1})",
    "(function* () {{ yield {0}; yield {1} }})().next()", "[...(function* () {{ yield* [{0}, {1}] }})()]",
    "(() => {{ try {{ throw {0} }} catch (e) {{ return [e] }} finally {{ void {1} }} }})()",
    "`${{{0}}}`.replace(/[a-c]/g, m => m + m)", "(({{a = {1}, ...rest}}) => [a, rest])({{a: {0}, b: 2}})",
    "[{0}, {1}].reduce((a, b) => `${{a}}${{b}}`, '')", "Number.isInteger({0})", "isNaN({0})", "[{0}]?.[0]",
    "new Set([{0}, {1}]).size", "new Map([[{0}, {1}]]).get({0})",
    "(class {{ x = {0}; get y() {{ return this.x }} }}, new (class {{ x = {0} }})().x)",
]  # fmt: skip


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from(BINARY), pairs).map(lambda t: f"(({t[1][0]}) {t[0]} ({t[1][1]}))"),
        st.tuples(st.sampled_from(UNARY), inner).map(lambda t: f"({t[0]}({t[1]}))"),
        st.tuples(st.sampled_from(METHODS), pairs).map(lambda t: f"({t[0].format(*t[1])})"),
        st.tuples(inner, pairs).map(lambda t: f"(({t[0]}) ? ({t[1][0]}) : ({t[1][1]}))"),
    )


@requirement("sandbox:oracle:agrees")
@given(st.recursive(ATOMS, combine, max_leaves=12))
@settings(deadline=None, max_examples=300)
def test_a_random_expression_gives_the_same_on_both_engines(guest: Guest, expression: str) -> None:
    """The value crosses as JSON text made by the guest's own JSON, so that no adapter is in between."""
    source = f"return String(JSON.stringify([{expression}]))"
    expected = run_natively(source)
    end = guest.start(source)
    if "error" in expected:
        assert end.failure is not None, (expression, expected)
        assert end.failure.error.partition(":")[0] == expected["error"].partition(":")[0]
    else:
        assert end.value == expected["value"], expression


def as_floats(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_int=float)
