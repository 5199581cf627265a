"""A tool's input in few words: one row for each property of its JSON Schema.

For people who look a tool up; the exact schema is what `--json` prints, and the exact types of
MCP tools are in their declarations. Pure.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from codemode.core.types import Json
from codemode.render.words import one_line

_MAX_TYPE_CHARS = 60
_MAX_DEPTH = 4


class Parameter(NamedTuple):
    """One property of a tool's input; `type` is written as TypeScript would."""

    name: str
    type: str
    required: bool
    description: str


def parameters_of(schema: Mapping[str, Json]) -> list[Parameter]:
    """Return the properties of an input schema, required ones first, else in the schema's order."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    rows = [
        Parameter(one_line(name, 80), one_line(type_words(part), _MAX_TYPE_CHARS), name in needed, _described(part))
        for name, part in properties.items()
    ]
    return sorted(rows, key=lambda row: not row.required)


def type_words(schema: Json, depth: int = 0) -> str:
    """Return a schema's type in TypeScript's words, `unknown` where it is not plain."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "unknown"
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(dict.fromkeys(type_words(part, depth + 1) for part in schema[key]))
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = dict.fromkeys(each if isinstance(each, str) else "unknown" for each in kind)
        return " | ".join(_plain_type(each, schema, depth + 1) for each in kinds)
    return _plain_type(kind, schema, depth)


def _plain_type(kind: Json, schema: Mapping[str, Json], depth: int) -> str:
    if kind == "array":
        item = type_words(schema.get("items"), depth + 1)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object" or "properties" in schema:
        names = schema.get("properties")
        return f"{{{', '.join(names)}}}" if isinstance(names, dict) and names else "object"
    if kind == "integer":
        return "number"
    return kind if isinstance(kind, str) else "unknown"


def _described(schema: Json) -> str:
    if not isinstance(schema, dict):
        return ""
    text = schema.get("description")
    default = f"Default {json.dumps(schema['default'], ensure_ascii=False)}." if "default" in schema else ""
    return " ".join(part for part in (one_line(text, 400) if isinstance(text, str) else "", default) if part)
