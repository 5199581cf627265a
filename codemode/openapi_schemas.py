"""The schemas of an OpenAPI document as JSON Schema: references gathered, version 3.0's own words rewritten.

A tool's schema stands alone, so what it refers to is copied into its `$defs`. Pure data in, data out.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from codemode.core.limits import MAX_JSON_DEPTH
from codemode.core.names import safe_name
from codemode.core.tables import shown
from codemode.core.types import Json

_MAX_HOPS = 20  # references to references
_ONE = frozenset({"additionalProperties", "contains", "propertyNames", "items", "not", "if", "then", "else",
                  "unevaluatedItems", "unevaluatedProperties"})  # fmt: skip
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTED = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})
_NOISE = frozenset({"discriminator", "example", "externalDocs", "nullable", "xml"})  # no rule for an input


class BadReference(ValueError):
    """A schema or a reference that leads nowhere; the message says which."""


def follow(document: Mapping[str, Json], value: Json) -> Json:
    """Return what a value is, or what its `$ref` leads to within the document.

    Raises:
        BadReference: It leads nowhere, to another document, or in a circle.

    Contract: openapi:references:local
    """
    for _ in range(_MAX_HOPS):
        if not isinstance(value, Mapping) or "$ref" not in value:
            return value
        value = _find(document, value["$ref"])
    raise BadReference(f"the reference {shown(value['$ref'])} goes in a circle")


def _find(document: Mapping[str, Json], reference: Json) -> Json:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise BadReference(f"the reference {shown(reference)} leads out of the document")
    part: Any = document
    for step in reference.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        elif isinstance(part, Mapping) and name in part:
            part = part[name]
        else:
            raise BadReference(f"the reference {shown(reference)} leads nowhere")
    return part


class Schemas:
    """Converts the schemas of one tool; `definitions` are what they refer to, for its `$defs`."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        """Begin without definitions."""
        self.definitions: dict[str, Json] = {}
        self._document = document
        self._old = str(document["openapi"]).startswith("3.0")
        self._names: dict[str, str] = {}

    def convert(self, schema: Json, depth: int = 0) -> Json:
        """Return a schema as JSON Schema of draft 2020-12.

        Raises:
            BadReference: It is no schema, refers to nothing, or is nested too deeply.

        Contract: openapi:schemas:references, openapi:schemas:old-words
        """
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise BadReference(f"{shown(schema)} stands where a schema should")
        if depth > MAX_JSON_DEPTH:
            raise BadReference(f"a schema is nested deeper than {MAX_JSON_DEPTH} levels")
        if "$ref" in schema:
            described = {"description": schema["description"]} if "description" in schema else {}
            return {"$ref": f"#/$defs/{self._define(schema['$ref'], depth)}"} | described
        below: Callable[[Json], Json] = lambda part: self.convert(part, depth + 1)  # noqa: E731
        converted = {key: _convert_keyword(key, value, below) for key, value in schema.items() if key not in _NOISE}
        _forgive(converted)
        return _modernise(converted, nullable=schema.get("nullable") is True) if self._old else converted

    def _define(self, reference: Json, depth: int) -> str:
        """Return the name of a definition; it is made once, and may refer to itself."""
        name = self._names.get(reference) if isinstance(reference, str) else None
        if name is None:
            target = _find(self._document, reference)
            wanted = safe_name(reference.rpartition("/")[2]) or "schema"
            taken = set(self._names.values())
            name = wanted if wanted not in taken else f"{wanted}_{len(taken)}"
            self._names[reference] = name
            self.definitions[name] = self.convert(target, depth + 1)
        return name


def _convert_keyword(keyword: str, value: Json, convert: Callable[[Json], Json]) -> Json:
    if keyword in _ONE:
        return convert(value)
    if keyword in _NAMED and isinstance(value, Mapping):
        return {name: convert(part) for name, part in value.items()}
    if keyword in _LISTED and isinstance(value, list):
        return [convert(part) for part in value]
    return value


def _forgive(schema: dict[str, Json]) -> None:
    """Drop the rules that hold for answers only, and patterns that are no Python expressions: the server has them."""
    properties = schema.get("properties")
    if isinstance(properties, dict) and isinstance(schema.get("required"), list):
        read_only = [name for name, part in properties.items() if isinstance(part, dict) and part.get("readOnly")]
        schema["required"] = [name for name in schema["required"] if name not in read_only]
    try:
        re.compile(schema.get("pattern", ""))
    except (re.error, TypeError, OverflowError):
        del schema["pattern"]


def _modernise(schema: dict[str, Json], *, nullable: bool) -> Json:
    """Rewrite what version 3.0 says differently: `nullable`, and exclusive bounds as flags."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if not nullable:
        return schema
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema | {"type": [kind, "null"]}
