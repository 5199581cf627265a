"""A cell's leading comments: its title, what is expected of it, and how it is to be run.

    // Joins orders with customers.
    // @manifest ../codemode.toml
    // @value {"orders": 3}
    // @calls plugin:shop:list_orders plugin:shop:list_customers

The header is the first block of `//` lines; it is part of the cell all the same. JSON may go on
over several lines. `@ts-…` comments belong to the TypeScript tools and are none of ours.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codemode.smoke.expectations import SETTINGS, TAGS, Expectation, check_tag, parse_text


class BadLine(ValueError):
    """A line of a header that cannot be read; `line` is counted from 1."""

    def __init__(self, line: int, message: str) -> None:
        """Keep the line beside the message."""
        super().__init__(message)
        self.line = line


class Header(NamedTuple):
    """What a cell's leading comments say; `lines` is where they stand, empty where there are none.

    title: The comments that are no tags.
    settings: `{"manifest": "../codemode.toml", "flags": "--wait"}`, as far as given.
    setting_lines: On which line each setting stands.
    """

    title: str
    expectations: tuple[Expectation, ...]
    settings: dict[str, str]
    setting_lines: dict[str, int]
    lines: range


class _Comment(NamedTuple):
    line: int
    text: str


def parse_header(lines: Sequence[str]) -> Header:
    """Read the header of a cell.

    Args:
        lines: The cell's lines.

    Raises:
        BadLine: A tag is unknown, given twice, or does not hold what it should.

    Contract: smoke:files:header
    """
    block = _block_of(lines)
    comments = [_Comment(at + 1, lines[at].strip().removeprefix("//").strip()) for at in block]
    expectations: list[Expectation] = []
    settings: dict[str, str] = {}
    setting_lines: dict[str, int] = {}
    prose: list[str] = []
    rest = iter(comments)
    for comment in rest:
        if not comment.text.startswith("@"):
            prose.append(comment.text)
        elif not comment.text.startswith("@ts-"):
            name, _, text = comment.text[1:].partition(" ")
            _check(name, comment.line, [*(each.tag for each in expectations), *settings])
            if name in SETTINGS:
                settings[name], setting_lines[name] = text.strip(), comment.line
            else:
                expectations.append(_parse(name, text.strip(), comment, comments, rest))
    return Header(" ".join(prose).strip(), tuple(expectations), settings, setting_lines, block)


def _block_of(lines: Sequence[str]) -> range:
    """Return which lines are the header, counted from 0; blank lines before it do not count."""
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    end = next((at for at in range(first, len(lines)) if not lines[at].lstrip().startswith("//")), len(lines))
    return range(first, end)


def _check(name: str, line: int, before: Sequence[str]) -> None:
    try:
        check_tag(name)
    except ValueError as error:
        raise BadLine(line, str(error)) from None
    if name in before and not (name in TAGS and TAGS[name].many):
        raise BadLine(line, f"@{name} is given twice; keep one")


def _parse(
    name: str, text: str, comment: _Comment, comments: Sequence[_Comment], rest: Iterator[_Comment]
) -> Expectation:
    """Read one tag, with as many of the comments after it as its JSON needs."""
    first = comment.line - comments[0].line
    following = _plain(comments[first + 1 :]) if TAGS[name].kind in ("json", "outputs", "path") else []
    fault = ""
    for taken in range(len(following) + 1):
        joined = "\n".join([text, *(each.text for each in following[:taken])])
        try:
            parsed = parse_text(name, joined)
        except ValueError as error:
            fault = fault or str(error)
            continue
        for _ in range(taken):
            next(rest)
        return parsed._replace(lines=(comment.line, comment.line + taken))
    raise BadLine(comment.line, fault)


def _plain(comments: Sequence[_Comment]) -> list[_Comment]:
    """Return the comments up to the next tag: what JSON may go on over."""
    end = next((at for at, each in enumerate(comments) if each.text.startswith("@")), len(comments))
    return list(comments[:end])
