"""The bridge: every id and path is resolved on the host, every answer is JSON or a rejection."""

import json
from typing import Any

import pytest

from codemode.bridge import Bridge, Target, reject
from codemode.core.errors import InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES, Limits
from codemode.core.types import PATH_SEPARATOR, BridgeCall, GuestScope, NamespaceTarget, RunContext
from codemode.executor import Executor
from tests.requirements import requirement
from tests.support.sessions import tool, toolbox

CONTEXT = RunContext("main", "default", "", "cm_x", "ar_x", "1")


async def echo(**given: Any) -> Any:
    return given


async def fail(**given: Any) -> Any:
    raise OSError("disk on fire")


def bridge(scope: GuestScope | None = None, limits: Limits | None = None) -> Bridge:
    box = toolbox([tool("echo", echo), tool("fail", fail), tool("other_echo", echo)], scope=scope or GuestScope())
    return Bridge(box.catalog, Executor(box.redactor), limits or Limits())


def issues(path: str = f"Issues{PATH_SEPARATOR}list") -> GuestScope:
    def first(arguments: list[Any]) -> Any:
        if len(arguments) > 1:
            raise InvalidInput("Issues.list takes one argument")
        return arguments[0] if arguments else {}

    return GuestScope(targets={path: NamespaceTarget(tool("echo", echo), first)})


@requirement("bridge:call:plain-value")
async def test_a_call_gives_the_value_of_its_tool() -> None:
    call = BridgeCall(7, "call", "client:app:echo", {"a": 1})
    served = bridge()
    target = served.resolve(call)

    assert target.tool.id == "client:app:echo"
    assert await served.carry_out(call, target, CONTEXT) == ('{"a":1}',)


@requirement("bridge:call:rejection")
async def test_a_tool_that_fails_is_a_rejection_with_four_fields() -> None:
    call = BridgeCall(7, "call", "fail", {})
    served = bridge()
    with pytest.raises(NestedToolFailed) as failed:
        await served.carry_out(call, served.resolve(call), CONTEXT)
    reply = reject(call.id, failed.value)

    assert (reply.id, reply.ok) == (7, False)
    assert json.loads(reply.text) == {
        "name": "Error",
        "message": "disk on fire",
        "code": "nested_tool_failed",
        "toolId": "client:app:fail",
    }


@requirement("bridge:call:resolved-on-host")
@pytest.mark.parametrize("target", ["", "client:app:missing", "__proto__", "\x00"])
def test_an_id_that_the_catalog_does_not_have_is_refused(target: str) -> None:
    with pytest.raises(NestedToolFailed):
        bridge().resolve(BridgeCall(1, "call", target, {}))


@requirement("bridge:namespace:forged")
@pytest.mark.parametrize(
    ("path", "payload", "message"),
    [
        ("Issues", {"args": []}, 'at "Issues"'),
        (f"Issues{PATH_SEPARATOR}lost", {"args": []}, 'Did you mean "Issues.list"?'),
        (f"Issues{PATH_SEPARATOR}list{PATH_SEPARATOR}call", {"args": []}, "nothing can be called"),
        (f"Issues{PATH_SEPARATOR}list", {}, "no list of arguments"),
        (f"Issues{PATH_SEPARATOR}list", {"args": {}}, "no list of arguments"),
        (f"Issues{PATH_SEPARATOR}list", {"args": [1, 2]}, "takes one argument"),
    ],
)
def test_a_forged_path_or_argument_is_refused(path: str, payload: Any, message: str) -> None:
    with pytest.raises(NestedToolFailed, match=message.replace("?", r"\?")):
        bridge(issues()).resolve(BridgeCall(1, "namespace", path, payload))


async def test_a_namespace_call_maps_its_arguments_and_runs_the_tool() -> None:
    call = BridgeCall(3, "namespace", f"Issues{PATH_SEPARATOR}list", {"args": [{"open": True}]})
    served = bridge(issues())

    assert (await served.carry_out(call, served.resolve(call), CONTEXT)).text == '{"open":true}'


@requirement("bridge:search:limits")
def test_a_search_is_clamped_to_the_limits_of_its_run() -> None:
    def found(limits: Limits, wanted: int | None) -> int:
        reply = bridge(limits=limits).look_up(BridgeCall(1, "search", "tool", wanted))
        return len(json.loads(reply.text)["entries"])

    assert found(Limits(search_default_limit=2), None) == 2
    assert found(Limits(max_search_limit=1), 50) == 1


def test_a_search_with_a_forged_limit_is_a_rejection() -> None:
    reply = bridge().look_up(BridgeCall(1, "search", "echo", 0))

    assert not reply.ok
    assert "positive whole number" in json.loads(reply.text)["message"]


@requirement("bridge:describe:rejects")
def test_describing_gives_the_schema_or_a_rejection() -> None:
    served = bridge()
    known, unknown = (served.look_up(BridgeCall(1, "describe", id_)) for id_ in ("client:app:echo", "nope"))

    assert json.loads(known.text)["parameters"] == {"type": "object"}
    assert (unknown.ok, json.loads(unknown.text)["toolId"]) == (False, "nope")


@requirement("bridge:replies:bounded")
def test_an_answer_that_is_too_large_is_a_rejection_naming_both_sizes() -> None:
    large = tool("large", echo, parameters={"type": "object", "description": "x" * MAX_BRIDGE_BYTES})
    box = toolbox([large])
    reply = Bridge(box.catalog, Executor(box.redactor), Limits()).look_up(BridgeCall(1, "describe", "large"))

    assert not reply.ok
    assert f"takes {MAX_BRIDGE_BYTES}" in json.loads(reply.text)["message"]


@requirement("bridge:recall:gone")
def test_a_stored_call_is_recalled_by_its_id_if_the_tool_is_still_there() -> None:
    served = bridge()
    target = served.recall("client:app:echo", {"a": 1})

    assert isinstance(target, Target)
    assert target.input == {"a": 1}
    with pytest.raises(NestedToolFailed, match="not available any more"):
        served.recall("client:app:gone", {})


def test_a_rejection_is_json_whatever_the_message_holds() -> None:
    reply = reject(1, NestedToolFailed('"quoted"\n\u2028 é', "client:app:x"))

    assert json.loads(reply.text)["message"] == '"quoted"\n\u2028 é'
