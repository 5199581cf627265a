"""The one way any tool runs, whatever its kind and whoever asked.

policy → hook → approval → schema → timeout → execution → result adapter → events. A tool's
own exception becomes `NestedToolFailed` with redacted text here and nowhere else; a call that
needs a person raises `ApprovalNeeded`, and whoever parks it calls again with `approved`.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from codemode.core.deadline import Late, finish_in_time, is_cancelled
from codemode.core.errors import NestedToolFailed, words_of
from codemode.core.events import CallProgress, CallSettled, CallStarted, Event
from codemode.core.jsonsafe import NotJson, to_plain, to_text
from codemode.core.limits import MAX_BRIDGE_BYTES, MAX_ERROR_BYTES
from codemode.core.redact import Redactor
from codemode.core.types import Approval, Json, RunContext, ToolSpec
from codemode.hooks import Hook, HookEvent, run_hooks
from codemode.policy import Policy
from codemode.validation import Check, compile_check

Emit = Callable[[Event], None]
Method = Literal["call", "namespace"]
_State = Literal["ok", "error", "denied", "interrupted"]


class ToolOutcome(NamedTuple):
    """A tool's result as JSON text, adapted and within the bridge's bound."""

    text: str


class ApprovalNeeded(Exception):  # it is a question, not an error
    """A person must decide before this call runs.

    `input` is what they decide on, after hooks; the call goes on with exactly this input when it
    is made again with `approved`. `reason` is why a hook asks, None where the tool's setting does.
    """

    def __init__(self, tool: ToolSpec, input: Json, reason: str | None) -> None:  # noqa: A002  # the contract's word
        """Keep what the person must see."""
        super().__init__(f"{tool.id} needs approval: {reason or 'its approval setting is ask'}")
        self.tool = tool
        self.input = input
        self.reason = reason


class _Prepared(NamedTuple):
    """What is decided once for each tool, because a policy does not change under a session."""

    tool: ToolSpec
    allowed: bool
    approval: Approval
    check: Check


class _Refused(NestedToolFailed):
    """A call that policy, a hook or a person turned down before it began."""


class Executor:
    """Runs tools under one policy, one set of hooks and one redactor."""

    def __init__(
        self,
        redactor: Redactor,
        policy: Policy | None = None,
        hooks: Sequence[Hook] = (),
        emit: Emit | None = None,
    ) -> None:
        """Keep what every call passes through.

        Args:
            redactor: Masks error texts, and inputs and updates in events.
            policy: Decides what exists and what must be asked; everything is allowed when left out.
            hooks: Run in this order before each call.
            emit: Takes `CallStarted`, `CallProgress` and `CallSettled`, in the event loop's thread. A
                call that was refused, or whose input is not valid, settles without having started.
        """
        self._redactor = redactor
        self._policy = policy or Policy()
        self._hooks = tuple(hooks)
        self._emit = emit
        self._prepared: dict[str, _Prepared] = {}
        self._loop: asyncio.AbstractEventLoop | None = None  # in which calls run, once there was one

    async def call(
        self,
        tool: ToolSpec,
        input: Json,  # noqa: A002  # the contract's word
        context: RunContext,
        *,
        method: Method = "call",
        approved: bool = False,
    ) -> ToolOutcome:
        """Run one tool and return its result as JSON text.

        Args:
            tool: What to run.
            input: Its input; None means `{}`.
            context: The run that asks; `call_id` is the number of the nested call.
            method: Whether it came as a tool call or through a namespace; events say so.
            approved: A person approved exactly this input: hooks are not run again.

        Raises:
            NestedToolFailed: Denied, blocked, not valid, timed out, failed, or no JSON result.
            ApprovalNeeded: A person must decide first; nothing has run.

        Contract: executor:order:policy-first, executor:input:null-is-empty, executor:approval:parks
        """
        prepared = self._prepare(tool)
        given: Json = {} if input is None else input
        try:
            if not prepared.allowed:
                raise _Refused(f"{tool.id} is not available under the current policy.", tool.id)
            asked: str | None = None
            if self._hooks and not approved:
                given, asked = await self._ask_hooks(tool, given, context)
                given = _plain_input(tool, given)
            self._admit(prepared, given, asked, approved)
        except NestedToolFailed as error:
            state: _State = "denied" if isinstance(error, _Refused) else "error"
            self._settle(context, state, str(error), tool.id)
            raise
        if self._emit is not None:
            shown = self._redactor.value(given)
            self._emit(CallStarted(context.run_id, _now_ms(), _number(context), method, tool.id, shown))
        return await self._run(tool, given, context)

    def _prepare(self, tool: ToolSpec) -> _Prepared:
        known = self._prepared.get(tool.id)
        if known is None or known.tool is not tool:
            policy = self._policy
            check = compile_check(tool.parameters)
            self._loop = asyncio.get_running_loop()
            known = _Prepared(tool, policy.is_allowed(tool), policy.approval_for(tool), check)
            self._prepared[tool.id] = known
        return known

    async def _ask_hooks(self, tool: ToolSpec, given: Json, context: RunContext) -> tuple[Json, str | None]:
        """Return the input as the hooks leave it, and why one of them wants a person asked."""
        decision = await run_hooks(self._hooks, HookEvent(tool.id, tool.name, given, context))
        if decision.blocked is not None:
            raise _Refused(self._redactor.text(f"{tool.id} was blocked: {decision.blocked}"), tool.id)
        return decision.input, decision.ask

    def _admit(self, prepared: _Prepared, given: Json, asked: str | None, approved: bool) -> None:
        tool = prepared.tool
        if prepared.approval == "always-deny":
            raise _Refused(f"{tool.id} is always denied by its approval setting.", tool.id)
        if not approved and (asked is not None or prepared.approval == "ask"):
            raise ApprovalNeeded(tool, given, asked)
        fault = prepared.check(given)
        if fault is None and not isinstance(given, dict):
            fault = f"input: it must be an object, found {type(given).__name__}"
        if fault is not None:
            raise NestedToolFailed(self._redactor.text(f"the input of {tool.id} is not valid: {fault}"), tool.id)

    async def _run(self, tool: ToolSpec, checked: Json, context: RunContext) -> ToolOutcome:
        try:
            if tool.timeout_ms is None:
                result = await tool.invoke(checked, context)
            else:
                result = await _invoke_in_time(tool, tool.timeout_ms, checked, context)
            text, result_bytes = _bounded_text(result, tool)
        except asyncio.CancelledError as error:
            if is_cancelled():
                self._settle(context, "interrupted", "the call was cancelled")
                raise
            raise self._failed(tool, context, NestedToolFailed(f"{tool.id} cancelled itself.")) from error
        except Exception as error:  # the one place where a tool's exception becomes a rejection
            raise self._failed(tool, context, error) from error
        if self._emit is not None:
            self._emit(CallSettled(context.run_id, _now_ms(), _number(context), "ok", result_bytes, None, None))
        return ToolOutcome(text)

    def _failed(self, tool: ToolSpec, context: RunContext, error: Exception) -> NestedToolFailed:
        failure = NestedToolFailed(self._words(error), tool.id)
        self._settle(context, "error", str(failure))
        return failure

    def _words(self, error: Exception) -> str:
        return self._redactor.text(words_of(error))[:MAX_ERROR_BYTES]

    def _settle(self, context: RunContext, state: _State, error: str, tool_id: str | None = None) -> None:
        if self._emit is not None:
            self._emit(CallSettled(context.run_id, _now_ms(), _number(context), state, 0, error, tool_id))

    def report(self, context: RunContext, update: Json) -> None:
        """Emit what a call tells of its progress; a synchronous tool does from its own thread.

        Raises:
            NotJson: The update has no JSON form.

        Contract: executor:progress:json
        """
        try:
            shown = self._redactor.value(to_plain(update))
        except NotJson as error:
            raise NotJson(f"what progress() was given is no JSON: {error}") from error
        if self._emit is not None and self._loop is not None:
            event = CallProgress(context.run_id, _now_ms(), _number(context), shown)
            self._loop.call_soon_threadsafe(self._emit, event)


async def _invoke_in_time(tool: ToolSpec, timeout_ms: int, checked: dict[str, Json], context: RunContext) -> Json:
    try:
        return await finish_in_time(tool.invoke(checked, context), timeout_ms)
    except Late as error:
        raise NestedToolFailed(f"{tool.id} did not answer within its timeoutMs of {timeout_ms} ms.") from error


def _plain_input(tool: ToolSpec, given: Json) -> Json:
    """Return the input that hooks left as JSON data, which a cell's is, but a hook's need not be.

    Contract: executor:input:json
    """
    try:
        return to_plain(given)
    except NotJson as error:
        raise NestedToolFailed(f"the input of {tool.id} is no JSON: {error}", tool.id) from error


def _bounded_text(result: Json, tool: ToolSpec) -> tuple[str, int]:
    try:
        text = to_text(result)
    except NotJson as error:
        raise NestedToolFailed(f"{tool.id} returned no JSON: {error}.") from error
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_BRIDGE_BYTES:
        raise NestedToolFailed(
            f"{tool.id} returned {size} bytes of JSON; at most {MAX_BRIDGE_BYTES} cross. Ask it for less."
        )
    return text, size


def _now_ms() -> float:
    return time.time() * 1000


def _number(context: RunContext) -> int:
    return int(context.call_id or 0)
