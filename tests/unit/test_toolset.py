"""A manifest's tools and hooks as things that run."""

import asyncio
import json
import sys

import pytest

from codemode.core.errors import NestedToolFailed
from codemode.core.redact import Redactor
from codemode.definitions import Script
from codemode.executor import ApprovalNeeded, Executor
from codemode.hooks import HookEvent, run_hooks
from codemode.manifest import load_manifest
from codemode.tools.scripted import ScriptedTool
from codemode.tools.toolset import Problem, Toolset
from tests.requirements import requirement
from tests.support.tools import make_context

CONTEXT = make_context()
MANIFEST = """
[[tool]]
name = "look_up"
description = "d"
label = "Look up"
source = "plugin"
owner = "shop"
approval = "ask"
timeoutMs = 900
python = "made_up_shop:look_up"
parameters = { type = "object", properties = { id = { type = "string" } } }

[[tool]]
name = "say"
description = "d"
command = ["echo", "${MADE_UP_TOKEN}", "{id}"]
parameters = { type = "object", properties = { id = { type = "string" } } }

[[tool]]
name = "fixed"
description = "d"
value = { ok = true }

[[tool]]
name = "far"
description = "d"
http = { url = "http://127.0.0.1:9/" }

[[hook]]
event = "before_tool_call"
python = "made_up_shop:guard"

[[hook]]
event = "before_tool_call"
timeoutMs = 30000
command = ["PYTHON", "hook.py"]
"""
HOOK = """
import json, sys
event = json.load(sys.stdin)
print(json.dumps({"input": event["input"] | {"by": event["toolName"]}}))
"""
MODULE = """
def look_up(id): return {"id": id}
async def guard(event):
    return {"ask": "large"} if event["input"].get("cents", 0) > 100 else None
"""


@pytest.fixture
async def build(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    made: list[Toolset] = []

    def make(text: str = MANIFEST, module: str = MODULE, learn=lambda secrets: None) -> Toolset:
        (tmp_path / "codemode.toml").write_text(text.replace("PYTHON", sys.executable))
        (tmp_path / "made_up_shop.py").write_text(module)
        (tmp_path / "hook.py").write_text(HOOK)
        made.append(Toolset(load_manifest(tmp_path / "codemode.toml"), learn))
        return made[-1]

    yield make
    for toolset in made:
        await toolset.close()
    sys.modules.pop("made_up_shop", None)


async def test_entries_become_specs_with_all_that_they_say(build, tmp_path):
    look_up, say, fixed, far = build().tools

    assert look_up.id == "plugin:shop:look_up"
    assert (look_up.label, look_up.approval, look_up.timeout_ms) == ("Look up", "ask", 900)
    assert look_up.origin == f"tool[0] in {tmp_path}/codemode.toml"
    assert await look_up.invoke({"id": "7"}, CONTEXT) == {"id": "7"}
    assert await fixed.invoke({}, CONTEXT) == {"ok": True}
    assert say.id == "client:app:say"
    with pytest.raises(NestedToolFailed, match=r"GET http://127\.0\.0\.1:9/ failed"):
        await far.invoke({}, CONTEXT)


@requirement("tools:hooks:python-and-command")
async def test_hooks_are_functions_or_commands(build):
    hooks = build().hooks

    decision = await run_hooks(hooks, HookEvent("a:b:pay", "pay", {"cents": 500}, CONTEXT))

    assert [hook.name for hook in hooks] == ["hook[0]", "hook[1]"]
    assert hooks[1].timeout_ms == 30000
    assert (decision.ask, decision.input) == ("large", {"cents": 500, "by": "pay"})


@requirement("hooks:failures:block")
@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (
            'python = "made_up_shop:nothing"',
            "the hook hook[0] failed: hook[0].python in codemode.toml: made_up_shop has",
        ),
        ('python = "made_up_shop:look_up"', 'answered {"id": {'),
        ('command = ["sh", "-c", "echo no >&2; exit 3"]', 'the hook hook[0] failed: "sh" exited with status 3: no'),
        ('command = ["echo", "fine"]', 'the hook hook[0] answered "fine"; it may answer input, block or ask'),
        ('timeoutMs = 50\ncommand = ["sleep", "60"]', "the hook hook[0] did not answer within 50 ms"),
    ],
)
async def test_a_real_hook_that_is_broken_blocks(build, hook, reason):
    hooks = build(f'[[hook]]\nevent = "before_tool_call"\n{hook}\n').hooks

    decision = await asyncio.wait_for(run_hooks(hooks, HookEvent("a:b:c", "c", {}, CONTEXT)), 60)

    assert reason in (decision.blocked or "")


