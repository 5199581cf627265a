"""Does an input satisfy a tool's JSON Schema? One compiled check per tool.

Common schemas are decided by `core.acceptor` in microseconds. `jsonschema` is imported only
when a schema is beyond it or an input is not certainly valid; it has the last word and gives
the sentence that the guest reads: the path of what is wrong and the rule that it breaks.
Inputs and schemas are hostile, so no rule may cost more than one look at each value: some of the
library's are replaced, patterns are matched by `patterns`, no more than a few faults are gathered,
and a check that takes too many steps is given up.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from codemode.core.acceptor import compile_acceptor
from codemode.core.limits import ERROR_EXCERPT_CHARS, MAX_CHECK_STEPS
from codemode.core.schemas import find_schema_fault
from codemode.core.types import Json
from codemode.patterns import Patterns, Undecided

Check = Callable[[Json], str | None]
_STUMBLES = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    re.error,
)  # of a library, over nonsense
_MAX_CUTS = 8  # rounds of cutting faults out of a schema; each may bring the next to light
_LEAST_WITH_EXPONENT = 1e21
_NAMING = frozenset({"properties", "patternProperties"})
_MAX_JUDGED_CHARS = 32 << 10  # of a schema with faults; what is larger stays as it is
_NO_SCHEMA = "the tool's schema, or what it refers to, is no JSON Schema"
_TOO_DEEP = "the value or the tool's schema is nested too deeply"
_TOO_LONG = "input: it takes too long to be checked against the tool's schema; send less of it"
_MAX_FAULTS = 20  # the best of these is told; a list of a million wrong items has a million


class _TooLong(Exception):
    """A check has taken all of its steps."""


class _Steps:
    """What one check has left: two alternatives that both refer to the whole double the work at every level."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> None:
        self._left = MAX_CHECK_STEPS

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _TooLong


def compile_check(schema: dict[str, Json]) -> Check:
    """Build the check of one schema: it returns None for a valid value, else what is wrong.

    Servers write for other dialects and other languages: what is no rule here is left to the tool itself.
    A reference that leads nowhere rejects the values that it is about, and says so.

    Contract: executor:schema:path-and-rule, executor:schema:other-dialects, executor:schema:steps
    """
    is_sound = find_schema_fault(schema) is None
    accepts = compile_acceptor(schema) if is_sound else None
    validator: Any = None
    patterns, steps = Patterns(), _Steps()

    def check(value: Json) -> str | None:
        nonlocal validator
        if accepts is not None and accepts(value):
            return None
        try:
            if validator is None:
                validator = _build_validator(schema, is_sound, patterns, steps)
            patterns.begin()
            steps.begin()
            return _explain(validator, value)
        except Undecided as pattern:
            return f"a text takes too long to be matched with the pattern {_cut(str(pattern))} (rule: pattern)"
        except _TooLong:
            return _TOO_LONG
        except RecursionError:
            return _TOO_DEEP
        except _STUMBLES:
            return _NO_SCHEMA

    return check


def _build_validator(schema: dict[str, Json], is_sound: bool, patterns: Patterns, steps: _Steps) -> Any:
    # Imported here: 90 ms that valid inputs of common schemas never pay.
    from jsonschema import validators
    from referencing import Registry

    kind, readable = _choose_dialect(schema, is_sound)
    rules = {**kind.VALIDATORS, "anyOf": _any_of, "oneOf": _one_of, "uniqueItems": partial(_unique_items, steps)}
    rules["pattern"] = partial(_pattern, patterns)
    if "patternProperties" in json.dumps(readable):  # the library's own rules for these match without a bound
        rules["patternProperties"] = partial(_pattern_properties, patterns)
        rules["additionalProperties"] = partial(_additional_properties, patterns)
        rules["unevaluatedProperties"] = lambda *_: ()  # left to the tool
    # An empty registry is given, so that a `$ref` to a URL is an error and never a download.
    return validators.extend(kind, {name: _counted(rule, steps) for name, rule in rules.items()})(
        readable, registry=Registry()
    )


def _choose_dialect(schema: dict[str, Json], is_sound: bool) -> tuple[Any, dict[str, Json]]:
    """Return the dialect that a schema names, else the newest in which it is valid, and what it says in that.

    What is no rule in the dialect is cut out: `required = true`, or a pattern that only JavaScript knows.
    """
    from jsonschema import validators

    newest = validators.Draft202012Validator
    if isinstance(schema.get("$schema"), str):
        kinds = [validators.validator_for(schema, default=newest)]
    else:
        kinds = [newest, validators.Draft7Validator, validators.Draft4Validator]
    if is_sound or len(json.dumps(schema)) > _MAX_JUDGED_CHARS:
        return kinds[0], schema
    for kind in kinds:
        if not _places_of_faults(kind, schema):
            return kind, schema
    readable = copy.deepcopy(schema)
    for _ in range(_MAX_CUTS):
        places = _places_of_faults(kinds[0], readable)
        if not places:
            return kinds[0], readable
        for place in places:
            _cut_out(readable, place)
    return kinds[0], {}


