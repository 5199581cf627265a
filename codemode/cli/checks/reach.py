"""What a cell can reach with a manifest: its tools, its servers, and whether a model would get code mode."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from codemode.catalog import Note
from codemode.cli.checks.check import Check
from codemode.cli.checks.policy import check_globs
from codemode.composition import Toolbox, open_toolbox
from codemode.config import CodeModeConfig, ModelRequest, unmet_conditions
from codemode.core.errors import CodeModeError
from codemode.core.redact import Redactor
from codemode.core.types import RunContext
from codemode.manifest import Manifest
from codemode.mcp.shared import NOBODY, Onlooker
from codemode.render.words import counted

_GATES = {  # requests for which code mode is off whatever the manifest says: the option of debug-payload → such a one
    "--raw": ModelRequest(raw=True),
    "--disable-tools": ModelRequest(tools_disabled=True),
    "--no-model-tools": ModelRequest(supports_tools=False),
}
_NAMED = 3  # tools that a note of one kind is told of
_WHAT_BECAME = {
    "left-out": "are left out, for their names",
    "duplicate": "are left out, for their ids",
    "normalised": "are called by a function of another name",
    "suffixed": "are called by a name with a number behind it",
    "collision": "have no function, as others have the same name",
    "reserved": "have no function, as code mode has one of that name",
}
_FIXES = (  # the beginning of a reason that code mode is off → what to do about it
    ("tools.codeMode.enabled", "Write enabled = true in [tools.codeMode]."),
    ("the allowlist", 'Write allow = ["*"] in [tools], or what may be called.'),
    ("no tool is effective", "Define a tool or a server, or allow or stop denying one."),
)


def check_manifest(manifest: Manifest) -> Iterator[Check]:
    """Yield which manifest is used, and which of its numbers were moved into their range.

    Contract: doctor:manifest:clamps
    """
    if manifest.path is None:
        fix = "Give -m FILE, or write a codemode.toml; cells run without tools until then."
        yield Check("manifest", "warning", "there is no codemode.toml here or above", fix)
        return
    yield Check("manifest", "ok", f"{manifest.path}, {counted(len(manifest.tools), 'tool')} of its own")
    yield from _clamps("tools.codeMode", manifest.code_mode)
    for agent, config in manifest.agents.items():
        own = tuple(clamp for clamp in config.clamps if clamp not in manifest.code_mode.clamps)
        yield from _clamps(f"agents.{agent}.tools.codeMode", config._replace(clamps=own))


def _clamps(table: str, config: CodeModeConfig) -> Iterator[Check]:
    for clamp in config.clamps:
        says = f"{table}.{clamp.alias} = {clamp.found:,} is out of range; {clamp.used:,} is used"
        yield Check("limits", "warning", says, f"Write {clamp.used}.")


def check_tools(manifest: Manifest) -> Iterator[Check]:
    """Import every python target and look for every program; run nothing."""
    if not (manifest.tools or manifest.hooks or manifest.core.tools):
        return
    from codemode.tools.toolset import Toolset  # only with tools

    redactor = Redactor()
    toolset = Toolset(manifest, redactor.learn)
    try:
        problems = toolset.probe()
    finally:
        asyncio.run(toolset.close())
    for problem in problems:
        fix = "Install what is missing, or correct the entry; the place is named in the message."
        yield Check("tool", "failed", redactor.text(f"{problem.what}: {problem.sentence}"), fix)
    if not problems:
        yield Check("tools", "ok", f"every target of {counted(len(manifest.tools), 'tool')} is there")


async def check_catalog(manifest_path: Path | None, onlooker: Onlooker = NOBODY) -> list[Check]:
    """Ask every server, open every namespace, and say whether a model would get code mode.

    Contract: doctor:catalog:left-out
    """
    try:
        async with open_toolbox(manifest_path, refresh=True, onlooker=onlooker) as box:
            left_out = [Check("catalog", "warning", note) for note in box.notes]
            namespaces = await check_namespaces(box)
            checks = [
                *check_servers(box),
                *left_out,
                *check_names(box.catalog.notes),
                *namespaces,
                *check_globs(box),
                *check_activation(box),
            ]
            return [check._replace(says=box.redactor.text(check.says)) for check in checks]
    except CodeModeError as error:
        return [Check("catalog", "failed", error.message, "Correct what the message names.")]


def check_names(notes: Iterable[Note]) -> Iterator[Check]:
    """Yield which tools are left out, renamed or without a function: a few of each kind, and how many more.

    Contract: doctor:catalog:summed
    """
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(note.kind, []).append(note)
    for kind, alike in kinds.items():
        named = alike if len(alike) == _NAMED + 1 else alike[:_NAMED]
        yield from (Check("catalog", "warning", f"{note.tool_id}: {note.text}") for note in named)
        if more := len(alike) - len(named):
            fix = "codemode catalog names each of them."
            yield Check("catalog", "warning", f"{more:,} more tools {_WHAT_BECAME[kind]}", fix)


def check_servers(box: Toolbox) -> Iterator[Check]:
    """Yield which servers answer, and why the others do not."""
    if box.servers is None:
        return
    for failure in box.servers.failures:
        yield Check("server", "failed", failure.sentence(), _FIX_OF_FAILURE[failure.kind])
    yield from (Check("server", "warning", warning) for warning in box.servers.warnings)
    counts = Counter(tool.owner for tool in box.catalog.tools if tool.source == "mcp")
    for name in box.servers.ages:
        yield Check("server", "ok", f"{name} answers, {counted(counts[name], 'tool')}")


async def check_namespaces(box: Toolbox) -> list[Check]:
    """Open each namespace as a run would, and say which cells do not see, and why.

    Contract: doctor:namespaces:opened
    """
    if box.namespaces is None:
        return []
    checks = []
    seen = box.namespaces.visible(box.catalog)
    for each in box.namespaces.registered:
        whose = f"{each.global_name} of the plugin {each.plugin_id}"
        if each not in seen:
            missing = ", ".join(name for name in each.required_tool_names if not box.catalog.tool(each.tool_id(name)))
            fix = "Allow these tools, or let the plugin bring them; a namespace needs all that it names."
            checks.append(Check("namespace", "warning", f"{whose} is hidden: it has no {missing}", fix))
    context = RunContext("main", "default", "", "", "", config=box.config.limits.to_json())
    try:
        _, written = await asyncio.wait_for(
            box.namespaces.open(box.catalog, context), box.config.limits.timeout_ms / 1000
        )
    except TimeoutError:
        fix = "Let create_scope give what is there at once, and keep work in tools."
        return [*checks, Check("namespace", "failed", "create_scope takes longer than timeoutMs", fix)]
    except CodeModeError as error:
        return [*checks, Check("namespace", "failed", error.message, "Correct create_scope of that plugin.")]
    for each in seen:
        paths = counted(len(written[each.id]), "call")
        checks.append(Check("namespace", "ok", f"{each.global_name} of the plugin {each.plugin_id} opens, {paths}"))
    return checks


_FIX_OF_FAILURE = {
    "auth": "Give it the credentials that it asks for.",
    "offline": "Install its program, or start it and check its address.",
    "http": "Check its address and its headers.",
    "exited": "Run its command by hand and look at what it says.",
    "timeout": "Raise its startTimeoutMs, or find out what it waits for.",
    "protocol": "Check that it speaks MCP on this transport.",
}


def check_activation(box: Toolbox) -> Iterator[Check]:
    """Yield why code mode is on or off: for a plain request of each agent, and for those that never get it.

    Contract: doctor:activation:reasons
    """
    agents = {"main": box.config, **box.manifest.agents}
    for agent, config in agents.items():
        whose = "" if len(agents) == 1 else f" for the agent {agent}"
        reasons = unmet_conditions(config.enabled, ModelRequest(), box.manifest.allow, box.catalog.size)
        if reasons:
            fix = " ".join(fix for reason in reasons for start, fix in _FIXES if reason.startswith(start))
            yield Check("code mode", "warning", f"off{whose}: {'; '.join(reasons)}", fix)
        else:
            yield Check("code mode", "ok", f"on{whose}: {counted(box.catalog.size, 'tool')} behind exec and wait")
    for flag, request in _GATES.items():
        (reason,) = unmet_conditions(True, request, ("*",), 1)
        yield Check("code mode", "ok", f"off with {flag}, as it should be: {reason}")
