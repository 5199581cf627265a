"""What may be expected of a cell: one table of tags, and how each is read from text or from TOML.

`headers` finds the tags in a cell's leading comments and `lists` in a TOML file; `verdicts`
compares, `renewal` writes anew. Here is what they all share: which tags exist and what each holds.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from codemode.core.errors import ErrorCode, Phase
from codemode.core.names import did_you_mean
from codemode.core.types import Json
from codemode.smoke.paths import JsonPath, split_path

Status = Literal["completed", "waiting", "failed"]
Kind = Literal["word", "flag", "json", "outputs", "path", "text", "words", "count"]

DURATION_MS = {  # upper bounds of wall clock from `exec` to the end; a loaded machine still keeps them
    "quick": 1_000,
    "slow": 30_000,
}


class Tag(NamedTuple):
    """What a tag holds; `choices` are its only words, `when` the only status that has such a thing."""

    kind: Kind
    choices: tuple[str, ...] = ()
    many: bool = False
    when: Status | None = None


TAGS: Mapping[str, Tag] = {
    "status": Tag("word", get_args(Status)),
    "value": Tag("json", when="completed"),
    "partial": Tag("json", when="completed"),
    "path": Tag("path", many=True, when="completed"),
    "output": Tag("outputs"),
    "code": Tag("word", tuple(ErrorCode), when="failed"),
    "error": Tag("text", many=True, when="failed"),
    "phase": Tag("word", get_args(Phase), when="failed"),
    "dispatched": Tag("flag", when="failed"),
    "reason": Tag("word", ("pending_tools", "yield"), when="waiting"),
    "pending": Tag("text", many=True, when="waiting"),
    "calls": Tag("words"),
    "max-calls": Tag("count"),
    "duration": Tag("word", tuple(DURATION_MS)),
    "not": Tag("text", many=True),
}
_MAX_LINE_CHARS = 100  # of a tag that is written; more becomes several lines
SETTINGS = ("manifest", "replay", "flags")  # how a cell is run; written where expectations are


class Expectation(NamedTuple):
    """One tag as it was written: what it wants, and the lines (from 1, both included) it stands on.

    `lines` is None where it is not written on lines of its own, as in a TOML file.
    """

    tag: str
    wanted: Json
    path: JsonPath | None = None
    lines: tuple[int, int] | None = None


def expected_status(expectations: Sequence[Expectation]) -> Status:
    """Return the status that is expected: the written one, or the one that the other tags imply."""
    written = [each.wanted for each in expectations if each.tag == "status"]
    implied = [when for each in expectations if (when := TAGS[each.tag].when) is not None]
    status: Status = [*written, *implied, "completed"][0]
    return status


def check_tag(name: str) -> None:
    """Refuse a name that is no tag.

    Raises:
        ValueError: It is none; the message has the known ones and the nearest.

    Contract: smoke:files:unknown-tag
    """
    if name not in TAGS and name not in SETTINGS:
        known = [*TAGS, *SETTINGS]
        raise ValueError(f'there is no tag "{name}"; there are {", ".join(known)}.{did_you_mean(name, known)}')


def parse_text(tag: str, text: str) -> Expectation:
    """Read what stands behind a tag in a comment.

    Raises:
        ValueError: It is not what the tag takes.

    Contract: smoke:tags:all
    """
    if TAGS[tag].kind in ("json", "outputs", "flag"):
        return from_value(tag, _parse_json(tag, text))
    if TAGS[tag].kind == "path":
        path, rest = split_path(text)
        if not rest.lstrip().startswith("="):
            raise ValueError(f'@path takes a path, = and JSON, such as $.items.length = 3; found "{text}"')
        return Expectation(tag, _parse_json(tag, rest.lstrip()[1:]), path)
    if TAGS[tag].kind == "words":
        return from_value(tag, text.split())
    if TAGS[tag].kind == "count":
        return from_value(tag, int(text) if text.isdigit() else text)
    return from_value(tag, text)


def _parse_json(tag: str, text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f'@{tag} takes JSON; "{text.strip()}" is none: {reason}') from None


def from_value(tag: str, value: Json, path: JsonPath | None = None) -> Expectation:
    """Check a value that a TOML file, or a comment once it is read, gives for a tag.

    Raises:
        ValueError: It is not what the tag takes.
    """
    entry = TAGS[tag]
    if entry.kind == "word" and value not in entry.choices:
        near = did_you_mean(str(value), entry.choices)
        raise ValueError(f'@{tag} takes {" or ".join(entry.choices)}; found "{value}".{near}')
    if entry.kind == "flag" and not isinstance(value, bool):
        raise ValueError(f"@{tag} takes true or false; found {json.dumps(value)}")
    if entry.kind == "text" and not (isinstance(value, str) and value):
        raise ValueError(f"@{tag} takes a text; found {json.dumps(value)}")
    if entry.kind == "words" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError(f"@{tag} takes ids; found {json.dumps(value)}")
    if entry.kind == "count" and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"@{tag} takes a whole number; found {json.dumps(value)}")
    return Expectation(tag, _outputs(value) if entry.kind == "outputs" else value, path)


def _outputs(value: Json) -> list[Json]:
    """Return output items; a text stands for the item that `text()` gives."""
    items = value if isinstance(value, list) else [value]
    items = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(
            f'@output takes an array such as ["a text", {{"type":"json","value":1}}]; found {json.dumps(value)}'
        )
    return items


def short_outputs(items: list[Json]) -> list[Json]:
    """Return output items as people write them: a text item as its text alone."""
    return [item["text"] if item.get("type") == "text" else item for item in items]


def format_tag(expectation: Expectation) -> list[str]:
    """Return the lines of a tag without their comment marks; JSON that is too long for one is indented."""
    tag, wanted = expectation.tag, expectation.wanted
    head = f"@{tag} {expectation.path.text} =" if expectation.path else f"@{tag}"
    if TAGS[tag].kind not in ("json", "outputs", "path", "flag"):
        text = " ".join(wanted) if isinstance(wanted, list) else str(wanted)
        return [f"{head} {text}".rstrip()]
    if TAGS[tag].kind == "outputs":
        wanted = short_outputs(wanted)
    line = f"{head} {json.dumps(wanted, ensure_ascii=False, separators=(',', ':'))}"
    if len(line) <= _MAX_LINE_CHARS or not isinstance(wanted, (dict, list)):
        return [line]
    return f"{head} {json.dumps(wanted, ensure_ascii=False, indent=2)}".split("\n")
