"""Recordings: what is written down of nested calls, and how they are answered from it."""

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codemode import CodeMode, Completed, Failed, MockTool, Waiting
from codemode.config import CodeModeConfig
from codemode.core.errors import InvalidConfig, NestedToolFailed, RuntimeUnavailable
from codemode.core.events import CallStarted, RunEnded, WaitStarted
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import CodeModeResult, RunContext, ToolSpec
from codemode.executor import Executor
from codemode.recording.file import Lead, RecordedCall, RecordedMapping, Recording, check_recording, load_recording
from codemode.recording.player import Player
from codemode.recording.recorder import Recorder
from tests.requirements import requirement

pytestmark = pytest.mark.usefixtures("no_kill")
CONTEXT = RunContext("main", "default", "", "cm_run", "ar_run")
SHOWN = (
    '{"type":"namespace","run":1,"id":"d","plugin":"p","globalName":"D","description":"","tools":["t"],'
    '"scope":%s,"calls":[]}'
)
ADD = {
    "type": "tool",
    "id": "client:app:add",
    "name": "add",
    "description": "Adds.",
    "source": "client",
    "owner": "app",
    "parameters": {"type": "object"},
}


async def echo(given: dict[str, Any], _context: RunContext) -> Any:
    """A tool that returns its input."""
    return given


def value_of(result: CodeModeResult) -> Any:
    assert isinstance(result, Completed), result
    return result.value


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def calls_of(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines_of(path) if line.get("type") == "call"]


def player_of(*calls: RecordedCall, redactor: Redactor | None = None) -> Player:
    return Player(Recording(CodeModeConfig(True), (ADD,), calls), "calls.jsonl", redactor or Redactor())


def called(number: int, given: Mapping[str, Any], value: Any = None, **more: Any) -> RecordedCall:
    return RecordedCall(number, "client:app:add", given, value, **more)


# ---- recording ----


@requirement("recording:format:diffable")
async def test_the_same_run_recorded_twice_gives_the_same_file(tmp_path: Path) -> None:
    async def slow(n: int) -> int:
        """Answer the later the smaller n is."""
        await asyncio.sleep(0.02 * (3 - n))
        return n

    for name in ("one", "two"):
        async with CodeMode(tools=[slow], record=tmp_path / name) as code_mode:
            value_of(await code_mode.exec("return await Promise.all([0, 1, 2].map((n) => tools.slow({n})))"))

    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text()
    assert [(line["call"], line["value"]) for line in calls_of(tmp_path / "one")] == [(1, 0), (2, 1), (3, 2)]


@requirement("recording:format:checked")
async def test_texts_may_hold_what_other_programs_take_for_the_end_of_a_line(tmp_path: Path) -> None:
    path, cell = tmp_path / "calls.jsonl", "return await tools.same({text: 'a\\u2028b\\u0085c\\r\\n\\ud800'})"
    async with CodeMode(tools=[MockTool("same", returns=lambda given: given["text"])], record=path) as code_mode:
        recorded = value_of(await code_mode.exec(cell))
    async with CodeMode(replay=path) as code_mode:
        assert value_of(await code_mode.exec(cell)) == recorded == "a\u2028b\x85c\r\n\ufffd"


