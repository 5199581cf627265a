"""What a manifest leaves open: `${VAR}` of the environment, `{id}` of the input.

Only names that the tool's schema declares are placeholders, so a jq filter may use braces. What
is filled in comes from hostile code: whoever fills says how a value is made harmless there.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping

from codemode.core.errors import InvalidInput
from codemode.core.interpolate import interpolate
from codemode.core.tables import Where
from codemode.core.types import Json

Learn = Callable[[Iterable[str]], None]


class Variables:
    """Fills `${VAR}` in what a manifest says, and tells the redactor what went in."""

    def __init__(self, learn: Learn) -> None:
        """Keep the redactor's ear."""
        self.learn = learn

    def expand(self, value: Json, where: Where) -> Json:
        """Return the value with its variables.

        Raises:
            InvalidConfig: A variable is not set.
        """
        expanded = interpolate(value, str(where))
        self.learn({text for secret in expanded.secrets for text in (secret, secret.strip())})
        return expanded.value


class Placeholders:
    """The properties that a template may name, as `{name}`."""

    def __init__(self, properties: Iterable[str]) -> None:
        """Know the schema's property names."""
        names = sorted(properties, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(f"{{{name}}}") for name in names) or r"(?!)")

    def used(self, *texts: str) -> set[str]:
        """Return the properties that these templates name."""
        return {match[0][1:-1] for text in texts for match in self._pattern.finditer(text)}

    def fill(self, text: str, given: Mapping[str, Json], harmless: Callable[[str, str], str]) -> str:
        """Return the text with each placeholder's value in it.

        Args:
            text: The template.
            given: The input; what the template names must be there.
            harmless: Takes the property's name and the value's text, returns what may stand here.

        Raises:
            InvalidInput: A named property is missing, or its value may not stand here.
        """

        def value(match: re.Match[str]) -> str:
            name = match[0][1:-1]
            if name not in given:
                raise InvalidInput(f"the property {name} is needed and was not given")
            return harmless(name, as_text(given[name]))

        return self._pattern.sub(value, text)


def as_text(value: Json) -> str:
    """Return how a JSON value is written inside a text: strings as they are, null as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
