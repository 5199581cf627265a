"""What may leave in telemetry, trajectories, logs, error texts and payload dumps.

One `Redactor` holds the secrets that this process knows (interpolated values, headers,
home and state paths) and is the only way anything of a run becomes visible. Results that
the cell itself returns are not redacted: they are what the user asked for.
"""

import re
from collections.abc import Iterable
from typing import Any

from codemode.core.types import Json

MASK = "[redacted]"
MIN_SECRET_CHARS = 6  # shorter values appear by chance in ordinary text
_SECRET_KEY = re.compile(
    r"(pass(word|wd|phrase)?|secret|token|api[-_]?key|auth(orization)?|cookie|credential|private[-_]?key"
    r"|access[-_]?key|session[-_]?id|signature|bearer)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"(?:\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@))"
)


class Redactor:
    """Masks known secrets, credential-looking text and private paths."""

    def __init__(self, secrets: Iterable[str] = (), paths: Iterable[tuple[str, str]] = ()) -> None:
        """Start with what is known now.

        Args:
            secrets: Values that must never be shown; those under 6 characters are ignored.
            paths: `(path, shown)` pairs, such as `("/home/ada", "~")`.
        """
        self._secrets: set[str] = set()
        self._paths = sorted((pair for pair in paths if len(pair[0]) > 1), key=lambda pair: -len(pair[0]))
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Remember more values to mask, as when a server's variables are interpolated."""
        self._secrets |= {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
        longest_first = sorted(self._secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """Return the text with every known or apparent secret masked."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        text = _SECRET_VALUE.sub(MASK, text)
        for path, shown in self._paths:
            text = text.replace(path, shown)
        return text

    def value(self, value: Any) -> Json:
        """Return the JSON value with secrets masked, in strings, in keys and under telling keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self._member(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def _member(self, key: str, item: Any) -> Json:
        is_count = isinstance(item, int) and key.lower().endswith("tokens")  # a model's `max_tokens`, no secret
        if _SECRET_KEY.search(key) and isinstance(item, (str, int, float)) and not isinstance(item, bool):
            return item if is_count else MASK
        return self.value(item)
