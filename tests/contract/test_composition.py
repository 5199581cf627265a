"""How a session is put together from a manifest, and taken apart again."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codemode.composition import Setup, open_pool, open_session, open_store, open_toolbox
from codemode.core.errors import InvalidConfig
from codemode.core.events import Event, ExecStarted, RunEnded
from codemode.core.types import Completed
from codemode.session import Identity
from codemode.store.memory import MemoryStore
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
TOOLS = """
[tools]
deny = ["*:hidden"]
[tools.codeMode]
timeoutMs = 7000
[agents.fast.tools.codeMode]
timeoutMs = 500
[[tool]]
name = "greet"
description = "Greets."
value = { hello = "world" }
[[tool]]
name = "hidden"
description = "Denied."
value = 1
"""
BROKEN_SERVER = """
[mcp.servers.broken]
command = "codemode-no-such-program"
required = {required}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "codemode.toml"
    path.write_text(TOOLS)
    return path


def add_broken_server(manifest: Path, required: str) -> None:
    manifest.write_text(TOOLS + BROKEN_SERVER.format(required=required))


@requirement("composition:toolbox:manifest")
async def test_a_toolbox_holds_what_the_manifest_allows(manifest: Path) -> None:
    async with open_toolbox(manifest) as box:
        assert [tool.id for tool in box.catalog.tools] == ["client:app:greet"]
        assert (box.manifest.path, box.config.limits.timeout_ms) == (manifest, 7000)
        assert box.warnings == ()
        assert repr(box) == f"<Toolbox of {manifest}: 1 tools>"  # whatever its size


@requirement("composition:toolbox:manifest")
async def test_an_agent_has_its_own_settings(manifest: Path) -> None:
    async with open_toolbox(manifest, agent_id="fast") as box:
        assert box.config.limits.timeout_ms == 500


@requirement("composition:toolbox:empty")
async def test_without_a_manifest_the_catalog_is_empty_and_cells_run() -> None:
    async with open_session(Setup(), store=MemoryStore()) as session:
        assert session.catalog.size == 0
        result = await session.exec({"code": "return ALL_TOOLS.length"})

    assert isinstance(result, Completed)
    assert result.value == 0


@requirement("composition:servers:isolated")
async def test_a_server_that_does_not_start_is_a_warning_and_the_rest_goes_on(manifest: Path) -> None:
    add_broken_server(manifest, required="false")
    async with open_toolbox(manifest) as box:
        assert [tool.id for tool in box.catalog.tools] == ["client:app:greet"]
        (warning,) = box.warnings
        assert "broken" in warning


@requirement("composition:servers:isolated")
async def test_a_required_server_that_does_not_start_is_invalid_config(manifest: Path) -> None:
    add_broken_server(manifest, required="true")
    with pytest.raises(InvalidConfig, match="broken"):
        async with open_toolbox(manifest):
            pass


@requirement("composition:session:settings")
async def test_what_a_front_end_asks_goes_over_the_manifest_and_is_clamped(manifest: Path) -> None:
    heard: list[Event] = []
    setup = Setup(manifest, Identity("s", "main", "ar_mine"), {"timeout_ms": 10**9})
    store = MemoryStore()
    async with open_session(setup, store=store) as session:
        session.listen(heard.append)
        result = await session.exec({"code": "return await tools.greet()"})
        (run,) = store.runs("s")

    assert isinstance(result, Completed)
    assert result.value == {"hello": "world"}
    assert (run.limits.timeout_ms, run.manifest, run.agent_run_id) == (60_000, str(manifest), "ar_mine")
    assert [type(heard[0]), type(heard[-1])] == [ExecStarted, RunEnded]


@requirement("composition:session:shared")
async def test_sessions_share_workers_and_store_and_nothing_else(manifest: Path) -> None:
    pool, store = open_pool(), MemoryStore()
    try:
        async with (
            open_session(Setup(manifest, Identity("one")), pool, store) as one,
            open_session(Setup(None, Identity("two")), pool, store) as two,
        ):
            results: list[Any] = [await who.exec({"code": "return ALL_TOOLS.length"}) for who in (one, two, one)]
        assert [result.value for result in results] == [1, 0, 1]
        assert [result.telemetry["execCount"] for result in results] == [1, 1, 2]
        assert [len(store.runs(name)) for name in ("one", "two")] == [2, 1]
        worker = await pool.acquire()
        pool.release(worker)
    finally:
        await pool.close()
        store.close()


async def test_the_users_own_store_is_opened_and_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    store = open_store()
    try:
        assert store.runs("default") == ()
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    finally:
        store.close()


HEAVY = ("jsonschema", "pydantic", "rich", "mcp", "importlib.metadata", "httpx2", "prompt_toolkit", "wasmtime")


@requirement("composition:start:light")
def test_a_cell_without_a_manifest_loads_nothing_heavy(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from codemode.composition import Setup, open_session
from codemode.store.memory import MemoryStore

async def main():
    async with open_session(Setup(), store=MemoryStore()) as session:
        result = await session.exec({"code": "return (await tools.search('x')).length"})
        print(result.to_json()["status"], [name for name in sys.argv[1:] if name in sys.modules])

asyncio.run(main())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, *HEAVY],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ran.stdout.strip() == "completed []"
