"""Expectations made anew from what a run came to: what `--update` writes.

Only what says exactly what a run gives is renewed. Bounds (`max-calls`, `duration`) and `not`
are a person's decision, and stay even where they do not hold.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from codemode.core.types import Json
from codemode.smoke.expectations import TAGS, Expectation, expected_status
from codemode.smoke.paths import follow_path
from codemode.smoke.verdicts import Observed, find_differences

_POSITION = re.compile(r" \(cell\.[jt]s:\d+(?::\d+)?\)\Z")  # moves with every line that is written above it


class Change(NamedTuple):
    """One expectation that is replaced, removed (`new` is None) or added (`old` is None)."""

    old: Expectation | None
    new: Expectation | None


def renew(expectations: Sequence[Expectation], observed: Observed) -> list[Change]:
    """Return what must change for the expectations to hold; what holds already stays as it is written.

    Contract: smoke:update:renews, smoke:update:first-time
    """
    status = observed.result["status"]
    changes = [Change(each, new) for each in expectations if (new := _renewed(each, observed)) is not each]
    if expectations and expected_status(expectations) == status:
        return changes
    written = {each.tag for each in expectations if TAGS[each.tag].when in (None, status)}
    return changes + [Change(None, each) for each in _fresh(observed, bool(expectations)) if each.tag not in written]


def _renewed(each: Expectation, observed: Observed) -> Expectation | None:
    """Return an expectation as it must be: itself, another one, or None where there is no such thing now."""
    status = observed.result["status"]
    if each.tag == "status":
        return each if each.wanted == status else each._replace(wanted=status)
    if TAGS[each.tag].when not in (None, status):
        return None
    alone = [Expectation("status", status), each]
    if each.tag not in _RENEWALS or not any(find_differences(alone, observed)):
        return each
    found = _RENEWALS[each.tag](each, observed)
    return each._replace(wanted=found[0]) if found else None


def _fresh(observed: Observed, knows_some: bool) -> Iterator[Expectation]:
    """Yield what describes a run; for a cell that has some expectations only what its new status needs."""
    result = observed.result
    yield Expectation("status", result["status"])
    if result["status"] == "completed":
        yield Expectation("value", result["value"])
    elif result["status"] == "waiting":
        yield Expectation("reason", result["reason"])
    else:
        if "code" in result:
            yield Expectation("code", result["code"])
        yield Expectation("error", _error_text(result))
    if not knows_some and result["output"]:
        yield Expectation("output", result["output"])
    if not knows_some and observed.calls:
        yield Expectation("calls", sorted(observed.calls))


def _error_text(result: Mapping[str, Json]) -> str:
    """Return the first line of an error without its position."""
    return _POSITION.sub("", str(result["error"]).split("\n")[0])


def _at_path(each: Expectation, observed: Observed) -> list[Json]:
    path = each.path
    assert path is not None  # every @path has one
    found = follow_path(path, observed.result["value"])
    return found if path.is_single else [found]


def _overlap(wanted: Json, found: Json) -> Json:
    """Return as much of what was found as a partial expectation asks for."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {key: _overlap(item, found[key]) for key, item in wanted.items() if key in found}
    if isinstance(wanted, list) and isinstance(found, list):
        shared = [_overlap(one, other) for one, other in zip(wanted, found, strict=False)]
        return shared + found[len(shared) :]
    return found


def _field(each: Expectation, observed: Observed) -> list[Json]:
    found = observed.result.get(each.tag)
    return [] if found is None else [found]


_RENEWALS: Mapping[str, Callable[[Expectation, Observed], list[Json]]] = {
    "value": lambda _each, observed: [observed.result["value"]],
    "partial": lambda each, observed: [_overlap(each.wanted, observed.result["value"])],
    "path": _at_path,
    "output": lambda _each, observed: [observed.result["output"]],
    "code": _field,
    "phase": _field,
    "dispatched": _field,
    "reason": _field,
    "error": lambda _each, observed: [_error_text(observed.result)],
    "pending": lambda _each, _observed: [],  # it is not open any more
    "calls": lambda _each, observed: [sorted(observed.calls)],
}
