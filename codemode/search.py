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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from codemode.core.types import ToolSpec
from codemode.search_words import (
    STOP_WORDS,
    Word,
    families,
    join_words,
    one_slip_away,
    related_stems,
    split_runs,
    split_words,
    words_of,
)

How = Literal["name", "exact", "stem", "prefix", "family", "slip"]
_Found = tuple[str, How, float]  # a word of the index, how it was found, and the quality of that
_QUALITY: dict[How, float] = {"exact": 1.0, "stem": 0.95, "prefix": 0.6, "slip": 0.6, "family": 0.6}
_NAME_BOOST = 4.0
_LABEL_BOOST = 2.5
_OWNER_BOOST = 2.0
_DESCRIPTION_BOOST = 1.5
_SATURATION = 2.5  # boost at which a word gives half of what it can: repetition is no relevance
_LENGTH_SHARE = 0.15  # how much a long description dilutes its words
_DESCRIPTION_CHARS = 2000  # what follows rarely says what a tool is
_STOP_WORD_SHARE = 0.2  # of a term's worth, for `the`, `all`, `my`: they count, but hardly
_CONCEPT_SHARE = 0.7  # a word is as rare as all its variants together, more than as itself: `write` means little
_COVERAGE_SHARE = 0.85  # how much of a score depends on how much of the query is answered
_MORE_SHARE = 0.3  # of the points of a second word for the same term: `invoice` and `receipt` for `bill`
_EXACT_NAME = 1000.0  # above any sum of words
_MIN_SLIP_CHARS = 4  # shorter words are one slip away from everything
_MAX_SLIP_CHARS = 40  # what is longer is no word that somebody typed
_MIN_FAMILY_SLIP_CHARS = 5  # and those of four from a word of some family: `nope` is not `note`
_MAX_SLIP_CHARS = 40  # a word has thousands of slips, and no name is longer
_MAX_SLIPPED_WORDS = 8  # of one query: in one that is nonsense all over there is nothing to be found
_QUERY_CHARS = 500  # of names too: no question is longer, and a cell must not choose how long its host reads
_MAX_PREFIX_WORDS = 400  # a one-letter term begins thousands; the rest adds nothing
_MANY_VARIANTS = 60  # of one term, after which what is worth less is not looked at if there are enough results
_ENOUGH = 200  # results found through rarer terms, after which commoner ones only order them


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
    found: str  # the word that was found, or a stem
    how: How
    worth: float


class _Term(NamedTuple):
    """A word of the query; the best variant comes first."""

    text: str
    variants: tuple[_Variant, ...]
    matches: int


class _Scores(NamedTuple):
    """By position of the tool: its score, and the share of the query that it answers."""

    score: dict[int, float]
    coverage: dict[int, float]