def _places_of_faults(kind: Any, schema: Json) -> list[list[Any]]:
    try:
        faults = kind(kind.META_SCHEMA, format_checker=kind.FORMAT_CHECKER).iter_errors(schema)
        return [list(fault.absolute_path) for fault in faults]
    except RecursionError:  # too deep to be judged: it stays, and so rejects
        return []


def _cut_out(schema: Json, place: list[Any]) -> None:
    """Take a keyword, or an item of its list, out of a schema; what `properties` named is then nobody's to forbid."""
    with suppress(LookupError, TypeError):  # one cut may have taken the place of another
        for step in place[:-1]:
            schema = schema[step]
        del schema[place[-1]]
        if place[-1] in _NAMING:
            schema.pop("additionalProperties", None)


def _counted(rule: Any, steps: _Steps) -> Any:
    """Return a rule that counts its steps and shortens its faults, which quote the value however large it is.

    It lets null pass where `nullable` says so, as OpenAPI has it and the declarations show it.
    """

    def shorten(fault: Any) -> Any:
        steps.take(len(fault.message) // 1024)
        fault.message = fault.message[: ERROR_EXCERPT_CHARS + 1]  # one more, which says that it was cut
        return fault

    def check(validator: Any, argument: Json, value: Json, schema: Json) -> Any:
        steps.take(1 + _width(argument) // 16 + _width(value) // 256)
        if value is None and schema.get("nullable") is True:
            return ()
        return map(shorten, rule(validator, argument, value, schema) or ())  # a generator would be one frame more

    return check


def _width(value: Json) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _explain(validator: Any, value: Json) -> str | None:
    from jsonschema.exceptions import UnknownType, best_match  # loaded already, with the validator
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(islice(validator.iter_errors(value), _MAX_FAULTS))
    except Unresolvable as fault:
        return f"the tool's schema has a reference that leads nowhere: {_cut(str(fault))}"
    except UnknownType:
        return _NO_SCHEMA
    if error is None:
        return None
    return f"{_cut(error.json_path.replace('$', 'input', 1))}: {_cut(error.message)} (rule: {error.validator})"


def _first_faults(validator: Any, schemas: list[Json], value: Json) -> list[Any]:
    """Return the first fault under each schema, None where there is none."""
    return [next(validator.descend(value, schema, schema_path=index), None) for index, schema in enumerate(schemas)]


def _any_of(validator: Any, schemas: list[Json], value: Json, schema: Json) -> Iterator[Any]:  # noqa: ARG001
    faults = _first_faults(validator, schemas, value)
    if None not in faults:
        yield _fault("is not valid under any of the given schemas", value, faults)


def _one_of(validator: Any, schemas: list[Json], value: Json, schema: Json) -> Iterator[Any]:  # noqa: ARG001
    faults = _first_faults(validator, schemas, value)
    valid = faults.count(None)
    if valid == 0:
        yield _fault("is not valid under any of the given schemas", value, faults)
    elif valid > 1:
        yield _fault(f"is valid under {valid} of the given schemas, and only one may hold", value, [])


def _unique_items(steps: _Steps, validator: Any, wanted: bool, value: Json, schema: Json) -> Iterator[Any]:  # noqa: ARG001
    if wanted and isinstance(value, list):
        spelled = {_spelling(item) for item in value}
        steps.take(len(value) // 16 + sum(map(len, spelled)) // 64)
        if len(spelled) < len(value):
            yield _fault("has non-unique elements", value, [])


def _pattern(patterns: Patterns, validator: Any, pattern: str, value: Json, schema: Json) -> Iterator[Any]:  # noqa: ARG001
    if isinstance(value, str) and not patterns.match(pattern, value):
        yield _fault(f"does not match {pattern!r}", value, [])


def _pattern_properties(
    patterns: Patterns,
    validator: Any,
    parts: dict[str, Json],
    value: Json,
    schema: Json,  # noqa: ARG001
) -> Iterator[Any]:
    for pattern, part in parts.items() if isinstance(value, dict) else ():
        for key in value:
            if patterns.match(pattern, key):
                yield from validator.descend(value[key], part, path=key, schema_path=pattern)


def _additional_properties(patterns: Patterns, validator: Any, rest: Json, value: Json, schema: Json) -> Iterator[Any]:
    named, matched = schema.get("properties", {}), schema.get("patternProperties", {})
    for key in value if isinstance(value, dict) else ():
        if key in named or any(patterns.match(pattern, key) for pattern in matched):
            continue
        if rest is False:
            yield _fault(f"may not have the property {key!r}", value, [])
        else:
            yield from validator.descend(value[key], rest, path=key)


def _spelling(value: Json) -> str:
    """Return the same text for values that JSON Schema calls equal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _LEAST_WITH_EXPONENT:
        return str(int(value))  # of larger ones JavaScript writes no digits, and hundreds are no use to anybody
    if isinstance(value, list):
        return f"[{','.join(map(_spelling, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{json.dumps(key)}:{_spelling(item)}' for key, item in value.items()))}}}"
    return json.dumps(value)


def _fault(words: str, value: Json, context: list[Any]) -> Any:
    from jsonschema import ValidationError  # loaded already, with the validator

    return ValidationError(f"{value!r} {words}", context=context)


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_EXCERPT_CHARS else f"{text[:ERROR_EXCERPT_CHARS]}…"
