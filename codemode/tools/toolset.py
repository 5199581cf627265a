"""The manifest's tools and hooks as things that run, and what they share.

A `Toolset` turns each checked entry into a `ToolSpec` or a `Hook`, owns the threads and the
HTTP client behind them, and tells the redactor every secret that goes into a call. Nothing is
imported, started or opened before the first call.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from codemode.core.errors import CodeModeError
from codemode.core.limits import HOOK_TIMEOUT_MS
from codemode.core.tables import Where
from codemode.core.types import Json, RunContext, ToolSpec
from codemode.definitions import (
    CommandTemplate,
    CoreEntry,
    HookEntry,
    HttpTemplate,
    LoadedFunction,
    PythonTarget,
    ToolEntry,
)
from codemode.hooks import Hook
from codemode.manifest import Manifest
from codemode.tools.command import CommandTool
from codemode.tools.http import HttpClient, HttpTool
from codemode.tools.python import PythonFunction, PythonTool
from codemode.tools.scripted import ScriptedTool
from codemode.tools.templates import Learn, Placeholders, Variables
from codemode.tools.threads import Threads


class Problem(NamedTuple):
    """Why a tool or hook cannot work on this machine: found by `probe`, told by `doctor`."""

    what: str
    sentence: str


class _Runner(Protocol):
    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json: ...

    def probe(self) -> object: ...


class Toolset:
    """Everything that a manifest's `[[tool]]`, `[[hook]]` and `[core]` tables give."""

    def __init__(self, manifest: Manifest, learn: Learn) -> None:
        """Build tools and hooks; nothing runs yet.

        Args:
            manifest: Checked entries.
            learn: Takes secrets as they are used, as `Redactor.learn` does.
        """
        self._folder = manifest.folder
        self._variables = Variables(learn)
        self._threads = Threads()
        self._client = HttpClient(self._threads)
        self._probes: dict[str, Callable[[], object]] = {}
        self.tools = (*map(self._build_tool, manifest.tools), *self._build_core(manifest.core))
        self.hooks = tuple(self._build_hook(entry) for entry in manifest.hooks)

    def probe(self) -> list[Problem]:
        """Import every target, look for every program, expand every variable; run nothing.

        Contract: tools:probe:finds-problems
        """
        problems: list[Problem] = []
        for what, probe in self._probes.items():
            try:
                probe()
            except CodeModeError as error:
                problems.append(Problem(what, error.message))
        return problems

    async def close(self) -> None:
        """Close connections and let threads end."""
        await self._client.close()
        self._threads.close()

    def off_loop(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """Return a function as one to await: if it is not asynchronous itself, it runs in a thread."""
        return self._build_function(LoadedFunction(function), Where("")).run

    def _build_core(self, entry: CoreEntry) -> list[ToolSpec]:
        if not entry.tools:
            return []
        from codemode.tools.core import CoreTools  # few manifests list any

        return CoreTools(entry, self._threads, self._client).specs()

    def _build_tool(self, entry: ToolEntry) -> ToolSpec:
        where = _without_folders(entry.where)
        runner = self._build_runner(entry, where)
        self._probes[entry.id] = runner.probe
        return ToolSpec(
            id=entry.id,
            name=entry.name,
            description=entry.description,
            source=entry.source,
            owner=entry.owner,
            parameters=entry.parameters,
            invoke=runner,
            label=entry.label,
            approval=entry.approval,
            timeout_ms=entry.timeout_ms,
            origin=str(entry.where),
        )

    def _build_runner(self, entry: ToolEntry, where: Where) -> _Runner:
        placeholders = Placeholders(entry.parameters.get("properties", {}))
        match entry.executor:
            case (PythonTarget() | LoadedFunction()) as target:
                return PythonTool(self._build_function(target, where), where)
            case CommandTemplate() as template:
                return CommandTool(template, placeholders, self._folder, where, self._variables)
            case HttpTemplate() as template:
                place = where.at("http") if template.places is None else where
                return HttpTool(template, placeholders, place, self._variables, self._client)
            case script:
                return ScriptedTool(script)

    def _build_hook(self, entry: HookEntry) -> Hook:
        where = _without_folders(entry.where)
        run: Callable[[dict[str, Json]], Awaitable[Json]]
        if not isinstance(entry.executor, CommandTemplate):
            function = self._build_function(entry.executor, where)
            run, self._probes[where.key] = function.run, function.load
        else:
            command = CommandTool(entry.executor, Placeholders(()), self._folder, where, self._variables)
            run, self._probes[where.key] = command.run, command.probe
        return Hook(where.key, run, entry.timeout_ms or HOOK_TIMEOUT_MS)

    def _build_function(self, target: PythonTarget | LoadedFunction, where: Where) -> PythonFunction:
        return PythonFunction(target, self._folder, where.at("python"), self._threads)


def _without_folders(where: Where) -> Where:
    return Where(Path(where.file).name, where.key)  # what reaches a guest names no path of the host
