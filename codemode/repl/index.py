"""Words to complete from, indexed once and searched at each key press.

Ten thousand words must be searched within a few milliseconds, so the search is left to the regex
engine, over one text, with patterns that never look back. Pure.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

MAX_SHOWN = 40  # of them at once; nobody reads further, and a letter more narrows it
_SEPARATORS = ":_-./"


class Word(NamedTuple):
    """What may be inserted, and what the menu says beside it."""

    text: str
    meta: str = ""


class Index:
    """Words in the order of their text, found by any of their letters in order."""

    def __init__(self, words: Iterable[Word]) -> None:
        """Take the words; sorting them waits for the first search."""
        self._given = words

    @cached_property
    def words(self) -> list[Word]:
        """All words, sorted, capitals beside their small letters."""
        return sorted(self._given, key=lambda word: (word.text.lower(), word.text))

    @cached_property
    def _keys(self) -> list[str]:
        return [word.text.lower() for word in self.words]

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._keys)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each key begins in the text."""
        return [0, *accumulate(len(key) + 1 for key in self._keys[:-1])]

    def warm(self) -> None:
        """Build now what the first search would build."""
        _ = self._starts, self._text, self._letters

    def find(self, typed: str, count: int = MAX_SHOWN) -> list[Word]:
        """Return the words that hold what is typed, letter for letter, the likeliest first.

        Those that begin with it come first, then those in which a part begins with it, then those
        that hold it in one piece, then those that hold its letters scattered.
        """
        wanted = typed.lower()
        if not wanted:
            return self.words[:count]
        pieces = (self._holding(separator + wanted) for separator in (*_SEPARATORS, ""))
        numbers = chain(self._begun(wanted), chain.from_iterable(pieces), self._scattered(wanted))
        found: dict[int, None] = {}
        for number in numbers:
            found[number] = None
            if len(found) == count:
                break
        return [self.words[number] for number in found]

    def _begun(self, wanted: str) -> Iterator[int]:
        for number in range(bisect_left(self._keys, wanted), len(self._keys)):
            if not self._keys[number].startswith(wanted):
                return
            yield number

    def _holding(self, piece: str) -> Iterator[int]:
        at = self._text.find(piece)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            at = self._text.find(piece, self._starts[number] + len(self._keys[number]))

    @cached_property
    def _letters(self) -> list[int]:
        """The letters of each key, as bits."""
        return [_bits(key) for key in self._keys]

    def _scattered(self, wanted: str) -> Iterator[int]:
        """Yield the keys that hold these letters in this order, those first that hold them closest together."""
        search = re.compile("".join(rf"[^{letter}]*+{letter}" for letter in map(re.escape, wanted))).match
        bits, keys, first = _bits(wanted), self._keys, wanted[0]
        numbers = (number for number, letters in enumerate(self._letters) if letters & bits == bits)
        ends = ((search(keys[number]), number) for number in numbers)
        spans = ((end.end() - keys[number].find(first), number) for end, number in ends if end)
        yield from (number for _, number in sorted(spans))


def _bits(letters: str) -> int:
    bits = 0
    for letter in set(letters):
        bits |= 1 << (ord(letter) & 63)
    return bits
