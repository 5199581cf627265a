"""JSON Schema as a TypeScript type: a tool's input and result, spelled for a reader and for `tsc`.

A schema comes from a server and may be anything. Whatever is not understood, too deep, too
large, or simply not a schema becomes `unknown`; nothing here raises, and what comes out
always parses. One `TypeWriter` writes the types of one schema and collects the named types that
recursion needs.
"""

import functools
import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import unquote

from codemode.core.limits import MAX_DECLARED_DEPTH, MAX_DECLARED_NODES, MAX_REPEATED_CHARS
from codemode.core.names import camel_case, is_identifier
from codemode.core.schemas import index_of
from codemode.core.types import Json

UNKNOWN = "unknown"
DICTIONARY = "{ [key: string]: unknown }"
_PRIMITIVES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_COMPOSING = frozenset({"$ref", "anyOf", "oneOf", "allOf", "nullable"})
_HOLDING = frozenset({"$ref", "allOf"})
_CHOOSING = frozenset({"const", "enum"})
_MAX_SAFE_INTEGER = 2**53
_MAX_LITERAL_CHARS = 200
_MAX_NOTE_CHARS = 300
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes such an encoder for each call
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127), " ")


class _Frame(NamedTuple):
    """A `$ref` that is being written, and how many objects and arrays were around it."""

    pointer: str
    deferrals: int


