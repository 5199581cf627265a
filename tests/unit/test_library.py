"""`CodeMode`: what a program gets of it, through real workers."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

import codemode
from codemode import CodeMode, Completed, Failed, MockTool, Waiting, tool
from codemode.config import ModelRequest
from codemode.core.errors import Internal, InvalidConfig, InvalidInput
from codemode.core.events import Event
from codemode.core.types import CodeModeResult, RunContext
from codemode.library.functions import entry_of, schema_of
from codemode.payload.closed import offered_tools
from codemode.payload.messages import ChatRequest, ToolUse, UserMessage
from codemode.payload.providers import PROVIDERS
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def count(to: int) -> Iterable[int]:
    """Count."""
    yield from range(to)


class Point(TypedDict):
    x: float
    label: NotRequired[str]


def value_of(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


def run_of(result: CodeModeResult) -> str:
    assert isinstance(result, Waiting), result
    return result.run_id


# ---- the package ----


@requirement("library:import:lazy")
def test_importing_the_package_loads_no_part_of_it() -> None:
    program = "import sys, codemode; print([name for name in sys.modules if name.startswith('codemode.')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in codemode.__all__ if getattr(codemode, name) is None] == []
    assert list(codemode.__all__) == sorted(codemode.__all__)
    with pytest.raises(AttributeError, match="'Codemode'"):
        codemode.Codemode  # noqa: B018


# ---- cells ----


@requirement("library:exec:result", "library:tools:function")
async def test_a_cell_calls_a_function_of_the_program() -> None:
    async with CodeMode(tools=[add]) as code_mode:
        result = await code_mode.exec("return await tools.add({a: 40, b: 2})")

    assert value_of(result) == 42


@requirement("library:exec:result")
async def test_whatever_a_cell_does_there_is_a_result() -> None:
    async with CodeMode(tools=[add]) as code_mode:
        thrown = await code_mode.exec("throw new Error('no')")
        empty = await code_mode.exec("")
        typed = await code_mode.exec("const n: number = 1; return n", "typescript")
        wrong = await code_mode.exec("return await tools.add({a: 'x'})")
        unknown = await code_mode.wait("cm_nobody")

    assert value_of(typed) == 1
    assert [type(each) for each in (thrown, empty, wrong, unknown)] == [Failed] * 4


@requirement("library:open:nothing-before")
async def test_it_is_used_only_while_it_is_open() -> None:
    code_mode = CodeMode(tools=[add])
    with pytest.raises(InvalidInput, match="is not open"):
        await code_mode.exec("1")
    async with code_mode:
        assert value_of(await code_mode.exec("1 + 1")) == 2
        with pytest.raises(InvalidInput, match="is open already"):
            await code_mode.__aenter__()
    with pytest.raises(InvalidInput, match="is not open"):
        code_mode.trace()


@requirement("library:open:one-loop")
async def test_another_thread_and_another_loop_are_told_how_to_ask() -> None:
    async with CodeMode(tools=[add]) as code_mode:
        loop = asyncio.get_running_loop()

        def elsewhere() -> Any:
            for use in (code_mode.trace, lambda: code_mode.telemetry, lambda: asyncio.run(code_mode.exec("1"))):
                with pytest.raises(InvalidInput, match="run_coroutine_threadsafe"):
                    use()
            return asyncio.run_coroutine_threadsafe(code_mode.exec("1 + 1"), loop).result(PATIENCE_S)

        assert value_of(await asyncio.to_thread(elsewhere)) == 2
        assert value_of(await code_mode.exec("1 + 2")) == 3


@requirement("library:open:one-loop")
def test_between_two_turns_of_its_loop_it_can_be_looked_at() -> None:
    """As a notebook or an old program does, that drives the loop by hand."""
    loop = asyncio.new_event_loop()
    try:
        code_mode = loop.run_until_complete(CodeMode(tools=[add]).__aenter__())
        assert value_of(loop.run_until_complete(code_mode.exec("1 + 1"))) == 2
        assert code_mode.telemetry["execCount"] == 1
        with pytest.raises(InvalidInput, match="event loop that opened it"):
            asyncio.run(code_mode.exec("1"))
        loop.run_until_complete(code_mode.__aexit__(None, None, None))
    finally:
        loop.close()


async def test_two_tools_of_one_name_are_one_too_many() -> None:
    code_mode = CodeMode(tools=[add, tool(add)])
    with pytest.raises(InvalidConfig, match='the id "client:app:add" is already taken by tool add; rename one'):
        await code_mode.__aenter__()


async def test_it_opens_again_after_it_was_closed() -> None:
    code_mode = CodeMode(tools=[add])
    async with code_mode:
        first = code_mode.agent_run_id
    async with code_mode:
        assert value_of(await code_mode.exec("return await tools.add({a: 1})")) == 2
        assert code_mode.agent_run_id != first


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sesion": "x"}, 'no option "sesion".*session'),
        ({"limits": {"timeoutMs": 5}}, 'no limit "timeoutMs".*timeout_ms'),
        ({"tools": add}, 'takes a list of tools; found "<function add'),
    ],
)
def test_a_misspelt_option_is_told_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        CodeMode(**options)


async def test_a_manifest_that_cannot_be_read_leaves_nothing_open(tmp_path: Path) -> None:
    code_mode = CodeMode(tmp_path / "missing.toml")
    with pytest.raises(InvalidConfig, match=r"missing\.toml"):
        await code_mode.__aenter__()
    with pytest.raises(InvalidInput, match="is not open"):
        await code_mode.exec("1")


async def test_the_tools_of_a_program_stand_beside_those_of_a_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "codemode.toml"
    manifest.write_text('[[tool]]\nname = "one"\ndescription = "One."\nvalue = 1\n')

    async with CodeMode(manifest, tools=[add]) as code_mode:
        assert value_of(await code_mode.exec("return await tools.add({a: await tools.one()})")) == 2
        assert [entry["id"] for entry in code_mode.catalog.entries()] == ["client:app:add", "client:app:one"]
    with pytest.raises(InvalidConfig, match='"client:app:one" is already taken by tool'):
        await CodeMode(manifest, tools=[MockTool("one")]).__aenter__()


async def test_limits_go_over_those_of_the_manifest() -> None:
    async with CodeMode(limits={"max_output_bytes": 1024}) as code_mode:
        result = await code_mode.exec("return 'x'.repeat(5000)")

    assert isinstance(result, Failed)
    assert result.code == "output_limit_exceeded"


async def test_many_cells_at_once_complete_each_with_its_own_value() -> None:
    async def echo(n: int) -> int:
        """Give it back."""
        await asyncio.sleep(0)
        return n

    async with CodeMode(tools=[echo]) as code_mode:
        cells = [code_mode.exec(f"return await tools.echo({{n: {n}}})") for n in range(12)]
        assert [value_of(result) for result in await asyncio.gather(*cells)] == list(range(12))
        assert code_mode.telemetry["callCount"] == 12


# ---- waiting ----


@requirement("library:wait:decides")
async def test_a_person_decides_on_a_call_that_asks() -> None:
    pay = MockTool("pay", returns="paid", approval="ask")
    cell = "try { return await tools.pay({cents: 5}) } catch (error) { return error.message }"
    async with CodeMode(tools=[pay]) as code_mode:
        first, second = await code_mode.exec(cell), await code_mode.exec(cell)
        assert isinstance(first, Waiting)
        assert [(call.tool_id, call.state) for call in first.pending] == [("client:app:pay", "awaiting_approval")]
        assert pay.calls == []

        approved = await code_mode.wait(first.run_id, approve=[first.pending[0].id])
        refused = await code_mode.wait(run_of(second), deny=["1"])

    assert value_of(approved) == "paid"
    assert "was not approved" in value_of(refused)
    assert pay.calls == [{"cents": 5}]


@requirement("approvals:decisions:contradiction")
async def test_a_call_cannot_be_approved_and_denied() -> None:
    """And an id by itself is one id, whatever its digits."""
    pay = MockTool("pay", returns="paid", approval="ask")
    async with CodeMode(tools=[pay]) as code_mode:
        cell = "for (let at = 0; at < 11; at++) await tools.search('x'); return await tools.pay({})"
        waiting = await code_mode.exec(cell)
        assert isinstance(waiting, Waiting)
        with pytest.raises(InvalidInput, match='call "12" is both approved and denied'):
            await code_mode.wait(waiting.run_id, approve=["12"], deny=["12"])

        assert value_of(await code_mode.wait(waiting.run_id, approve=waiting.pending[0].id)) == "paid"


async def test_where_nobody_can_be_asked_the_call_is_refused() -> None:
    async with CodeMode(tools=[MockTool("pay", approval="ask")], may_ask=False) as code_mode:
        result = await code_mode.exec("return await tools.pay()")

    assert isinstance(result, Failed)
    assert "nobody can be asked" in result.error


async def test_a_waiting_run_can_be_aborted() -> None:
    async with CodeMode() as code_mode:
        run_id = run_of(await code_mode.exec("await yield_control(); return 1"))
        assert code_mode.abort(run_id) == "aborted"
        result = await code_mode.wait(run_id)

    assert isinstance(result, Failed)
    assert result.code == "aborted"


@requirement("library:store:file")
async def test_with_a_store_file_a_run_goes_on_in_a_later_session(tmp_path: Path) -> None:
    store = tmp_path / "kept" / "runs.db"
    async with CodeMode(tools=[add], store=store, session="nightly") as code_mode:
        run_id = run_of(await code_mode.exec("await yield_control(); return await tools.add({a: 1})"))
    async with CodeMode(tools=[add], store=store, session="nightly") as code_mode:
        assert value_of(await code_mode.wait(run_id)) == 2


# ---- a model ----


@requirement("library:surface:gate")
async def test_a_model_gets_exec_and_wait_where_code_mode_is_active() -> None:
    async with CodeMode(tools=[add]) as on, CodeMode(tools=[add], enabled=False, beside=on) as off:
        assert [each.name for each in on.surface()] == ["exec", "wait"]
        assert [each.name for each in off.surface()] == ["add"]
        assert [each.name for each in on.surface(request=ModelRequest(raw=True))] == []
        assert on.activation().active
        assert "enabled is not true" in off.activation().reason


@requirement("library:surface:gate")
async def test_a_manifest_decides_where_the_program_does_not(tmp_path: Path) -> None:
    manifest = tmp_path / "codemode.toml"
    manifest.write_text("")
    async with (
        CodeMode(manifest, tools=[add]) as silent,
        CodeMode(manifest, tools=[add], enabled=True, beside=silent) as on,
    ):
        assert [each.name for each in silent.surface()] == ["add"]
        assert [each.name for each in on.surface()] == ["exec", "wait"]


@requirement("payload:closed:changed")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_body_that_a_hook_changed_is_checked_as_it_was_left(provider: str) -> None:
    """Settings of a provider may be added, tools may not, and none may be taken away; off, all may."""

    def cooler(body: dict[str, Any]) -> dict[str, Any]:
        return body | {"temperature": 0}

    def more(body: dict[str, Any]) -> dict[str, Any]:
        return body | {"tools": [*body.get("tools", []), {"type": "web_search", "name": "web_search"}]}

    def grouped(body: dict[str, Any]) -> dict[str, Any]:
        group = [{"name": name, "parameters": {}} for name in ("exec", "wait", "shell")]
        return body | {"tools": [{"functionDeclarations": group}]}

    def fewer(body: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in body.items() if key != "tools"}

    async with CodeMode(tools=[add]) as on, CodeMode(tools=[add], beside=on, enabled=False) as off:
        assert on.payload(provider, change=cooler)["temperature"] == 0
        for change in (more, grouped, fewer):
            with pytest.raises(Internal, match="must offer exactly exec and wait"):
                on.payload(provider, change=change)
            assert off.payload(provider, change=change) == change(off.payload(provider))


@requirement("library:payload:closed")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_request_offers_exactly_exec_and_wait(provider: str) -> None:
    async with CodeMode(tools=[add]) as code_mode:
        chat = ChatRequest("some-model", (UserMessage("Hello!"),), ())
        body, empty = code_mode.payload(provider, chat), code_mode.payload(provider)

    assert sorted(offered_tools(body)) == sorted(offered_tools(empty)) == ["exec", "wait"]
    assert "Hello!" in json.dumps(body)


async def test_an_unknown_provider_is_told_with_those_that_there_are() -> None:
    async with CodeMode(tools=[add]) as code_mode:
        with pytest.raises(InvalidInput, match="openai"):
            code_mode.surface("opena")


@requirement("library:answer:tool-use")
async def test_a_models_tool_calls_are_answered() -> None:
    async with CodeMode(tools=[add]) as code_mode:
        first = await code_mode.answer(ToolUse("t1", "exec", {"code": "await yield_control(); return 7"}))
        run_id = json.loads(first.text)["runId"]
        second = await code_mode.answer(ToolUse("t2", "wait", {"runId": run_id}))
        broken = await code_mode.answer(ToolUse("t3", "exec", "not json"))
        with pytest.raises(InvalidInput, match='no tool "add"'):
            await code_mode.answer(ToolUse("t4", "add", {}))

    assert (first.failed, second.failed, broken.failed) == (False, False, True)
    assert json.loads(second.text)["value"] == 7
    assert second.use.id == "t2"


# ---- what happened ----


@requirement("library:telemetry:agent-run", "library:trace:runs")
async def test_what_happened_is_there_for_one_run_and_for_all() -> None:
    events: list[Event] = []
    async with CodeMode(tools=[add], on_event=events.append) as code_mode:
        first = await code_mode.exec("return await tools.add({a: 1})")
        await code_mode.exec("return await tools.add({a: 2})")
        assert isinstance(first, Completed)
        one, both = code_mode.trace(first.run_id), code_mode.trace()
        counts = code_mode.telemetry

    assert [call.input for run in one.runs for call in run.calls] == [{"a": 1}]
    assert [call.input for run in both.runs for call in run.calls] == [{"a": 1}, {"a": 2}]
    assert (counts["execCount"], counts["callCount"]) == (2, 2)
    assert {event.run_id for event in events} == {run.run_id for run in both.runs}


@requirement("library:events:listener-fails")
async def test_a_listener_that_fails_is_reported_and_harms_no_run() -> None:
    reported: list[dict[str, Any]] = []

    def broken(_event: Event) -> None:
        raise ValueError("the listener broke")

    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with CodeMode(tools=[add], on_event=broken) as code_mode:
        assert value_of(await code_mode.exec("return await tools.add({a: 1})")) is not None
        counts = code_mode.telemetry

    assert counts["callCount"] == 1
    assert {str(context["exception"]) for context in reported} == {"the listener broke"}


@requirement("library:sharing:workers-and-store", "library:sharing:nothing-else")
async def test_sessions_side_by_side_share_workers_and_store_and_nothing_else() -> None:
    async with CodeMode(tools=[add]) as first, CodeMode(tools=[MockTool("secret")], beside=first) as second:
        assert second.shared == first.shared
        waiting = run_of(await first.exec("await yield_control(); return 1"))
        foreign = await second.wait(waiting)
        with pytest.raises(InvalidInput):
            second.trace(waiting)
        tools = [value_of(await each.exec("ALL_TOOLS.map((tool) => tool.name)")) for each in (first, second)]

        assert isinstance(foreign, Failed)
        assert foreign.code == "invalid_input"
        assert tools == [["add"], ["secret"]]
        assert (first.telemetry["execCount"], second.telemetry["execCount"]) == (2, 1)
        assert value_of(await first.wait(waiting)) == 1


async def test_the_one_that_shares_leaves_workers_and_store_to_the_first() -> None:
    async with CodeMode(tools=[add]) as first:
        async with CodeMode(beside=first) as second:
            assert value_of(await second.exec("2")) == 2
        assert value_of(await first.exec("return await tools.add({a: 1})")) == 2


# ---- tools ----


@requirement("library:tools:schema")
@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (None, {}),
        (Any, {}),
        (bytes, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (Iterable[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Annotated[int, "In cents."], {"type": "integer", "description": "In cents."}),
        (
            Point,
            {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": "string"}}, "required": ["x"]},
        ),
    ],
)
def test_a_type_hint_becomes_a_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


@requirement("library:tools:schema")
def test_a_signature_becomes_the_schema_of_an_input() -> None:
    def order(item: str, count: int = 1, note: str | None = None, *, context: RunContext) -> None:
        """Order something.

        This is not for the model.
        """

    entry = tool(order)

    assert entry.description == "Order something."
    assert entry.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "count": {"type": "integer", "default": 1},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["item"],
        "additionalProperties": False,
    }


@requirement("library:tools:schema")
def test_a_function_that_takes_anything_allows_anything() -> None:
    def whole(input: dict[str, Any]) -> None:  # noqa: A002
        """Take the whole input."""

    def more(a: int, unheard: object = object(), **rest: Any) -> None:
        """Take more."""

    assert tool(whole).parameters == {"type": "object"}
    assert tool(more).parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "unheard": {}},
        "required": ["a"],
    }


@requirement("library:tools:function")
def test_what_is_said_of_a_tool_goes_over_what_its_function_says() -> None:
    entry = tool(add, "plus", description="Sum.", owner="math", approval="ask", label="Plus", timeout_ms=50)

    assert (entry.id, entry.description, entry.approval) == ("client:math:plus", "Sum.", "ask")
    assert (entry.label, entry.timeout_ms) == ("Plus", 50)
    assert entry_of(entry) is entry


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda: tool(lambda a: a, "nameless"), "has no description"),
        (lambda: tool(7), "made of a function; found 7"),  # type: ignore[arg-type]
        (lambda: tool(add, owner="a:b"), 'holds no ":"'),
        (lambda: tool(add, approval="maybe"), 'found "maybe"'),  # type: ignore[arg-type]
        (lambda: tool(add, parameters={"type": "array"}), 'must be "object"'),
        (lambda: tool(add, "a\nb"), "printable"),
        (lambda: tool(count), "it is a generator, and a call has one result; return a list"),
    ],
)
def test_a_tool_that_is_not_right_is_told_at_once(given: Any, says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        given()


def test_a_signature_that_cannot_be_read_asks_for_a_schema() -> None:
    def vague(a: "NotThere") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Take what does not exist."""

    with pytest.raises(InvalidConfig, match="give parameters="):
        tool(vague)
    assert tool(vague, parameters={"type": "object"}).parameters == {"type": "object"}


