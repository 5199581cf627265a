"""Variables inside configured text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, and `$$` for a dollar.

Commands, URLs, headers and server definitions are written with placeholders and expanded only
when they are used, so listings show the placeholder and never the value. Whoever expands also
gets the values that went in, for the redactor to learn.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from codemode.core.errors import InvalidConfig
from codemode.core.types import Json

_PLACEHOLDER = re.compile(r"\$\$|\$\{([^}]*)(\}?)")
_VARIABLE = re.compile(r"(?:[A-Za-z]+:)?[A-Za-z_][A-Za-z0-9_.-]*\Z")


class Expanded(NamedTuple):
    """A value with its placeholders filled, and the variables' values that went into it."""

    value: Json
    secrets: frozenset[str] = frozenset()


def interpolate(value: Json, where: str, variables: Mapping[str, str] | None = None, otherwise: str = "") -> Expanded:
    """Fill the placeholders of every text inside a JSON value; keys stay as they are.

    A default is used where the variable is unset or empty, as a shell does; being written in the
    file, it is no secret. A prefix other than `env:` is part of the name, so that a caller can
    offer `{"input:token": "…"}`.

    Args:
        value: What the file says, such as `Bearer ${TOKEN}` or `["curl", "${URL}"]`.
        where: Key and file of the value for the error, such as `tool.pay.http in /shop/codemode.toml`;
            members add `[0]` or `.name` to the key.
        variables: What the names stand for; the process environment when left out.
        otherwise: What else can be done about a variable that is not set, such as `leave it out`.

    Raises:
        InvalidConfig: Variables are unset and have no default, all of which it names, or a placeholder is malformed.

    Contract: manifest:interpolation:forms, manifest:interpolation:unset
    """
    filling = _Filling(where, os.environ if variables is None else variables)
    filled = filling.fill(value, "")
    if filling.unset:
        raise InvalidConfig(_explain_unset(filling.unset, where, otherwise))
    return Expanded(filled, frozenset(filling.secrets - {""}))


class _Filling:
    """One value as it is filled: what went in, and what is not set → the first place that asks for it."""

    def __init__(self, where: str, variables: Mapping[str, str]) -> None:
        self.secrets: set[str] = set()
        self.unset: dict[str, str] = {}
        self._where = where
        self._variables = variables

    def fill(self, value: Json, step: str) -> Json:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda match: self._value(match, step), value) if "$" in value else value
        if isinstance(value, list):
            return [self.fill(item, f"{step}[{at}]") for at, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.fill(item, f"{step}.{key}") for key, item in value.items()}
        return value

    def _value(self, match: re.Match[str], step: str) -> str:
        if match[0] == "$$":
            return "$"
        name, has_default, default = match[1].partition(":-")
        name = name.removeprefix("env:")
        if not match[2] or not _VARIABLE.match(name):
            place = _inside(self._where, step)
            raise InvalidConfig(
                f"{place}: {match[0]!r} is not a placeholder; write ${{NAME}}, or $$ for a dollar sign."
            )
        value = self._variables.get(name)
        if has_default and not value:
            return default
        if value is None:
            self.unset.setdefault(name, step)
            return ""
        self.secrets.add(value)
        return value


def _explain_unset(unset: Mapping[str, str], where: str, otherwise: str) -> str:
    first, *others = unset
    written = f"write ${{{first}:-default}}"
    if not others:
        ways = f"set it, {written}, or {otherwise}" if otherwise else f"set it, or {written}"
        return f"{_inside(where, unset[first])}: the variable {first} is not set; {ways}."
    *shown, last = (f"{name} ({step.lstrip('.')})" if step else name for name, step in unset.items())
    ways = f"set them, {written} and so on, or {otherwise}" if otherwise else f"set them, or {written} and so on"
    return f"{where}: the variables {', '.join(shown)} and {last} are not set; {ways}."


def find_variables(value: Any) -> frozenset[str]:
    """Return the names of all variables in a definition, whatever it is made of.

    So that their values can be kept secret before the definition is used, or anything is said of it.

    Contract: redaction:known:at-once
    """
    if isinstance(value, str):
        names = (match[1].partition(":-")[0].removeprefix("env:") for match in _PLACEHOLDER.finditer(value) if match[1])
        return frozenset(filter(_VARIABLE.match, names))
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return frozenset()
    return frozenset().union(*map(find_variables, value))


def _inside(where: str, step: str) -> str:
    key, separator, file = where.partition(" in ")
    return f"{key}{step}{separator}{file}"