class SearchIndex:
    """An inverted index over tools, which must be sorted by id: ties go by position."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Index the words of every tool."""
        self.tools = tools
        self._postings: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._stems: dict[str, str] = {}  # of every word
        self._by_name: defaultdict[str, list[int]] = defaultdict(list)
        self._runs: set[str] = set()
        for position, tool in enumerate(tools):
            self._add(position, tool)
        for run in self._runs:
            self._stems.update(words_of(run))

    def rank(self, query: str, limit: int, *, mcp: bool | None = None) -> list[Ranked]:
        """Return the best matches.

        Args:
            query: Plain words, a name or an id.
            limit: How many at most.
            mcp: Only MCP tools (True), only others (False), or all.

        Contract: search:terms:word-starts, search:terms:rare-count-more, search:order:exact-name-first,
            search:query:bounded
        """
        query = query[:_QUERY_CHARS]
        return self._best(self._score(query, self._terms(query), mcp).score, limit)

    def explain(self, query: str, limit: int) -> list[Explained]:
        """Return what `rank` returns, each with the reasons for its score.

        Contract: search:explain:reasons
        """
        query = query[:_QUERY_CHARS]
        terms = self._terms(query)
        scores = self._score(query, terms, None)
        points = [self._points(term, {}) for term in terms]
        explained: list[Explained] = []
        for tool, score in self._best(scores.score, limit):
            position = self._positions[tool.id]
            reasons = tuple(self._reasons(terms, points, position))
            if position in self._named(query):
                reasons = (Reason(query, tool.name, "name", _EXACT_NAME), *reasons)
            explained.append(Explained(tool, score, round(scores.coverage.get(position, 0.0), 3), reasons))
        return explained

    def _best(self, scores: dict[int, float], limit: int) -> list[Ranked]:
        best = heapq.nsmallest(limit, ((-score, position) for position, score in scores.items()))
        return [Ranked(self.tools[position], round(-negative, 6)) for negative, position in best]

    def _reasons(self, terms: Sequence[_Term], points: Sequence[dict[int, float]], position: int) -> Iterator[Reason]:
        for term, given in zip(terms, points, strict=True):
            if position in given:
                best = max(term.variants, key=lambda variant: variant.worth * self._weight(variant.stem, position))
                found = self._words.get(best.found, best.found)
                yield Reason(term.text, found, best.how, round(given[position], 3))

    def _named(self, query: str) -> Sequence[int]:
        return self._by_name.get(_joined(split_words(query)) or query.strip(), ())

    def _weight(self, stem: str, position: int) -> float:
        return self._postings[stem].get(position, 0.0)

    @cached_property
    def _words(self) -> dict[str, str]:
        return {stem: text for text, stem in sorted(self._stems.items(), reverse=True)}  # the first by alphabet stays

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {tool.id: position for position, tool in enumerate(self.tools)}

    def _add(self, position: int, tool: ToolSpec) -> None:
        name = self._split(tool.name[:_QUERY_CHARS])
        description = self._split(tool.description[:_DESCRIPTION_CHARS])
        dilution = 1.0 + _LENGTH_SHARE * math.log1p(len(description) / 10)
        weights = dict.fromkeys([word.stem for word in description], _DESCRIPTION_BOOST / dilution)
        label, owner = self._split((tool.label or "")[:_QUERY_CHARS]), self._split(tool.owner)
        for boost, words in ((_NAME_BOOST, name), (_LABEL_BOOST, label), (_OWNER_BOOST, owner)):
            for _, stem in words:
                weights[stem] = weights.get(stem, 0.0) + boost
        self._by_name[_joined(name) or tool.name].append(position)
        for stem, weight in weights.items():
            self._postings[stem][position] = weight / (weight + _SATURATION)

    def _split(self, text: str) -> list[Word]:
        runs = split_runs(text)
        self._runs.update(runs)
        return [word for run in runs for word in words_of(run)]

    def _score(self, query: str, terms: Sequence[_Term], mcp: bool | None) -> _Scores:
        most = sum(term.variants[0].worth for term in terms)
        totals: dict[int, float] = {}
        covered: dict[int, float] = {}
        for term in sorted(terms, key=lambda term: term.matches):
            best = self._points(term, totals)
            share = term.variants[0].worth / most
            for position, points in best.items():
                totals[position] = totals.get(position, 0.0) + points
                covered[position] = covered.get(position, 0.0) + share
        certain = 1.0 - _COVERAGE_SHARE
        scores = {at: total * (certain + _COVERAGE_SHARE * covered[at]) for at, total in totals.items()}
        for position in self._named(query):
            scores[position] = scores.get(position, 0.0) + _EXACT_NAME
        if mcp is not None:
            scores = {at: score for at, score in scores.items() if (self.tools[at].source == "mcp") is mcp}
        return _Scores(scores, covered)

    def _points(self, term: _Term, above: dict[int, float]) -> dict[int, float]:
        """Return the points of the term for each tool; `above` holds results of rarer terms.

        The best variant that a tool holds counts whole, others of the same meaning as little more evidence.
        """
        best: dict[int, float] = {}
        for at, variant in enumerate(term.variants):
            if at >= _MANY_VARIANTS and len(best) >= _ENOUGH:
                break
            worth, postings = variant.worth, self._postings[variant.stem]
            known = above if len(above) >= len(best) else best
            if len(known) >= _ENOUGH or (term.text in STOP_WORDS and above):
                found = {at: worth * postings[at] for at in known.keys() & postings.keys()}
            else:
                found = {at: worth * weight for at, weight in postings.items()}
            if best:
                for position, points in found.items():
                    so_far = best.get(position, 0.0)
                    best[position] = points + _MORE_SHARE * so_far if points > so_far else so_far + _MORE_SHARE * points
            else:
                best = found
        return best

    def _terms(self, query: str) -> list[_Term]:
        words = list(dict.fromkeys(split_words(query)))
        words += [pair for first, second in pairwise(words) if (pair := self._pair(first, second)) is not None]
        only_stop_words = all(word.text in STOP_WORDS for word in words)
        terms: list[_Term] = []
        slipped = 0
        for word in words:
            whole = word.text in STOP_WORDS and not only_stop_words
            found = self._whole(word) if whole else self._found(word)
            if not found and not whole and slipped < _MAX_SLIPPED_WORDS:
                slipped += 1
                found = self._nearly(word)
            variants = sorted(self._variants(found, whole), key=lambda variant: (-variant.worth, variant.stem))
            if variants:
                matches = sum(len(self._postings[variant.stem]) for variant in variants)
                terms.append(_Term(word.text, tuple(variants), matches))
        return terms

    def _pair(self, first: Word, second: Word) -> Word | None:
        """Return two words as one, if that is a word of the index, or one whose family holds neither."""
        pair = join_words(first, second)
        related = related_stems(pair.stem)
        return pair if pair.text in self._stems or (related and related.isdisjoint((first.stem, second.stem))) else None

    def _variants(self, found: dict[str, _Found], whole: bool) -> Iterator[_Variant]:
        """Yield what a word stands for; a stop word beside others counts little, and only as a `whole` word."""
        concept = self._rarity(sum(len(self._postings[stem]) for stem in found))
        share = _STOP_WORD_SHARE if whole else 1.0
        for stem, (text, how, quality) in found.items():
            rarity = _CONCEPT_SHARE * concept + (1.0 - _CONCEPT_SHARE) * self._rarity(len(self._postings[stem]))
            yield _Variant(stem, text, how, share * quality * rarity)

    def _found(self, word: Word) -> dict[str, _Found]:
        """Return the stems of the index that a word stands for as it is written."""
        stems, found = self._stems, self._whole(word)
        for longer in self._words_beginning(word.text):
            found.setdefault(stems[longer], (longer, "prefix", _QUALITY["prefix"] * len(word.text) / len(longer)))
        for other in related_stems(word.stem):
            if other in self._postings:
                found.setdefault(other, (other, "family", _QUALITY["family"]))
        return found

    def _nearly(self, word: Word) -> dict[str, _Found]:
        """Return the stems that the word, its stem or a word of a family is one slip away from."""
        found: dict[str, _Found] = {}
        texts = [text for text in dict.fromkeys(word) if _MIN_SLIP_CHARS <= len(text) <= _MAX_SLIP_CHARS]
        slips = {other for text in texts for other in one_slip_away(text)}
        for other in sorted((self._stems.keys() & slips) | (self._postings.keys() & slips)):
            found.setdefault(self._stems.get(other, other), (other, "slip", _QUALITY["slip"]))
        if len(word.text) >= _MIN_FAMILY_SLIP_CHARS:
            meant = {related for other in families().keys() & slips for related in related_stems(other)}
            for related in sorted(self._postings.keys() & meant):
                found.setdefault(related, (related, "family", _QUALITY["family"] * _QUALITY["slip"]))
        return found

    def _whole(self, word: Word) -> dict[str, _Found]:
        if word.stem not in self._postings:
            return {}
        how: How = "exact" if word.text in self._stems else "stem"
        return {word.stem: (word.text, how, _QUALITY[how])}

    def _rarity(self, count: int) -> float:
        return math.log(1.0 + len(self.tools) / max(count, 1))

    def _words_beginning(self, start: str) -> list[str]:
        words = self._sorted_words
        first = bisect_left(words, start)
        last = bisect_left(words, start + "\U0010ffff", first)
        return words[first : min(last, first + _MAX_PREFIX_WORDS)]

    @cached_property
    def _sorted_words(self) -> list[str]:
        return sorted(self._stems)


def _joined(words: Sequence[Word]) -> str:
    return "".join([word.text for word in words])