@requirement("recording:format:diffable")
async def test_a_recording_begins_with_settings_and_tools(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    labelled = MockTool("add", label="Adder", description="Adds.")
    async with CodeMode(tools=[labelled], record=path, limits={"max_pending_tool_calls": 3}) as code_mode:
        value_of(await code_mode.exec("1"))

    head, tool = lines_of(path)
    settings = {"languages": ["javascript", "typescript"], "maxPendingToolCalls": 3}
    assert head == {"recording": 1, "codeMode": settings, "variables": []}
    assert tool == ADD | {"label": "Adder"}
    assert load_recording(path).config.limits == Limits(max_pending_tool_calls=3)


@requirement("recording:record:refusals")
async def test_what_failed_or_was_refused_is_recorded_as_the_cell_saw_it(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    tools = [
        MockTool("broken", returns=ValueError("unhappy")),
        MockTool("never", approval="always-deny"),
        MockTool("strict", parameters={"type": "object", "required": ["id"]}),
    ]
    cell = "const said = []; for (const tool of ['broken', 'never', 'strict']) "
    cell += "said.push(await tools.call(tool).catch((error) => error.message)); return said"
    async with CodeMode(tools=tools, record=path) as code_mode:
        said = value_of(await code_mode.exec(cell))
    async with CodeMode(replay=path) as replayed:
        again = value_of(await replayed.exec(cell))

    assert [line["error"] for line in calls_of(path)] == said == again
    assert said[0] == "unhappy"


@requirement("recording:record:refusals")
async def test_a_call_that_is_decided_later_is_recorded_when_it_was_decided(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    cell = "return await tools.pay({cents: 5})"
    async with CodeMode(tools=[MockTool("pay", returns="paid", approval="ask")], record=path) as code_mode:
        waiting = await code_mode.exec(cell)
        assert isinstance(waiting, Waiting)
        assert calls_of(path) == []
        assert value_of(await code_mode.wait(waiting.run_id, approve=["1"])) == "paid"
    async with CodeMode(replay=path) as replayed:
        assert value_of(await replayed.exec(cell)) == "paid"

    assert [(line["tool"], line["value"]) for line in calls_of(path)] == [("client:app:pay", "paid")]


@requirement("recording:record:refusals")
async def test_a_call_that_was_interrupted_has_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    async def forever() -> None:
        """Never answer."""
        await asyncio.Event().wait()

    async with CodeMode(tools=[forever], record=path, limits={"timeout_ms": 200}) as code_mode:
        waiting = await code_mode.exec("return await tools.forever()")
        assert isinstance(waiting, Waiting)
        code_mode.abort(waiting.run_id)

    assert calls_of(path) == []


@requirement("recording:record:waits")
async def test_a_call_that_settles_after_its_run_waits_is_recorded_too(tmp_path: Path) -> None:
    path, gate, done = tmp_path / "calls.jsonl", asyncio.Event(), asyncio.Event()

    async def late() -> str:
        """Answer when the test says so."""
        await gate.wait()
        return "late"

    def on_event(event: Any) -> None:
        if type(event).__name__ == "CallSettled":
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, done.set)

    async with CodeMode(tools=[late], record=path, limits={"timeout_ms": 300}, on_event=on_event) as code_mode:
        assert isinstance(await code_mode.exec("return await tools.late()"), Waiting)
        gate.set()
        async with asyncio.timeout(60):
            await done.wait()
        assert [line["value"] for line in calls_of(path)] == ["late"]


@requirement("recording:record:waits")
async def test_a_wait_in_another_session_goes_on_with_the_file(tmp_path: Path) -> None:
    path, store = tmp_path / "calls.jsonl", tmp_path / "runs.db"
    cell = "const a = await tools.one(); await yield_control(); return [a, await tools.one()]"
    async with CodeMode(tools=[MockTool("one", 1)], record=path, store=store, session="s") as first:
        waiting = await first.exec(cell)
        assert isinstance(waiting, Waiting)
    async with CodeMode(tools=[MockTool("one", 2)], record=path, store=store, session="s") as second:
        assert value_of(await second.wait(waiting.run_id)) == [1, 2]

    assert [line["value"] for line in calls_of(path)] == [1, 2]


@requirement("recording:record:together")
async def test_what_two_processes_hear_of_one_run_is_all_in_the_file(tmp_path: Path) -> None:
    """The first one carries a call on while its run waits; the second one goes on with the run."""
    path, tool = tmp_path / "calls.jsonl", ToolSpec("client:app:echo", "echo", "", "client", "app", {}, echo)

    def recorder() -> Recorder:
        return Recorder(Executor(Redactor()), path, [{"recording": 1}], Redactor())

    async def hear(one: Recorder, number: int) -> None:
        await one.call(tool, {"n": number}, CONTEXT._replace(call_id=str(number)))

    def tell(one: Recorder) -> None:
        one.heed(RunEnded(CONTEXT.run_id, 1.0, "waiting", None, None, 1.0))

    path.write_text('{"recording":1}\n{"type":"call","call":9,"tool":"client:app:old","input":{},"value":null}\n')
    first = recorder()
    await hear(first, 1)
    tell(first)
    second = recorder()
    second.heed(WaitStarted(CONTEXT.run_id, 2.0, "wait_1"))
    await hear(second, 3)
    await hear(first, 2)
    tell(second)
    await hear(first, 4)
    await hear(second, 5)

    assert [line["input"]["n"] for line in calls_of(path)] == [1, 2, 3, 4, 5]


@requirement("recording:record:redacted", "recording:replay:secrets")
async def test_secrets_are_masked_and_what_was_masked_finds_its_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESAME", "open-sesame-4711")
    (tmp_path / "codemode.toml").write_text(
        '[[tool]]\nname = "key"\ndescription = "Gives a secret."\ncommand = ["echo", "${SESAME}"]\n'
    )
    path = tmp_path / "calls.jsonl"
    door = MockTool("door", returns=lambda given: f"opened with {given['with']}")
    cell = "const key = (await tools.key()).trim(); return await tools.door({with: key})"
    async with CodeMode(tmp_path / "codemode.toml", tools=[door], record=path) as code_mode:
        assert value_of(await code_mode.exec(cell)) == "opened with open-sesame-4711"
    monkeypatch.delenv("SESAME")
    async with CodeMode(replay=path) as replayed:
        assert value_of(await replayed.exec(cell)) == "opened with [redacted]"

    assert "sesame-4711" not in path.read_text()


async def test_a_file_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    one = MockTool("one")
    with pytest.raises(InvalidConfig, match=r"cannot write the recording .*No such file"):
        await CodeMode(tools=[one], record=tmp_path / "missing" / "calls.jsonl").__aenter__()
    assert one.calls == []


async def test_a_recording_replaces_no_folder_and_no_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(InvalidConfig, match=f"cannot write the recording {path}: it is no file"):
            await CodeMode(tools=[MockTool("one")], record=path).__aenter__()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@requirement("recording:record:replaces-own")
async def test_a_recording_replaces_only_a_recording(tmp_path: Path) -> None:
    """`--record report.js` is soon typed for `report.js --record`."""
    cell = tmp_path / "report.js"
    cell.write_text("return 1")
    with pytest.raises(InvalidConfig, match=f"cannot write the recording {cell}: a file that is no recording is there"):
        await CodeMode(tools=[MockTool("one")], record=cell).__aenter__()
    assert cell.read_text() == "return 1"


async def test_a_recording_that_is_written_again_keeps_its_mode_and_the_link_to_it(tmp_path: Path) -> None:
    file, link = tmp_path / "calls.jsonl", tmp_path / "link.jsonl"
    file.touch(0o600)
    link.symlink_to(file)
    async with CodeMode(tools=[MockTool("one", returns=1)], record=link) as code_mode:
        value_of(await code_mode.exec("return await tools.one()"))

    assert link.is_symlink()
    assert [call["value"] for call in calls_of(file)] == [1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@requirement("recording:record:no-harm")
async def test_a_run_keeps_its_result_where_the_recording_cannot_be_written_any_more(tmp_path: Path) -> None:
    said: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: said.append(about["message"]))
    folder = tmp_path / "folder"
    folder.mkdir()
    away = MockTool("away", returns=lambda _: folder.rmdir())
    async with CodeMode(tools=[away], record=folder / "calls.jsonl") as code_mode:
        result = await code_mode.exec("await tools.away(); return 1")

    assert value_of(result) == 1
    assert said == [f"cannot write the recording {folder / 'calls.jsonl'}: No such file or directory"]


def test_a_disk_that_takes_nothing_any_more_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    recorder = Recorder(Executor(Redactor()), folder / "calls.jsonl", [{"recording": 1}], Redactor())
    folder.rmdir()
    with pytest.raises(RuntimeUnavailable, match="cannot write the recording"):
        recorder.save()


# ---- replaying ----


@requirement("recording:replay:in-order")
def test_the_same_call_gets_its_answers_in_the_recorded_order() -> None:
    player = player_of(called(1, {"n": 1}, "first"), called(2, {"n": 2}, "other"), called(3, {"n": 1}, "second"))

    given = [player.answer("client:app:add", {"n": n}, CONTEXT) for n in (1, 1, 2)]

    assert given == ["first", "second", "other"]


@requirement("recording:replay:strict")
@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([called(1, {"n": 1}, 1)], "once, and is asked once more"),
        ([called(1, {"n": 7}, 1), called(2, {"n": 7}, 1)], r'recorded of this tool: {"n": 7} \(2 times\)'),
        ([called(n, {"n": n}, 1) for n in range(2, 10)], r"and 3 more"),
        ([called(1, {"n": "x" * 500}, 1)], r'"xxx+… \(once\)'),
        ([RecordedCall(1, "client:app:other", {})], "no call of this tool was recorded. Recorded: client:app:other"),
        ([], "Recorded: nothing"),
    ],
)
def test_a_call_that_was_not_recorded_fails_and_says_what_was(calls: list[RecordedCall], says: str) -> None:
    player = player_of(*calls)
    if any(call.input == {"n": 1} for call in calls):
        player.answer("client:app:add", {"n": 1}, CONTEXT)
    with pytest.raises(NestedToolFailed, match=says) as failure:
        player.answer("client:app:add", {"n": 1}, CONTEXT)

    assert failure.value.tool_id == "client:app:add"
    assert "calls.jsonl has no answer for client:app:add with" in failure.value.message


