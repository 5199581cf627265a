"""Two JSON values compared: each place in which they differ, with its path and both texts."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from codemode.core.types import Json
from codemode.smoke.paths import member_path

NOTHING = "nothing"  # what is said of a side that has no value there
_WINDOW = 40  # characters kept before the first one in which two long texts differ


class Difference(NamedTuple):
    """One way in which a run is not what was expected.

    tag: The expectation, such as `value`.
    path: Where in it, such as `$.items[2].price`; "" for a tag without places.
    expected, found: Texts to show; JSON where they are values.
    """

    tag: str
    path: str
    expected: str
    found: str

    def to_json(self) -> dict[str, Json]:
        """Return `{"tag", "path"?, "expected", "found"}`."""
        shown: dict[str, Json] = {"tag": self.tag}
        return shown | ({"path": self.path} if self.path else {}) | {"expected": self.expected, "found": self.found}


def compare(tag: str, expected: Json, found: Json, path: str = "$", *, partial: bool = False) -> Iterator[Difference]:
    """Yield the differences between two JSON values, in the order of the expected one.

    Numbers are compared by their value, as JavaScript does; true is not 1.

    Args:
        tag: What the differences are reported under.
        expected: What was written.
        found: What there is.
        path: Where both stand.
        partial: Accept objects that have more members than the expected ones.

    Contract: smoke:diff:path
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        yield from _compare_objects(tag, expected, found, path, partial)
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _compare_arrays(tag, expected, found, path, partial)
    elif isinstance(expected, str) and isinstance(found, str):
        if expected != found:
            yield Difference(tag, path, *_windows(expected, found))
    elif not same(expected, found):
        yield Difference(tag, path, json_text(expected), json_text(found))


def _compare_objects(
    tag: str, expected: dict[str, Json], found: dict[str, Json], path: str, partial: bool
) -> Iterator[Difference]:
    for key, wanted in expected.items():
        place = member_path(path, key)
        if key in found:
            yield from compare(tag, wanted, found[key], place, partial=partial)
        else:
            yield Difference(tag, place, json_text(wanted), NOTHING)
    for key, item in () if partial else found.items():
        if key not in expected:
            yield Difference(tag, member_path(path, key), NOTHING, json_text(item))


def _compare_arrays(
    tag: str, expected: list[Json], found: list[Json], path: str, partial: bool
) -> Iterator[Difference]:
    for at, (wanted, item) in enumerate(zip(expected, found, strict=False)):
        yield from compare(tag, wanted, item, member_path(path, at), partial=partial)
    shared = min(len(expected), len(found))
    for at, wanted in enumerate(expected[shared:], shared):
        yield Difference(tag, member_path(path, at), json_text(wanted), NOTHING)
    for at, item in enumerate(found[shared:], shared):
        yield Difference(tag, member_path(path, at), NOTHING, json_text(item))


def same(one: Json, other: Json) -> bool:
    """Say whether two values that are not both objects or arrays are the same in JSON."""
    is_number = isinstance(one, (int, float)) and isinstance(other, (int, float))
    return (type(one) is type(other) or (is_number and bool not in (type(one), type(other)))) and bool(one == other)


def json_text(value: Json) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _windows(expected: str, found: str) -> tuple[str, str]:
    """Return both texts as JSON; where they begin alike for long, that beginning is cut."""
    alike = next(
        (at for at, (one, other) in enumerate(zip(expected, found, strict=False)) if one != other),
        min(len(expected), len(found)),
    )
    start = max(alike - _WINDOW, 0)
    mark = "…" if start else ""
    return json_text(mark + expected[start:]), json_text(mark + found[start:])
