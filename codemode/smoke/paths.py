"""JSON paths: the small subset that an expectation may use, and the way differences name places.

    $                the value itself
    .name            a member; ["any name"] or ['any name'] where it is no identifier
    [2]  [-1]        an item, from the end where negative
    [*]              every item or every member's value; the rest of the path is followed for each
    .length          how many items, or characters, where the value is an array or a text

There are no filters, slices or recursive descents: a cell can compute what needs them.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from codemode.core.types import Json

_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]="']+) | \[(?P<index>-?\d+)\] | \[(?P<all>\*)\]
      | \[(?P<double>"(?:\\.|[^"\\])*")\] | \['(?P<single>(?:\\.|[^'\\])*)'\]""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_ALL = None
Step = str | int | None  # a member, an item, all of them


class JsonPath(NamedTuple):
    """A path as it was written, and its steps."""

    text: str
    steps: tuple[Step, ...]

    @property
    def is_single(self) -> bool:
        """Whether it leads to one place; else what it finds is a list."""
        return _ALL not in self.steps


def split_path(text: str) -> tuple[JsonPath, str]:
    """Read a path from the beginning of a text; return it and what follows.

    Raises:
        ValueError: There is none; the message says how one is written.
    """
    if not text.startswith("$"):
        raise ValueError(f'a path begins with $, such as $.items[0].name; found "{text}"')
    steps: list[Step] = []
    position = 1
    while match := _STEP.match(text, position):
        steps.append(_step(match))
        position = match.end()
    if text[position : position + 1].strip(" =\t"):
        raise ValueError(f'a path goes on with .name, ["name"], [0] or [*]; found "{text[position:]}"')
    return JsonPath(text[:position], tuple(steps)), text[position:]


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return _ALL
    if match["index"]:
        return int(match["index"])
    if match["double"]:
        name: str = json.loads(match["double"])
        return name
    return match["name"] or re.sub(r"\\(.)", r"\1", match["single"])


def follow_path(path: JsonPath, value: Json) -> list[Json]:
    """Return what stands at the path: one value or none, or with `[*]` any number of them."""
    return list(_follow(path.steps, value))


def _follow(steps: tuple[Step, ...], value: Json) -> Iterator[Json]:
    if not steps:
        yield value
        return
    step, *rest = steps
    for found in _members(step, value):
        yield from _follow(tuple(rest), found)


def _members(step: Step, value: Json) -> list[Json]:
    if step is _ALL:
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict):
        return [value[step]] if step in value else []
    if isinstance(value, list) and isinstance(step, int):
        return [value[step]] if -len(value) <= step < len(value) else []
    return [len(value)] if step == "length" and isinstance(value, (list, str)) else []


def member_path(path: str, key: str | int) -> str:
    """Return the path of a member or an item of what stands at `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_NAME.match(key) else f"{path}[{json.dumps(key, ensure_ascii=False)}]"
