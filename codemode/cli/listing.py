"""The catalog as data to list: what a cell can reach, how it calls it, and what is wrong.

One JSON shape for `catalog list --json`, for people's listings and for later comparison.
"""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

from codemode.catalog import Catalog, compact_entry
from codemode.cli.person import invite_person
from codemode.cli.progress import Progress
from codemode.cli.terminal import Terminal
from codemode.composition import Toolbox, open_toolbox
from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.types import PATH_SEPARATOR, Json, ToolSpec
from codemode.manifest import find_manifest
from codemode.mcp.shared import Onlooker
from codemode.search import Explained


def load_toolbox(terminal: Terminal, manifest: str | None, *, refresh: bool, agent: str = "main") -> Toolbox:
    """Read the manifest and gather what a cell can reach; servers are asked where their lists are unknown.

    Args:
        terminal: Holds the option before the command; a person at it sees that servers are slow.
        manifest: The command's own option.
        refresh: Ask every server.
        agent: Whose settings hold.

    Raises:
        InvalidConfig: The manifest, or a server that it requires, cannot be used.
    """
    path = manifest_path(terminal, manifest)
    terminal.tell(f"manifest {path}" if path else "there is no codemode.toml here or above")

    async def load() -> Toolbox:
        async with open_toolbox(path, agent, refresh, onlooker=onlooker) as box:
            return box

    with Progress(terminal) as progress:
        onlooker = Onlooker(invite_person(progress.complain), progress.look)
        return asyncio.run(load())


def manifest_path(terminal: Terminal, manifest: str | None) -> Path | None:
    """Return the manifest that an option names, else the nearest, else None."""
    named = manifest or terminal.manifest
    return Path(named) if named else find_manifest(Path.cwd())


def build_listing(box: Toolbox) -> dict[str, Json]:
    """Return everything that a cell can reach and everything that is wrong.

    `{manifest, size, sources, tools, namespaces, notes, failures, warnings, ages}`: `namespaces` are the
    globals that plugins bring, `notes` say which tools were left out, renamed or got no function;
    `failures` which servers could not be listed; `ages` how many seconds ago each was asked for its tools.
    """
    catalog, servers = box.catalog, box.servers
    return {
        "manifest": str(box.manifest.path) if box.manifest.path else None,
        "size": catalog.size,
        "sources": catalog.sources,
        "tools": build_tools(box),
        "namespaces": build_namespaces(box),
        "notes": [{"toolId": note.tool_id, "kind": note.kind, "text": note.text} for note in catalog.notes],
        "failures": build_failures(box),
        "warnings": [*box.notes, *(servers.warnings if servers else ())],
        "ages": {name: round(age, 1) for name, age in servers.ages.items()} if servers else {},
    }


def build_namespaces(box: Toolbox) -> list[Json]:
    """Return the globals that plugins bring: `[{"name", "plugin", "description", "tools": [id]}]`."""
    visible = box.namespaces.visible(box.catalog) if box.namespaces else ()
    return [
        {
            "name": each.global_name,
            "plugin": each.plugin_id,
            "description": each.about,
            "tools": [each.tool_id(name) for name in each.required_tool_names],
        }
        for each in visible
    ]


def build_tools(box: Toolbox) -> list[Json]:
    """Return all tools of a catalog, MCP included, in id order."""
    calls = build_calls(box.catalog)
    return [build_tool(box, tool, calls[tool.id]) for tool in box.catalog.tools]


def build_tool(box: Toolbox, tool: ToolSpec, call: str) -> dict[str, Json]:
    """Return one tool with all that a person may ask about it.

    `{id, name, label?, description, source, sourceName, call, approval, origin?, parameters, outputSchema?}`
    """
    tool = _redacted(box, tool)
    shown = compact_entry(tool) | {"call": call, "approval": box.policy.approval_for(tool)}
    if tool.origin:
        shown["origin"] = tool.origin
    shown["parameters"] = tool.parameters
    return shown | ({"outputSchema": tool.output_schema} if tool.output_schema else {})


def _redacted(box: Toolbox, tool: ToolSpec) -> ToolSpec:
    """Return a tool as it may be shown: whoever brings it can say what it was given, a manifest says it as `${…}`.

    Contract: redaction:listings:brought
    """
    if tool.source not in ("mcp", "plugin"):
        return tool
    redact = box.redactor.value
    return tool._replace(
        label=redact(tool.label),
        description=redact(tool.description),
        parameters=redact(tool.parameters),
        output_schema=redact(tool.output_schema),
    )


