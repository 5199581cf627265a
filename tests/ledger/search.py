"""Promises of search: which tools a query means."""

REQUIREMENTS = {
    "search:terms:word-starts": (
        "contract 6",
        "Every term that equals or begins a word of name, id, label or description counts.",
    ),
    "search:terms:rare-count-more": ("contract 6", "Rare terms count more."),
    "search:terms:one-slip": ("issue 4", "A term that matches nothing finds words that are one letter away."),
    "search:terms:families": ("issue 4", "A word finds others of its family: paraphrases reach the tool they mean."),
    "search:order:exact-name-first": ("contract 6", "A tool whose name is the query comes first."),
    "search:order:ties-by-id": ("contract 6", "Ties are in id order."),
    "search:words:camel-and-snake": ("contract 6", "Parts of camelCase, snake_case and kebab-case names match."),
    "search:words:inflections": ("contract 6", "Plurals and other inflections match."),
    "search:words:non-ascii": ("contract 6", "Non-ASCII text works."),
    "search:arguments:checked": (
        "contract 6",
        "A query that is no text, or a limit that is no positive integer, rejects; a larger limit is clamped.",
    ),
    "search:mcp:withheld": ("contract 6", "MCP tools are withheld, and the hint names those that match."),
    "search:query:bounded": (
        "issue 3",
        "However long a query is and whatever it says, the host reads little of it: a cell cannot hold it up.",
    ),
    "search:explain:reasons": ("issue 4", "explain shows why each result ranked where."),
    "search:quality:recall": ("issue 4", "Recall at 5 is at least 0.95 on the query set, above plain BM25."),
    "search:index:lazy": ("issue 4", "The index is built once for a catalog, when first asked for."),
}
