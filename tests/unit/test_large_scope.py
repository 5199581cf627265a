"""Ten thousand tools, in a cell that looks at them and in one that does not."""

from pathlib import Path
from typing import Any

import pytest

from codemode.sandbox.cell import Scope
from tests.requirements import requirement
from tests.support.guest import Guest

_LONG = "x" * 70_000
_SCOPE: dict[str, Any] = {
    "tools": [{"id": "client:app:add", "name": "add", "description": _LONG, "source": "client", "sourceName": "app"}],
    "names": {"add": "client:app:add", "filler": _LONG},
    "mcp": {"header": _LONG, "servers": []},
    "files": [{"path": "mcp/index.d.ts", "description": "", "bytes": 70_000, "text": _LONG}],
}
_WHOLE = Scope(_LONG, _LONG, _LONG, _LONG, "[]")


@pytest.fixture(scope="module")
def guest(engine_cache: Path) -> Guest:
    return Guest(engine_cache)


@requirement("sandbox:scope:named")
@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("return 1", set()),
        ("const rows = [1, 2]; return rows[0]", set()),
        ("return ALL_TOOLS.length", {"tools"}),
        ("return await tools.add({})", {"names"}),
        ("return await MCP.$api()", {"mcp"}),
        ("return await API.list()", {"files"}),
        ("return globalThis['ALL' + '_TOOLS'].length", {"tools", "names", "mcp", "files"}),
        ("return (function () { return this })()", {"tools", "names", "mcp", "files"}),
        ("return A\\u004cL_TOOLS.length", {"tools", "names", "mcp", "files"}),
        ("return eval('ALL' + '_TOOLS')", {"tools", "names", "mcp", "files"}),
        ("return (() => 1).constructor('return 1')()", {"tools", "names", "mcp", "files"}),
    ],
)
def test_a_cell_is_given_the_large_texts_that_its_source_may_reach(source: str, given: set[str]) -> None:
    """By its names, or by any way around them."""
    scope = _WHOLE.for_source(source)

    assert {key for key in ("tools", "names", "mcp", "files") if getattr(scope, key)} == given


@requirement("sandbox:scope:named")
def test_small_texts_are_given_to_every_cell() -> None:
    """A hint about a wrong name needs them, and they cost nothing."""
    small = Scope("[]", "{}", "null", "[]", "[]")

    assert small.for_source("return 1") is not None
    assert small.for_source("return 1") == small


@requirement("sandbox:scope:named")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("return ALL_TOOLS[0].id", "client:app:add"),
        ("return typeof tools.add", "function"),
        ("return 'add' in tools", True),
        ("return (await MCP.$api()).header.length", 70_000),
        ("return (await API.read('mcp/index.d.ts')).length", 70_000),
        ("return globalThis['ALL' + '_TOOLS'].length", 1),
        ("return Object.keys(globalThis).includes('MCP')", True),
        ("return A\\u004cL_TOOLS.length", 1),
        ("return typeof MCP", "object"),
        ("return (function () { return this['ALL' + '_TOOLS'].length })()", 1),
    ],
)
def test_a_cell_that_looks_finds_everything(guest: Guest, source: str, value: Any) -> None:
    """However large it is."""
    assert guest.value(source, scope=_SCOPE) == value


@requirement("sandbox:scope:named")
def test_a_name_that_is_hidden_from_every_reader_is_a_clear_error(guest: Guest) -> None:
    """Never an empty list in its place."""
    source = "const f = (() => 1)['constr' + 'uctor']; return f('return ALL' + '_TOOLS.length')()"

    assert guest.failure(source, scope=_SCOPE).startswith(
        "None: ReferenceError: ALL_TOOLS is not in this cell, which never names it; write ALL_TOOLS out in its source"
    )


@requirement("sandbox:scope:named")
def test_a_wrong_name_is_an_error_with_or_without_the_tools_names(guest: Guest) -> None:
    """The hint about a function of tools needs them; the general one does not."""
    assert "ReferenceError: add is not defined; " in guest.failure("return add(1)", scope=_SCOPE)
    assert 'did you mean "tools.add"?' in guest.failure("// tools\nreturn add(1)", scope=_SCOPE)


@requirement("sandbox:scope:named")
def test_what_a_cell_was_given_lives_on_after_a_resume(guest: Guest) -> None:
    """It is part of the VM."""
    source = "await tools.call('client:app:add', {}); return [ALL_TOOLS.length, typeof tools.add]"
    end = guest.start(source, scope=_SCOPE)
    resumed = guest.resume(guest.snapshot(), (end.calls[0].id, True, 1))

    assert resumed.value == [1, "function"]


@requirement("sandbox:scope:named")
def test_a_cell_whose_vm_stays_is_given_all(guest: Guest) -> None:
    """The next one may look."""
    assert guest.value("1", keep=True, scope=_SCOPE) == 1
    base = guest.snapshot()

    assert guest.value("ALL_TOOLS.length", keep=True, base=base, scope=_SCOPE) == 1