@requirement("recording:replay:strict")
async def test_in_a_cell_an_unrecorded_call_rejects_and_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    async with CodeMode(tools=[MockTool("add", 1)], record=path) as code_mode:
        value_of(await code_mode.exec("return await tools.add({n: 1})"))
    async with CodeMode(replay=path) as replayed:
        result = await replayed.exec("return await tools.add({n: 2})")

    assert isinstance(result, Failed)
    assert result.code == "nested_tool_failed"
    assert '{"n": 1} (once)' in result.error


@requirement("recording:replay:across-processes")
def test_a_later_process_goes_on_after_the_answers_that_were_given() -> None:
    player = player_of(called(1, {"n": 1}, "first"), called(2, {"n": 1}, "second"))
    events = [
        CallStarted("cm_run", 0.0, 1, "call", "client:app:add", {"n": 1}),
        CallStarted("cm_run", 0.0, 2, "search", None, {"query": "add"}),
    ]
    player.recall = lambda run_id: events if run_id == "cm_run" else []

    assert player.answer("client:app:add", {"n": 1}, CONTEXT) == "second"


@requirement("recording:replay:across-processes")
async def test_a_replayed_run_is_resumed_on_its_recording_without_being_told(tmp_path: Path) -> None:
    path, store = tmp_path / "calls.jsonl", tmp_path / "runs.db"
    cell = "const a = await tools.one(); await yield_control(); return [a, await tools.one()]"
    async with CodeMode(tools=[MockTool("one", answers=[1, 2])], record=path) as recorded:
        first = await recorded.exec(cell)
        assert isinstance(first, Waiting)
        assert value_of(await recorded.wait(first.run_id)) == [1, 2]
    async with CodeMode(replay=path, store=store, session="s") as begun:
        waiting = await begun.exec(cell)
        assert isinstance(waiting, Waiting)
    async with CodeMode(path, store=store, session="s") as resumed:  # a recording stands for a manifest
        assert value_of(await resumed.wait(waiting.run_id)) == [1, 2]


