"""The page's end-to-end plan, its sixteen steps in their order, with each provider's wire format.

Everything is real but the model: worker processes, the protocol's reference server as a child,
a store file, and HTTP on loopback between the agent and a provider that follows a script.
"""

import asyncio
import json
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from codemode import CodeMode, tool
from codemode.core.errors import ErrorCode
from codemode.payload.messages import ToolResult
from codemode.payload.providers import PROVIDERS
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.trajectory import to_json, to_jsonl
from tests.requirements import requirement
from tests.support.mcp import npm_folder
from tests.support.page import DIRECT, failed, value_of, waiting, write_manifest
from tests.support.provider import Calls, Move, Provider, Says, converse, open_provider
from tests.support.sessions import Gate

pytestmark = pytest.mark.timeout(240)  # four times a server that node starts, on a machine that may be busy
RUN_ID = re.compile(r"cm_[0-9a-f-]{36}")
LONG, SHORT = (
    {"timeout_ms": 60_000},
    {"timeout_ms": 1000},
)  # a server starts within the first, an exec waits after the second

CATALOG_CELL = """
const found = {};
for (const query of ["send message to channel", "tickets of the desk", "choose file"]) {
    const [hit] = await tools.search(query, {limit: 1});
    const { parameters } = await tools.describe(hit.id);
    found[hit.id] = [parameters.type, await tools.call(hit.id, query.startsWith("send") ? {text: "hello"} : {})];
}
return { listed: ALL_TOOLS.map((tool) => tool.id), found };
"""
MCP_CELL = """
const files = (await API.list("mcp")).map((file) => file.path);
const text = await API.read("mcp/everything.d.ts");
const { content } = await MCP.everything.echo({ message: "over the wire" });
return {
    files, declared: /function echo\\(input: \\{/.test(text), said: content[0].text,
    direct: ["echo" in tools, ALL_TOOLS.some((tool) => tool.source === "mcp")],
};
"""
DENIED_CELL = """
const id = "client:app:forbidden";
const code = (promise) => promise.then(() => "it ran", (error) => error.code);
return [
    ALL_TOOLS.some((tool) => tool.id === id), (await tools.search("forbidden denied policy")).length,
    typeof tools.forbidden, await code(tools.call(id)), await code(tools.call("forbidden")),
    await code(tools.describe(id)),
];
"""


def manifest(folder: Path, name: str, switch: str) -> Path:
    script = npm_folder() / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return write_manifest(folder, name, switch=switch, server=("everything", "node", str(script)))


def exec_(code: str) -> Move:
    return lambda request: Calls("exec", {"code": code})


def wait(request: str) -> Calls:
    """Resume the run of which the model read last."""
    return Calls("wait", {"runId": RUN_ID.findall(request)[-1]})


def answer(request: str) -> Says:
    return Says("done")


async def value_in_one_exec(code_mode: CodeMode, provider: Provider, cell: str) -> Any:
    """Let the model run a cell; return its value."""
    _, said = await converse(code_mode, provider, "Use your tools.", exec_(cell), answer)
    (result,) = [json.loads(each.text) for each in said if isinstance(each, ToolResult)]
    assert result["status"] == "completed", result
    return result["value"]


