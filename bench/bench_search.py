"""The catalog and its search: what 10,000 tools cost, and how often a query finds what it means."""

import time
from collections.abc import Callable, Iterator

from bench.measure import Figure, Samples
from bench.search_set import (
    Query,
    by_kind,
    load_held_out,
    load_queries,
    load_tools,
    many_tools,
    measure,
    rank_by_bm25,
    rank_by_overlap,
)
from codemode.catalog import build_catalog
from codemode.policy import Policy
from codemode.search import SearchIndex

SIZE = 10_000
DEPTH = 10
_MEASURES = {1: "recall@1", 2: "recall@5", 3: "mean reciprocal rank"}  # by place in Quality


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of size and of quality; `scale` multiplies the number of samples."""
    tools, queries = many_tools(SIZE), load_queries()
    rounds = max(3, int(10 * scale))
    yield Figure("catalog of 10,000 tools", "ms", "", _time(lambda: build_catalog(tools, Policy()), rounds))
    catalog = build_catalog(tools, Policy())
    yield Figure("index over 10,000 tools", "ms", "≤ 400", _time(lambda: SearchIndex(catalog.tools), rounds))
    yield Figure("search over 10,000 tools", "ms", "≤ 5", _time_searches(SearchIndex(catalog.tools), queries))
    yield from _quality()


def _quality() -> Iterator[Figure]:
    """Yield three measures of all queries, of those held out and of each kind, each beside two plain rankings."""
    tools, held_out = load_tools(), load_held_out()
    index = SearchIndex(tools)
    queries = [*load_queries(), *held_out]

    def ours(query: str) -> list[str]:
        return [ranked.tool.id for ranked in index.rank(query, DEPTH)]

    others = {"plain BM25": rank_by_bm25(tools), "words in name and description": rank_by_overlap(tools)}
    groups = {"all queries": queries, "held-out queries": held_out, **by_kind(queries)}
    for group, some in groups.items():
        mine = measure(ours, some)
        for beside, other in others.items():
            theirs = measure(other, some)
            for field, name in _MEASURES.items():
                goal = "≥ 0.95" if (name, group) == ("recall@5", "all queries") else ""
                share, reference = Samples((mine[field],)), Samples((theirs[field],))
                yield Figure(f"{name}, {group} ({mine.count})", "share", goal, share, beside, reference)


def _time(action: Callable[[], object], rounds: int) -> Samples:
    values = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        values.append((time.perf_counter() - started) * 1000)
    return Samples(tuple(values))


def _time_searches(index: SearchIndex, queries: list[Query]) -> Samples:
    index.rank("warm up", 1)
    values: list[float] = []
    for query in queries:
        values += _time(lambda text=query.text: index.rank(text, 8), 1).values
    return Samples(tuple(values))
