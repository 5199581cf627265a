"""Promises of the catalog: ids, names, entries, notes."""

REQUIREMENTS = {
    "catalog:order:code-units": ("contract 6", "ALL_TOOLS is sorted by id in code-unit order."),
    "catalog:order:deterministic": ("issue 4", "The same tools give the same catalog, in whatever order they come."),
    "catalog:entries:compact": (
        "contract 6",
        "Entries are {id, name, label?, description, source, sourceName?}, without schemas and MCP tools.",
    ),
    "catalog:left-out:control-tools": (
        "contract 6",
        "Non-MCP tools called wait, tool_search…, tool_describe, tool_call are left out and reported.",
    ),
    "catalog:left-out:denied": (
        "contract 9",
        "A denied tool is not searchable, describable or callable by guessed id.",
    ),
    "catalog:left-out:duplicates": ("issue 4", "Of two tools with one id the first stays and the other is reported."),
    "catalog:names:collisions": ("contract 6", "Tools that normalise to one name get no convenience function."),
    "catalog:names:many-alike": ("ours", "Any number of tools that want one name are numbered in linear time."),
    "catalog:names:near-bounded": ("ours", "Near names are found among any number of names of any length."),
    "catalog:names:reserved": ("contract 6", "search, describe, call and reserved properties get no function."),
    "catalog:notes:reasons": (
        "issue 4",
        "Each name that was normalised, suffixed, or got no function, is noted with its reason.",
    ),
    "catalog:resolve:id-then-name": ("contract 6", "Exact id first, then a unique exact name."),
    "catalog:resolve:near-ids": ("contract 6", "An ambiguous or unknown name rejects and lists near ids."),
    "catalog:resolve:never-mcp": ("contract 7", "MCP tools are reached through MCP only, never by id or name."),
    "catalog:describe:parameters": ("contract 6", "describe gives the entry plus its parameters."),
    "catalog:scope:texts": ("engine", "The guest's globals are JSON texts, each parsed when first touched."),
    "catalog:size:lazy": ("issue 4", "Ten thousand tools are indexed, named and spelled out only when asked for."),
}
