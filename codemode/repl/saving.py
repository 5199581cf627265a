"""Cells of a session as the text of one cell for `codemode run`, and the files that cells go to and come from."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from codemode.core.errors import InvalidInput
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


def read_file(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InvalidInput: It cannot be read as a text.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f'"{path}" is no file; give the name of one')
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f'"{path}" cannot be read: it is no text in UTF-8') from error
    except (OSError, ValueError) as error:
        raise InvalidInput(f'"{path}" cannot be read: {getattr(error, "strerror", None) or error}') from error


def write_file(path: Path, text: str, *, replace: bool) -> None:
    """Write a file and the folders that it is in; what is there already stays, unless it is to be replaced.

    A file is replaced in one step, so that there is at any time the old one or the new one, whole.

    Raises:
        FileExistsError: There is one, and it is not to be replaced.
        InvalidInput: It cannot be written.

    Contract: repl:save:refuses
    """
    if path.exists() and not path.is_file():
        raise InvalidInput(f'"{path}" is no file; give the name of one')
    if path.exists() and not replace:
        raise FileExistsError
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _replace(path.resolve(), text)
        else:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(f'"{path}" cannot be written: {getattr(error, "strerror", None) or error}') from error


def _replace(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as draft:
        try:
            draft.write(text)
            draft.flush()
            os.fchmod(draft.fileno(), path.stat().st_mode & 0o777)
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink()
            raise


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
