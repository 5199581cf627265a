"""What each provider takes of a JSON Schema: its rules as data, each with what to change.

After what the providers' own pages say (OpenAI's and Anthropic's "Structured outputs", Gemini's `Schema`),
and, where these are silent, what their errors do. Who lints is `lint`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from codemode.core.schemas import walk_schema
from codemode.core.types import Json

Severity = Literal["error", "warning"]
_Schema = dict[str, Json]
_MAX_LISTED = 5  # names in one finding


class Rule(NamedTuple):
    """One rule: `find` gets a schema and says what breaks it, or None; `scope` is where it looks."""

    name: str
    severity: Severity
    find: Callable[[_Schema], str | None]
    fix: str
    scope: Literal["root", "inside", "everywhere"] = "everywhere"


# What the rules look for


def _types(schema: _Schema) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _is_object(schema: _Schema) -> bool:
    return "object" in _types(schema) or "properties" in schema


def _no_object(schema: _Schema) -> str | None:
    if schema.get("type") == "object":
        return None
    return f"the root has the type {schema['type']}" if "type" in schema else "the root has no type"


def _has(*keywords: str) -> Callable[[_Schema], str | None]:
    """Return a search for keywords, whatever they hold."""

    def find(schema: _Schema) -> str | None:
        there = [f'"{keyword}"' for keyword in keywords if keyword in schema]
        return f"{_listed(there)} is not supported" if there else None

    return find


def _remote_reference(schema: _Schema) -> str | None:
    reference = schema.get("$ref", "#")
    return None if reference.startswith("#") else f'"$ref" leads to {reference}, and nobody fetches it'


def _array_without_items(schema: _Schema) -> str | None:
    return 'an array without "items"' if "array" in _types(schema) and "items" not in schema else None


def _open_object(schema: _Schema) -> str | None:
    if not _is_object(schema) or schema.get("additionalProperties") is False:
        return None
    return 'an object without "additionalProperties": false'


def _optional_properties(schema: _Schema) -> str | None:
    required = schema.get("required", [])
    optional = [name for name in schema.get("properties", {}) if name not in required]
    return f"{_listed(optional)} may be left out" if optional else None


def _untyped(schema: _Schema) -> str | None:
    says = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "required", "not", "if")
    return None if any(keyword in schema for keyword in says) else "a value of any type"


def _format_outside(known: Mapping[str, frozenset[str]]) -> Callable[[_Schema], str | None]:
    """Return a search for a `format` that is not listed for its type."""

    def find(schema: _Schema) -> str | None:
        given = schema.get("format")
        allowed = frozenset().union(*(known.get(kind, frozenset()) for kind in _types(schema)))
        return None if given is None or given in allowed else f'the format "{given}" is not supported'

    return find


def _bad_property_names(schema: _Schema) -> str | None:
    bad = [name for name in schema.get("properties", {}) if not _PROPERTY_NAME.match(name)]
    return f"the property names {_listed(bad)} are not allowed" if bad else None


_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


def _several_types(schema: _Schema) -> str | None:
    return f"several types: {_listed(_types(schema))}" if isinstance(schema.get("type"), list) else None


def _enum_of_others(schema: _Schema) -> str | None:
    if "enum" not in schema or (_types(schema) == ["string"] and all(isinstance(each, str) for each in schema["enum"])):
        return None
    return '"enum" where the type is not string, or values that are no texts'


def _empty_object(schema: _Schema) -> str | None:
    return "an object without properties" if "object" in _types(schema) and not schema.get("properties") else None


def _unknown_required(schema: _Schema) -> str | None:
    unknown = [name for name in schema.get("required", []) if name not in schema.get("properties", {})]
    return f'"required" names {_listed(unknown)}, which "properties" does not' if unknown else None


def _unknown_keywords(known: frozenset[str]) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        unknown = [f'"{keyword}"' for keyword in schema if keyword not in known]
        return f"it does not know {_listed(unknown)}" if unknown else None

    return find


def _properties_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        count = sum(len(part.get("properties", {})) for part in _parts(schema))
        return f"{count:,} properties in all; {limit:,} are allowed" if count > limit else None

    return find


def _enum_values_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        count = sum(len(part.get("enum", [])) for part in _parts(schema))
        return f"{count:,} enum values in all; {limit:,} are allowed" if count > limit else None

    return find


def _parts(schema: _Schema) -> Iterator[_Schema]:
    return (part for _, _, part in walk_schema(schema) if isinstance(part, dict))


def _text_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        texts = [text for part in _parts(schema) for text in _texts_of(part)]
        count = sum(map(len, texts))
        return f"{count:,} characters of names and enum values; {limit:,} are allowed" if count > limit else None

    return find


def _texts_of(part: _Schema) -> Iterator[str]:
    for keyword in ("properties", "$defs", "definitions"):
        names = part.get(keyword)
        yield from names if isinstance(names, dict) else ()
    yield from (str(value) for value in (*part.get("enum", ()), *((part["const"],) if "const" in part else ())))


def _long_enum(schema: _Schema) -> str | None:
    values = schema.get("enum", [])
    count = sum(len(value) for value in values if isinstance(value, str))
    return f"{len(values)} enum values of {count:,} characters" if len(values) > 250 and count > 15_000 else None


def _optional_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        count = sum(len(set(part.get("properties", {})) - set(part.get("required", []))) for part in _parts(schema))
        return f"{count} properties may be left out; {limit} in all strict tools are allowed" if count > limit else None

    return find


def _unions_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        count = sum("anyOf" in part or isinstance(part.get("type"), list) for part in _parts(schema))
        return f"{count} values of several types; {limit} in all strict tools are allowed" if count > limit else None

    return find


def _recursion(schema: _Schema) -> str | None:
    """Look for a local reference that leads to a schema which, through whatever others, holds it."""
    places = {path: part for path, _, part in walk_schema(schema)}
    leads: dict[str, list[str]] = {}
    ahead = _references(schema)
    while ahead:
        place = ahead.pop()
        if place not in leads:
            leads[place] = _references(places.get(place, True))
            ahead += leads[place]
    return next((f'"#{place}" refers to itself' for place in sorted(leads) if _reaches(place, leads)), None)


def _references(schema: Json) -> list[str]:
    parts = (part for _, _, part in walk_schema(schema) if isinstance(part, dict))
    return [part["$ref"][1:] for part in parts if part.get("$ref", "").startswith("#")]


def _reaches(place: str, leads: Mapping[str, list[str]]) -> bool:
    seen: set[str] = set()
    ahead = list(leads[place])
    while ahead:
        at = ahead.pop()
        if at not in seen:
            seen.add(at)
            ahead += leads[at]
    return place in seen


def _complex_enum(schema: _Schema) -> str | None:
    return '"enum" holds lists or objects' if any(isinstance(v, (list, dict)) for v in schema.get("enum", ())) else None


def _reference_in_all_of(schema: _Schema) -> str | None:
    there = any(isinstance(part, dict) and "$ref" in part for part in schema.get("allOf", ()))
    return '"allOf" with "$ref" is not supported' if there else None


def _many_items(schema: _Schema) -> str | None:
    return '"minItems" of more than 1 is not supported' if schema.get("minItems", 0) > 1 else None


def _hard_pattern(schema: _Schema) -> str | None:
    found = _HARD_PATTERN.search(schema.get("pattern", ""))
    return f"the pattern has {found[0]}, which is not supported" if found else None


_HARD_PATTERN = re.compile(r"\(\?<?[=!]|(?<!\\)(?:\\\\)*\\[1-9bB]")


def _object_levels(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        levels = max(path.count("/properties/") for path, _, _ in walk_schema(schema))
        return f"objects are nested {levels} levels deep; {limit} are allowed" if levels > limit else None

    return find


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


# The rules themselves

_COMBINED = "Move the alternatives into a property, or list all properties at the root and check the rest in the tool."
_EVERYBODY = (
    Rule("root-object", "error", _no_object, 'Set "type": "object"; put another value into a property.', "root"),
    Rule("remote-ref", "error", _remote_reference, 'Copy the schema under "$defs" and refer to it there.'),
)
_STRICT_KEYWORDS = {  # of OpenAI: keyword → what to write instead in strict mode
    "allOf": "Write the parts as one schema.",
    "oneOf": 'Use "anyOf".',
    "not": "Say in the description what is not allowed.",
    "if": "Use anyOf with one schema for each case.",
    "then": "Use anyOf with one schema for each case.",
    "else": "Use anyOf with one schema for each case.",
    "dependentRequired": "Use anyOf with one schema for each case.",
    "dependentSchemas": "Use anyOf with one schema for each case.",
    "patternProperties": "Use an array of objects with a key and a value.",
    "propertyNames": "Use an array of objects with a key and a value.",
    "unevaluatedProperties": 'Use "additionalProperties": false.',
    "minProperties": "Leave it to the tool.",
    "maxProperties": "Leave it to the tool.",
    "prefixItems": "Use an object with a property for each item.",
    "unevaluatedItems": "Use an object with a property for each item.",
    "contains": "Leave it to the tool.",
    "minContains": "Leave it to the tool.",
    "maxContains": "Leave it to the tool.",
    "uniqueItems": "Leave it to the tool.",
    "minLength": 'Use "pattern", or leave it to the tool.',
    "maxLength": 'Use "pattern", or leave it to the tool.',
    "default": "Say it in the description.",
}
_STRICT_FORMATS = {
    "string": frozenset(
        {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
    )
}
_OPENAI = (
    Rule("root-alternatives", "error", _has("anyOf", "oneOf", "allOf", "enum", "not"), _COMBINED, "root"),
    Rule("array-items", "error", _array_without_items, 'Say what it holds, as in "items": {"type": "string"}.'),
    Rule("strict-closed", "warning", _open_object, 'Add "additionalProperties": false.'),
    Rule(
        "strict-required", "warning", _optional_properties,
        'Name each in "required", and give those that may be left out a second type: ["string", "null"].',
    ),
    Rule("strict-typed", "warning", _untyped, 'Say its "type".'),
    Rule("strict-format", "warning", _format_outside(_STRICT_FORMATS), 'Use "pattern", or say it in the description.'),
    *(Rule("strict-keyword", "warning", _has(word), fix, "inside") for word, fix in _STRICT_KEYWORDS.items()),
    *(
        Rule("strict-keyword", "warning", _has(word), fix, "root")
        for word, fix in _STRICT_KEYWORDS.items()
        if word not in {"allOf", "oneOf", "not"}  # an error there
    ),
    Rule("strict-size", "warning", _properties_in_all(5000), "Split the tool.", "root"),
    Rule("strict-size", "warning", _enum_values_in_all(1000), "Take a text, and check it in the tool.", "root"),
    Rule("strict-size", "warning", _object_levels(10), "Flatten it.", "root"),
    Rule("strict-size", "warning", _text_in_all(120_000), "Split the tool.", "root"),
    Rule("strict-size", "warning", _long_enum, "Take a text, and check it in the tool."),
)  # fmt: skip
_ANTHROPIC_KEYWORDS = {
    word: fix for word, fix in _STRICT_KEYWORDS.items() if word not in {"allOf", "default"}
} | dict.fromkeys(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"),
    "Say it in the description, and check it in the tool.",
)
_ANTHROPIC_FORMATS = {"string": _STRICT_FORMATS["string"] | {"uri"}}
_ANTHROPIC = (
    Rule("root-alternatives", "error", _has("anyOf", "oneOf", "allOf"), _COMBINED, "root"),
    Rule(
        "property-names", "error", _bad_property_names,
        "Use at most 64 letters, digits, underscores, dots and hyphens.",
    ),
    Rule("strict-closed", "warning", _open_object, 'Add "additionalProperties": false.'),
    Rule("strict-recursion", "warning", _recursion, "Write as many levels as are needed.", "root"),
    Rule("strict-enum", "warning", _complex_enum, "Use texts, numbers, booleans and null."),
    Rule("strict-format", "warning", _format_outside(_ANTHROPIC_FORMATS), "Say it in the description."),
    Rule("strict-pattern", "warning", _hard_pattern, "Write it without, or check it in the tool."),
    Rule("strict-keyword", "warning", _reference_in_all_of, "Write the parts as one schema."),
    Rule("strict-keyword", "warning", _many_items, "Say it in the description, and check it in the tool."),
    *(Rule("strict-keyword", "warning", _has(word), fix, "inside") for word, fix in _ANTHROPIC_KEYWORDS.items()),
    *(
        Rule("strict-keyword", "warning", _has(word), fix, "root")
        for word, fix in _ANTHROPIC_KEYWORDS.items()
        if word != "oneOf"  # an error there
    ),
    Rule("strict-size", "warning", _optional_in_all(24), 'Name more of them in "required".', "root"),
    Rule("strict-size", "warning", _unions_in_all(16), "Give more of them one type.", "root"),
)  # fmt: skip
_OPENAPI_KEYWORDS = frozenset(  # of Gemini: the fields of its `Schema`; any other is refused there
    {
        "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
        "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
        "default", "items", "minimum", "maximum",
    }
)  # fmt: skip
_OPENAPI_ADVICE = {
    "$ref": "Write the schema in its place.",
    "$defs": "Write each schema in the place that refers to it.",
    "definitions": "Write each schema in the place that refers to it.",
    "$schema": "Leave it out.",
    "additionalProperties": "Leave it out, or use an array of objects with a key and a value.",
    "const": 'Use "enum" with one text.',
    "oneOf": 'Use "anyOf".',
    "allOf": "Write the parts as one schema.",
    "not": "Say in the description what is not allowed.",
    "exclusiveMinimum": 'Use "minimum".',
    "exclusiveMaximum": 'Use "maximum".',
    "prefixItems": "Use an object with a property for each item.",
    "examples": 'Use "example", at the root, or the description.',
}
_OPENAPI_FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
_GEMINI = (
    Rule(
        "openapi-keyword", "warning", _unknown_keywords(_OPENAPI_KEYWORDS | set(_OPENAPI_ADVICE)), "Leave it out."
    ),
    *(Rule("openapi-keyword", "warning", _has(word), fix) for word, fix in _OPENAPI_ADVICE.items()),
    Rule("openapi-type", "warning", _several_types, 'Give one type, and "nullable": true in place of null.'),
    Rule("openapi-type", "warning", _untyped, 'Say its "type".'),
    Rule("openapi-enum", "warning", _enum_of_others, 'Make it {"type": "string"} and its values texts.'),
    Rule("openapi-format", "warning", _format_outside(_OPENAPI_FORMATS), "Say it in the description."),
    Rule("openapi-object", "warning", _empty_object, "Name its properties, or take JSON as a text.", "inside"),
    Rule("openapi-items", "warning", _array_without_items, 'Say what it holds, as in "items": {"type": "string"}.'),
    Rule("openapi-required", "warning", _unknown_required, 'Name it in "properties", or leave it out of "required".'),
)  # fmt: skip

RULES: dict[str, tuple[Rule, ...]] = {
    "openai": (*_EVERYBODY, *_OPENAI),
    "anthropic": (*_EVERYBODY, *_ANTHROPIC),
    "gemini": (*_EVERYBODY, *_GEMINI),
}
