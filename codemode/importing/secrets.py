"""Secrets that stand in clear in a server's definition, each replaced by a variable.

A manifest is committed, other clients' files are not. What counts as a secret is what the
redactor would mask, by a telling name or by its looks, and a long random part of an address.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codemode.core.redact import MASK, Redactor
from codemode.importing.dialects import variable_name

_REDACTOR = Redactor()
_SCHEME = re.compile(r"(?P<scheme>(?:Bearer|Basic|Token|ApiKey)\s+)?(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_FLAG = re.compile(r"(?P<head>--?(?P<name>[\w.-]+)=)(?P<value>.+)", re.DOTALL)
_HEADER = re.compile(r"(?P<head>(?P<name>[A-Za-z][\w-]*):\s*)(?P<value>(?!//).+)", re.DOTALL)
_SETTING = re.compile(r"(?P<head>(?P<name>[A-Za-z_]\w*)=)(?P<value>.+)", re.DOTALL)
_PARAMETER = re.compile(r"(?P<head>[?&](?P<name>[\w.-]+)=)(?P<value>[^&#]+)")
_SEGMENT = re.compile(r"(?<=/)(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?=[/?#]|\Z)")
_HARMLESS = re.compile(r"\d{0,6}|true|false|yes|no|on|off|none|null", re.IGNORECASE)


class Moved(NamedTuple):
    """A secret that became a variable: its name, and the key that it stands at, such as `env.TOKEN`."""

    variable: str
    key: str


class Vault:
    """Gives each secret its variable; the same name for another value gets the server's name before it."""

    def __init__(self) -> None:
        """Begin empty; one vault serves all servers of an import."""
        self._values: dict[str, str] = {}
        self._server = ""
        self.moved: list[Moved] = []

    def enter(self, server: str) -> None:
        """Go on with another server."""
        self._server, self.moved = server, []

    def place(self, name: str, value: str, key: str) -> str:
        """Return the placeholder that stands for a secret from now on."""
        wanted = variable_name(name)
        own = f"{variable_name(self._server)}_{wanted}"
        for candidate in (wanted, own, *(f"{own}_{number}" for number in range(2, 100))):
            if self._values.setdefault(candidate, value) == value:
                self.moved.append(Moved(candidate, key))
                return f"${{{candidate}}}"
        return value

    def own(self, name: str) -> str:
        """Return a name that says which server it belongs to, once."""
        server, wanted = variable_name(self._server), variable_name(name)
        return wanted if wanted.startswith(server) else f"{server}_{wanted}"

    # ---- where secrets stand ----

    def hide_env(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment without secrets; a variable keeps its name."""
        return {
            name: self.place(name, value, f"env.{name}") if _is_secret(name, value) else value
            for name, value in env.items()
        }

    def hide_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers without secrets; `Bearer` and its like stay readable."""
        return {name: self._hide_header(name, value, f"headers.{name}") for name, value in headers.items()}

    def _hide_header(self, name: str, value: str, key: str) -> str:
        match = _SCHEME.fullmatch(value)
        if match is None or not _is_secret(name, value):
            return value
        label = "token" if name.lower() == "authorization" else name
        return (match["scheme"] or "") + self.place(self.own(label), match["rest"], key)

    def hide_url(self, url: str, key: str = "url") -> str:
        """Return an address without secrets in its user, its path or its parameters."""
        if "${" in url:
            return url
        if _REDACTOR.text(re.sub(_PARAMETER, "", url)) != re.sub(_PARAMETER, "", url):
            return self.place(self.own("url"), url, key)
        url = _SEGMENT.sub(lambda match: self.place(self.own("key"), match[0], key), url)
        return _PARAMETER.sub(lambda match: self._hide_named(match, key), url)

    def hide_args(self, args: Sequence[str]) -> list[str]:
        """Return arguments without secrets: after a telling flag, in `NAME=value`, in a header, by their looks."""
        hidden: list[str] = []
        for at, argument in enumerate(args):
            before = args[at - 1] if at else ""
            flag = before.lstrip("-") if before.startswith("-") and "=" not in before else ""
            hidden.append(self._hide_argument(argument, flag, f"args[{at}]"))
        return hidden

    def _hide_argument(self, argument: str, flag: str, key: str) -> str:
        if argument.startswith(("http://", "https://")):
            return self.hide_url(argument, key)
        for pattern in (_FLAG, _SETTING):
            if match := pattern.fullmatch(argument):
                return self._hide_named(match, key)
        if match := _HEADER.fullmatch(argument):
            return match["head"] + self._hide_header(match["name"], match["value"], key)
        if not argument.startswith("-") and _is_secret(flag, argument):
            return self.place(self.own(flag or "secret"), argument, key)
        return argument

    def _hide_named(self, match: re.Match[str], key: str) -> str:
        if not _is_secret(match["name"], match["value"]):
            return match[0]
        is_variable = match["name"].isupper()
        name = match["name"] if is_variable else self.own(match["name"])
        return match["head"] + self.place(name, match["value"], key)


def _is_secret(name: str, value: str) -> bool:
    """Say whether a value is one: by its name, or by its looks. What is a variable already is none."""
    if "${" in value or _HARMLESS.fullmatch(value.strip()):
        return False
    return _REDACTOR.value({name: value})[name] == MASK or _REDACTOR.text(value) != value
