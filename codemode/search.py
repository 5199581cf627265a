"""Ranking: which tools a query in plain words means, best first.

An index is built once for a catalog. A query term counts for every word of a tool's name, id,
label or description that it equals or begins, for words of the same stem, for words of the
same family (`search_families.txt`: create, open, add, …), and, if it matches nothing, for words
one slip away. Rare words count more, names more than descriptions, whole matches more than
guesses. `explain` says of each result which word was found how and what it gave.
"""

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from codemode.core.types import ToolSpec
from codemode.search_words import STOP_WORDS, Word, one_slip_away, related_stems, split_words

How = Literal["exact", "stem", "prefix", "family", "slip"]
_QUALITY: dict[How, float] = {"exact": 1.0, "stem": 0.95, "prefix": 0.75, "slip": 0.6, "family": 0.5}
_BOOSTS = {"name": 4.0, "label": 2.5, "owner": 2.0, "description": 1.0}
_SATURATION = 2.5  # weight at which a word gives half of what it can: repetition is no relevance
_STOP_WORD_SHARE = 0.15  # of a term's worth, for `the`, `all`, `my`: they count, but hardly
_DESCRIPTION_CHARS = 2000  # what follows rarely says what a tool is
_LENGTH_SHARE = 0.3  # how much a long description dilutes its words
_EXACT_NAME = 1000.0  # above any sum of words
_MIN_SLIP_CHARS = 4  # shorter words are one slip away from everything
_MAX_PREFIX_WORDS = 400  # a one-letter term begins thousands; the rest adds nothing


class Ranked(NamedTuple):
    """One result: the tool and its score; only the order of scores means anything."""

    tool: ToolSpec
    score: float


class Reason(NamedTuple):
    """What one query term gave a result: the word that it found, how, and the points."""

    term: str
    found: str
    how: How
    points: float


class Explained(NamedTuple):
    """A result with all its reasons, and `coverage`, the share of the query that it answers."""

    tool: ToolSpec
    score: float
    coverage: float
    reasons: tuple[Reason, ...]


class _Variant(NamedTuple):
    """A stem of the index that a query term stands for, and what a match of it is worth."""

    stem: str
    how: How
    worth: float


class _Term(NamedTuple):
    text: str
    weight: float  # the most that it can give: rarity of its best variant
    variants: tuple[_Variant, ...]


