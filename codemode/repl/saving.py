"""Cells of a session as the text of one cell for `codemode run`."""

import re
from collections.abc import Sequence

from codemode.repl.cells import Cell
from codemode.repl.syntax import Judge

_MAX_TRIED = 40  # ends of statements from which a last expression may begin
_END = re.compile(r"[;\n}]\s*")


async def program(cells: Sequence[Cell], judge: Judge) -> str:
    """Return the cells as one: what the last of them would print is returned.

    Contract: repl:save:runs
    """
    *before, last = cells
    return "\n\n".join([*(cell.source.strip() for cell in before), await _returning(last, judge)]) + "\n"


async def _returning(cell: Cell, judge: Judge) -> str:
    """Return a cell's source with `return` before the expression that it ends with."""
    text = cell.source.strip()
    if cell.is_expression:
        return _return(text)
    starts = [found.end() for found in _END.finditer(text) if found.end() < len(text)]
    for start in starts[-_MAX_TRIED:]:  # the longest expression first: a shorter one may be a part of it
        if await _is_last_expression(text, start, cell, judge):
            return text[:start] + _return(text[start:])
    return text


async def _is_last_expression(text: str, start: int, cell: Cell, judge: Judge) -> bool:
    if not (await judge.judge(text[start:], cell.language)).is_expression:
        return False
    return (await judge.judge(text[:start], cell.language)).state == "complete"


def _return(expression: str) -> str:
    text = expression.rstrip("; \n")
    return f"return (\n{text}\n);" if text.startswith(("//", "/*")) else f"return {text};"
