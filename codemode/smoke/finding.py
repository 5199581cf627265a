"""Where cases are: files as named, and whatever a folder holds, gathered before anything runs."""

import fnmatch
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.smoke.cases import CELL_SUFFIXES, Case, load_cell
from codemode.smoke.lists import load_list

_LIST_NAMES = ("smoke.toml", "*.smoke.toml")


def gather_cases(paths: Iterable[str], manifest: Path | None, wanted: str = "") -> list[Case]:
    """Find and read all cases, in the order of the paths, each file once, files of a folder by name.

    Args:
        paths: Files and folders as given.
        manifest: Whose tools all of them get; None for what each file says, else the nearest one.
        wanted: A part of the names, or a glob for them or for what stands behind a slash; "" for all.

    Raises:
        InvalidInput: Nothing is there, a file cannot be used, or no name is as wanted.

    Contract: smoke:files:found, smoke:filter:names
    """
    files = dict.fromkeys(file for path in paths for file in _find_files(Path(path)))
    cases = [
        case
        for file in files
        for case in (load_list(file, manifest) if file.suffix == ".toml" else [load_cell(file, manifest)])
    ]
    kept = [case for case in cases if _is_wanted(case.name.lower(), wanted.lower())]
    if not kept:
        near = did_you_mean(wanted, [case.name for case in cases])
        raise InvalidInput(f'no case has "{wanted}" in its name.{near}')
    return kept


def _is_wanted(name: str, wanted: str) -> bool:
    if not any(mark in wanted for mark in "*?["):
        return wanted in name
    tails = (name[at + 1 :] for at, char in enumerate(name) if char == "/")
    return any(fnmatch.fnmatchcase(part, wanted) for part in (name, *tails))


def _find_files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(_walk(path))
        if not found:
            raise InvalidInput(
                f'"{path}" holds no cases: no {", ".join("*" + each for each in CELL_SUFFIXES)} and no smoke.toml'
            )
        return found
    if not path.exists():
        siblings = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InvalidInput(f'there is no file or folder "{path}".{did_you_mean(path.name, siblings)}')
    if path.suffix not in (*CELL_SUFFIXES, ".toml"):
        raise InvalidInput(f'"{path}" is no case: a cell ends in .js or .ts, a list of cases in .toml')
    return [path]


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the cases below a folder; hidden folders, packages and declarations hold none."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        for name in names:
            is_cell = name.endswith(CELL_SUFFIXES) and not name.endswith((".d.ts", ".d.mts"))
            if is_cell or any(fnmatch.fnmatchcase(name, pattern) for pattern in _LIST_NAMES):
                yield Path(root, name)
