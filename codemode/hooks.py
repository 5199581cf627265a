"""`before_tool_call`: what an operator's hook may say about a call before it runs.

A hook sees the event, and lets the call pass, rewrites its input, blocks it with a reason or
asks for a person's approval. Hooks run in the manifest's order, each on the input that the one
before it left. A hook that fails, hangs or answers nonsense blocks the call: a guard that is
down is not an open door.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from codemode.core.deadline import Late, finish_in_time, is_cancelled
from codemode.core.errors import words_of
from codemode.core.limits import HOOK_TIMEOUT_MS
from codemode.core.tables import shown
from codemode.core.types import Json, RunContext

_ANSWERS = frozenset({"input", "block", "ask"})


class HookEvent(NamedTuple):
    """A call that is about to be made.

    `tool_kind` and `tool_input_kind` are set by the host for the outer `exec` only, from the
    tool's identity and never from its name.
    """

    tool_id: str
    tool_name: str
    input: Json
    context: RunContext
    tool_kind: str | None = None
    tool_input_kind: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return `{event, toolId, toolName, input, context: {agentId, …}, toolKind?, toolInputKind?}`."""
        context = self.context
        fields: dict[str, Json] = {
            "event": "before_tool_call",
            "toolId": self.tool_id,
            "toolName": self.tool_name,
            "input": self.input,
            "context": {
                "agentId": context.agent_id,
                "sessionKey": context.session_key,
                "sessionId": context.session_id,
                "runId": context.run_id,
                "agentRunId": context.agent_run_id,
                "callId": context.call_id,
                "sender": context.sender,
                "channel": context.channel,
                "config": dict(context.config),
            },
        }
        if self.tool_kind is not None:
            fields["toolKind"] = self.tool_kind
        if self.tool_input_kind is not None:
            fields["toolInputKind"] = self.tool_input_kind
        return fields


class Hook(NamedTuple):
    """One hook that can be run: it takes the event as JSON data and returns its answer."""

    name: str
    run: Callable[[dict[str, Json]], Awaitable[Json]]
    timeout_ms: int = HOOK_TIMEOUT_MS


class HookDecision(NamedTuple):
    """What all hooks together said; `input` is what the call goes on with.

    `blocked` and `ask` hold a reason, or None.
    """

    input: Json
    blocked: str | None = None
    ask: str | None = None


async def run_hooks(hooks: Sequence[Hook], event: HookEvent) -> HookDecision:
    """Run every hook on the event; the first that blocks ends it.

    Contract: hooks:answers:rewrite, hooks:answers:block, hooks:answers:ask, hooks:failures:block
    """
    asked: str | None = None
    for hook in hooks:
        try:
            answer = await finish_in_time(hook.run(event.to_json()), hook.timeout_ms)
        except Late:
            return HookDecision(event.input, f"the hook {hook.name} did not answer within {hook.timeout_ms} ms")
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return HookDecision(event.input, f"the hook {hook.name} cancelled itself")
        except Exception as error:  # noqa: BLE001  # whatever a guard fails with, the door stays shut
            return HookDecision(event.input, f"the hook {hook.name} failed: {words_of(error)}")
        decision = _read_answer(hook.name, answer, event.input)
        if decision.blocked is not None:
            return decision
        asked = asked or decision.ask
        event = event._replace(input=decision.input)
    return HookDecision(event.input, ask=asked)


def _read_answer(name: str, answer: Json, given: Json) -> HookDecision:
    if answer is None or answer == {}:
        return HookDecision(given)
    if not isinstance(answer, dict) or not answer.keys() <= _ANSWERS:
        return HookDecision(given, f"the hook {name} answered {shown(answer)}; it may answer input, block or ask")
    blocked, ask = _reason(answer.get("block"), f"blocked by the hook {name}"), _reason(answer.get("ask"), name)
    return HookDecision(answer.get("input", given), blocked, ask)


def _reason(said: Any, otherwise: str) -> str | None:
    if said is None or said is False:
        return None
    return said if isinstance(said, str) and said.strip() else otherwise
