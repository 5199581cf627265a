"""How a mapper, a Python function, finds its way into another process.

`createScope` runs once for a run, but the run may go on in a process that was started later. So
what is stored of a mapper is where its code is written, as `module`, function and place in it, and
the values that it captured. `write_mapper` takes it apart and `read_mapper` makes it again; what
cannot be written down is refused when the scope is made, not when the run goes on.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from codemode.core.jsonsafe import NotJson, adapt
from codemode.core.types import Json, RunContext

Mapper = Callable[[list[Json]], Any]
_MAX_DEPTH = 8  # functions that capture functions; one that captures itself never ends


class NotPortable(ValueError):
    """A mapper that cannot be written down; the message says what is in the way."""


class MapperLost(LookupError):
    """A mapper whose code is not where it was."""


def write_mapper(mapper: Mapper) -> Json:
    """Return a mapper as JSON.

    `{"module", "name"}` for what its module can name; for a function within a function also
    `{"at", "code", "captured": {variable: value}, "defaults": [value]}`. A value is
    `{"value": JSON}`, `{"function": …}` or `{"context": true}`.

    Raises:
        NotPortable: No module names it, or it captured something that is no JSON.

    Contract: namespaces:mapper:portable
    """
    return _write_function(mapper, 0)


def read_mapper(written: Json, context: RunContext) -> Mapper:
    """Make a mapper again from what `write_mapper` returned.

    Args:
        written: As JSON.
        context: Stands for the run's context where the mapper captured it.

    Raises:
        MapperLost: Its module is gone, or something else is written where it was.
    """
    try:
        mapper: Mapper = _read_function(written, context)
    except (ImportError, AttributeError) as error:
        raise MapperLost(f"{written['module']}.{written['name']} is not there any more") from error
    return mapper


def _write_function(function: Any, depth: int) -> Json:
    name, module = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if name is None or module not in sys.modules or depth > _MAX_DEPTH:
        raise NotPortable(f"{_shown(function)} cannot be found again by its name")
    outer_name, is_inner, _ = name.partition(".<locals>")
    outer = _find(sys.modules[module], outer_name)
    if not is_inner and outer == function:
        return {"module": module, "name": outer_name}
    code, codes = getattr(function, "__code__", None), _codes_within(outer)
    if code not in codes:
        raise NotPortable(f"{_shown(function)} is neither a function of {module} nor written within one")
    if function.__kwdefaults__:
        raise NotPortable(f"{_shown(function)} has defaults of keywords; a mapper is called with one list")
    return {
        "module": module,
        "name": outer_name,
        "at": codes.index(code),
        "code": code.co_qualname,
        "captured": {
            variable: _write_value(variable, cell, depth)
            for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        },
        "defaults": [_write_value("a default", CellType(value), depth) for value in function.__defaults__ or ()],
    }


def _write_value(variable: str, cell: CellType, depth: int) -> Json:
    try:
        value = cell.cell_contents
    except ValueError as error:
        raise NotPortable(f"it captured {variable}, which has no value yet") from error
    if isinstance(value, RunContext):
        return {"context": True}
    if isinstance(value, FunctionType):
        return {"function": _write_function(value, depth + 1)}
    try:
        plain = adapt(value)
    except NotJson as error:
        raise NotPortable(f"it captured {variable}, a {type(value).__name__}") from error
    if plain != value:
        raise NotPortable(f"it captured {variable}, a {type(value).__name__} that JSON would change")
    return {"value": plain}


def _read_function(written: Json, context: RunContext) -> Any:
    module = importlib.import_module(written["module"])
    outer = _find(module, written["name"])
    if "at" not in written:
        if outer is None:
            raise AttributeError(written["name"])
        return outer
    codes = _codes_within(outer)
    code = codes[written["at"]] if written["at"] < len(codes) else None
    captured = written["captured"]
    if code is None or code.co_qualname != written["code"] or code.co_freevars != tuple(captured):
        raise AttributeError(written["code"])
    defaults = tuple(_read_value(value, context) for value in written["defaults"])
    closure = tuple(CellType(_read_value(value, context)) for value in captured.values())
    return FunctionType(code, vars(module), code.co_name, defaults, closure)


def _read_value(written: Json, context: RunContext) -> Any:
    if "context" in written:
        return context
    return _read_function(written["function"], context) if "function" in written else written["value"]


def _find(module: Any, name: str) -> Any:
    """Return what a dotted name leads to, or None."""
    found = module
    for step in name.split("."):
        found = getattr(found, step, None)
    return found


def _codes_within(outer: Any) -> list[CodeType]:
    """Return the code of each function within a function, beneath its decorators, in the order of the source."""
    code = getattr(inspect.unwrap(outer), "__code__", None) if callable(outer) else None
    return list(_codes(code)) if code is not None else []


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _shown(function: Any) -> str:
    return getattr(function, "__qualname__", None) or f"a {type(function).__name__}"
