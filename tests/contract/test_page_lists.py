"""The page's validation list and its list for namespaces: one short test for each bullet, in its order.

Other tests go into each of these more deeply; here one can read the page beside the test.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from codemode import CodeMode, MockTool
from codemode.config import ModelRequest
from codemode.core.errors import ErrorCode, InvalidConfig
from codemode.core.tables import Where
from codemode.extensions import PluginEntry
from codemode.payload.closed import offered_tools
from codemode.payload.messages import AssistantMessage, ChatRequest, ToolResult, ToolUse, UserMessage
from codemode.payload.providers import PROVIDERS
from codemode.plugins import Plugin, Plugins, Registered, namespace_tool
from codemode.store.database import Database
from codemode.store.sqlite import SqliteStore
from codemode.trajectory import to_json
from tests.requirements import requirement
from tests.support.guest import Guest
from tests.support.page import DIRECT, failed, value_of, waiting, write_manifest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("no_kill")]
MCP_TOOLS = ["find_books", "get_book", "wrong_book"]
MCP_OPERATIONS = ["prompts/get", "prompts/list", "resources/list", "resources/read"]
SHORT = {"timeout_ms": 400}  # long enough for a first turn on a busy machine


@pytest.fixture(scope="module", autouse=True)
def _own_cache(engine_cache: Path) -> Iterator[None]:
    """Lists of these servers are nobody else's business."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEMODE_CACHE_DIR", str(engine_cache))
        yield


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_manifest(tmp_path_factory.mktemp("page"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(manifest: Path) -> AsyncIterator[CodeMode]:
    """One tool of every source, code mode on."""
    async with CodeMode(manifest) as code_mode:
        yield code_mode


def variant(world: CodeMode, folder: Path, *tools: Any, **parts: Any) -> CodeMode:
    """The same with another manifest, or with tools of the test's own, on the same workers."""
    options = {name: parts.pop(name) for name in ("limits", "may_ask") if name in parts}
    return CodeMode(write_manifest(folder, **parts), tools=tools, beside=world, **options)


def offered(code_mode: CodeMode, provider: str = "openai", request: ModelRequest | None = None) -> list[str]:
    return offered_tools(code_mode.payload(provider, request=request or ModelRequest()))


# ---- validation list ----


@requirement("page:validation:disabled")
@pytest.mark.parametrize("switch", ["enabled = false", ""])
async def test_01_disabled_the_tools_are_offered_as_they_are(world: CodeMode, tmp_path: Path, switch: str) -> None:
    async with variant(world, tmp_path, switch=switch) as off:
        surface = {each.name: each for each in off.surface()}
        operations = [name.replace("/", "_") for name in MCP_OPERATIONS]
        assert sorted(surface) == sorted([*DIRECT, *MCP_TOOLS, *operations])
        assert surface["send_message"].parameters["required"] == ["text"]
        assert surface["find_books"].parameters["required"] == ["author"]


@requirement("page:validation:object")
async def test_02_other_settings_alone_do_not_enable_it(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, switch='timeoutMs = 500\nmode = "only"') as off:
        assert not off.activation().active
        assert "exec" in offered(off)  # the shell tool of that name, among all the others
        assert "wait" not in offered(off)


@requirement("page:validation:enabled")
@pytest.mark.parametrize("provider", list(PROVIDERS))
async def test_03_enabled_exec_and_wait_are_all_that_is_offered(world: CodeMode, provider: str) -> None:
    assert offered(world, provider) == ["exec", "wait"]


@requirement("page:validation:unenforced")
@pytest.mark.parametrize(
    "request_", [ModelRequest(raw=True), ModelRequest(tools_disabled=True), ModelRequest(supports_tools=False)]
)
async def test_04_a_request_without_tools_is_not_checked(world: CodeMode, request_: ModelRequest) -> None:
    assert not world.activation(request_).active
    assert offered(world, request=request_) == []


@requirement("page:validation:unenforced")
async def test_04_an_empty_allowlist_is_not_checked(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, tools="allow = []") as nothing:
        assert not nothing.activation().active
        assert offered(nothing) == []


@requirement("page:validation:all-tools")
async def test_05_all_tools_are_listed_but_those_of_mcp(world: CodeMode) -> None:
    listed = value_of(await world.exec("return ALL_TOOLS.map((tool) => [tool.source, tool.id])"))

    assert listed == [
        ["client", "client:app:choose_file"],
        ["openclaw", "openclaw:core:exec"],
        ["openclaw", "openclaw:core:send_message"],
        ["plugin", "plugin:desk:close_ticket"],
        ["plugin", "plugin:desk:list_tickets"],
        ["plugin", "plugin:desk:purge"],
    ]
    assert {each.id for each in world.catalog.tools if each.source == "mcp"} == {
        f"mcp:shelf:{name}" for name in (*MCP_TOOLS, *MCP_OPERATIONS)
    }


@requirement("page:validation:denied")
async def test_06_a_denied_tool_is_nowhere(world: CodeMode) -> None:
    found = value_of(
        await world.exec(
            "const id = 'client:app:forbidden';"
            "const tries = [tools.describe(id), tools.call(id)].map((call) => call.catch((e) => e.code));"
            "const listed = ALL_TOOLS.some((tool) => tool.id === id);"
            "return [listed, await tools.search('forbidden'), tools.forbidden, await Promise.all(tries)]"
        )
    )

    assert found == [False, [], None, ["nested_tool_failed", "nested_tool_failed"]]


@requirement("page:validation:catalog")
async def test_07_an_openclaw_tool_is_searched_described_and_called(world: CodeMode) -> None:
    value = value_of(
        await world.exec(
            "const [hit] = await tools.search('send message to channel', {limit: 1});"
            "const { parameters } = await tools.describe(hit.id);"
            "return [hit.id, parameters.required, await tools.call(hit.id, {text: 'hello'})]"
        )
    )

    assert value == ["openclaw:core:send_message", ["text"], {"sent": True}]


@requirement("page:validation:files")
async def test_08_declarations_of_mcp_are_read_without_a_call(world: CodeMode) -> None:
    before = world.telemetry
    files, text = value_of(
        await world.exec("return [(await API.list('mcp')).map((file) => file.path), await API.read('mcp/shelf.d.ts')]")
    )

    assert files == ["mcp/index.d.ts", "mcp/shelf.d.ts"]
    assert "function findBooks(input: {" in text
    assert "Promise<McpToolResult>" in text
    counted = ("searchCount", "describeCount", "callCount")
    assert [world.telemetry[name] for name in counted] == [before[name] for name in counted]


@requirement("page:validation:headers")
async def test_09_api_gives_the_schema_of_one_tool_in_place(world: CodeMode) -> None:
    servers, header, required = value_of(
        await world.exec(
            "const all = await MCP.$api();"
            "const one = await MCP.shelf.$api('findBooks', {schema: true});"
            "return [all.servers.length, one.header, Object.values(one.schemas)[0].required]"
        )
    )

    assert (servers, required) == (1, ["author"])
    assert "findBooks" in header


@requirement("page:validation:mcp")
async def test_10_an_mcp_tool_is_called_by_its_namespace_and_not_otherwise(world: CodeMode) -> None:
    result = await world.exec(
        "const got = await MCP.shelf.getBook({id: '2'});"
        "const refused = await MCP.shelf.getBook({id: '2'}, 'more').catch((e) => e.code);"
        "const direct = await tools.call('mcp:shelf:get_book', {id: '2'}).catch((e) => e.code);"
        "return [got.structuredContent.title, refused, direct, 'get_book' in tools, "
        "  ALL_TOOLS.some((tool) => tool.source === 'mcp')]"
    )

    assert value_of(result) == ["Middlemarch", "nested_tool_failed", "nested_tool_failed", False, False]


@requirement("page:validation:control")
async def test_11_control_tools_are_neither_offered_nor_in_the_catalog(world: CodeMode, tmp_path: Path) -> None:
    names = ("tool_search_code", "tool_search", "tool_describe", "tool_call", "wait")
    async with variant(world, tmp_path, *map(MockTool, names)) as code_mode:
        listed = value_of(await code_mode.exec("return ALL_TOOLS.map((tool) => tool.name)"))

        assert set(listed).isdisjoint(names)
        assert {each.name for each in code_mode.catalog.tools}.isdisjoint(names)
        assert offered(code_mode) == ["exec", "wait"]
        assert sorted(note.tool_id for note in code_mode.catalog.notes if note.kind == "left-out") == sorted(
            f"client:app:{name}" for name in names
        )


GUARD = """
[approvals]
"client:app:pay" = "ask"
[[hook]]
event = "before_tool_call"
python = "tests.contract.test_page_lists:guard"
"""


def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    """Round what is paid, and let nobody forget the tickets."""
    if event["toolName"] == "purge":
        return {"block": "tickets are kept"}
    return {"input": {"cents": round(event["input"]["cents"], -2)}} if event["toolName"] == "pay" else None


@requirement("page:validation:nested")
async def test_12_approvals_and_hooks_hold_for_nested_calls(world: CodeMode, tmp_path: Path) -> None:
    pay = MockTool("pay", lambda given: given["cents"])
    async with variant(world, tmp_path, pay, more=GUARD) as code_mode:
        blocked = await code_mode.exec("return await tools.purge().catch((e) => e.message)")
        asked = waiting(await code_mode.exec("return await tools.pay({cents: 1234})"))
        assert ([call.state for call in asked.pending], pay.calls) == (["awaiting_approval"], [])
        paid = await code_mode.wait(asked.run_id, approve=[asked.pending[0].id])

    assert "tickets are kept" in value_of(blocked)
    assert (value_of(paid), pay.calls) == (1200, [{"cents": 1200}])


@requirement("page:validation:shell")
async def test_13_a_shell_exec_is_hidden_and_callable_by_its_id(world: CodeMode, tmp_path: Path) -> None:
    (definition, _) = world.surface()
    ran = value_of(await world.exec("return await tools.call('openclaw:core:exec', {command: 'echo hello'})"))
    async with variant(world, tmp_path, tools='deny = ["openclaw:core:exec"]') as denied:
        refused = failed(await denied.exec("return await tools.call('openclaw:core:exec', {command: 'true'})"))

    assert set(definition.parameters["properties"]) == {"code", "command", "language"}  # ours, not the shell's
    assert "hello" in json.dumps(ran)
    assert refused.code is ErrorCode.NESTED_TOOL_FAILED


@requirement("page:validation:recursion")
async def test_14_a_cell_cannot_call_exec_or_wait(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, tools='deny = ["openclaw:core:exec"]') as without_shell:
        value = value_of(
            await without_shell.exec(
                "const tries = ['exec', 'wait', 'openclaw:core:wait', 'codemode:core:exec', 'client:app:exec'];"
                "const codes = await Promise.all(tries.map((id) => tools.call(id, {code: '1'}).catch((e) => e.code)));"
                "return [typeof exec, typeof wait, 'exec' in tools, 'wait' in tools, ...codes]"
            )
        )

    assert value == ["undefined", "undefined", False, False, *["nested_tool_failed"] * 5]


@requirement("page:validation:typescript")
async def test_15_typescript_runs(world: CodeMode) -> None:
    cell = "enum Size { S = 1, L = 4 }\nconst twice = (n: number): number => n * 2;\nreturn twice(Size.L)"

    assert value_of(await world.exec(cell, "typescript")) == 8


class Overheard:
    """The TypeScript compiler, and what it was asked."""

    def __init__(self, parser: Any) -> None:
        self.asked: list[str] = []
        self._parser = parser

    def ask(self, name: str, *given: Any) -> Any:
        self.asked.append(name)
        return self._parser.ask(name, *given)


@requirement("page:validation:typescript")
async def test_15_javascript_asks_for_no_typescript(engine_cache: Path) -> None:
    """A compiler that is not asked is not loaded: `toolchain:cost:parsers`."""
    guest = Guest(engine_cache)
    toolchain = guest.worker._engine.toolchain
    compiler = toolchain._typescript = Overheard(toolchain._typescript)
    assert guest.value("return 1 + 1") == 2
    assert compiler.asked == []
    assert guest.value("const n: number = 2; return n", "typescript") == 2
    assert compiler.asked == ["transform"]


@requirement("page:validation:access")
@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("import fs from 'fs'", ErrorCode.MODULE_ACCESS_DENIED),
        ("return await import('fs')", ErrorCode.MODULE_ACCESS_DENIED),
        ("return require('fs')", ErrorCode.MODULE_ACCESS_DENIED),
        ("return await fetch('http://127.0.0.1')", None),
        ("return process.env", None),
        ("return new XMLHttpRequest()", None),
        ("return std.open('/etc/passwd')", None),
        ("return Deno.readTextFile('/etc/passwd')", None),
    ],
)
async def test_16_nothing_outside_can_be_reached(world: CodeMode, cell: str, code: ErrorCode | None) -> None:
    result = failed(await world.exec(cell))

    assert (result.code, result.dispatched) == (code, False)


