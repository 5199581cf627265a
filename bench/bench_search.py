"""The catalog and its search: what 10,000 tools cost, and how often a query finds what it means."""

import time
from collections.abc import Callable, Iterator

from bench.measure import Figure, Samples
from bench.search_set import (
    Query,
    Rank,
    by_kind,
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


def figures(scale: float) -> Iterator[Figure]:
    """Yield the rows of size and of quality; `scale` multiplies the number of samples."""
    tools, queries = many_tools(SIZE), load_queries()
    rounds = max(3, int(10 * scale))
    yield Figure("catalog of 10,000 tools", "ms", "", _time(lambda: build_catalog(tools, Policy()), rounds))
    catalog = build_catalog(tools, Policy())
    yield Figure("index over 10,000 tools", "ms", "≤ 400", _time(lambda: SearchIndex(catalog.tools), rounds))
    yield Figure("search over 10,000 tools", "ms", "≤ 5", _time_searches(SearchIndex(catalog.tools), queries))
    yield from _quality(queries)


def _quality(queries: list[Query]) -> Iterator[Figure]:
    tools = load_tools()
    index = SearchIndex(tools)

    def ours(query: str) -> list[str]:
        return [ranked.tool.id for ranked in index.rank(query, DEPTH)]

    bm25, overlap = rank_by_bm25(tools), rank_by_overlap(tools)
    held_out = queries[1::2]
    yield _row("recall@5, all queries", ours, bm25, "plain BM25", queries, goal="≥ 0.95")
    yield _row("recall@5, all queries", ours, overlap, "words in name and description", queries, goal="≥ 0.95")
    yield _row("recall@5, held-out queries", ours, bm25, "plain BM25", held_out)
    for kind, some in by_kind(queries).items():
        yield _row(f"recall@5, {kind}", ours, bm25, "plain BM25", some)
    for name, field in (("recall@1", 1), ("mean reciprocal rank", 3)):
        yield _row(f"{name}, all queries", ours, bm25, "plain BM25", queries, field=field)


def _row(
    name: str, ours: Rank, other: Rank, beside: str, queries: list[Query], *, goal: str = "", field: int = 2
) -> Figure:
    mine, theirs = measure(ours, queries)[field], measure(other, queries)[field]
    return Figure(name, "share", goal, Samples((mine,)), beside, Samples((theirs,)))


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
