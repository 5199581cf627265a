"""What fits inside a tool's input: keys with their types, and the values that a schema lists. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence

from codemode.core.types import Json
from codemode.render.signature import parameters_of
from codemode.repl.index import Word
from codemode.repl.place import ITEM

_MAX_REFERENCES = 20  # a schema may refer to itself


def keys_at(schema: Json, keys: Sequence[str]) -> list[Word]:
    """Return the keys of the object at a place in an input, required ones first.

    The menu shows `string, required · Order id, such as o-1001.` beside each.
    """
    part = _part_at(schema, keys)
    return [
        Word(found.name, " · ".join(filter(None, (_typed(found.type, found.required), found.description))))
        for found in parameters_of(part)
    ]


def values_at(schema: Json, keys: Sequence[str]) -> list[Word]:
    """Return the values, as JSON, that a schema lists for a place in an input."""
    part = _part_at(schema, keys)
    if part.get("type") == "boolean":
        return [Word("true"), Word("false")]
    listed = part.get("enum")
    values = listed if isinstance(listed, list) else [part["const"]] if "const" in part else []
    return [Word(json.dumps(value, ensure_ascii=False)) for value in values]


def _typed(words: str, required: bool) -> str:
    return f"{words}, required" if required else words


def _part_at(schema: Json, keys: Sequence[str]) -> Mapping[str, Json]:
    """Follow keys into a schema; where they lead out of it there is the empty schema."""
    part = _resolved(schema, schema)
    for key in keys:
        part = _resolved(_step(part, key), schema)
    return part


def _step(part: Mapping[str, Json], key: str) -> Json:
    if key == ITEM:
        return part.get("items")
    properties = part.get("properties")
    return properties.get(key) if isinstance(properties, dict) else None


def _resolved(part: Json, root: Json) -> Mapping[str, Json]:
    """Return a part without its reference, or, of several shapes, the first that is an object or array."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(part, dict):
            return {}
        if isinstance(part.get("$ref"), str):
            part = _referred(part["$ref"], root)
        elif shapes := list(_shapes(part)):
            part = shapes[0]
        else:
            return part
    return {}


def _shapes(part: Mapping[str, Json]) -> Iterator[Json]:
    if "properties" in part or "enum" in part:
        return
    for word in ("anyOf", "oneOf", "allOf"):
        shapes = part.get(word)
        if isinstance(shapes, list):
            yield from sorted((shape for shape in shapes if isinstance(shape, dict)), key=_is_plain)


def _is_plain(shape: Mapping[str, Json]) -> bool:
    return not any(word in shape for word in ("properties", "items", "enum", "$ref"))


def _referred(reference: str, root: Json) -> Json:
    """Return what a local reference, `#/$defs/line`, points at."""
    found = root
    for step in reference.removeprefix("#/").split("/") if reference.startswith("#/") else [""]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found
