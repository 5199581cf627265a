"""Change the expectations of one case inside the text of a TOML list; all the rest stays as written.

TOML's own parser says how far a key's value goes: lines are added until what began with the key
is a document.
"""

import json
import tomllib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codemode.core.types import Json
from codemode.smoke.cases import Case
from codemode.smoke.expectations import Expectation, short_outputs
from codemode.smoke.lists import HEADING, JSON_SUFFIX
from codemode.smoke.renewal import Change


class _Span(NamedTuple):
    key: str
    first: int
    end: int


def edit_list(text: str, case: Case, changes: Sequence[Change]) -> str:
    """Return the text of a list with one of its cases changed.

    Raises:
        InvalidInput: A key to change has a table of its own, `[case.value]`, instead of one line.
    """
    lines = text.split("\n")
    tags = dict.fromkeys(each.tag for change in changes for each in change if each is not None)
    replaced = {id(change.old): change.new for change in changes}
    kept = [replaced.get(id(each), each) for each in case.expectations]
    added = [change.new for change in changes if change.old is None]
    expectations = [each for each in (*kept, *added) if each is not None]
    for tag in tags:
        written = [each for each in expectations if each.tag == tag]
        _write_key(lines, case, tag, _format_key(tag, written) if written else None)
    if not _is_whole(lines):
        case.place.fail("its expectations cannot be rewritten; change them by hand")
    return "\n".join(lines)


def _write_key(lines: list[str], case: Case, tag: str, line: str | None) -> None:
    """Replace a key and its twin by one line, or add it as the last of its case."""
    begin, end = _section(lines, case.number or 0)
    spans = list(_keys(lines, begin + 1, end))
    ours = [span for span in spans if span.key in (tag, tag + JSON_SUFFIX)]
    if not ours and any(each.tag == tag for each in case.expectations):
        case.place.fail(f'"{tag}" has a table of its own, which cannot be rewritten; write it on one line')
    at = ours[0].first if ours else max([begin + 1, *(span.end for span in spans)])
    remark = _remark(lines[ours[0].first : ours[0].end]) if ours else ""
    for span in reversed(ours):
        del lines[span.first : span.end]
    if line is not None:
        ending = "\r" if lines[begin].endswith("\r") else ""
        lines.insert(at, line + remark + ending)


def _remark(lines: Sequence[str]) -> str:
    """Return the comment behind a key's value, with the space before it."""
    text = "\n".join(lines).rstrip("\r")
    for at, char in enumerate(text):
        if char == "#" and _is_whole([text[:at]]):
            return text[len(text[:at].rstrip()) :]
    return ""


def _section(lines: Sequence[str], number: int) -> tuple[int, int]:
    """Return where a case begins and where the next table does."""
    headings = [at for at, line in enumerate(lines) if HEADING.match(line)]
    begin = headings[number]
    return begin, headings[number + 1] if number + 1 < len(headings) else len(lines)


def _keys(lines: Sequence[str], begin: int, end: int) -> Iterable[_Span]:
    """Yield the keys of a case that stand on lines of their own, up to its first sub-table."""
    at = begin
    while at < end:
        stripped = lines[at].strip()
        if stripped.startswith("["):
            return
        stop = next((stop for stop in range(at + 1, end + 1) if _is_whole(lines[at:stop])), at + 1)
        if stripped and not stripped.startswith("#"):
            yield _Span(stripped.partition("=")[0].strip().strip("\"'"), at, stop)
        at = stop


def _is_whole(lines: Sequence[str]) -> bool:
    try:
        tomllib.loads("\n".join(lines) + "\n")
    except tomllib.TOMLDecodeError:
        return False
    return True


def _format_key(tag: str, written: Sequence[Expectation]) -> str:
    """Return the line of a key; JSON text where TOML cannot say it."""
    if tag == "path":
        values = {each.path.text: each.wanted for each in written if each.path}
        if all(map(_is_toml, values.values())):
            return f"path = {_toml(values)}"
        return f"path-json = {_toml({path: json.dumps(value, ensure_ascii=False) for path, value in values.items()})}"
    value = [each.wanted for each in written] if len(written) > 1 else written[0].wanted
    value = short_outputs(value) if tag == "output" else value
    if _is_toml(value):
        return f"{tag} = {_toml(value)}"
    return f"{tag}{JSON_SUFFIX} = {_quoted(json.dumps(value, ensure_ascii=False))}"


def _quoted(text: str) -> str:
    """Return a text as TOML's literal string, which needs no escapes, where that can hold it."""
    return f"'{text}'" if "'" not in text and text.isprintable() else _toml(text)


def _is_toml(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_toml, value.values()))
    return all(map(_is_toml, value)) if isinstance(value, list) else value is not None


def _toml(value: Json) -> str:
    """Return a JSON value without nulls on one line of TOML."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