class TypeWriter:
    """Writes the types of one schema; `named` holds the types that recursion refers to by name.

    TypeScript resolves a name inside an object or array type later, so recursion through one can
    be spelled by name; recursion that passes through none cannot, and is `unknown`.
    """

    def __init__(self, root: Json, prefix: str, take_name: Callable[[str], str], fills_defaults: bool = True) -> None:
        """Prepare for one schema.

        Args:
            root: The schema, which local references point into.
            prefix: What its named types begin with, such as `createIssue`; they are upper-cased.
            take_name: Makes a name unique within the file.
            fills_defaults: A required key with a default may be left out, as `scope.fill_defaults` fills it in.
        """
        self.named: dict[str, str] = {}
        self._root = root
        self._prefix = prefix
        self._take_name = take_name
        self._fills_defaults = fills_defaults
        self._nodes = 0
        self._repeated_chars = 0
        self._written: set[int] = set()
        self._deferrals = 0
        self._open: list[_Frame] = []
        self._names: dict[str, str] = {}

    def write(self) -> str:
        """Return the type of the whole schema, as it stands behind a member of a namespace.

        Contract: mcp:types:schemas, mcp:types:hostile
        """
        return self._reference("#", 0)

    def _write(self, schema: Json, depth: int) -> str:
        self._nodes += 1
        if schema is False:
            return "never"
        if not isinstance(schema, dict) or self._nodes > MAX_DECLARED_NODES or depth > MAX_DECLARED_DEPTH:
            return UNKNOWN
        if schema.keys().isdisjoint(_COMPOSING):
            return self._plain(schema, depth)
        written = self._plain(schema, depth)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            written = _narrow(written, self._reference(reference, depth))
        for keyword in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts:
                written = _narrow(written, self._joined(keyword, parts, depth))
        return union((written, "null")) if schema.get("nullable") is True else written

    def _joined(self, keyword: str, parts: list[Json], depth: int) -> str:
        if keyword == "allOf":
            return intersection([self._write(part, depth) for part in parts])
        fills, self._fills_defaults = self._fills_defaults, False  # which branch holds is the server's to say
        written = union([self._write(part, depth) for part in parts])
        self._fills_defaults = fills
        return written

    def _plain(self, schema: dict[str, Any], depth: int) -> str:
        kind = schema.get("type")
        if not schema.keys().isdisjoint(_CHOOSING):
            if "const" in schema:
                return literal(schema["const"])
            choices = schema["enum"]
            if isinstance(choices, list) and choices and len(choices) + self._nodes <= MAX_DECLARED_NODES:
                self._nodes += len(choices)
                return union(map(literal, choices))
        if isinstance(kind, str):
            return self._typed(kind, schema, depth)
        if isinstance(kind, list) and kind:
            kinds = dict.fromkeys(one if isinstance(one, str) else UNKNOWN for one in kind)
            return union(self._typed(one, schema, depth) for one in kinds)
        if "properties" in schema or "additionalProperties" in schema:
            return self._object(schema, depth)
        return self._array(schema, depth) if "items" in schema or "prefixItems" in schema else UNKNOWN

    def _typed(self, kind: str, schema: dict[str, Any], depth: int) -> str:
        primitive = _PRIMITIVES.get(kind)
        if primitive is not None:
            return primitive
        if kind == "object":
            return self._object(schema, depth)
        return self._array(schema, depth) if kind == "array" else UNKNOWN

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties = properties_of(schema)
        required = required_of(schema)
        if not properties and not required:
            return self._dictionary(schema, depth)
        if id(schema) in self._written and not self._repeats([*properties, *required]):
            return DICTIONARY
        self._written.add(id(schema))
        self._deferrals += 1
        pad = "  " * (depth + 2)
        lines: list[str] = []
        for key, part in properties.items():
            if depth > 0 and (note := _note(part)):
                lines.append(f"{pad}/** {note} */")
            optional = "" if key in required and not (self._fills_defaults and has_default(part)) else "?"
            lines.append(f"{pad}{member_name(key)}{optional}: {self._write(part, depth + 1)};")
        lines += (f"{pad}{member_name(key)}: unknown;" for key in sorted(required - properties.keys()))
        if schema.get("additionalProperties") or "patternProperties" in schema:
            lines.append(f"{pad}[key: string]: unknown;")
        self._deferrals -= 1
        return "\n".join(["{", *lines, "  " * (depth + 1) + "}"])

    def _repeats(self, names: list[str]) -> bool:
        """Say whether the names of an object that was written before fit in again, as references bring them."""
        self._repeated_chars += sum(map(len, names))
        return self._repeated_chars <= MAX_REPEATED_CHARS

    def _dictionary(self, schema: dict[str, Any], depth: int) -> str:
        rest = schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        parts = [rest] if isinstance(rest, dict) else []
        parts += patterns.values() if isinstance(patterns, dict) else []
        if not parts:
            names_none = isinstance(schema.get("properties"), dict) and rest is None
            return "{}" if rest is False or names_none else DICTIONARY
        self._deferrals += 1
        written = union(self._write(part, depth) for part in parts)
        self._deferrals -= 1
        return f"{{ [key: string]: {written} }}"

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        items = schema.get("items")
        first, rest = schema.get("prefixItems"), items
        if isinstance(items, list):  # a tuple, as draft 7 has it
            first, rest = items, schema.get("additionalItems")
        first = first if isinstance(first, list) else []
        defers = not (first and isinstance(rest, dict))  # `[A, ...B[]]` is resolved at once
        self._deferrals += defers
        if first:
            parts = [self._write(part, depth) for part in first]
            parts += [f"...{array_of(self._write(rest, depth))}"] if isinstance(rest, dict) else []
            written = f"[{', '.join(parts)}]"
        else:
            written = array_of(self._write(rest, depth) if rest is not None else UNKNOWN)
        self._deferrals -= defers
        return written

    def _reference(self, pointer: str, depth: int) -> str:
        name = self._names.get(pointer, "")
        if name in self.named:
            return name
        for frame in self._open:
            if frame.pointer == pointer:
                return self._name(pointer) if self._deferrals > frame.deferrals else UNKNOWN
        target = _find(pointer, self._root)
        if target is None:
            return UNKNOWN
        written = self._write_open(pointer, target, depth)
        name = self._names.get(pointer, "")
        if not name:
            return written
        self.named[name] = self._write_open(pointer, target, 0)  # once more, indented for its own declaration
        return name

    def _write_open(self, pointer: str, target: Json, depth: int) -> str:
        self._open.append(_Frame(pointer, self._deferrals))
        written = self._write(target, depth)
        self._open.pop()
        return written

    def _name(self, pointer: str) -> str:
        if pointer not in self._names:
            self._names[pointer] = self._take_name(
                f"{pascal_case(self._prefix)}{pascal_case(pointer.rsplit('/', 1)[-1])}"
            )
        return self._names[pointer]


def union(parts: Iterable[str]) -> str:
    """Return `A | B`, each once; `unknown` swallows all."""
    different = [part for part in dict.fromkeys(parts) if part != "never"]
    return UNKNOWN if UNKNOWN in different else " | ".join(different) or "never"


