"""Words as search sees them: parts of names, stems, families of meaning, slips of the pen.

Text becomes lower-case words without accents; `createPullRequest` and `create_pull_request` are
three words; a run of Chinese, Japanese, Korean or Thai is its pairs of characters. The families
are data: one line of `search_families.txt` holds words that people use for the same thing.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_RUN = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+[a-z]*")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_SUFFIXES = (
    ("ations", "at", 3), ("ation", "at", 3), ("ments", "", 4), ("ment", "", 4), ("sses", "ss", 2), ("ies", "y", 2),
    ("ches", "ch", 2), ("shes", "sh", 2), ("xes", "x", 2), ("ings", "", 3), ("ing", "", 3), ("ions", "", 4),
    ("ion", "", 4), ("ers", "", 4), ("ors", "", 4), ("er", "", 4), ("or", "", 4), ("als", "", 4), ("al", "", 4),
    ("ed", "", 3), ("ly", "", 4),
)  # fmt: skip
STOP_WORDS = frozenset(
    {
        "a", "about", "all", "also", "am", "an", "and", "any", "anybody", "anyone", "anything", "are", "as", "at", "be",
        "been", "but", "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her",
        "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "many", "may", "me", "much", "my",
        "need", "needs", "of", "on", "one", "or", "our", "please", "s", "she", "should", "so", "some", "somebody",
        "someone", "something", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
        "to", "tool", "tools", "two", "up", "us", "want", "wants", "was", "we", "were", "what", "which", "will", "with",
        "would", "you", "your",
    }
)  # fmt: skip


class Word(NamedTuple):
    """A word and its stem: equal stems are inflections of one word."""

    text: str
    stem: str


def split_words(text: str) -> list[Word]:
    """Return the words of a name or a sentence, in order.

    Contract: search:words:camel-and-snake, search:words:non-ascii
    """
    return [word for run in split_runs(text) for word in words_of(run)]


def split_runs(text: str) -> list[str]:
    """Return the unbroken runs of letters and digits, in order: what `words_of` takes."""
    return _RUN.findall(_POSSESSIVE.sub("", text) if "'" in text or "\u2019" in text else text)


@lru_cache(maxsize=65_536)
def words_of(run: str) -> tuple[Word, ...]:
    """Return the words of one run: most runs are one word, a camelCase name is several."""
    if run.isascii():
        parts = [run.lower()] if run.islower() or run.isupper() else [part.lower() for part in _PART.findall(run)]
        return tuple(Word(part, stem(part)) for part in parts)
    plain = "".join(char for char in unicodedata.normalize("NFKD", run) if not unicodedata.combining(char))
    if plain.isascii():
        return words_of(plain)
    plain = unicodedata.normalize("NFC", run).casefold()
    return tuple(Word(part, part) for part in _unspaced_parts(plain))


def join_words(first: Word, second: Word) -> Word:
    """Return two words as the one that they may be elsewhere: `roll back`, `web hook`."""
    text = first.text + second.text
    return Word(text, stem(text))


def _unspaced_parts(text: str) -> Iterator[str]:
    at = 0
    for match in _UNSPACED.finditer(text):
        if match.start() > at:
            yield text[at : match.start()]
        run = match[0]
        yield from [run] if len(run) < 2 else [run[i : i + 2] for i in range(len(run) - 1)]
        at = match.end()
    if at < len(text):
        yield text[at:]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return what inflections of a word share: `orders` → `order`, `creating`, `creation` → `creat`.

    Contract: search:words:inflections
    """
    if word == "news":  # no plural of new
        return word
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "ies", "ches", "shes", "xes")):
        word = word[:-1]
    for suffix, instead, shortest in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= shortest:
            word = word[: -len(suffix)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word


def one_slip_away(word: str) -> Iterator[str]:
    """Yield every word that one missing, extra, wrong or swapped letter turns into this one.

    Contract: search:terms:one-slip
    """
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    for left, right in halves:
        if right:
            yield left + right[1:]
            yield from (left + letter + right[1:] for letter in _ALPHABET)
        if len(right) > 1:
            yield left + right[1] + right[0] + right[2:]
        yield from (left + letter + right for letter in _ALPHABET)


def related_stems(of: str) -> frozenset[str]:
    """Return the stems of the words that mean much the same, from the families."""
    return families().get(of, frozenset())


@lru_cache(maxsize=1)
def families() -> dict[str, frozenset[str]]:
    """Return the stems of all families, each with those that it shares one with; read once."""
    related: dict[str, set[str]] = {}
    for line in Path(__file__).with_name("search_families.txt").read_text(encoding="utf-8").splitlines():
        family = {stem(word) for word in line.partition("#")[0].split()}
        for member in family:
            related.setdefault(member, set()).update(family - {member})
    return {member: frozenset(others) for member, others in related.items()}