@pytest.mark.usefixtures("no_kill")
@requirement("page:plan:sixteen-steps")
@pytest.mark.parametrize("kind", list(PROVIDERS))
async def test_the_sixteen_steps(
    kind: str, tmp_path: Path, engine_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEMODE_CACHE_DIR", str(engine_cache))
    store, gate = tmp_path / "runs.db", Gate("lookup")
    lookup = tool(gate._run, "lookup", description="Look something up, slowly.", parameters={"type": "object"})
    with open_provider(kind) as provider:
        await steps_1_to_3(manifest(tmp_path, "off.toml", "enabled = false"), provider)
        on = manifest(tmp_path, "on.toml", "enabled = true")
        async with CodeMode(on, store=store, limits=LONG) as code_mode:
            await steps_4_to_6(code_mode, provider)
            await steps_7_to_8(code_mode, provider)
            await steps_9_to_10(code_mode, provider)
            await step_11(code_mode, provider)
            async with CodeMode(on, tools=[lookup], beside=code_mode, limits=SHORT) as hasty:
                run_id = await steps_12_to_14(hasty, provider, gate)
                await step_15(hasty, gate, store)
                step_16(code_mode, hasty, run_id)
        assert all(offer == ["exec", "wait"] for offer in provider.offers[1:])


async def steps_1_to_3(off: Path, provider: Provider) -> None:
    """Code mode disabled, one turn with the direct tools, and these are unchanged."""
    async with CodeMode(off) as code_mode:
        text, _ = await converse(code_mode, provider, "Say something.", lambda request: Says("something"))
        servers = [each.name for each in code_mode.catalog.tools if each.source == "mcp"]
    direct = {name.replace("/", "_") for name in (*DIRECT, *servers)}

    assert text == "something"
    assert set(provider.offers[0]) == direct
    assert {"echo", "get-sum"} <= set(servers)


async def steps_4_to_6(code_mode: CodeMode, provider: Provider) -> None:
    """Code mode enabled, one turn with tools of all four sources, and the model sees two."""
    text, _ = await converse(code_mode, provider, "Say something.", lambda request: Says("again"))

    assert text == "again"
    assert provider.offers[-1] == ["exec", "wait"]
    assert all(count > 0 for count in code_mode.catalog.sources.values())


async def steps_7_to_8(code_mode: CodeMode, provider: Provider) -> None:
    """ALL_TOOLS holds the effective tools; search, describe and call reach those of each source."""
    value = await value_in_one_exec(code_mode, provider, CATALOG_CELL)

    assert value["listed"] == sorted(each.id for each in code_mode.catalog.tools if each.source != "mcp")
    assert list(value["found"]) == ["openclaw:core:send_message", "plugin:desk:list_tickets", "client:app:choose_file"]
    assert value["found"]["openclaw:core:send_message"] == ["object", {"sent": True}]
    assert value["found"]["plugin:desk:list_tickets"][1][0]["number"] == 7
    assert value["found"]["client:app:choose_file"][1] == "report.pdf"


async def steps_9_to_10(code_mode: CodeMode, provider: Provider) -> None:
    """The declarations describe the MCP tools; these are called by their namespace and are nowhere else."""
    value = await value_in_one_exec(code_mode, provider, MCP_CELL)

    assert value == {
        "files": ["mcp/index.d.ts", "mcp/everything.d.ts"],
        "declared": True,
        "said": "Echo: over the wire",
        "direct": [False, False],
    }


async def step_11(code_mode: CodeMode, provider: Provider) -> None:
    """A denied tool is absent, and its id, guessed, leads nowhere."""
    value = await value_in_one_exec(code_mode, provider, DENIED_CELL)

    assert value == [False, 0, "undefined", *["nested_tool_failed"] * 3]


async def steps_12_to_14(code_mode: CodeMode, provider: Provider, gate: Gate) -> str:
    """A call outlives its exec; wait restores the VM with its result; the answer holds what came after."""

    def open_then_wait(request: str) -> Calls:
        gate_opened.append(request.count('"waiting"') + request.count('\\"waiting\\"'))
        loop.call_soon_threadsafe(gate.open, "the tide is high")
        return wait(request)

    def repeat(request: str) -> Says:
        return Says(re.findall(r"restored: [a-z ]+", request)[-1])

    loop = asyncio.get_running_loop()
    gate_opened: list[int] = []
    cell = "text('first part'); const found = await tools.lookup({}); text('restored: ' + found); return found"
    text, said = await converse(code_mode, provider, "Look it up.", exec_(cell), open_then_wait, repeat)
    first, second = [json.loads(each.text) for each in said if isinstance(each, ToolResult)]

    assert (first["status"], first["reason"], gate_opened) == ("waiting", "pending_tools", [1])
    assert [call["toolId"] for call in first["pendingToolCalls"]] == ["client:app:lookup"]
    assert (second["status"], second["value"]) == ("completed", "the tide is high")
    assert second["output"] == [{"type": "text", "text": "restored: the tide is high"}]
    assert text == "restored: the tide is high"
    assert len(gate.begun) == 1
    run_id: str = first["runId"]
    return run_id


async def step_15(code_mode: CodeMode, gate: Gate, store: Path) -> None:
    """After a timeout, an abort and an expiry nothing of the runs is left but their records."""
    assert failed(await code_mode.exec("while (true) {}")).code is ErrorCode.TIMEOUT

    aborted = waiting(await code_mode.exec("await tools.lookup({key: 'never'})"))
    assert snapshots(store) == [aborted.run_id]
    code_mode.abort(aborted.run_id)
    await gate.until(cancelled=1)
    assert failed(await code_mode.wait(aborted.run_id)).code is ErrorCode.ABORTED

    expired = waiting(await code_mode.exec("await yield_control()"))
    tomorrow = SqliteStore(Database(store), lambda: time.time() + 86_400)
    tomorrow.sweep()
    tomorrow.close()
    assert failed(await code_mode.wait(expired.run_id)).code is ErrorCode.SNAPSHOT_EXPIRED

    assert snapshots(store) == []
    states = {run.run_id: run.state for run in code_mode.trace().runs}
    assert (states[aborted.run_id], states[expired.run_id]) == ("aborted", "expired")
    assert value_of(await code_mode.exec("return 'the workers are free'")) == "the workers are free"


def snapshots(store: Path) -> list[str]:
    with sqlite3.connect(store) as database:
        return [run_id for (run_id,) in database.execute("SELECT run_id FROM snapshots")]


def step_16(code_mode: CodeMode, hasty: CodeMode, run_id: str) -> None:
    """The exported trajectory has each nested call under the exec that made it."""
    called = [[call["toolId"] for call in run["calls"] if call["toolId"]] for run in to_json(code_mode.trace())["runs"]]
    assert ["openclaw:core:send_message", "plugin:desk:list_tickets", "client:app:choose_file"] in called
    assert ["mcp:everything:echo"] in called

    (run,) = to_json(hasty.trace(run_id))["runs"]
    (call,), (delivered,) = run["calls"], run["waits"]
    assert (call["toolId"], call["state"], call["deliverer"]) == ("client:app:lookup", "ok", delivered["id"])
    lines = [json.loads(line) for line in to_jsonl(hasty.trace(run_id))]
    assert {line["runId"] for line in lines} == {run_id}
    assert [line["toolId"] for line in lines if line["type"] == "call"] == ["client:app:lookup"]
