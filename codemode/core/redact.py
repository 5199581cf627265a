"""What may leave in telemetry, trajectories, logs, error texts and payload dumps.

One `Redactor` holds the secrets that this process knows (interpolated values, headers,
home and state paths) and is the only way anything of a run becomes visible. Results that
the cell itself returns are not redacted: they are what the user asked for.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from typing import Any

from codemode.core.types import Json

MASK = "[redacted]"
_BARE = frozenset({int, float, bool, type(None)})  # of these, nothing is secret
_MAX_KEYS = 2000
MIN_SECRET_CHARS = 6  # shorter values appear by chance in ordinary text
_CUT = "…"
_SECRET_KEY = re.compile(
    r"(pass(word|wd|phrase)?|secret|token|api[-_]?key|auth(orization)?|cookie|credential|private[-_]?key"
    r"|access[-_]?key|session[-_]?id|signature|bearer)",
    re.IGNORECASE,
)
_SECRET_VALUES = (  # what credentials look like, each with a text that it cannot be without
    *((mark, r"\b[spr]k[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}") for mark in ("k-", "k_")),
    *((f"gh{kind}_", rf"\bgh{kind}_[A-Za-z0-9]{{20,}}") for kind in "pousr"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    ("xox", r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    ("AIza", r"\bAIza[0-9A-Za-z_-]{30,}"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{8,}+(\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)?"),  # with its group or not at all
    *((scheme, rf"\b{scheme}\s+[A-Za-z0-9._~+/=-]{{8,}}") for scheme in ("Bearer", "Basic")),
    ("-----BEGIN ", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ("://", r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_OTHERWISE = (
    (" ", r"\+"),
    ("\n", r"\\+n"),
    ("\r", r"\\+r"),
    ("\t", r"\\+t"),
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("'", r"'(?:\"'\"|\\+')'"),
)  # what else a character is written as


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
        self._solid: re.Pattern[str] | None = None  # of those with blanks, without these
        self._keys: dict[str, tuple[str, bool]] = {}  # key → how it is shown, whether it tells of a secret
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Remember more values to mask, as when a server's variables are interpolated.

        Each line of one that has several, such as a private key, is a secret by itself.
        """
        whole = tuple(secrets)
        lines = (line.strip() for secret in whole for line in (secret, *secret.splitlines()))
        given = {secret for secret in (*whole, *lines) if len(secret.strip()) >= MIN_SECRET_CHARS}
        new = (given | {_decoded(secret) for secret in given if "%" in secret}) - self._secrets
        if new:
            self._secrets |= new
            self._pattern = _any_of(self._secrets)
            blank = ("".join(secret.split()) for secret in self._secrets if " " in secret and "\n" not in secret)
            long = [secret for secret in blank if len(secret) >= MIN_SECRET_CHARS]
            self._solid = _any_of(long) if long else None
            self._keys.clear()

    def text(self, text: str) -> str:
        """Return the text with every known or apparent secret masked; its lines keep their numbers.

        Contract: redaction:known:encoded, redaction:known:wrapped, redaction:known:backslashes
        """
        if self._pattern is not None:
            text = self._pattern.sub(_mask, text)
            for wrapped in (self._pattern, self._solid) if "\n" in text else ():
                text = _mask_wrapped(text, wrapped) if wrapped is not None else text
            text = self._mask_rests(text)
        for mark, pattern in _SECRET_VALUES:
            if mark in text:
                text = re.sub(pattern, _mask, text)  # compiled when first needed, and kept by `re`
        for path, shown in self._paths:
            text = text.replace(path, shown)
        return text

    def _mask_rests(self, text: str) -> str:
        """Mask what is left of a secret where a text was cut: at its ends, and around an ellipsis.

        Contract: redaction:known:cut
        """
        pieces = text.split(_CUT)
        for secret in self._secrets:
            for at, piece in enumerate(pieces):
                if len(piece) >= MIN_SECRET_CHARS:
                    pieces[at] = _without_rests(piece, secret)
        return _CUT.join(pieces)

    def value(self, value: Any) -> Json:
        """Return the JSON value with secrets masked, in strings, in keys and under telling keys."""
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            members: dict[str, Json] = {}
            for key, item in value.items():
                shown, is_telling = self._keys.get(key) or self._judge_key(str(key))
                if is_telling:
                    members[shown] = self._telling(str(key), item)
                else:
                    members[shown] = item if type(item) in _BARE else self.value(item)
            return members
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def _judge_key(self, key: str) -> tuple[str, bool]:
        """Return how a key is shown and whether it tells of a secret; the keys of schemas recur in every call."""
        judged = (self.text(key), _SECRET_KEY.search(key) is not None)
        if len(self._keys) < _MAX_KEYS:
            self._keys[key] = judged
        return judged

    def _telling(self, key: str, item: Any) -> Json:
        is_count = isinstance(item, int) and key.lower().endswith("tokens")  # a model's `max_tokens`, no secret
        if isinstance(item, (str, int, float)) and not isinstance(item, bool):
            return item if is_count else MASK
        return self.value(item)


