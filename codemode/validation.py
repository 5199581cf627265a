"""Does an input satisfy a tool's JSON Schema? One compiled check per tool.

Common schemas are decided by `core.acceptor` in microseconds. `jsonschema` is imported only
when a schema is beyond it or an input is not certainly valid; it has the last word and gives
the sentence that the guest reads: the path of what is wrong and the rule that it breaks.
"""

from collections.abc import Callable
from typing import Any

from codemode.core.acceptor import compile_acceptor
from codemode.core.limits import ERROR_EXCERPT_CHARS
from codemode.core.schemas import find_schema_fault
from codemode.core.types import Json

Check = Callable[[Json], str | None]


def compile_check(schema: dict[str, Json]) -> Check:
    """Build the check of one schema: it returns None for a valid value, else what is wrong.

    A schema that is none, or whose references lead nowhere, rejects every value and says so.

    Contract: executor:schema:path-and-rule
    """
    accepts = compile_acceptor(schema) if find_schema_fault(schema) is None else None
    validator: Any = None

    def check(value: Json) -> str | None:
        nonlocal validator
        if accepts is not None and accepts(value):
            return None
        if validator is None:
            validator = _build_validator(schema)
        return _explain(validator, value)

    return check


def _build_validator(schema: dict[str, Json]) -> Any:
    # Imported here: 90 ms that valid inputs of common schemas never pay.
    import jsonschema
    import referencing

    # An empty registry is given, so that a `$ref` to a URL is an error and never a download.
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, registry=referencing.Registry())


def _explain(validator: Any, value: Json) -> str | None:
    from jsonschema.exceptions import SchemaError, best_match  # loaded already, with the validator
    from referencing.exceptions import Unresolvable

    try:
        validator.check_schema(validator.schema)
        error = best_match(validator.iter_errors(value))
    except SchemaError as fault:
        return f"the tool's schema is not valid: {_cut(fault.message)}"
    except Unresolvable as fault:
        return f"the tool's schema has a reference that leads nowhere: {_cut(str(fault))}"
    except RecursionError:
        return "the value or the tool's schema is nested too deeply"
    if error is None:
        return None
    return f"{error.json_path.replace('$', 'input', 1)}: {_cut(error.message)} (rule: {error.validator})"


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_EXCERPT_CHARS else f"{text[:ERROR_EXCERPT_CHARS]}…"
