"""Where a cell's text comes from: a file, standard input, or the command line itself."""

import sys
from pathlib import Path
from typing import NamedTuple

from codemode.core.errors import InvalidInput
from codemode.core.files import readable
from codemode.core.names import did_you_mean

_TYPESCRIPT_SUFFIXES = (".ts", ".mts", ".cts")


class Cell(NamedTuple):
    """A cell's text and what a person calls it; `language` is what the file's name implies, or None."""

    text: str
    name: str
    language: str | None


def read_cell(file: str | None, code: str | None) -> Cell:
    """Read the cell that a command line names.

    Args:
        file: A path, or `-` for standard input.
        code: The text itself, of `-e`.

    Raises:
        InvalidInput: Both or neither is given, the file cannot be read as UTF-8 text, or nothing is in it.

    Contract: cli:run:sources, cli:run:typescript-suffix
    """
    if file is not None and code is not None:
        raise InvalidInput(f'there are two cells, "{file}" and that of -e; give one of them')
    if code is not None:
        return Cell(_filled(code, "the cell of -e"), "cell.js", None)
    if file is None:
        raise InvalidInput("there is no cell; give a file, - for standard input, or -e CODE")
    if file == "-":
        return Cell(_filled(_decode(_read_stdin(), "standard input"), "standard input"), "cell.js", None)
    language = "typescript" if file.endswith(_TYPESCRIPT_SUFFIXES) else None
    return Cell(_filled(_decode(_read_file(Path(file)), file), f'"{file}"'), file, language)


def _filled(text: str, what: str) -> str:
    if not text.strip():
        raise InvalidInput(f"{what} is empty; write a program, such as: return 1 + 1")
    return text


def _read_stdin() -> bytes:
    text = sys.stdin.buffer.read()
    if not text:
        raise InvalidInput("standard input is empty or closed; pipe a cell into it, or give a file or -e CODE")
    return text


def _read_file(path: Path) -> bytes:
    try:
        return readable(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f'there is no file "{path}".{_near(path)}') from None
    except IsADirectoryError:
        raise InvalidInput(f'"{path}" is a folder; give the file of a cell') from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f'"{path}" cannot be read: {reason}') from error


def _near(path: Path) -> str:
    try:
        return did_you_mean(path.name, [sibling.name for sibling in path.parent.iterdir()])
    except OSError:
        return ""


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f'"{name}" is not UTF-8 text: byte 0x{raw[error.start]:02x} in line {line}; save it as UTF-8'
        ) from None