@requirement("recording:replay:servers")
async def test_search_and_describe_answer_from_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    cell = "return [await tools.search('orders'), await tools.describe('client:app:orders'), ALL_TOOLS]"
    tool = MockTool("orders", description="Lists orders.", parameters={"type": "object", "title": "Orders"})
    async with CodeMode(tools=[tool], record=path) as code_mode:
        seen = value_of(await code_mode.exec(cell))
    async with CodeMode(replay=path) as replayed:
        assert value_of(await replayed.exec(cell)) == seen
        assert replayed.telemetry["catalogSize"] == 1


# ---- namespaces ----

DESK = """
import os

SEEN = []

def close(number, note=""):
    "Close a ticket."
    return f"closed {number} {note}"

def tickets():
    "List the tickets."
    return [7, 8]

def create_scope(context):
    SEEN.append(context.run_id)
    return {
        "cells": len(SEEN),
        "key": os.environ.get("SESAME", "none"),
        "all": namespace_tool("tickets"),
        "change": [{"close": namespace_tool("close", lambda args: {"number": args[0], "note": context.session_key})}],
    }

from codemode.plugins import namespace_tool

def register(plugin):
    plugin.tool("tickets", tickets, description="Lists the tickets.")
    plugin.tool("close", close, description="Closes a ticket.")
    plugin.namespace("desk", global_name="Desk", description="The desk.", prompt="Use Desk.all().",
                     required_tool_names=["tickets", "close"], create_scope=create_scope)
"""
DESK_CELL = """
const wrong = await Desk.change[0].close().catch((error) => [error.code, error.message]);
return [Desk.cells, namespaces.Desk.key, await Desk.all(), await Desk.change[0].close(7), wrong];
"""


