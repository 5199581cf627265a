"""Is this a JSON Schema? The meta-schema of draft 2020-12 as a table.

Importing `jsonschema` costs more than a whole cell, so a manifest's schemas are checked here
and `jsonschema` is left to what needs it: wording a rejection and rare keywords.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from codemode.core.limits import MAX_JSON_DEPTH, MAX_SAFE_INTEGER
from codemode.core.types import Json

Test = Callable[[Any], bool]
_MAX_INDEX_DIGITS = 10
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*\Z")
_LARGEST_DOUBLE = 10**308
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


class _Path(NamedTuple):
    """Where in a schema another is; it is spelled when it is shown, because names may be as long as they like."""

    above: "_Path | None"
    keyword: str
    name: str | None = None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_pattern(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_text_set(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    return (
        value in _TYPES if isinstance(value, str) else bool(value) and _is_text_set(value) and _TYPES.issuperset(value)
    )


_RULES: dict[str, tuple[Test, str]] = {
    keyword: rule
    for keywords, rule in (
        ("maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains",
         (_is_count, "a whole number of 0 or more")),
        ("maximum minimum exclusiveMaximum exclusiveMinimum", (_is_number, "a number")),
        ("multipleOf", (lambda value: _is_number(value) and value > 0, "a number above 0")),
        ("uniqueItems deprecated readOnly writeOnly", (_is_flag, "true or false")),
        ("format title description contentMediaType contentEncoding $comment $schema", (_is_text, "a text")),
        ("$ref $dynamicRef", (_is_text, "a text")),
        ("$id", (lambda value: _is_text(value) and "#" not in value[:-1], "a text without a fragment")),
        ("$anchor $dynamicAnchor", (lambda value: _is_text(value) and bool(_ANCHOR.match(value)), "a plain name")),
        ("pattern", (_is_pattern, "a regular expression")),
        ("enum examples", (_is_list, "a list")),
        ("required", (_is_text_set, "a list of different texts")),
        ("type", (_is_type, f"one of {', '.join(sorted(_TYPES))}, or a list of these")),
    )
    for keyword in keywords.split()
}  # fmt: skip
_ONE_SCHEMA = frozenset(
    {
        "additionalProperties", "contains", "propertyNames", "items", "not", "if", "then", "else",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema",
    }
)  # fmt: skip
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTED_SCHEMAS = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})


def find_schema_fault(schema: Json) -> str | None:
    """Return what makes this no JSON Schema of draft 2020-12, with its path, or None.

    A local `$ref` that leads nowhere is a fault too: it would fail at the first call.

    Contract: manifest:schema:checked, manifest:schema:long-names
    """
    for path, depth, part in _walk(schema, None, 0):
        if depth > MAX_JSON_DEPTH:
            return f"{_spell(path)} is nested deeper than {MAX_JSON_DEPTH} levels"
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            return f"{_spell(path) or 'the schema'} must be a table (or true or false)"
        for keyword, value in part.items():
            fault = _keyword_fault(keyword, value)
            if fault:
                return f"{_spell(path)}/{keyword} must be {fault}"
        reference = part.get("$ref")
        if reference is not None and reference.startswith("#/") and not _leads_somewhere(reference, schema):
            return f"{_spell(path)}/$ref leads nowhere: {reference}"
    return None


def with_doubles(schema: Json) -> Json:
    """Return a copy in which integers that JSON's numbers do not hold exactly are the nearest that they hold.

    A bound such as 9223372036854775807 stays a number so, as it does for a cell.

    Contract: manifest:schema:large-bounds
    """
    if isinstance(schema, dict):
        return {key: with_doubles(value) for key, value in schema.items()}
    if isinstance(schema, list):
        return [with_doubles(value) for value in schema]
    is_large = isinstance(schema, int) and MAX_SAFE_INTEGER < abs(schema) < _LARGEST_DOUBLE
    return float(schema) if is_large else schema


def _keyword_fault(keyword: str, value: Json) -> str | None:
    if keyword in _RULES:
        test, allowed = _RULES[keyword]
        return None if test(value) else allowed
    if keyword in _NAMED_SCHEMAS:
        if not isinstance(value, dict):
            return "a table of schemas"
        bad_name = keyword == "patternProperties" and not all(map(_is_pattern, value))
        return "a table whose keys are regular expressions" if bad_name else None
    if keyword in _LISTED_SCHEMAS:
        return None if isinstance(value, list) and value else "a list of at least one schema"
    if keyword == "dependentRequired":
        return None if isinstance(value, dict) and all(map(_is_text_set, value.values())) else "a table of text lists"
    return None


def walk_schema(schema: Json) -> Iterator[tuple[str, int, Json]]:
    """Yield `(path, depth, schema)` for a schema and all schemas within it; paths are those of JSON Pointer."""
    for path, depth, part in _walk(schema, None, 0):
        yield _spell(path), depth, part


def index_of(step: str, items: list[Json]) -> int | None:
    """Return which item of a list a step of a JSON Pointer names, None where it names none.

    Contract: manifest:schema:digits
    """
    is_index = step.isdecimal() and len(step) <= _MAX_INDEX_DIGITS  # of thousands, Python would make no number
    return int(step) if is_index and int(step) < len(items) else None


def _walk(schema: Json, path: _Path | None, depth: int) -> Iterator[tuple[_Path | None, int, Json]]:
    yield path, depth, schema
    if not isinstance(schema, dict) or depth > MAX_JSON_DEPTH:
        return
    for keyword, value in schema.items():
        if keyword in _ONE_SCHEMA:
            yield from _walk(value, _Path(path, keyword), depth + 1)
        elif keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            for name, part in value.items():
                yield from _walk(part, _Path(path, keyword, name), depth + 1)
        elif keyword in _LISTED_SCHEMAS and isinstance(value, list):
            for at, part in enumerate(value):
                yield from _walk(part, _Path(path, keyword, str(at)), depth + 1)


def _spell(path: _Path | None) -> str:
    steps: list[str] = []
    while path is not None:
        steps.append(f"/{path.keyword}" if path.name is None else f"/{path.keyword}/{_escaped(path.name)}")
        path = path.above
    return "".join(reversed(steps))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _leads_somewhere(reference: str, schema: Json) -> bool:
    part = schema
    for step in reference.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and name in part:
            part = part[name]
        elif isinstance(part, list) and (at := index_of(name, part)) is not None:
            part = part[at]
        else:
            return False
    return True
