"""Can a provider take a tool's schema as it is? The rules of each as data, and what to change.

This is about direct exposure: with code mode on a model gets `exec` and `wait` alone. An error is
a schema that the provider refuses in whatever form it is sent; a warning one that it refuses only
in its narrow form, OpenAI's `strict: true` or Gemini's `parameters` (OpenAPI). What codemode sends
itself is the wide form: `strict: false`, `parametersJsonSchema`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from codemode.core.schemas import find_schema_fault, walk_schema
from codemode.core.types import Json, ToolSpec

Severity = Literal["error", "warning"]
_Schema = dict[str, Json]
_MAX_LISTED = 5  # names in one finding


class Finding(NamedTuple):
    """What one provider has against one tool.

    `path` points into its `parameters`, as `#/properties/tags`, or is `name`. `says` and `fix` are sentences.
    """

    tool_id: str
    provider: str
    severity: Severity
    rule: str
    path: str
    says: str
    fix: str

    def to_json(self) -> dict[str, Json]:
        """Return `{"toolId", "provider", "severity", "rule", "path", "says", "fix"}`."""
        return {"toolId": self.tool_id, **{name: getattr(self, name) for name in self._fields[1:]}}


class _Rule(NamedTuple):
    """One rule: `find` gets a schema and says what breaks it, or None; `scope` is where it looks."""

    name: str
    severity: Severity
    find: Callable[[_Schema], str | None]
    fix: str
    scope: Literal["root", "inside", "everywhere"] = "everywhere"


def lint_tool(tool: ToolSpec, provider: str, sent_as: str) -> list[Finding]:
    """Return what a provider has against a tool, in the order of its schema.

    Args:
        tool: Its parameters are the schema.
        provider: One of `RULES`.
        sent_as: The name under which the provider gets it.

    Contract: lint:findings:path-and-fix, lint:severity:wide-form
    """
    schema = tool.parameters
    found: list[Finding] = []

    def add(severity: Severity, rule: str, path: str, says: str, fix: str) -> None:
        found.append(Finding(tool.id, provider, severity, rule, path, says, fix))

    if sent_as != tool.name:
        says = f'it is sent as "{sent_as}", since "{tool.name}" is not allowed or is taken already'
        add("warning", "name", "name", says, "Rename it.")
    fault = find_schema_fault(schema)
    if fault is not None:
        place, _, rest = fault.partition(" ") if fault.startswith("/") else ("", "", fault)
        add("error", "not-a-schema", f"#{place}", rest, "Correct the schema; it must be one of draft 2020-12.")
        return found
    for path, _, part in walk_schema(schema):
        if isinstance(part, dict):
            for rule in RULES[provider]:
                breach = rule.find(part) if _applies(rule, path) else None
                if breach is not None:
                    add(rule.severity, rule.name, f"#{path}", breach, rule.fix)
    return found


def _applies(rule: _Rule, path: str) -> bool:
    return rule.scope == "everywhere" or (rule.scope == "root") == (path == "")


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
        parts = [part for _, _, part in walk_schema(schema) if isinstance(part, dict)]
        count = sum(len(part.get("properties", {})) for part in parts)
        return f"{count:,} properties in all; {limit:,} are allowed" if count > limit else None

    return find


def _enum_values_in_all(limit: int) -> Callable[[_Schema], str | None]:
    def find(schema: _Schema) -> str | None:
        parts = [part for _, _, part in walk_schema(schema) if isinstance(part, dict)]
        count = sum(len(part.get("enum", [])) for part in parts)
        return f"{count:,} enum values in all; {limit:,} are allowed" if count > limit else None

    return find


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
    _Rule("root-object", "error", _no_object, 'Set "type": "object"; put another value into a property.', "root"),
    _Rule("remote-ref", "error", _remote_reference, 'Copy the schema under "$defs" and refer to it there.'),
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
    _Rule("root-alternatives", "error", _has("anyOf", "oneOf", "allOf", "enum", "not"), _COMBINED, "root"),
    _Rule("array-items", "error", _array_without_items, 'Say what it holds, as in "items": {"type": "string"}.'),
    _Rule("strict-closed", "warning", _open_object, 'Add "additionalProperties": false.'),
    _Rule(
        "strict-required", "warning", _optional_properties,
        'Name each in "required", and give those that may be left out a second type: ["string", "null"].',
    ),
    _Rule("strict-typed", "warning", _untyped, 'Say its "type".'),
    _Rule("strict-format", "warning", _format_outside(_STRICT_FORMATS), 'Use "pattern", or say it in the description.'),
    *(_Rule("strict-keyword", "warning", _has(word), fix, "inside") for word, fix in _STRICT_KEYWORDS.items()),
    *(
        _Rule("strict-keyword", "warning", _has(word), fix, "root")
        for word, fix in _STRICT_KEYWORDS.items()
        if word not in {"allOf", "oneOf", "not"}  # an error there
    ),
    _Rule("strict-size", "warning", _properties_in_all(5000), "Split the tool.", "root"),
    _Rule("strict-size", "warning", _enum_values_in_all(1000), "Take a text, and check it in the tool.", "root"),
    _Rule("strict-size", "warning", _object_levels(10), "Flatten it.", "root"),
)  # fmt: skip
_ANTHROPIC = (
    _Rule("root-alternatives", "error", _has("anyOf", "oneOf", "allOf"), _COMBINED, "root"),
    _Rule(
        "property-names", "error", _bad_property_names,
        "Use at most 64 letters, digits, underscores, dots and hyphens.",
    ),
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
    _Rule(
        "openapi-keyword", "warning", _unknown_keywords(_OPENAPI_KEYWORDS | set(_OPENAPI_ADVICE)), "Leave it out."
    ),
    *(_Rule("openapi-keyword", "warning", _has(word), fix) for word, fix in _OPENAPI_ADVICE.items()),
    _Rule("openapi-type", "warning", _several_types, 'Give one type, and "nullable": true in place of null.'),
    _Rule("openapi-type", "warning", _untyped, 'Say its "type".'),
    _Rule("openapi-enum", "warning", _enum_of_others, 'Make it {"type": "string"} and its values texts.'),
    _Rule("openapi-format", "warning", _format_outside(_OPENAPI_FORMATS), "Say it in the description."),
    _Rule("openapi-object", "warning", _empty_object, "Name its properties, or take JSON as a text.", "inside"),
    _Rule("openapi-items", "warning", _array_without_items, 'Say what it holds, as in "items": {"type": "string"}.'),
    _Rule("openapi-required", "warning", _unknown_required, 'Name it in "properties", or leave it out of "required".'),
)  # fmt: skip

RULES: dict[str, tuple[_Rule, ...]] = {
    "openai": (*_EVERYBODY, *_OPENAI),
    "anthropic": (*_EVERYBODY, *_ANTHROPIC),
    "gemini": (*_EVERYBODY, *_GEMINI),
}