def build_calls(catalog: Catalog) -> dict[str, str]:
    """Return how a cell calls each tool: `{id: "tools.lookup_order(input)"}`."""
    calls = {tool.id: f'tools.call("{tool.id}", input)' for tool in catalog.tools}
    calls |= {id_: f"tools.{safe}(input)" for safe, id_ in catalog.names().items()}
    paths = {target.tool.id: path for path, target in catalog.scope.targets.items() if target.tool.source == "mcp"}
    return calls | {id_: f"{path.replace(PATH_SEPARATOR, '.')}(input)" for id_, path in paths.items()}


def find_tool(catalog: Catalog, asked: str) -> ToolSpec:
    """Return the tool of this id, else of this call such as `MCP.everything.getSum`, else the only one of this name.

    Raises:
        InvalidInput: None, or several; the message lists near ids.
    """
    exact = catalog.tool(asked) or catalog.tool(_called(catalog, asked))
    if exact is not None:
        return exact
    named = [tool for tool in catalog.tools if tool.name == asked]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidInput(f'the name "{asked}" means several tools: {_listed(named)}. Give one of these ids')
    near = [found.tool for found in catalog.explain(asked, 3)]
    hint = f" Near: {_listed(near)}." if near else did_you_mean(asked, [tool.id for tool in catalog.tools])
    raise InvalidInput(f'there is no tool "{asked}" in the catalog.{hint or " codemode catalog lists them."}')


def _called(catalog: Catalog, asked: str) -> str:
    """Return the id of the tool that a cell calls like this, with or without what is in parentheses; else nothing."""
    call = f"{asked.partition('(')[0]}(input)"
    return next((id_ for id_, each in build_calls(catalog).items() if each == call), "")


def build_ranking(box: Toolbox, found: Iterable[Explained], *, reasons: bool) -> list[dict[str, Json]]:
    """Return the results of a search, best first; with `reasons`, what each word of the query gave."""
    calls = build_calls(box.catalog)
    ranking: list[dict[str, Json]] = []
    for result in found:
        entry = compact_entry(_redacted(box, result.tool)) | {"call": calls[result.tool.id], "score": result.score}
        if reasons:
            given: list[Json] = [reason._asdict() for reason in result.reasons]
            entry |= {"coverage": result.coverage, "reasons": given}
        ranking.append(entry)
    return ranking


def find_declarations(box: Toolbox, server: str | None) -> list[dict[str, Json]]:
    """Return the virtual files with the declarations of one server, or of all.

    Args:
        box: What a cell can reach.
        server: A server's own name, or its name in a cell.

    Returns:
        `[{"path": "mcp/everything.d.ts", "description", "text"}]`; the index only with all of them.

    Raises:
        InvalidInput: It could not be listed, and the message says why; or there is no such server, and the message
            lists those that there are.
    """
    scope = box.catalog.scope
    files: list[dict[str, Json]] = box.redactor.value(json.loads(scope.files))
    if server is None:
        return files
    by_server = {server_of(file["path"]): file for file in files[1:]}  # the index comes first
    own_names = {target.tool.owner: path.split(PATH_SEPARATOR)[1] for path, target in scope.targets.items()}
    found = by_server.get(server) or by_server.get(own_names.get(server, ""))
    if found is not None:
        return [found]
    for failure in box.servers.failures if box.servers else ():
        if failure.server == server:
            raise InvalidInput(f"there are no declarations: {failure.sentence()}")
    known = ", ".join(by_server) or "none"
    near = did_you_mean(server, by_server)
    raise InvalidInput(f'there is no MCP server "{server}" in the catalog; there are: {known}.{near}')


def build_failures(box: Toolbox) -> list[dict[str, Json]]:
    """Return which servers could not be listed, and why."""
    return [failure.to_json() for failure in box.servers.failures] if box.servers else []


def server_of(path: str) -> str:
    """Return the server that a virtual file `mcp/<server>.d.ts` declares."""
    return path.removeprefix("mcp/").removesuffix(".d.ts")


def _listed(tools: Iterable[ToolSpec]) -> str:
    return ", ".join(tool.id for tool in tools)
