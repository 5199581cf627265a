"""`codemode.toml`: find it, read it, check it whole. Data in, nothing run.

A manifest is the root of everything that a cell can reach. `load_manifest` either returns
frozen values that need no further checking or raises one `InvalidConfig` that names the place.
MCP servers are handed on as the raw tables that they are: `codemode.mcp` knows every
format they come in.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from codemode.config import CodeModeConfig, parse_code_mode
from codemode.core.errors import InvalidConfig
from codemode.core.files import readable
from codemode.core.names import build_tool_id
from codemode.core.tables import Field, Where, check_table
from codemode.core.types import Approval, Json
from codemode.definitions import (
    APPROVALS,
    CoreEntry,
    HookEntry,
    SandboxGate,
    ToolEntry,
    parse_core,
    parse_hook,
    parse_sandbox,
    parse_tool,
)
from codemode.extensions import OpenApiEntry, PluginEntry, check_plugin_ids, parse_openapi, parse_plugin

FILE_NAME = "codemode.toml"
_VARIABLE = "CODEMODE_MANIFEST"
_RECORDING = b'{"recording":'
_FIELDS = {
    "tools": Field("table"),
    "tool": Field("tables"),
    "core": Field("table"),
    "plugin": Field("tables"),
    "openapi": Field("tables"),
    "approvals": Field("table"),
    "hook": Field("tables"),
    "mcp": Field("table"),
    "mcp_servers": Field("table"),
    "agents": Field("table"),
}
_TOOLS_FIELDS = {
    "allow": Field("texts"),
    "deny": Field("texts"),
    "codeMode": Field("any"),
    "sandbox": Field("table"),
}
_MCP_FIELDS = {"servers": Field("table"), "include": Field("texts")}
_AGENT_FIELDS = {"tools": Field("table")}
_AGENT_TOOLS_FIELDS = {"codeMode": Field("any")}
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)\Z")
T = TypeVar("T")


class McpTables(NamedTuple):
    """Server definitions as written: `servers` holds `(place, {name: table})` in order of precedence.

    `include` names JSON files that hold more of them, after those of the manifest.
    """

    servers: tuple[tuple[Where, dict[str, Json]], ...] = ()
    include: tuple[Path, ...] = ()


class Manifest(NamedTuple):
    """A whole manifest, checked; without a file it is empty and cells still run."""

    path: Path | None = None
    code_mode: CodeModeConfig = CodeModeConfig()
    agents: Mapping[str, CodeModeConfig] = {}
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    approvals: tuple[tuple[str, Approval], ...] = ()
    sandbox: SandboxGate = SandboxGate()
    tools: tuple[ToolEntry, ...] = ()
    core: CoreEntry = CoreEntry()
    hooks: tuple[HookEntry, ...] = ()
    plugins: tuple[PluginEntry, ...] = ()
    openapi: tuple[OpenApiEntry, ...] = ()
    mcp: McpTables = McpTables()

    @property
    def folder(self) -> Path:
        """The folder that relative paths and python modules start from."""
        return self.path.parent if self.path else Path.cwd()

    def config_for(self, agent_id: str) -> CodeModeConfig:
        """Return the settings of an agent: its own over the global ones, field by field."""
        return self.agents.get(agent_id, self.code_mode)

    def with_tools(self, tools: tuple[ToolEntry, ...]) -> "Manifest":
        """Return the manifest with more tools, as a program brings them.

        Raises:
            InvalidConfig: An id is taken already.
        """
        return self._replace(tools=_unique((*self.tools, *tools), self.core)) if tools else self


def find_manifest(start: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the manifest that `CODEMODE_MANIFEST` names, else the nearest one upward, else None.

    Contract: manifest:find:nearest, manifest:find:variable
    """
    named = environment.get(_VARIABLE)
    if named:
        return Path(named)
    folder = start.resolve()
    candidates = (parent / FILE_NAME for parent in (folder, *folder.parents))
    return next((path for path in candidates if path.is_file()), None)


