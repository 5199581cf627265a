"""Cases: what `smoke` runs. A case is a cell with its expectations, read from a file of its own here.

A file that cannot be read stops everything with one
sentence that begins with `file:line`: a check that silently checks nothing is worse than none.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn, cast, get_args

from codemode.core.errors import InvalidInput
from codemode.core.files import readable
from codemode.core.limits import LIMITS
from codemode.core.names import did_you_mean
from codemode.core.types import Json, Language
from codemode.manifest import FILE_NAME, find_manifest, is_recording
from codemode.smoke.expectations import Expectation
from codemode.smoke.headers import BadLine, parse_header

CELL_SUFFIXES = (".js", ".mjs", ".ts", ".mts")
_LIMIT_FLAGS = {"--" + limit.name.replace("_", "-"): limit for limit in LIMITS}
_FLAGS = (*_LIMIT_FLAGS, "--wait", "--language")


class Place(NamedTuple):
    """Where a case is written: its file, and the line that it begins on."""

    file: Path
    line: int

    def fail(self, sentence: str, line: int | None = None) -> NoReturn:
        """Raise `InvalidInput` with the sentence behind `file:line`."""
        raise InvalidInput(f"{shown_path(self.file)}:{line or self.line}: {sentence}")


class Settings(NamedTuple):
    """How a cell is run: `limits` by Python name, over the manifest's; `to_end` sends further waits."""

    limits: Mapping[str, int] = {}
    language: Language | None = None
    to_end: bool = False


class Case(NamedTuple):
    """One cell with what is expected of it.

    name: What reports call it: its file, and in a list its own name behind it.
    title: What it shows, in its author's words; may be "".
    manifest: Whose tools it gets, a recording's perhaps; None for the empty one.
    number: Which of the list's cases it is, from 0; None for a cell's own file.
    """

    name: str
    place: Place
    title: str
    code: str
    language: Language
    manifest: Path | None
    settings: Settings
    expectations: tuple[Expectation, ...]
    number: int | None = None


def shown_path(path: Path) -> str:
    """Return a path as a person would type it: relative, where it is below the current folder."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return str(path)


def load_cell(file: Path, manifest: Path | None = None) -> Case:
    """Read a cell and its header.

    Args:
        file: Its path; the suffix says its language.
        manifest: Instead of the one that it names.

    Raises:
        InvalidInput: The file or its header cannot be read; the message begins with `file:line`.
    """
    place = Place(file, 1)
    text = read_text(place)
    try:
        header = parse_header(text.split("\n"))
    except BadLine as error:
        place.fail(str(error), error.line)
    lines = header.setting_lines
    where = Place(file, lines.get("replay", lines.get("manifest", 1)))
    settings = parse_flags(header.settings.get("flags", ""), Place(file, lines.get("flags", 1)))
    return Case(
        name=shown_path(file),
        place=place,
        title=header.title,
        code=text,
        language=settings.language or language_of(file),
        manifest=manifest or choose_manifest(header.settings, where),
        settings=settings,
        expectations=header.expectations,
    )


def language_of(file: Path) -> Language:
    """Return what a file's suffix says."""
    return "typescript" if file.suffix in (".ts", ".mts") else "javascript"


def read_text(place: Place) -> str:
    """Return the text of a file.

    Raises:
        InvalidInput: It cannot be read as UTF-8.
    """
    try:
        return readable(place.file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        place.fail(f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        place.fail(f"the file is not UTF-8 text (byte {error.start}); save it as UTF-8")


def choose_manifest(settings: Mapping[str, Json], place: Place) -> Path | None:
    """Return the recording or the manifest that a case names, else the nearest one above the case.

    Args:
        settings: `{"replay"?: "orders.jsonl", "manifest"?: "../shop"}`; a manifest may be named by its folder.
        place: The case; both are looked for from its folder.

    Raises:
        InvalidInput: There is no such file, or it is no recording.

    Contract: smoke:run:replay
    """
    if named := settings.get("replay"):
        path = _named(named, place, "recording")
        if not is_recording(path):
            place.fail(f'"{named}" is no recording; make one with codemode run --record FILE')
        return path
    if named := settings.get("manifest"):
        return _named(named, place, "manifest")
    return find_manifest(place.file.parent)


def _named(name: str, place: Place, kind: str) -> Path:
    path = place.file.parent / Path(name).expanduser()
    path = path / FILE_NAME if path.is_dir() else path
    if not path.exists():
        place.fail(f'there is no {kind} "{name}"; it is looked for from {shown_path(place.file.parent)}')
    return path


def parse_flags(text: str, place: Place) -> Settings:
    """Read `--timeout-ms 500 --language typescript --wait`: the flags of `codemode run` that a case may set.

    Raises:
        InvalidInput: A flag is unknown or has a wrong value.
    """
    try:
        words = iter(shlex.split(text))
    except ValueError as error:
        place.fail(f"@flags cannot be read: {error}")
    limits: dict[str, int] = {}
    language: Language | None = None
    to_end = False
    for flag in words:
        if flag == "--wait":
            to_end = True
        elif flag == "--language":
            language = _parse_language(next(words, ""), place)
        elif flag in _LIMIT_FLAGS:
            limits[_LIMIT_FLAGS[flag].name] = _parse_number(flag, next(words, ""), place)
        else:
            place.fail(f'@flags has no "{flag}"; it takes {", ".join(_FLAGS)}.{did_you_mean(flag, _FLAGS)}')
    return Settings(limits, language, to_end)


def _parse_language(text: str, place: Place) -> Language:
    if text not in get_args(Language):
        place.fail(f'--language takes javascript or typescript; found "{text}"')
    return cast("Language", text)


def _parse_number(flag: str, text: str, place: Place) -> int:
    if not text.isdigit():
        place.fail(f'{flag} takes a whole number; found "{text}"')
    return int(text)