@requirement("page:validation:loop")
async def test_17_an_endless_loop_times_out(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, limits={"timeout_ms": 200}) as code_mode:
        result = failed(await code_mode.exec("while (true) {}"))

    assert (result.code, code_mode_failures(result.telemetry)) == (ErrorCode.TIMEOUT, ["timeout"])


@requirement("page:validation:loop")
async def test_17_the_host_of_an_endless_loop_goes_on(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, limits={"timeout_ms": 60_000}) as code_mode:
        looping = asyncio.ensure_future(code_mode.exec("while (true) {}"))
        assert value_of(await world.exec("return await tools.choose_file()")) == "report.pdf"
        assert not looping.done()
        looping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looping


def code_mode_failures(telemetry: dict[str, Any]) -> list[str]:
    return [limit for limit, count in telemetry["limitFailures"].items() if count]


@requirement("page:validation:memory")
async def test_18_the_memory_limit_ends_the_vm(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, limits={"memory_limit_bytes": 4 << 20}) as code_mode:
        result = failed(await code_mode.exec("let s = []; try { while (true) s.push('x'.repeat(9999)) } catch {}"))
        after = await code_mode.exec("return 'fine'")

    assert (result.code, code_mode_failures(result.telemetry)) == (ErrorCode.MEMORY_LIMIT_EXCEEDED, ["memory"])
    assert value_of(after) == "fine"


