"""The host half of the JSON adapter: any Python value to JSON text, or one clear error.

The guest half (`sandbox/guest/prelude.js`) follows the same rules for JavaScript. Both end
in plain JSON, so nothing but data ever crosses the process wall.
"""

import dataclasses
import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from codemode.core.jsontext import build_encoder
from codemode.core.limits import MAX_JSON_DEPTH, MAX_SAFE_INTEGER
from codemode.core.types import Json

_encode = build_encoder(ascii_only=False)
_HEX = "[0-9a-fA-F]{2}"
_ESCAPE = re.compile(  # what is caught stands for half a character
    rf"\\(?:u[dD][89abAB]{_HEX}\\u[dD][c-fC-F]{_HEX}|(u[dD][89a-fA-F]{_HEX})|.)", re.DOTALL
)
_SHOWN_KEY_CHARS = 200


class NotJson(ValueError):
    """A value that the adapter refuses; the message names the path and the reason."""


class _Path(NamedTuple):
    """Where in a value something is; it is spelled for an error alone, because keys may be as long as they like."""

    above: "_Path | None"
    step: str | int


def to_text(value: Any) -> str:
    """Return the compact JSON text of a Python value, adapted by the contract's rules.

    Raises:
        NotJson: Binary data, a cycle, too deep a value, or a type without a JSON form.
    """
    return _encode(to_plain(value))


def to_plain(value: Any) -> Json:
    """Return the value itself where it is plain JSON data already, as nearly all are, else adapted.

    Raises:
        NotJson: As `adapt`.
    """
    return value if _is_plain(value, 0) else adapt(value)


def adapt(value: Any) -> Json:
    """Return the value as plain JSON data, sharing nothing with the original.

    Tuples and sets become arrays, dataclasses and pydantic models objects, dates ISO
    strings, Decimals and integers beyond 2^53 strings, NaN and infinities null.

    Raises:
        NotJson: Binary data, a cycle, more than 100 levels, or a type without a JSON form.

    Contract: json:python:rules, json:python:long-keys
    """
    return _adapt(value, None, 0, set())


def clean_text(text: str) -> str:
    """Return the text with each lone surrogate replaced by U+FFFD, so it encodes as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text


def clean_escapes(text: str) -> str:
    """Return JSON text in which no escape stands for half a character: each that did is U+FFFD.

    What was parsed of such a text could be neither stored nor sent.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def _is_plain(value: Any, depth: int) -> bool:
    """Say whether `adapt` would return an equal value: a look, which costs a fraction of the copy with its paths."""
    kind = type(value)
    if kind is dict or kind is list:
        return depth < MAX_JSON_DEPTH and _has_plain_items(value, kind is dict, depth + 1)
    if kind is str:
        return bool(value.isascii() or clean_text(value) == value)
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _has_plain_items(container: Any, is_object: bool, depth: int) -> bool:
    if is_object:
        for key in container:
            if type(key) is not str or not key.isascii():
                return False
    for item in container.values() if is_object else container:  # noqa: SIM110  # a generator costs as much as a copy
        if not _is_plain(item, depth):
            return False
    return True


def _adapt(value: Any, path: _Path | None, depth: int, above: set[int]) -> Json:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, Enum):
        return _adapt(value.value, path, depth, above)
    if isinstance(value, int):
        return int(value) if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else _digits(int(value), path)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise NotJson(
            f"{_spell(path)} is binary ({type(value).__name__}); binary data is not supported, send base64 text"
        )
    return _adapt_container(value, path, depth, above)


def _adapt_container(value: Any, path: _Path | None, depth: int, above: set[int]) -> Json:
    if depth >= MAX_JSON_DEPTH:
        raise NotJson(f"{_spell(path)} is nested deeper than {MAX_JSON_DEPTH} levels")
    if id(value) in above:
        raise NotJson(f"{_spell(path)} closes a cycle; send ids instead of the objects themselves")
    above.add(id(value))
    try:
        if isinstance(value, Mapping):
            items = value.items()
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            items = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}.items()
        elif hasattr(value, "model_dump") and not isinstance(value, type):
            items = value.model_dump().items()
        elif isinstance(value, (list, tuple, set, frozenset)):
            return [_adapt(item, _Path(path, index), depth + 1, above) for index, item in enumerate(value)]
        else:
            raise NotJson(f"{_spell(path)} is a {type(value).__name__}, which has no JSON form")
        adapted: dict[str, Json] = {}
        for key, item in items:
            name = _key(key, path)
            adapted[name] = _adapt(item, _Path(path, name), depth + 1, above)
        return adapted
    finally:
        above.discard(id(value))


def _key(key: Any, path: _Path | None) -> str:
    if isinstance(key, str):
        return clean_text(key)
    if isinstance(key, (int, float)) and not isinstance(key, bool):
        return _digits(key, path) if isinstance(key, int) else str(key)
    raise NotJson(f"{_spell(path)} has a key of type {type(key).__name__}; keys are strings")


def _digits(value: int, path: _Path | None) -> str:
    try:
        return str(value)
    except ValueError as error:  # beyond what Python converts, since that takes quadratic time
        raise NotJson(f"{_spell(path)} is a whole number with thousands of digits") from error


def _spell(path: _Path | None) -> str:
    steps: list[str] = []
    while path is not None:
        step = path.step
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[:_SHOWN_KEY_CHARS]}")
        path = path.above
    return "".join(["value", *reversed(steps)])
