"""Lists of cases in TOML: for many short cells, or one cell under several circumstances.

    manifest = "../codemode.toml"       # of all cases; each may name its own

    [[case]]
    name = "adds"
    cell = "return 1 + 1"               # or file = "add.js"
    value = 2

Tags are keys. TOML has no null, so that each key that takes a value has a twin for JSON text:
`value-json = 'null'`.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from codemode.core.errors import InvalidConfig
from codemode.core.tables import Field, Where, check_table
from codemode.core.types import Json
from codemode.smoke.cases import Case, Place, choose_manifest, language_of, parse_flags, read_text, shown_path
from codemode.smoke.expectations import TAGS, Expectation, from_value, parse_text
from codemode.smoke.paths import split_path

HEADING = re.compile(r"\s*\[\[\s*case\s*\]\]")
JSON_SUFFIX = "-json"
_JSON_KINDS = ("json", "outputs")
_TABLE_FIELDS = {"manifest": Field("text"), "replay": Field("text"), "case": Field("tables", required=True)}
_CASE_FIELDS = {
    "name": Field("text", required=True),
    "cell": Field("text"),
    "file": Field("text"),
    "manifest": Field("text"),
    "replay": Field("text"),
    "flags": Field("text"),
    **{tag: Field("any") for tag in TAGS},
    **{tag + JSON_SUFFIX: Field("text") for tag, entry in TAGS.items() if entry.kind in _JSON_KINDS},
    "path": Field("table"),
    "path-json": Field("named texts"),
}


def load_list(file: Path, manifest: Path | None = None) -> list[Case]:
    """Read a TOML file with cases.

    Args:
        file: Its path.
        manifest: Instead of those that it names.

    Raises:
        InvalidInput: It cannot be used; the message begins with `file:line`.

    Contract: smoke:files:toml
    """
    place = Place(file, 1)
    text = read_text(place)
    places = [Place(file, at) for at, line in enumerate(text.split("\n"), 1) if HEADING.match(line)]
    table = _check(_parse(text, place), _TABLE_FIELDS, place)
    cases = [
        _read_case(entry, number, where, manifest or choose_manifest(_chosen(entry) or _chosen(table), where))
        for number, (entry, where) in enumerate(zip(table["case"], places, strict=False))
        if _check(entry, _CASE_FIELDS, where)
    ]
    if len(cases) < len(table["case"]):
        place.fail("write each case as a table of its own, under [[case]]")
    return cases


def _chosen(table: dict[str, Json]) -> dict[str, Json]:
    return {key: table[key] for key in ("replay", "manifest") if key in table}


def _parse(text: str, place: Place) -> Json:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        place.fail(f"not TOML: {error}", int(found[1]) if found else text.count("\n") + 1)


def _check(table: Json, fields: dict[str, Field], place: Place) -> dict[str, Json]:
    try:
        return check_table(table, fields, Where(f"{shown_path(place.file)}:{place.line}"))
    except InvalidConfig as error:
        place.fail(error.message.partition(": ")[2])


def _read_case(entry: dict[str, Json], number: int, place: Place, manifest: Path | None) -> Case:
    if ("cell" in entry) == ("file" in entry):
        place.fail('a case needs its text as cell = "…", or file = "…"; give one of them')
    settings = parse_flags(entry.get("flags", ""), place)
    source = place.file.parent / entry["file"] if "file" in entry else None
    if source and not source.is_file():
        place.fail(f'there is no file "{entry["file"]}"; it is looked for from {shown_path(place.file.parent)}')
    return Case(
        name=f"{shown_path(place.file)}: {entry['name']}",
        place=place,
        title=entry["name"],
        code=read_text(Place(source, 1)) if source else entry["cell"],
        language=settings.language or (language_of(source) if source else "javascript"),
        manifest=manifest,
        settings=settings,
        expectations=tuple(_read_expectations(entry, place)),
        number=number,
    )


def _read_expectations(entry: dict[str, Json], place: Place) -> Iterator[Expectation]:
    for key, value in entry.items():
        tag = key.removesuffix(JSON_SUFFIX)
        if tag not in TAGS:
            continue
        try:
            yield from _read_key(tag, value, is_json=key != tag)
        except ValueError as error:
            place.fail(str(error).replace("@", "", 1))


def _read_key(tag: str, value: Json, *, is_json: bool) -> Iterator[Expectation]:
    if tag == "path":
        for text, wanted in value.items():
            path, rest = split_path(text)
            if rest:
                raise ValueError(f'"{text}" is no path')
            yield parse_text("path", f"{path.text} = {wanted}") if is_json else from_value("path", wanted, path)
    elif TAGS[tag].many and isinstance(value, list):
        yield from (from_value(tag, item) for item in value)
    else:
        yield parse_text(tag, value) if is_json else from_value(tag, value)
