"""Write renewed expectations back into their files, and keep everything else as it is.

A cell's header is changed by lines, a TOML list by keys.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from codemode.core.errors import InvalidInput
from codemode.smoke.cases import shown_path
from codemode.smoke.expectations import format_tag
from codemode.smoke.headers import parse_header
from codemode.smoke.list_edits import edit_list
from codemode.smoke.renewal import Change, renew
from codemode.smoke.verdicts import Verdict

_BOM = "\ufeff"


def update_files(verdicts: Iterable[Verdict]) -> list[str]:
    """Renew the expectations of all cases that failed, and of those that have none.

    Returns:
        The names of the cases whose files were changed.

    Raises:
        InvalidInput: A file cannot be written, or its expectations cannot be found in its text.

    Contract: smoke:update:keeps-the-rest
    """
    changed: list[str] = []
    by_file: dict[Path, list[tuple[Verdict, list[Change]]]] = {}
    for verdict in verdicts:
        if verdict.observed is None or (verdict.state == "passed" and verdict.case.expectations):
            continue
        if changes := renew(verdict.case.expectations, verdict.observed):
            by_file.setdefault(verdict.case.place.file, []).append((verdict, changes))
            changed.append(verdict.case.name)
    for file, entries in by_file.items():
        text = file.read_bytes().decode("utf-8")
        # From the last case to the first: what is above a change keeps its lines.
        for verdict, changes in reversed(entries):
            case = verdict.case
            text = edit_cell(text, changes) if case.number is None else edit_list(text, case, changes)
        _replace(file, text)
    return changed


def edit_cell(text: str, changes: Sequence[Change]) -> str:
    """Return a cell's text with its header changed; line ends and a byte order mark stay.

    Contract: smoke:update:keeps-the-rest
    """
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")
    header = parse_header(lines).lines
    added = [line for change in changes if change.old is None and change.new for line in format_tag(change.new)]
    comments = [f"// {line}".rstrip() + end[:-1] for line in added]
    if header:
        lines[header.stop : header.stop] = comments
    elif comments:
        lines[0:0] = [*comments, end[:-1]]
    for change in sorted(changes, key=lambda each: -(each.old.lines or (0, 0))[0] if each.old else 1):
        if change.old is not None and change.old.lines is not None:
            first, last = change.old.lines
            new = format_tag(change.new) if change.new else []
            lines[first - 1 : last] = [f"// {line}".rstrip() + end[:-1] for line in new]
    return mark + "\n".join(lines)


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all, with the mode that it has."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode())
        Path(temporary).chmod(file.stat().st_mode & 0o7777)
        Path(temporary).replace(file)
    except OSError as error:
        raise InvalidInput(f"{shown_path(file)} cannot be written: {error.strerror}") from error
