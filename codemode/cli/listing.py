"""The catalog as data to list: what a cell can reach, how it calls it, and what is wrong.

One JSON shape for `catalog list --json`, for people's listings and for later comparison.
"""

from collections.abc import Iterable

from codemode.catalog import Catalog, compact_entry
from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.types import PATH_SEPARATOR, Json, ToolSpec
from codemode.search import Explained


def build_tool(tool: ToolSpec, call: str) -> dict[str, Json]:
    """Return one tool with all that a person may ask about it.

    `{id, name, label?, description, source, sourceName, call, approval, origin?, parameters, outputSchema?}`
    """
    shown = compact_entry(tool) | {"call": call, "approval": tool.approval}
    if tool.origin:
        shown["origin"] = tool.origin
    shown["parameters"] = tool.parameters
    return shown | ({"outputSchema": tool.output_schema} if tool.output_schema else {})


def build_tools(catalog: Catalog) -> list[dict[str, Json]]:
    """Return all tools of a catalog, MCP included, in id order."""
    calls = build_calls(catalog)
    return [build_tool(tool, calls[tool.id]) for tool in catalog.tools]


def build_calls(catalog: Catalog) -> dict[str, str]:
    """Return how a cell calls each tool: `{id: "tools.lookup_order(input)"}`."""
    calls = {tool.id: f'tools.call("{tool.id}", input)' for tool in catalog.tools}
    calls |= {id_: f"tools.{safe}(input)" for safe, id_ in catalog.names().items()}
    paths = {target.tool.id: path for path, target in catalog.scope.targets.items() if target.tool.source == "mcp"}
    return calls | {id_: f"{path.replace(PATH_SEPARATOR, '.')}(input)" for id_, path in paths.items()}


def find_tool(catalog: Catalog, asked: str) -> ToolSpec:
    """Return the tool of this id, else the only one of this name, MCP tools included.

    Raises:
        InvalidInput: None, or several; the message lists near ids.
    """
    exact = catalog.tool(asked)
    if exact is not None:
        return exact
    named = [tool for tool in catalog.tools if tool.name == asked]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidInput(f'the name "{asked}" means several tools: {_listed(named)}. Give one of these ids')
    near = [found.tool for found in catalog.explain(asked, 3)]
    hint = f" Near: {_listed(near)}." if near else did_you_mean(asked, [tool.id for tool in catalog.tools])
    raise InvalidInput(f'there is no tool "{asked}" in the catalog.{hint}')


def build_ranking(catalog: Catalog, found: Iterable[Explained], *, reasons: bool) -> list[dict[str, Json]]:
    """Return the results of a search, best first; with `reasons`, what each word of the query gave."""
    calls = build_calls(catalog)
    ranking: list[dict[str, Json]] = []
    for result in found:
        entry = compact_entry(result.tool) | {"call": calls[result.tool.id], "score": result.score}
        if reasons:
            given: list[Json] = [reason._asdict() for reason in result.reasons]
            entry |= {"coverage": result.coverage, "reasons": given}
        ranking.append(entry)
    return ranking


def _listed(tools: Iterable[ToolSpec]) -> str:
    return ", ".join(tool.id for tool in tools)
