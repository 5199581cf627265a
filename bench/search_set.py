"""The query set of `fixtures/search/`: read it, measure a ranking on it, and the rankings to stand beside.

A ranking is a function from a query to ids, best first. Quality is recall at 1 and at 5 and the
mean reciprocal rank, for all queries and for each kind.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codemode.core.types import Json, RunContext, ToolSpec
from codemode.search_words import split_words

FOLDER = Path(__file__).parents[1] / "fixtures" / "search"
Rank = Callable[[str], Sequence[str]]
_DEPTH = 10


class Query(NamedTuple):
    """What somebody types, and the ids of the tools that it means."""

    kind: str
    text: str
    wanted: frozenset[str]


class Quality(NamedTuple):
    """How well a ranking does on some queries."""

    count: int
    recall_at_1: float
    recall_at_5: float
    mean_reciprocal_rank: float


def load_tools() -> list[ToolSpec]:
    """Return the tools of the set, sorted by id."""
    tools = [_tool(*row) for row in _rows("tools.tsv")]
    return sorted(tools, key=lambda tool: tool.id)


def load_queries() -> list[Query]:
    """Return the queries that the ranking was worked on with, in the order of the file."""
    return _queries("queries.tsv")


def load_held_out() -> list[Query]:
    """Return the queries that nothing was fitted to."""
    return _queries("held_out.tsv")


def measure(rank: Rank, queries: Iterable[Query]) -> Quality:
    """Return how well a ranking does."""
    places = [_place(rank(query.text), query.wanted) for query in queries]
    found = [place for place in places if place is not None]
    count = len(places)
    return Quality(
        count,
        sum(place == 1 for place in found) / count,
        sum(place <= 5 for place in found) / count,
        sum(1 / place for place in found) / count,
    )


def by_kind(queries: Iterable[Query]) -> dict[str, list[Query]]:
    """Return the queries of each kind."""
    kinds: dict[str, list[Query]] = defaultdict(list)
    for query in queries:
        kinds[query.kind].append(query)
    return kinds


def rank_by_bm25(tools: Sequence[ToolSpec]) -> Rank:
    """Return plain BM25 (k1 1.2, b 0.75) over the words of name, owner and description."""
    texts = [Counter(word.text for word in split_words(f"{t.name} {t.owner} {t.description}")) for t in tools]
    average = sum(text.total() for text in texts) / len(texts)
    holding = Counter(word for text in texts for word in text)

    def rank(query: str) -> list[str]:
        scores: dict[str, float] = {}
        for tool, text in zip(tools, texts, strict=True):
            weight = 1.2 * (0.25 + 0.75 * text.total() / average)
            for word in split_words(query):
                held, count = text[word.text], holding[word.text]
                rarity = math.log(1 + (len(tools) - count + 0.5) / (count + 0.5))
                scores[tool.id] = scores.get(tool.id, 0.0) + rarity * held * 2.2 / (held + weight)
        return _best(scores)

    return rank


def rank_by_overlap(tools: Sequence[ToolSpec]) -> Rank:
    """Return the common simple scoring: each query word found in the name counts 3, elsewhere 1."""

    def rank(query: str) -> list[str]:
        words = query.lower().split()
        scores = {
            tool.id: float(sum(3 * (word in tool.name.lower()) + (word in tool.description.lower()) for word in words))
            for tool in tools
        }
        return _best(scores)

    return rank


def many_tools(count: int, seed: int = 1) -> list[ToolSpec]:
    """Return so many tools made of the set's own words, for figures of size."""
    tools, chance = load_tools(), random.Random(seed)
    words = [word for tool in tools for word in f"{tool.name.replace('-', '_')} {tool.description}".split()]
    return [
        _tool(
            f"server{at % 97}", "_".join([*chance.choices(words, k=3), str(at)]), " ".join(chance.choices(words, k=12))
        )
        for at in range(count)
    ]


async def _never_called(given: dict[str, Json], context: RunContext) -> Json:  # noqa: ARG001
    raise AssertionError("a tool of the query set is only looked for")


def _tool(owner: str, name: str, description: str) -> ToolSpec:
    return ToolSpec(f"client:{owner}:{name}", name, description, "client", owner, {"type": "object"}, _never_called)


def _queries(file: str) -> list[Query]:
    return [
        Query(kind, text, frozenset(f"client:{wanted}" for wanted in right.split("|")))
        for kind, text, right in _rows(file)
    ]


def _rows(file: str) -> list[list[str]]:
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def _place(ids: Sequence[str], wanted: frozenset[str]) -> int | None:
    return next((place for place, id_ in enumerate(ids[:_DEPTH], 1) if id_ in wanted), None)


def _best(scores: dict[str, float]) -> list[str]:
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [id_ for id_, score in ordered if score > 0][:_DEPTH]