def desk(folder: Path, name: str) -> Path:
    """Write a manifest with a plugin of this name, which is imported once in a process."""
    (folder / f"{name}.py").write_text(DESK)
    (folder / "codemode.toml").write_text(f'[[plugin]]\nid = "front"\nmodule = "{name}"\n')
    return folder / "codemode.toml"


@requirement("recording:record:namespaces", "recording:replay:namespaces")
async def test_a_namespace_is_replayed_without_its_plugin(tmp_path: Path) -> None:
    """Its values, its calls, what its mappers made or refused, its words in the description of exec."""
    path = tmp_path / "calls.jsonl"
    async with CodeMode(desk(tmp_path, "desk_once"), record=path, session="till", enabled=True) as code_mode:
        seen = value_of(await code_mode.exec(DESK_CELL))
        ids, words = code_mode.telemetry["nestedToolIds"], code_mode.surface()[0].description
    recorded = path.read_text()
    async with CodeMode(replay=path, enabled=True) as replayed:
        assert value_of(await replayed.exec(DESK_CELL)) == seen
        assert replayed.telemetry["nestedToolIds"] == ids
        assert replayed.surface()[0].description == words

    assert seen[:4] == [1, "none", [7, 8], "closed 7 till"]
    assert seen[4][0] == "nested_tool_failed"
    assert "Desk.change.0.close cannot take these arguments" in seen[4][1]
    assert "The desk." in words
    assert [line["type"] for line in map(json.loads, recorded.splitlines()[1:])] == [
        "tool",
        "tool",
        "namespace",
        "mapped",
        "mapped",
        "call",
        "call",
    ]