def intersection(parts: Iterable[str]) -> str:
    """Return `A & B`, each once; `unknown` adds nothing."""
    different = [part for part in dict.fromkeys(parts) if part != UNKNOWN]
    if len(different) < 2:
        return different[0] if different else UNKNOWN
    return " & ".join(f"({part})" if " | " in part else part for part in different)


def _narrow(written: str, more: str) -> str:
    """Return what is of both types; any object at all says nothing beside another type."""
    return more if written == DICTIONARY else intersection((written, more))


def array_of(item: str) -> str:
    """Return `T[]` for a plain name, else `Array<T>`."""
    return f"{item}[]" if item.isidentifier() else f"Array<{item}>"


def literal(value: Json) -> str:
    """Return the literal type of a JSON scalar; of other values, and of very long ones, the wider type."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return quote(value) if len(value) <= _MAX_LITERAL_CHARS else "string"
    if isinstance(value, int):
        return str(value) if abs(value) <= _MAX_SAFE_INTEGER else "number"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "number"
    return UNKNOWN


def quote(text: str) -> str:
    """Return a string literal; TypeScript ends a line at U+2028 and U+2029 too."""
    return _encode(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@functools.lru_cache(maxsize=4096)  # the same few names, tool after tool
def member_name(key: str) -> str:
    """Return a property's name, quoted where it is no identifier."""
    return key if is_identifier(key) else quote(key)


def pascal_case(name: str) -> str:
    """Return the name of a type; `Root` where nothing is left of the name."""
    cased = camel_case(name, "root")
    return cased[0].upper() + cased[1:]


def defuse(text: str) -> str:
    """Return text that is safe inside a comment: it cannot end it, and holds no control characters."""
    clean = text if text.isprintable() else text.translate(_CONTROLS)
    return clean.replace("*/", "*\\/") if "*/" in clean else clean


def properties_of(schema: Json) -> dict[str, Json]:
    """Return the properties of a schema, or none."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Json) -> set[str]:
    """Return the names that a schema requires, or none."""
    required = schema.get("required") if isinstance(schema, dict) else None
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


def all_that_hold(schemas: Iterable[Json], root: Json) -> list[dict[str, Json]]:
    """Return these schemas and all that hold beside them, through local references and `allOf`, each once.

    What is no schema is left out, and so is a boolean one.
    """
    waiting = list(schemas)
    if len(waiting) == 1 and isinstance(waiting[0], dict) and waiting[0].keys().isdisjoint(_HOLDING):
        return waiting  # as most are
    found: dict[int, dict[str, Json]] = {}
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        if isinstance(reference := schema.get("$ref"), str):
            waiting.append(_find(reference, root))
        if isinstance(parts := schema.get("allOf"), list):
            waiting.extend(parts)
    return list(found.values())


def has_default(schema: Json) -> bool:
    """Say whether a missing value is filled in."""
    return isinstance(schema, dict) and "default" in schema


def describe(schema: Json) -> str:
    """Return a schema's description in one line, its default behind it; empty where it has neither."""
    if not isinstance(schema, dict):
        return ""
    told = schema.get("description")
    words = told if isinstance(told, str) else ""
    if not words.isprintable():  # it has more than one line
        words = " ".join(words.split())
    if "default" in schema:
        shown = _spelled(schema["default"])
        words = f"{words} (default {shown})".lstrip() if len(shown) <= _MAX_LITERAL_CHARS else words
    return defuse(words)


def _spelled(value: Json) -> str:
    try:
        return _encode(value)
    except ValueError:  # a number of thousands of digits
        return "…"


def _note(schema: Json) -> str:
    words = describe(schema)
    return words if len(words) <= _MAX_NOTE_CHARS else f"{words[:_MAX_NOTE_CHARS]}…"


def _find(pointer: str, root: Json) -> Json:
    """Return what a local reference points at, or None."""
    if pointer == "#":
        return root
    if not pointer.startswith("#/"):
        return None
    part = root
    for step in unquote(pointer[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict):
            part = part.get(name)
        elif isinstance(part, list) and (at := index_of(name, part)) is not None:
            part = part[at]
        else:
            return None
    return part