@requirement("page:validation:limits")
@pytest.mark.parametrize("rest", ["return 1", "await yield_control(); return 1"])
async def test_19_the_output_limit_holds_for_both_kinds_of_result(world: CodeMode, tmp_path: Path, rest: str) -> None:
    async with variant(world, tmp_path, limits={"max_output_bytes": 1024}) as code_mode:
        result = failed(await code_mode.exec(f"text('é'.repeat(600)); {rest}"))

    assert result.code is ErrorCode.OUTPUT_LIMIT_EXCEEDED
    assert sum(len(dumps(item.to_json()).encode()) for item in result.output) <= 1024


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@requirement("page:validation:limits")
async def test_19_the_output_limit_counts_what_was_put_out_before_the_wait(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, limits={"max_output_bytes": 1024}) as code_mode:
        first = waiting(await code_mode.exec("text('a'.repeat(600)); await yield_control(); text('b'.repeat(600))"))
        second = failed(await code_mode.wait(first.run_id))

    assert second.code is ErrorCode.OUTPUT_LIMIT_EXCEEDED


@requirement("page:validation:limits")
async def test_19_the_snapshot_limit_holds_when_a_cell_is_suspended(world: CodeMode, tmp_path: Path) -> None:
    noise = "const noise = Array.from({length: 5000}, Math.random);"
    async with variant(world, tmp_path, limits={"max_snapshot_bytes": 1024}) as code_mode:
        suspended = failed(await code_mode.exec(f"{noise} await yield_control(); return noise.length"))
        completed = await code_mode.exec(f"{noise} return noise.length")

    assert (suspended.code, value_of(completed)) == (ErrorCode.SNAPSHOT_LIMIT_EXCEEDED, 5000)