def _mask(found: re.Match[str]) -> str:
    if found.re.groups and found[1] is None:  # read to its end all the same, or each of its parts would be read anew
        return found[0]
    return MASK + "\n" * found[0].count("\n")


def _mask_wrapped(text: str, pattern: re.Pattern[str]) -> str:
    """Mask secrets within which a program broke the line: what is one once all blanks are left out."""
    if pattern.search("".join(text.split())) is None:
        return text
    words = list(re.finditer(r"\S+", text))
    at = [0, *accumulate(len(word[0]) for word in words)]  # where each word begins without blanks
    masked, done = "", 0
    for found in pattern.finditer("".join(word[0] for word in words)):
        first, last = bisect_right(at, found.start()) - 1, bisect_left(at, found.end()) - 1
        begin, end = words[first].start() + found.start() - at[first], words[last].start() + found.end() - at[last]
        if "\n" in text[begin:end]:
            masked += text[done:begin] + MASK + "\n" * text.count("\n", begin, end)
            done = end
    return masked + text[done:]


def _without_rests(piece: str, secret: str) -> str:
    """Mask a beginning of the secret at the end of the piece, and an end of it at its beginning."""
    if piece[-MIN_SECRET_CHARS:] in secret:
        length = _overlap(piece, secret)
        piece = piece[: len(piece) - length] + MASK if length else piece
    if piece[:MIN_SECRET_CHARS] in secret:
        length = _overlap(secret, piece)
        piece = MASK + piece[length:] if length else piece
    return piece


def _overlap(left: str, right: str) -> int:
    """Return how long the longest end of `left` is that begins `right`; 0 where it is too short to tell."""
    longest = min(len(left), len(right))
    return next((size for size in range(longest, MIN_SECRET_CHARS - 1, -1) if left.endswith(right[:size])), 0)


def _decoded(secret: str) -> str:
    from urllib.parse import unquote  # few secrets need it

    return unquote(secret)


def _any_of(secrets: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_spellings, sorted(secrets, key=len, reverse=True))))


def _spellings(secret: str) -> str:
    """Return a pattern for a secret as it is, and as JSON, URLs, HTML, shells and source code write it.

    One that may begin with backslashes is looked for at the first of them alone: of a million, each would be one.
    """
    pattern = "".join(map(_spellings_of_char, secret))
    return pattern if _is_plain(secret[0]) else rf"(?<!\\){pattern}"


def _is_plain(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "-_.~")  # the same everywhere


@cache
def _spellings_of_char(char: str) -> str:
    if _is_plain(char):
        return re.escape(char)
    code, data, units = ord(char), char.encode("utf-8", "surrogatepass"), char.encode("utf-16-be", "surrogatepass")
    by_code = _in_any_case(f"{code:x}")
    spelled = ["".join(f"%(?:25)*{_in_any_case(f'{byte:02x}')}" for byte in data)]  # a URL in a URL: quoted twice
    spelled.append(rf"\\+(?:x0*{by_code}|[uU]0*{by_code}|u\{{0*{by_code}\}})")
    spelled.append("".join(rf"\\+{byte:03o}" for byte in data))
    if len(data) > 1:
        spelled.append("".join(rf"\\+x{_in_any_case(f'{byte:02x}')}" for byte in data))
    if len(units) > 2:
        spelled.append("".join(rf"\\+u{_in_any_case(units[at : at + 2].hex())}" for at in (0, 2)))
    spelled.append(rf"&#(?:0*{code}|[xX]0*{by_code});")
    spelled += [other for known, other in _OTHERWISE if known == char]
    spelled.append(rf"\\*{re.escape(char)}")  # last: "%25" begins as a plain "%" does
    return f"(?:{'|'.join(spelled)})"


def _in_any_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