class SearchIndex:
    """An inverted index over tools, which must be sorted by id: ties go by position."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Index the words of every tool."""
        self.tools = tools
        self._postings: dict[str, list[tuple[int, float]]] = {}
        self._surfaces: dict[str, str] = {}
        self._by_name: dict[str, list[int]] = {}
        for position, tool in enumerate(tools):
            self._add(position, tool)

    def rank(self, query: str, limit: int, *, mcp: bool | None = None) -> list[Ranked]:
        """Return the best matches.

        Args:
            query: Plain words, a name or an id.
            limit: How many at most.
            mcp: Only MCP tools (True), only others (False), or all.

        Contract: search:terms:word-starts, search:terms:rare-count-more, search:order:exact-name-first
        """
        scores, _ = self._score(query)
        tools = self.tools
        wanted = (
            (-score, position)
            for position, score in scores.items()
            if mcp is None or (tools[position].source == "mcp") is mcp
        )
        return [Ranked(tools[position], -negative) for negative, position in heapq.nsmallest(limit, wanted)]

    def explain(self, query: str, limit: int) -> list[Explained]:
        """Return what `rank` returns, each with the reasons for its score.

        Contract: search:explain:reasons
        """
        _, coverages = self._score(query)
        terms = self._terms(query)
        return [self._explain(ranked, terms, coverages) for ranked in self.rank(query, limit)]

    def _explain(self, ranked: Ranked, terms: Sequence[_Term], coverages: dict[int, float]) -> Explained:
        position = self._position(ranked.tool)
        reasons: list[Reason] = []
        for term in terms:
            given = [
                Reason(term.text, variant.stem, variant.how, round(variant.worth * weight, 3))
                for variant in term.variants
                for at, weight in self._postings[variant.stem]
                if at == position
            ]
            if given:
                reasons.append(max(given, key=lambda reason: reason.points))
        return Explained(ranked.tool, ranked.score, round(coverages.get(position, 0.0), 3), tuple(reasons))

    def _position(self, tool: ToolSpec) -> int:
        return self._positions[tool.id]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {tool.id: position for position, tool in enumerate(self.tools)}

    def _add(self, position: int, tool: ToolSpec) -> None:
        weights: dict[str, float] = {}
        description = split_words(tool.description[:_DESCRIPTION_CHARS])
        dilution = 1.0 + _LENGTH_SHARE * math.log1p(len(description) / 10)
        fields = (
            (_BOOSTS["name"], split_words(tool.name)),
            (_BOOSTS["label"], split_words(tool.label or "")),
            (_BOOSTS["owner"], split_words(tool.owner)),
            (_BOOSTS["description"] / dilution, description),
        )
        surfaces = self._surfaces
        for boost, words in fields:
            for surface, stem in words:
                surfaces[surface] = stem
                weights[stem] = weights.get(stem, 0.0) + boost
        whole = "".join(word.text for word in fields[0][1])
        surfaces.setdefault(whole, whole)
        weights.setdefault(whole, _BOOSTS["name"])
        self._by_name.setdefault(whole, []).append(position)
        postings = self._postings
        for stem, weight in weights.items():
            postings.setdefault(stem, []).append((position, weight / (weight + _SATURATION)))

    def _score(self, query: str) -> tuple[dict[int, float], dict[int, float]]:
        terms = self._terms(query)
        most = sum(term.weight for term in terms) or 1.0
        totals: dict[int, float] = {}
        covered: dict[int, float] = {}
        for term in terms:
            best: dict[int, float] = {}
            for variant in term.variants:
                worth = variant.worth
                for position, weight in self._postings[variant.stem]:
                    points = worth * weight
                    if points > best.get(position, 0.0):
                        best[position] = points
            share = term.weight / most
            for position, points in best.items():
                totals[position] = totals.get(position, 0.0) + points
                covered[position] = covered.get(position, 0.0) + share
        scores = {position: round(total * (0.4 + 0.6 * covered[position]), 6) for position, total in totals.items()}
        for position in self._by_name.get("".join(word.text for word in split_words(query)), ()):
            scores[position] = scores.get(position, 0.0) + _EXACT_NAME
        return scores, covered

    def _terms(self, query: str) -> list[_Term]:
        words = list(dict.fromkeys(split_words(query)))
        joined = [first.text + second.text for first, second in pairwise(words)]
        words += [Word(text, text) for text in joined if text in self._surfaces]
        terms: list[_Term] = []
        for word in words:
            variants = tuple(self._variants(word))
            if variants:
                terms.append(_Term(word.text, max(variant.worth for variant in variants), variants))
        return terms

    def _variants(self, word: Word) -> Iterator[_Variant]:
        found: dict[str, How] = {}
        if word.stem in self._postings:
            found[word.stem] = "exact" if word.text in self._surfaces else "stem"
        for surface in self._words_beginning(word.text):
            found.setdefault(self._surfaces[surface], "prefix")
        for stem in related_stems(word.stem):
            if stem in self._postings:
                found.setdefault(stem, "family")
        if not found and len(word.text) >= _MIN_SLIP_CHARS:
            for surface in one_slip_away(word.text):
                if surface in self._surfaces:
                    found.setdefault(self._surfaces[surface], "slip")
        share = _STOP_WORD_SHARE if word.text in STOP_WORDS else 1.0
        for stem, how in found.items():
            yield _Variant(stem, how, share * _QUALITY[how] * self._rarity(stem))

    def _rarity(self, stem: str) -> float:
        return math.log(1.0 + len(self.tools) / len(self._postings[stem]))

    def _words_beginning(self, start: str) -> list[str]:
        words = self._sorted_surfaces
        first = bisect_left(words, start)
        last = bisect_left(words, start + "\U0010ffff", first)
        return words[first : min(last, first + _MAX_PREFIX_WORDS)]

    @cached_property
    def _sorted_surfaces(self) -> list[str]:
        return sorted(self._surfaces)
