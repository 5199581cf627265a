"""The cells of one session, numbered as the prompt numbers them, and which of them a file needs. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codemode.core.errors import InvalidInput
from codemode.core.types import Language

_IDENTIFIER = re.compile(r"[\w$]+")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")


class Cell(NamedTuple):
    """One input: `names` are declared by it, `is_expression` says that it is one single expression."""

    number: int
    source: str
    language: Language = "javascript"
    names: tuple[str, ...] = ()
    is_expression: bool = False

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"[{self.number}]"


def choose(cells: Sequence[Cell], asked: str) -> list[Cell]:
    """Return the cells that a person asks for.

    Args:
        cells: Those that completed and hold, oldest first.
        asked: Numbers and ranges, `1-3 5`; `all`; or nothing, for the last one and what it needs.

    Raises:
        InvalidInput: There are none, or one that is asked for is not among them.
    """
    if not cells:
        raise InvalidInput("no cell has completed yet, so there is nothing to save")
    if not asked:
        return needed(cells)
    if asked == "all":
        return list(cells)
    wanted = {number for part in asked.split() for number in _numbers(part)}
    missing = sorted(wanted - {cell.number for cell in cells})
    if missing:
        known = ", ".join(str(cell.number) for cell in cells)
        raise InvalidInput(f"cell {missing[0]} is not there, did not complete, or is undone; there are: {known}")
    return [cell for cell in cells if cell.number in wanted]


def needed(cells: Sequence[Cell]) -> list[Cell]:
    """Return the last cell and, before it, those that declare what it mentions, and what those mention.

    Contract: repl:save:needed
    """
    chosen = [cells[-1]]
    mentioned = _mentioned(cells[-1])
    for cell in reversed(cells[:-1]):
        if mentioned & set(cell.names):
            chosen.append(cell)
            mentioned -= set(cell.names)
            mentioned |= _mentioned(cell)
    return chosen[::-1]


def declared_twice(cells: Sequence[Cell]) -> list[str]:
    """Return the names that more than one of the cells declares: in one file they would clash."""
    names = [name for cell in cells for name in cell.names]
    return sorted({name for name in names if names.count(name) > 1})


def _mentioned(cell: Cell) -> set[str]:
    return set(_IDENTIFIER.findall(cell.source)) - set(cell.names)


def _numbers(part: str) -> Iterable[int]:
    found = _RANGE.match(part)
    if found is None:
        raise InvalidInput(f'"{part}" names no cells; write numbers and ranges such as 1-3 5, or all')
    first = int(found[1])
    return range(first, int(found[2] or first) + 1)
