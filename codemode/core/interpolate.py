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


def interpolate(text: str, where: str, variables: Mapping[str, str] | None = None, otherwise: str = "") -> Expanded:
    """Fill the placeholders of one text.

    A default is used where the variable is unset or empty, as a shell does; being written in the
    file, it is no secret. A prefix other than `env:` is part of the name, so that a caller can
    offer `{"input:token": "…"}`.

    Args:
        text: What the file says, such as `Bearer ${TOKEN}`.
        where: Key and file for the error, such as `tool.pay.http.url in /shop/codemode.toml`.
        variables: What the names stand for; the process environment when left out.
        otherwise: What else can be done about a variable that is not set, such as `leave it out`.

    Raises:
        InvalidConfig: A variable is unset and has no default, or a placeholder is malformed.

    Contract: manifest:interpolation:forms, manifest:interpolation:unset
    """
    known = os.environ if variables is None else variables
    secrets: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name, has_default, default = match[1].partition(":-")
        name = name.removeprefix("env:")
        if not match[2] or not _VARIABLE.match(name):
            raise InvalidConfig(
                f"{where}: {match[0]!r} is not a placeholder; write ${{NAME}}, or $$ for a dollar sign."
            )
        value = known.get(name)
        if has_default and not value:
            return default
        if value is None:
            ways = (
                f"set it, write ${{{name}:-default}}, or {otherwise}"
                if otherwise
                else f"set it, or write ${{{name}:-default}}"
            )
            raise InvalidConfig(f"{where}: the variable {name} is not set; {ways}.")
        secrets.add(value)
        return value

    return Expanded(_PLACEHOLDER.sub(fill, text) if "$" in text else text, frozenset(secrets - {""}))


def interpolate_value(
    value: Json, where: str, variables: Mapping[str, str] | None = None, otherwise: str = ""
) -> Expanded:
    """Fill the placeholders of every text inside a JSON value; keys stay as they are.

    Args:
        value: Any JSON value, such as `["curl", "${URL}"]`.
        where: Key and file of the whole value; members add `[0]` or `.name` to the key.
        variables: As for `interpolate`.
        otherwise: The same.

    Raises:
        InvalidConfig: As `interpolate` does.
    """
    if isinstance(value, str):
        return interpolate(value, where, variables, otherwise)
    if isinstance(value, list):
        items = [
            interpolate_value(item, _inside(where, f"[{at}]"), variables, otherwise) for at, item in enumerate(value)
        ]
        return Expanded([item.value for item in items], frozenset().union(*(item.secrets for item in items)))
    if isinstance(value, dict):
        members = {
            key: interpolate_value(item, _inside(where, f".{key}"), variables, otherwise) for key, item in value.items()
        }
        secrets = frozenset().union(*(member.secrets for member in members.values()))
        return Expanded({key: member.value for key, member in members.items()}, secrets)
    return Expanded(value)


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