def is_recording(path: Path) -> bool:
    """Say whether the file that stands for a manifest is a recording of nested calls; no TOML begins so."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return False
        with path.open("rb") as file:
            return file.read(len(_RECORDING)) == _RECORDING
    except OSError:
        return False


def load_manifest(path: Path | None) -> Manifest:
    """Read and check a manifest; None gives the empty one.

    Raises:
        InvalidConfig: It cannot be read, is not TOML, or says something that is not allowed.

    Contract: manifest:load:empty, manifest:load:unreadable, manifest:load:position, manifest:load:unknown-key
    """
    if path is None:
        return Manifest()
    path = path.absolute()
    where = Where(str(path))
    document = check_table(_parse_toml(_read_text(path), where), _FIELDS, where)
    tools = check_table(document.get("tools", {}), _TOOLS_FIELDS, where.at("tools"))
    code_mode = parse_code_mode(tools.get("codeMode", {}), where.at("tools.codeMode"))
    folder = path.parent
    core = parse_core(document.get("core", {}), where.at("core"), folder)
    entries = _each(document, "tool", where, lambda table, place: parse_tool(table, place, folder))
    return Manifest(
        path=path,
        code_mode=code_mode,
        agents=_parse_agents(document.get("agents", {}), where.at("agents"), code_mode),
        allow=tuple(tools.get("allow", ("*",))),
        deny=tuple(tools.get("deny", ())),
        approvals=_parse_approvals(document.get("approvals", {}), where.at("approvals")),
        sandbox=parse_sandbox(tools.get("sandbox", {}), where.at("tools.sandbox")),
        tools=_unique(entries, core),
        core=core,
        hooks=_each(document, "hook", where, parse_hook),
        plugins=check_plugin_ids(_each(document, "plugin", where, parse_plugin)),
        openapi=_each(document, "openapi", where, lambda table, place: parse_openapi(table, place, folder)),
        mcp=_parse_mcp(document, where, folder),
    )


def _read_text(path: Path) -> str:
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InvalidConfig(f"there is no manifest {path}; name another, or codemode init writes one.") from error
    except IsADirectoryError as error:
        raise InvalidConfig(f"{path} is a folder; name a manifest in it, such as {path / FILE_NAME}.") from error
    except OSError as error:
        raise InvalidConfig(f"cannot read the manifest {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"the manifest {path} is not UTF-8 text (byte {error.start}).") from error


def _parse_toml(text: str, where: Where) -> dict[str, Json]:
    import tomllib  # 5 ms that a cell without a manifest never pays

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        found = _POSITION.search(str(error))
        line, column = found.groups() if found else (len(lines), len(lines[-1]) + 1)  # else: at end of document
        words = str(error).partition(" (at ")[0]
        raise InvalidConfig(f"{where}:{line}:{column}: not TOML: {words}.") from error
    except RecursionError as error:
        raise InvalidConfig(f"{where}: nested too deeply.") from error


def _each(document: dict[str, Json], key: str, where: Where, parse: Callable[[Json, Where], T]) -> tuple[T, ...]:
    return tuple(parse(table, where.at(key).at(at)) for at, table in enumerate(document.get(key, [])))


def _unique(tools: tuple[ToolEntry, ...], core: CoreEntry) -> tuple[ToolEntry, ...]:
    taken = {build_tool_id("openclaw", "core", name): "core.tools" for name in core.tools}
    for tool in tools:
        if tool.id in taken:
            tool.where.fail(f'the id "{tool.id}" is already taken by {taken[tool.id]}; rename one of the two.')
        taken[tool.id] = tool.where.key
    return tools


def _parse_approvals(table: dict[str, Json], where: Where) -> tuple[tuple[str, Approval], ...]:
    check_table(table, {glob: Field("text", APPROVALS) for glob in table}, where)
    return tuple(table.items())


def _parse_agents(table: dict[str, Json], where: Where, below: CodeModeConfig) -> dict[str, CodeModeConfig]:
    agents: dict[str, CodeModeConfig] = {}
    check_table(table, {agent_id: Field("table") for agent_id in table}, where)
    for agent_id, agent in table.items():
        place = where.at(agent_id)
        tools = check_table(check_table(agent, _AGENT_FIELDS, place).get("tools", {}), _AGENT_TOOLS_FIELDS, place)
        agents[agent_id] = parse_code_mode(tools.get("codeMode", {}), place.at("tools.codeMode"), below)
    return agents


def _parse_mcp(document: dict[str, Json], where: Where, folder: Path) -> McpTables:
    mcp = check_table(document.get("mcp", {}), _MCP_FIELDS, where.at("mcp"))
    written = ((where.at("mcp.servers"), mcp.get("servers")), (where.at("mcp_servers"), document.get("mcp_servers")))
    return McpTables(
        servers=tuple((place, table) for place, table in written if table),
        include=tuple(folder / Path(file).expanduser() for file in mcp.get("include", [])),
    )
