"""The plain twins for the catalog: the listing, the answer to a search, one tool.

Standard library only. Lines of tools begin with the id, so that `grep` and `cut` can work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from codemode.core.types import Json
from codemode.mcp.failures import add_last_words
from codemode.render.plain import table_text
from codemode.render.signature import parameters_of
from codemode.render.words import age, counted, one_line, printable

_WHOLE = 1 << 16


def catalog_text(listing: Mapping[str, Json]) -> str:
    """Return one line for each tool, its id and its description, and one for each namespace."""
    rows = [(tool["id"], tool["description"]) for tool in listing["tools"]]
    rows += [(f"namespaces.{each['name']}", each["description"]) for each in listing["namespaces"]]
    return table_text(("id", "description"), rows)


def failure_lines(listing: Mapping[str, Json]) -> Iterator[str]:
    """Yield a line for each server that could not be listed."""
    for failure in listing["failures"]:
        server = failure["server"]
        why = add_last_words(failure["message"].removeprefix(f'MCP server "{server}" '), failure.get("stderr", ""))
        where = f", from {_near(failure['origin'], listing)}" if failure.get("origin") else ""
        yield printable(f"MCP server {server} [{failure['kind']}]{where}: {why}")


def server_lines(listing: Mapping[str, Json], tool_less: bool = False) -> Iterator[str]:
    """Yield a line for each MCP server that was listed; with `tool_less` only for those without a tool.

    Contract: mcp:config:provenance
    """
    counts = Counter(tool["sourceName"] for tool in listing["tools"] if tool["source"] == "mcp")
    for server in sorted(listing["ages"]):
        if not (tool_less and counts[server]):
            yield printable(f"MCP server {server}: {counted(counts[server], 'tool')}{origin_of(server, listing)}")


def note_lines(listing: Mapping[str, Json]) -> Iterator[str]:
    """Yield a line for each warning, and for each tool that was left out, renamed or got no function."""
    yield from (printable(warning) for warning in listing["warnings"])
    yield from (printable(f"{note['toolId']} ({note['kind']}): {note['text']}") for note in listing["notes"])


def summary_line(listing: Mapping[str, Json]) -> str:
    """Return `18 tools (plugin 3, mcp 8, client 7), 1 namespace from /shop/codemode.toml`."""
    sources = ", ".join(f"{source} {count:,}" for source, count in listing["sources"].items() if count)
    where = f" from {printable(listing['manifest'])}" if listing["manifest"] else "; there is no codemode.toml here"
    namespaces = f", {counted(len(listing['namespaces']), 'namespace')}" if listing["namespaces"] else ""
    return counted(listing["size"], "tool") + (f" ({sources})" if sources else "") + namespaces + where


def origin_of(server: str, listing: Mapping[str, Json]) -> str:
    """Return how old the list of an MCP server is and which file defines it: `, listed 3 min ago, from .mcp.json`."""
    seconds = listing["ages"].get(server)
    listed = f", listed {age(seconds * 1000)} ago" if seconds is not None else ""
    named = (tool.get("origin") for tool in listing["tools"] if (tool["source"], tool["sourceName"]) == ("mcp", server))
    return listed + next((f", from {_near(file, listing)}" for file in named if file), "")


def _near(file: str, listing: Mapping[str, Json]) -> str:
    """Return a path as seen from the manifest's folder, if it lies in there."""
    manifest = listing.get("manifest")
    return file.removeprefix(f"{manifest.rpartition('/')[0]}/") if manifest else file


def tool_text(tool: Mapping[str, Json]) -> str:
    """Return a tool's description: id, how to call it, what it takes."""
    lines = [printable(tool["id"]), printable(tool["description"]), "", f"call: {printable(tool['call'])}"]
    if tool.get("origin"):
        lines.append(f"from: {printable(tool['origin'])}")
    if tool.get("approval", "never") != "never":
        lines.append(f"approval: {tool['approval']}")
    rows = [
        (parameter.name, parameter.type, "required" if parameter.required else "", parameter.description)
        for parameter in parameters_of(tool["parameters"])
    ]
    if rows:
        lines += ["", table_text(("input", "type", "", "description"), rows)]
    return "\n".join(lines)


def ranking_text(ranking: Sequence[Mapping[str, Json]]) -> str:
    """Return the results of a search, best first, with the reasons where there are any."""
    lines = [
        f"{printable(entry['id'])}  {one_line(entry['description'], _WHOLE)}\n{_reasons(entry)}" for entry in ranking
    ]
    return "\n".join(line.rstrip("\n") for line in lines)


def _reasons(entry: Mapping[str, Json]) -> str:
    return "\n".join(f"    {line}" for line in reason_lines(entry))


def reason_lines(entry: Mapping[str, Json]) -> list[str]:
    """Return what each word of the query gave a result: `open: family of create, 1.2 points`."""
    if "reasons" not in entry:
        return []
    head = f"score {entry['score']:.2f}, covers {entry['coverage']:.0%} of the query"
    how = {
        "name": "is the name",
        "exact": "is",
        "stem": "has the stem",
        "prefix": "begins",
        "family": "means",
        "slip": "is one slip from",
    }
    return [head] + [
        printable(f"{reason['term']} {how[reason['how']]} {reason['found']}: {reason['points']:.2f}")
        for reason in entry["reasons"]
    ]
