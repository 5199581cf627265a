"""The schemas of an OpenAPI document as JSON Schema: references gathered, version 3.0's own words rewritten.

A tool's schema stands alone, so what it refers to is copied into its `$defs`. Pure data in, data out.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from codemode.core.jsonsafe import NotJson, to_plain
from codemode.core.limits import MAX_JSON_DEPTH, MAX_OPENAPI_DEFINITIONS
from codemode.core.names import UniqueNames, safe_name
from codemode.core.schemas import find_schema_fault, index_of, with_doubles
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
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and (at := index_of(name, part)) is not None:
            part = part[at]
        elif isinstance(part, Mapping) and name in part:
            part = part[name]
        else:
            raise BadReference(f"the reference {shown(reference)} leads nowhere")
    return part


class Schemas:
    """Converts the schemas of one document; what many tools refer to is converted once."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        """Begin without having converted anything."""
        self._document = document
        self._old = str(document["openapi"]).startswith("3.0")
        self._names: dict[str, str] = {}
        self._unique = UniqueNames(separator="_", first=1)
        self._targets: dict[str, tuple[Json, tuple[str, ...]]] = {}

    def convert(self, schema: Json, references: list[str], depth: int = 0) -> Json:
        """Return a schema as JSON Schema of draft 2020-12, and add what it refers to to `references`.

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
            reference = schema["$ref"]
            described = {"description": schema["description"]} if "description" in schema else {}
            name = self._name(reference)
            references.append(reference)
            return {"$ref": f"#/$defs/{name}"} | described
        below: Callable[[Json], Json] = lambda part: self.convert(part, references, depth + 1)  # noqa: E731
        converted = {key: _convert_keyword(key, value, below) for key, value in schema.items() if key not in _NOISE}
        _forgive(converted)
        return _modernise(converted, nullable=schema.get("nullable") is True) if self._old else converted

    def gather(self, references: Iterable[str]) -> dict[str, Json]:
        """Return as `$defs` what references lead to, and what that refers to in its turn.

        The nearest come first, up to a bound; what lies beyond it may be anything.

        Raises:
            BadReference: One of them leads to no schema.

        Contract: openapi:schemas:references, openapi:schemas:bounded
        """
        definitions: dict[str, Json] = {}
        waiting = deque(references)
        while waiting:
            reference = waiting.popleft()
            name = self._name(reference)
            if name in definitions:
                continue
            if len(definitions) >= MAX_OPENAPI_DEFINITIONS:
                definitions[name] = {}
                continue
            definitions[name], more = self._target(reference)
            waiting += more
        return definitions

    def check(self, converted: Json, references: Iterable[str], what: str) -> Json:
        """Return a converted schema as plain data.

        Raises:
            BadReference: It is no JSON Schema; `what` says which.
        """
        try:
            plain = to_plain(with_doubles(converted))
        except NotJson as error:
            raise BadReference(f"{what} is no JSON: {error}") from error
        except RecursionError as error:  # of what is no schema, such as a default
            raise BadReference(f"{what} holds a value that is nested too deeply") from error
        known = {"$defs": {self._name(reference): True for reference in references}}
        fault = find_schema_fault(plain | known if isinstance(plain, dict) else plain)
        if fault:
            raise BadReference(f"{what} is no JSON Schema: {fault}")
        return plain

    def _target(self, reference: str) -> tuple[Json, tuple[str, ...]]:
        """Return what a reference leads to, converted, and what that refers to."""
        if reference not in self._targets:
            references: list[str] = []
            converted = self.convert(_find(self._document, reference), references)
            checked = self.check(converted, references, f"what {reference} leads to")
            self._targets[reference] = checked, tuple(dict.fromkeys(references))
        return self._targets[reference]

    def _name(self, reference: Json) -> str:
        """Return the name that a reference has in all `$defs` of the document."""
        name = self._names.get(reference) if isinstance(reference, str) else None
        if name is None:
            _find(self._document, reference)  # says what is wrong with it
            name = self._unique.take(safe_name(reference.rpartition("/")[2]) or "schema")
            self._names[reference] = name
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
    """Drop rules that hold for answers only, that are none, and patterns of another kind: the server has them.

    What many documents have, and no version allows: `required: true` of a property, `examples` that are no list.
    """
    for keyword in ("required", "examples"):
        if not isinstance(schema.get(keyword, []), list):
            del schema[keyword]
    properties = schema.get("properties")
    if isinstance(properties, dict) and "required" in schema:
        read_only = {name for name, part in properties.items() if isinstance(part, dict) and part.get("readOnly")}
        schema["required"] = [name for name in schema["required"] if not isinstance(name, str) or name not in read_only]
    try:
        re.compile(schema.get("pattern", ""))
    except (re.error, TypeError, OverflowError, RecursionError):
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
