"""What `doctor` tries, one check after the other; each says what it found and what to do about it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from codemode.composition import Setup, Toolbox, open_session, open_store, open_toolbox
from codemode.config import ModelRequest, decide_activation
from codemode.core.errors import CodeModeError
from codemode.core.types import Completed, Json
from codemode.manifest import Manifest, load_manifest
from codemode.render.words import counted, duration
from codemode.store.memory import MemoryStore
from codemode.store.place import state_dir

_CELL = "text('out'); await new Promise(done => setTimeout(done, 1)); return 6 * 7"


class Check(NamedTuple):
    """One thing that was tried: its state, what was found, and what to do where that is not obvious."""

    name: str
    state: Literal["ok", "warning", "failed"]
    says: str
    fix: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return `{"name", "state", "says", "fix"?}`."""
        shown: dict[str, Json] = {"name": self.name, "state": self.state, "says": self.says}
        return shown | ({"fix": self.fix} if self.fix else {})


def check_all(manifest_path: Path | None) -> Iterator[Check]:
    """Try everything, in the order in which one thing needs another.

    Contract: cli:doctor:checks
    """
    yield asyncio.run(_check_engine())
    yield _check_store()
    try:
        manifest = load_manifest(manifest_path)
    except CodeModeError as error:
        yield Check("manifest", "failed", error.message, "Correct the file; the place is named in the message.")
        return
    yield from _check_manifest(manifest)
    yield from _check_tools(manifest)
    yield from asyncio.run(_check_catalog(manifest_path))


async def _check_engine() -> Check:
    """Run a cell that needs a worker, a timer, an output and a value."""
    try:
        async with open_session(Setup(), store=MemoryStore()) as session:
            result = await session.exec({"code": _CELL})
    except CodeModeError as error:
        return Check("engine", "failed", error.message, "Reinstall codemode; its wheel carries the engine.")
    if isinstance(result, Completed) and result.value == 42 and len(result.output) == 1:
        return Check("engine", "ok", f"a cell ran in {duration(result.telemetry['durationMs'])}")
    return Check("engine", "failed", f"a test cell ended with {result.to_json()}", "Please report this.")


def _check_store() -> Check:
    try:
        open_store().close()
    except CodeModeError as error:
        return Check("store", "failed", error.message)
    return Check("store", "ok", f"runs are kept in {state_dir()}")


def _check_manifest(manifest: Manifest) -> Iterator[Check]:
    if manifest.path is None:
        fix = "Give -m FILE, or write a codemode.toml; cells run without tools until then."
        yield Check("manifest", "warning", "there is no codemode.toml here or above", fix)
        return
    yield Check("manifest", "ok", f"{manifest.path}, {counted(len(manifest.tools), 'tool')} of its own")
    for clamp in manifest.code_mode.clamps:
        says = f"tools.codeMode.{clamp.alias} = {clamp.found:,} is out of range; {clamp.used:,} is used"
        yield Check("limits", "warning", says, f"Write {clamp.used}.")


def _check_tools(manifest: Manifest) -> Iterator[Check]:
    """Import every python target and look for every program; run nothing."""
    if not (manifest.tools or manifest.hooks or manifest.core.tools):
        return
    from codemode.tools.toolset import Toolset

    toolset = Toolset(manifest, lambda _secrets: None)
    try:
        problems = toolset.probe()
    finally:
        asyncio.run(toolset.close())
    yield from (Check("tool", "failed", f"{problem.what}: {problem.sentence}") for problem in problems)
    if not problems:
        yield Check("tools", "ok", f"every target of {counted(len(manifest.tools), 'tool')} is there")


async def _check_catalog(manifest_path: Path | None) -> list[Check]:
    """Ask every server, and say whether a model would get code mode."""
    try:
        async with open_toolbox(manifest_path, refresh=True) as box:
            checks = list(_check_servers(box))
            checks += [Check("catalog", "warning", f"{note.tool_id}: {note.text}") for note in box.catalog.notes]
            activation = decide_activation(box.config.enabled, ModelRequest(), box.manifest.allow, box.catalog.size)
            return [*checks, Check("code mode", "ok" if activation.active else "warning", activation.reason)]
    except CodeModeError as error:
        return [Check("catalog", "failed", error.message)]


def _check_servers(box: Toolbox) -> Iterator[Check]:
    if box.servers is None:
        return
    yield from (Check("server", "failed", failure.sentence()) for failure in box.servers.failures)
    yield from (Check("server", "warning", warning) for warning in box.servers.warnings)
    counts = Counter(tool.owner for tool in box.catalog.tools if tool.source == "mcp")
    for name in box.servers.ages:
        yield Check("server", "ok", f"{name} answers, {counted(counts[name], 'tool')}")