@requirement("page:validation:wait")
async def test_20_wait_resumes_the_snapshot_and_gives_the_final_value(world: CodeMode) -> None:
    first = waiting(await world.exec("let n = 41; text('before'); await yield_control(); text('after'); return n + 1"))
    end = await world.wait(first.run_id)

    assert value_of(end) == 42
    assert [item.value for item in (*first.output, *end.output)] == ["before", "after"]


@requirement("page:validation:run-ids")
async def test_21_a_run_that_is_expired_aborted_foreign_or_unknown_fails(world: CodeMode, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with (
        CodeMode(store=store, session="mine") as mine,
        CodeMode(beside=mine, session="theirs") as theirs,
    ):
        expiring, aborted, foreign = [waiting(await mine.exec("await yield_control()")).run_id for _ in range(3)]
        refused = [failed(await theirs.wait(foreign)), failed(await theirs.wait("cm_none"))]
        mine.abort(aborted)
        await mine.wait(foreign)
        refused += [failed(await mine.wait(aborted)), failed(await mine.wait(foreign))]
        tomorrow = SqliteStore(Database(store), lambda: 1e11)
        tomorrow.sweep()
        tomorrow.close()
        refused.append(failed(await mine.wait(expiring)))

    assert [result.code for result in refused] == [
        ErrorCode.INVALID_INPUT,
        ErrorCode.INVALID_INPUT,
        ErrorCode.ABORTED,
        ErrorCode.INVALID_INPUT,
        ErrorCode.SNAPSHOT_EXPIRED,
    ]
    nobodys = [refused[0].error.replace(foreign, "ID"), refused[1].error.replace("cm_none", "ID")]
    assert nobodys[0] == nobodys[1] == refused[3].error.replace(foreign, "ID")


@requirement("page:validation:persistence")
async def test_22_exec_and_wait_are_kept_through_store_and_replay(tmp_path: Path) -> None:
    """The process is another: a later `CodeMode` over the same file; the conversation goes to a provider again."""
    store, cell = tmp_path / "runs.db", "await yield_control(); return 7"
    asked = ToolUse("t1", "exec", {"code": cell})
    async with CodeMode(store=store, session="s") as before:
        first = await before.answer(asked)
        run_id = json.loads(first.text)["runId"]
    async with CodeMode(store=store, session="s") as after:
        resumed = ToolUse("t2", "wait", {"runId": run_id})
        second = await after.answer(resumed)
        run = to_json(after.trace(run_id))["runs"][0]
        said = (UserMessage("go"), *exchange(asked, first), *exchange(resumed, second))
        body = json.dumps(after.payload("anthropic", ChatRequest("m", said, ())))

    assert (run["source"], run["state"], len(run["waits"])) == (cell, "completed", 1)
    assert json.loads(second.text)["value"] == 7
    assert json.loads(second.text)["telemetry"]["execCount"] == 1
    assert [kept in body for kept in ("t1", "t2", run_id, "yield_control", "completed")] == [True] * 5


def exchange(use: ToolUse, result: ToolResult) -> tuple[AssistantMessage, ToolResult]:
    return AssistantMessage("", (use,)), result


@requirement("page:validation:shown")
async def test_23_trajectory_and_telemetry_show_the_nested_calls(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path) as code_mode:
        await code_mode.exec("await tools.choose_file(); await MCP.shelf.getBook({id: '1'}); await Tickets.list()")
        (run,) = to_json(code_mode.trace())["runs"]
        telemetry = code_mode.telemetry

    ids = ["client:app:choose_file", "mcp:shelf:get_book", "plugin:desk:list_tickets"]
    assert [(call["toolId"], call["state"]) for call in run["calls"]] == [(each, "ok") for each in ids]
    assert (telemetry["callCount"], telemetry["nestedToolIds"]) == (3, ids)
    assert telemetry["visibleTools"] == ["exec", "wait"]


# ---- list for namespaces ----


def described(code_mode: CodeMode) -> str:
    return code_mode.surface()[0].description


@requirement("page:namespaces:prompt")
async def test_n1_the_prompt_is_there_while_the_tools_are(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, tools='deny = ["close_ticket"]') as hidden:
        assert "Tickets" not in described(hidden)
        assert value_of(await hidden.exec("return [typeof Tickets, 'Tickets' in namespaces]")) == ["undefined", False]
    assert "Use Tickets.list({state})" in described(world)


@requirement("page:namespaces:owner")
async def test_n2_tools_of_another_owner_expose_nothing(world: CodeMode, tmp_path: Path) -> None:
    impostors = (MockTool("list_tickets", owner="desk"), MockTool("close_ticket", owner="desk"))
    async with variant(world, tmp_path, *impostors, tools='deny = ["plugin:desk:*"]') as code_mode:
        assert "Tickets" not in described(code_mode)
        assert value_of(await code_mode.exec("return [typeof Tickets, tools.close_ticket !== undefined]")) == [
            "undefined",
            True,
        ]


async def scope_of(folder: Path, monkeypatch: pytest.MonkeyPatch, world: CodeMode, scope: Any) -> Any:
    """Run a cell where the plugin's namespace has this scope."""
    monkeypatch.setattr("tests.support.page_plugin.create_scope", lambda ctx: scope)
    async with variant(world, folder) as code_mode:
        return failed(await code_mode.exec("text('began'); return 1"))


@requirement("page:namespaces:functions")
async def test_n3_a_raw_function_is_rejected_before_any_guest_code(
    world: CodeMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await scope_of(tmp_path, monkeypatch, world, {"deep": [{"list": print}]})

    assert (result.code, result.output) == (ErrorCode.INVALID_CONFIG, ())
    assert "a raw function at Tickets.deep.0.list" in result.error


@requirement("page:namespaces:forged")
async def test_n4_forged_ids_and_paths_lead_nowhere(world: CodeMode) -> None:
    tries = ["Tickets.purge()", "Tickets.change.open()", "namespaces.Desk.list()", "Tickets.__proto__.list()"]
    attempt = "async (code) => { try { await eval(code); return code } catch { return null } }"
    found = value_of(await world.exec(f"return await Promise.all({json.dumps(tries)}.map({attempt}))"))
    ids = ["Tickets\x1flist", "namespace:desk-tickets:list", "desk-tickets", "plugin:other:list_tickets"]
    attempt = "(id) => tools.call(id).catch((e) => e.code)"
    forged = value_of(await world.exec(f"return await Promise.all({json.dumps(ids)}.map({attempt}))"))

    assert (found, forged) == ([None] * 4, ["nested_tool_failed"] * 4)


@requirement("page:namespaces:declared")
async def test_n5_a_path_cannot_target_a_tool_that_was_not_declared(
    world: CodeMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await scope_of(tmp_path, monkeypatch, world, {"purge": namespace_tool("purge")})

    assert result.code is ErrorCode.INVALID_CONFIG
    assert 'a call of "purge" at Tickets.purge' in result.error


@requirement("page:namespaces:shapes")
async def test_n6_nested_objects_and_shared_references_are_whole(world: CodeMode) -> None:
    style = {"colour": "green", "levels": [1, [2, {"deep": True}]]}
    value = value_of(
        await world.exec(
            "const { queue, styles } = Tickets;"
            "return [queue, styles, Tickets === namespaces.Tickets, Object.isFrozen(queue.style)]"
        )
    )

    assert value == [{"name": "support", "style": style}, [style, style], True, True]


@requirement("page:namespaces:executed")
async def test_n7_a_call_is_that_of_a_catalog_tool_and_gives_json(world: CodeMode) -> None:
    result = await world.exec("return await Tickets.list({state: 'new'})")

    assert value_of(result) == [{"number": 7, "state": "new", "opened": "2024-02-29T12:00:00+00:00", "cost": "1.10"}]
    assert "plugin:desk:list_tickets" in result.telemetry["nestedToolIds"]
    assert to_json(world.trace(result.run_id))["runs"][0]["calls"][0]["method"] == "namespace"


@requirement("page:namespaces:caught")
async def test_n8_a_failure_can_be_caught(world: CodeMode) -> None:
    cell = "try { await Tickets.change.close(10) } catch (e) { return [e.code, e.toolId, e.message] }"

    assert value_of(await world.exec(cell)) == [
        "nested_tool_failed",
        "plugin:desk:close_ticket",
        "there is no ticket 10",
    ]


@requirement("page:namespaces:suspended")
async def test_n9_a_suspended_call_goes_on_through_wait(world: CodeMode, tmp_path: Path) -> None:
    async with variant(world, tmp_path, limits=SHORT) as code_mode:
        first = waiting(await code_mode.exec("return [await Tickets.change.close(9), Tickets.queue.name]"))
        assert [(call.method, call.tool_id) for call in first.pending] == [("namespace", "plugin:desk:close_ticket")]
        end = await code_mode.wait(first.run_id, timeout_ms=10_000)

    assert value_of(end) == [{"number": 9, "state": "closed"}, "support"]


class Module:
    """A plugin's module, whose `register` the test chooses."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails

    def register(self, plugin: Plugin) -> None:
        plugin.tool("list", dict, description="All of them.")
        plugin.namespace(
            "items",
            global_name="Items",
            description="Items.",
            required_tool_names=["list"],
            create_scope=lambda ctx: {"list": namespace_tool("list")},
        )
        if self._fails:
            raise RuntimeError("half way")


@requirement("page:namespaces:rollback")
async def test_n10_a_plugin_that_is_rolled_back_leaves_no_namespace() -> None:
    entry = PluginEntry("acme", "acme", None, Where("codemode.toml", "plugin[0]"))
    failing: Any = Plugins(lambda name, where: Module(fails=True))
    with pytest.raises(InvalidConfig, match="half way"):
        failing.load(entry)
    plugins: Any = Plugins(lambda name, where: Module(fails=False))
    plugins.load(entry)
    assert [each.id for each in plugins.registered().namespaces] == ["items"]
    plugins.remove("acme")

    assert failing.registered() == plugins.registered() == Registered()