@requirement("recording:replay:strict", "recording:replay:namespaces")
async def test_a_use_of_a_namespace_that_was_not_recorded_fails_and_says_what_was(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    async with CodeMode(desk(tmp_path, "desk_strict"), record=path) as code_mode:
        await code_mode.exec("return [await Desk.change[0].close(7), await Desk.all()]")
    said = "const said = (promise) => promise.catch((error) => error.message);"
    tries = "Desk.change[0].close(8), Desk.all({state: 'new'}), Desk.all(), Desk.all()"
    async with CodeMode(replay=path) as replayed:
        found = value_of(await replayed.exec(f"{said} return Promise.all([{tries}].map(said))"))

    assert found[0] == "calls.jsonl has no answer for Desk.change.0.close with [8]; recorded: [7] (once)"
    assert "has no answer for plugin:front:tickets with" in found[1]
    assert found[2] == [7, 8]
    assert "is asked once more" in found[3]


@requirement("recording:record:redacted", "recording:replay:secrets", "recording:record:namespaces")
async def test_what_a_namespace_shows_and_takes_is_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A masked argument finds the input that a mapper made of the real one."""
    monkeypatch.setenv("SESAME", "open-sesame-4711")
    path = tmp_path / "calls.jsonl"
    manifest = desk(tmp_path, "desk_secret")
    with manifest.open("a") as file:
        file.write('[[tool]]\nname = "needs"\ndescription = "Needs it."\ncommand = ["echo", "${SESAME}"]\n')
    cell = "return [Desk.key, await Desk.change[0].close(Desk.key)]"
    async with CodeMode(manifest, record=path, session="till") as code_mode:
        assert value_of(await code_mode.exec(cell)) == ["open-sesame-4711", "closed open-sesame-4711 till"]
    monkeypatch.delenv("SESAME")
    async with CodeMode(replay=path) as replayed:
        assert value_of(await replayed.exec(cell)) == ["[redacted]", "closed [redacted] till"]

    assert "sesame-4711" not in path.read_text()


@requirement("recording:replay:namespaces")
async def test_each_run_sees_what_the_run_of_its_number_saw(tmp_path: Path) -> None:
    """A scope that changes from run to run is written for each; beyond the last there is no other."""
    path = tmp_path / "calls.jsonl"
    async with CodeMode(desk(tmp_path, "desk_runs"), record=path) as code_mode:
        recorded = [value_of(await code_mode.exec("return Desk.cells")) for _ in range(2)]
    async with CodeMode(replay=path) as replayed:
        assert [value_of(await replayed.exec("return Desk.cells")) for _ in range(3)] == [1, 2, 2]

    assert recorded == [1, 2]


@requirement("recording:record:waits", "recording:record:namespaces", "recording:replay:across-processes")
async def test_a_run_with_namespaces_is_recorded_and_replayed_over_several_sessions(tmp_path: Path) -> None:
    """The wait that records reopens what the exec opened; the wait that replays needs no plugin either."""
    path, store, manifest = tmp_path / "calls.jsonl", tmp_path / "runs.db", desk(tmp_path, "desk_waits")
    cell = "const a = await Desk.change[0].close(1); await yield_control(); return [a, await Desk.change[0].close(2)]"
    async with CodeMode(manifest, record=path, store=store, session="s") as code_mode:
        waiting = await code_mode.exec(cell)
        assert isinstance(waiting, Waiting)
    async with CodeMode(manifest, record=path, store=store, session="s") as code_mode:
        assert value_of(await code_mode.wait(waiting.run_id)) == ["closed 1 s", "closed 2 s"]
    async with CodeMode(replay=path, store=store, session="r") as replayed:
        waiting = await replayed.exec(cell)
        assert isinstance(waiting, Waiting)
    async with CodeMode(path, store=store, session="r") as resumed:
        assert value_of(await resumed.wait(waiting.run_id)) == ["closed 1 s", "closed 2 s"]


@requirement("recording:replay:namespaces")
def test_arguments_that_led_to_several_inputs_lead_to_the_one_that_has_an_answer_left() -> None:
    lead = Lead(("Sum", "add"), "add", is_mapped=True)
    mappings = tuple(RecordedMapping(lead.path, [], {"n": n}) for n in (1, 2))
    calls = (called(1, {"n": 1}, "first"), called(2, {"n": 2}, "second"))
    recording = Recording(CodeModeConfig(True), (ADD,), calls, mappings=mappings)
    player = Player(recording, "calls.jsonl", Redactor())
    given = []
    for _ in range(2):
        given.append(player.map(lead, "client:app:add", []))
        player.answer("client:app:add", given[-1], CONTEXT)

    assert given == [{"n": 1}, {"n": 2}]
    assert player.map(lead, "client:app:add", []) == {"n": 1}


# ---- the file ----


@requirement("recording:replay:no-manifest")
@pytest.mark.parametrize(("text", "says"), [(None, "there is no recording"), ("[tools]\n", "is no recording")])
def test_only_a_recording_is_replayed(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "calls.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidConfig, match=says):
        check_recording(path)


@requirement("recording:format:checked")
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['{"recording":2}'], "calls.jsonl:1: found format 2; this codemode reads 1"),
        (['{"recording":1,"codeMode":{"timeoutms":5}}'], "timeoutms.*timeoutMs"),
        (['{"recording":1}', "{"], "calls.jsonl:2: not JSON"),
        (['{"recording":1}', "[" * 100_000], "calls.jsonl:2: not JSON"),
        (['{"recording":1}', "7"], "calls.jsonl:2: found no object"),
        (['{"recording":1}', "", '{"type":"cal"}'], 'type in .*calls.jsonl:3: found "cal"; allowed'),
        (['{"recording":1}', '{"type":"tool","id":"x"}'], "name"),
        (['{"recording":1}', '{"type":"call","call":1,"tool":"x","input":{}}'], "either a value or an error"),
        (['{"recording":1}', '{"type":"mapped","path":["a"],"arguments":[]}'], "either an input or an error"),
        (['{"recording":1}', SHOWN % '["o",{"a":["x"]}]'], "scope in .*calls.jsonl:2: allowed is"),
    ],
)
def test_a_line_that_is_not_right_is_named(tmp_path: Path, lines: list[str], says: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidConfig, match=says):
        load_recording(path)


@requirement("recording:format:checked")
def test_a_recording_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"recording":1}\n\xff')
    for each in (path, tmp_path):
        with pytest.raises(InvalidConfig, match="cannot read the recording"):
            load_recording(each)
