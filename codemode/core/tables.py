"""Checked access to tables that people write: which keys, of which kind, and a clear sentence if not.

A table of `Field`s describes what a TOML or JSON table may hold; `check_table` compares. Every
error names file, key, what was found, what is allowed, and the nearest known key.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, NoReturn

from codemode.core.errors import InvalidConfig
from codemode.core.names import did_you_mean
from codemode.core.types import Json

Kind = Literal["text", "flag", "integer", "texts", "table", "tables", "named texts", "any"]
_BARE_KEY = re.compile(r"[A-Za-z0-9_.\[\]-]+\Z")
_SHOWN_CHARS = 60


class Where(NamedTuple):
    """A place in a file: `tool[2].http.url in /shop/codemode.toml`."""

    file: str
    key: str = ""

    def at(self, step: str | int) -> "Where":
        """Return the place of a member or of a list's item."""
        if isinstance(step, int):
            return Where(self.file, f"{self.key}[{step}]")
        shown = step if _BARE_KEY.match(step) else json.dumps(step, ensure_ascii=False)
        return Where(self.file, f"{self.key}.{shown}" if self.key else shown)

    def fail(self, sentence: str) -> NoReturn:
        """Raise `InvalidConfig` with the sentence behind this place."""
        raise InvalidConfig(f"{self}: {sentence}")

    def __str__(self) -> str:
        return f"{self.key} in {self.file}" if self.key else self.file


class Field(NamedTuple):
    """What one key may hold; `choices` are the only texts allowed, if given."""

    kind: Kind
    choices: tuple[str, ...] = ()
    required: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_table_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


_KINDS: dict[Kind, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a text"),
    "flag": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "texts": (_is_list_of(lambda item: isinstance(item, str)), "a list of texts"),
    "table": (_is_table, "a table"),
    "tables": (_is_list_of(_is_table), "a list of tables"),
    "named texts": (_is_table_of_texts, "a table of texts"),
    "any": (lambda _: True, "anything"),
}


def check_table(table: Json, fields: Mapping[str, Field], where: Where) -> dict[str, Json]:
    """Return the table if it holds only known keys of the right kind and all required ones.

    Raises:
        InvalidConfig: It does not; the message says where and what is allowed.

    Contract: config:errors:named
    """
    if not isinstance(table, dict):
        where.fail(f"found {shown(table)}; allowed is a table.")
    for key, value in table.items():
        field = fields.get(key)
        if field is None:
            known = ", ".join(sorted(fields))
            where.fail(f'unknown key "{key}"; known keys are {known}.{did_you_mean(key, fields)}')
        _check_value(value, field, where.at(key))
    for key, field in fields.items():
        if field.required and key not in table:
            where.fail(f'the key "{key}" is missing; it takes {_allowed(field)}.')
    return table


def shown(value: Json) -> str:
    """Return a short text of what was found, for an error."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # a number of thousands of digits, or what is nested too deeply
        text = f"a {type(value).__name__} that is too large"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _check_value(value: Json, field: Field, where: Where) -> None:
    is_kind, _ = _KINDS[field.kind]
    if not is_kind(value):
        where.fail(f"found {shown(value)}; allowed is {_allowed(field)}.")
    for text in value if isinstance(value, list) else [value]:
        if field.choices and text not in field.choices:
            where.fail(f"found {shown(text)}; allowed is {_allowed(field)}.{did_you_mean(str(text), field.choices)}")


def _allowed(field: Field) -> str:
    if not field.choices:
        return _KINDS[field.kind][1]
    choices = " or ".join(f'"{choice}"' for choice in field.choices)
    return f"a list of {choices}" if field.kind == "texts" else choices