# ---- the double ----


@requirement("library:mock:scripted", "library:mock:calls")
async def test_a_mock_answers_as_scripted_and_remembers_what_it_was_asked() -> None:
    weather = MockTool("weather", answers=[{"sky": "clear"}, TimeoutError("no answer"), lambda given: given["city"]])
    cell = "const said = []; for (const city of ['Oslo', 'Bonn', 'Rome', 'Lima']) "
    cell += "said.push(await tools.weather({city}).catch((error) => error.message)); return said"
    async with CodeMode(tools=[weather]) as code_mode:
        value = value_of(await code_mode.exec(cell))

    assert value == [{"sky": "clear"}, "no answer", "Rome", "weather has no answer for call 4; script one more"]
    assert weather.calls == [{"city": city} for city in ("Oslo", "Bonn", "Rome", "Lima")]


@requirement("library:mock:scripted")
async def test_a_mock_with_one_answer_gives_it_always() -> None:
    async with CodeMode(tools=[MockTool("one", returns=1), MockTool("none")]) as code_mode:
        value = value_of(await code_mode.exec("return [await tools.one(), await tools.one(), await tools.none()]"))

    assert value == [1, 1, None]


async def test_the_input_of_a_mock_is_checked_where_it_has_a_schema() -> None:
    strict = MockTool("strict", parameters={"type": "object", "required": ["id"]})
    async with CodeMode(tools=[strict]) as code_mode:
        result = await code_mode.exec("return await tools.strict({})")

    assert isinstance(result, Failed)
    assert strict.calls == []


@requirement("library:mock:scripted")
async def test_a_mock_asks_functions_of_either_kind_for_its_answers() -> None:
    async def later(given: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return given["n"] + 1

    mock = MockTool("next", answers=[later, lambda given: given["n"] + 2])
    async with CodeMode(tools=[mock]) as code_mode:
        assert value_of(await code_mode.exec("[await tools.next({n: 1}), await tools.next({n: 1})]")) == [2, 3]
