"""A quick test for JSON Schema's common keywords: is this value certainly valid?

Importing `jsonschema` costs more than a whole cell and one validation more than a nested call,
so most inputs never meet it. The test answers "certainly valid" or "ask jsonschema"; what it
does not know, it does not accept. It expects a schema without faults (`core.schemas`).
"""

from collections.abc import Callable
from typing import Any

from codemode.core.types import Json

Test = Callable[[Any], bool]
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "$comment"}
)
_SCALARS = (str, int, float, bool, type(None))
_DIALECTS = ("http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPE_TESTS: dict[str, Test] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def compile_acceptor(schema: Json) -> Test | None:
    """Build a test that is true only for values that are certainly valid, or None if it cannot.

    Contract: executor:schema:fast-path-agrees
    """
    if schema is True or schema == {}:
        return lambda _: True
    if not isinstance(schema, dict):
        return None
    tests: list[Test] = []
    for keyword, argument in schema.items():
        if keyword in _ANNOTATIONS or keyword in {"properties", "additionalProperties"}:
            continue
        build = _ACCEPTORS.get(keyword)
        test = build(argument) if build else None
        if test is None:
            return None
        tests.append(test)
    if "properties" in schema or "additionalProperties" in schema:
        members = _accept_members(schema.get("properties", {}), schema.get("additionalProperties", True))
        if members is None:
            return None
        tests.append(members)
    if len(tests) == 1:
        return tests[0]
    return _all_of(tests)


# Plain loops below: a generator expression for each value would cost more than the tests themselves.


def _all_of(tests: list[Test]) -> Test:
    def accept(value: Any) -> bool:
        for test in tests:  # noqa: SIM110  # see above
            if not test(value):
                return False
        return True

    return accept


def _accept_members(properties: dict[str, Json], rest: Json) -> Test | None:
    known = {name: compile_acceptor(part) for name, part in properties.items()}
    other = (lambda _: False) if rest is False else compile_acceptor(rest)
    if other is None or None in known.values():
        return None
    look_up: Callable[[str, Test], Test] = known.get  # type: ignore[assignment]  # no value of `known` is None here

    def accept(value: Any) -> bool:
        if isinstance(value, dict):
            for name, member in value.items():
                if not look_up(name, other)(member):
                    return False
        return True

    return accept


def _accept_type(names: Json) -> Test:
    if isinstance(names, str):
        return _TYPE_TESTS[names]
    tests = [_TYPE_TESTS[name] for name in names]
    return lambda value: any(test(value) for test in tests)


def _accept_required(names: list[str]) -> Test:
    wanted = frozenset(names)
    return lambda value: not isinstance(value, dict) or wanted <= value.keys()


def _accept_enum(choices: list[Json]) -> Test | None:
    if not all(isinstance(choice, _SCALARS) for choice in choices):
        return None
    known = frozenset((type(choice), choice) for choice in choices)
    return lambda value: isinstance(value, _SCALARS) and (type(value), value) in known


def _accept_items(schema: Json) -> Test | None:
    accept = compile_acceptor(schema)
    return accept and (lambda value: not isinstance(value, list) or all(map(accept, value)))


def _accept_any(schemas: list[Json]) -> Test | None:
    tests = [compile_acceptor(schema) for schema in schemas]
    return None if None in tests else lambda value: any(test(value) for test in tests if test)


_ACCEPTORS: dict[str, Callable[[Any], Test | None]] = {
    "$schema": lambda dialect: (lambda _: True) if dialect.rstrip("#") in _DIALECTS else None,
    "type": _accept_type,
    "required": _accept_required,
    "enum": _accept_enum,
    "const": lambda choice: _accept_enum([choice]),
    "items": _accept_items,
    "anyOf": _accept_any,
    "minimum": lambda bound: lambda value: not _is_number(value) or value >= bound,
    "maximum": lambda bound: lambda value: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda bound: lambda value: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda bound: lambda value: not _is_number(value) or value < bound,
    "minLength": lambda bound: lambda value: not isinstance(value, str) or len(value) >= bound,
    "maxLength": lambda bound: lambda value: not isinstance(value, str) or len(value) <= bound,
    "minItems": lambda bound: lambda value: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda bound: lambda value: not isinstance(value, list) or len(value) <= bound,
}