@requirement("tools:variables:at-use")
async def test_a_secret_that_went_in_is_masked_in_what_a_tool_says(build, monkeypatch):
    monkeypatch.setenv("MADE_UP_TOKEN", "hunter2-hunter2")
    redactor = Redactor()
    say = build(
        '[[tool]]\nname = "say"\ndescription = "d"\ncommand = ["sh", "-c", "echo bad ${MADE_UP_TOKEN} >&2; exit 1"]\n',
        learn=redactor.learn,
    ).tools[0]

    with pytest.raises(NestedToolFailed) as caught:
        await Executor(redactor).call(say, {}, CONTEXT)

    assert str(caught.value) == '"sh" exited with status 1: bad [redacted]'


async def test_no_path_of_the_host_is_in_a_rejection(build, tmp_path, monkeypatch):
    monkeypatch.delenv("MADE_UP_TOKEN", raising=False)
    toolset = build(module="raise OSError('disk')")

    for tool in toolset.tools[:2]:
        with pytest.raises(NestedToolFailed) as caught:
            await Executor(Redactor()).call(tool, {"id": "x"}, CONTEXT, approved=True)
        assert "codemode.toml" in str(caught.value)
        assert str(tmp_path) not in str(caught.value)


@requirement("tools:probe:finds-problems")
async def test_a_probe_names_each_entry_that_cannot_work(build, monkeypatch):
    monkeypatch.delenv("MADE_UP_TOKEN", raising=False)

    problems = build(module="def guard(event): pass").probe()

    assert problems == [
        Problem("plugin:shop:look_up", "tool[0].python in codemode.toml: made_up_shop has no look_up."),
        Problem(
            "client:app:say",
            "tool[1].command[1] in codemode.toml: the variable MADE_UP_TOKEN is not set; set it, "
            "or write ${MADE_UP_TOKEN:-default}.",
        ),
    ]


@requirement("tools:probe:finds-problems")
async def test_a_probe_of_a_sound_manifest_finds_nothing(build, monkeypatch):
    monkeypatch.setenv("MADE_UP_TOKEN", "x")

    assert build().probe() == []


async def test_everything_together_asks_runs_and_answers(build):
    toolset = build()
    executor = Executor(Redactor(), hooks=toolset.hooks[1:])
    look_up = toolset.tools[0]

    with pytest.raises(ApprovalNeeded) as caught:
        await executor.call(look_up, {"id": "7"}, CONTEXT)
    with pytest.raises(NestedToolFailed, match="unexpected keyword argument 'by'"):
        await executor.call(look_up, caught.value.input, CONTEXT, approved=True)
    outcome = await executor.call(look_up, {"id": "7"}, CONTEXT, approved=True)

    assert json.loads(outcome.text) == {"id": "7"}


@requirement("tools:scripted:outcomes")
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (Script("value", {"a": 1}), {"a": 1}),
        (Script("value", "later", delay_ms=1), "later"),
        (Script("hugeBytes", 5), "xxxxx"),
    ],
)
async def test_a_scripted_tool_plays_its_value(script, expected):
    assert await ScriptedTool(script)({}, CONTEXT) == expected


@requirement("tools:scripted:outcomes")
async def test_a_scripted_tool_plays_its_error_and_its_non_json():
    with pytest.raises(NestedToolFailed, match="the line is busy"):
        await ScriptedTool(Script("error", "the line is busy"))({}, CONTEXT)

    assert type(await ScriptedTool(Script("nonJson", True))({}, CONTEXT)) is object


async def test_a_scripted_tool_is_never_larger_than_a_machine_can_bear(monkeypatch):
    monkeypatch.setattr("codemode.tools.scripted.MAX_MCP_MESSAGE_BYTES", 10)

    assert await ScriptedTool(Script("hugeBytes", 10**12))({}, CONTEXT) == "x" * 10


@requirement("tools:scripted:fail-nth")
async def test_a_scripted_tool_fails_at_one_call():
    tool = ScriptedTool(Script("value", 1, fail_nth=2))

    assert await tool({}, CONTEXT) == 1
    with pytest.raises(NestedToolFailed, match="scripted failure of call 2"):
        await tool({}, CONTEXT)
    assert await tool({}, CONTEXT) == 1
