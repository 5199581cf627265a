"""The transcript: a conversation with a model that can be saved, and what its cells called.

It is in no provider's spelling, and knows which run each `exec` began. A program keeps one beside a
`CodeMode` and sends its `messages()`. It is the conversation itself, so a saved one is as confidential
as that; what `project` shows of nested calls is redacted. Values only.
"""

import json
from typing import Literal, NamedTuple

from codemode import telemetry
from codemode.core.errors import ErrorCode, InvalidInput
from codemode.core.names import VISIBLE_TOOLS
from codemode.core.types import Failed, Json
from codemode.payload.messages import AssistantMessage, Message, ToolResult, ToolUse, UserMessage, parse_arguments
from codemode.trajectory import CallState, Trajectory

FORMAT_VERSION = 1
_EXEC = VISIBLE_TOOLS[0]
_INTERRUPTED = "the call was interrupted before its result was kept; what it did so far is not known"


class Call(NamedTuple):
    """A call that the model made; `result` is its text, None so far; `run_id` is the run that an `exec` began."""

    use: ToolUse
    result: str | None = None
    failed: bool = False
    run_id: str | None = None


class Turn(NamedTuple):
    """What one of the two said, and what the model called."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[Call, ...] = ()


class NestedUse(NamedTuple):
    """A cell's call of a real tool: `use` has the id `<exec's id>/<its id in the run>` and the redacted input."""

    use: ToolUse
    state: CallState
    result_bytes: int
    error: str | None


class Transcript(NamedTuple):
    """A conversation so far; begin with `Transcript()` and grow it with `append` and `link`."""

    turns: tuple[Turn, ...] = ()

    def append(self, message: Message) -> "Transcript":
        """Return the conversation with one more message.

        Raises:
            InvalidInput: A result of no open call of the last turn, or two calls of one id in a turn.
        """
        match message:
            case UserMessage(text):
                return Transcript((*self.turns, Turn("user", text)))
            case AssistantMessage(text, uses):
                if len({use.id for use in uses}) < len(uses):
                    raise InvalidInput("two tool calls of one message have the same id; give each its own")
                return Transcript((*self.turns, Turn("assistant", text, tuple(map(Call, uses)))))
            case ToolResult(use, text, failed, run_id):
                call = self._last(use.id)
                if call.result is not None:
                    raise InvalidInput(f'the call "{use.id}" has its result already; append each once')
                grown = self._replace_last(call._replace(result=text, failed=failed))
                known = run_id or _run_named_in(text)
                return grown.link(use.id, known) if known and call.use.name == _EXEC else grown

    def link(self, call_id: str, run_id: str) -> "Transcript":
        """Say which run an `exec` of the last turn began, so that `project` finds its calls.

        A result of `CodeMode.answer` has said it already; for a call that was cut off before its
        result, the event `ExecStarted` names the run.

        Raises:
            InvalidInput: There is no such `exec`, or it began another run.
        """
        call = self._last(call_id)
        if call.use.name != _EXEC or call.run_id not in (None, run_id):
            raise InvalidInput(f'"{call_id}" did not begin {run_id}: it is {call.use.name}, its run {call.run_id}')
        return self._replace_last(call._replace(run_id=run_id))

    def messages(self) -> tuple[Message, ...]:
        """Return what to send to a model: each call is followed by its result, a `failed` one where it has none.

        Contract: transcript:messages:paired, transcript:messages:interrupted
        """
        sent: list[Message] = []
        for role, text, calls in self.turns:
            uses = tuple(call.use for call in calls)
            sent += [UserMessage(text) if role == "user" else AssistantMessage(text, uses), *map(_result, calls)]
        return tuple(sent)

    def project(self, trajectory: Trajectory) -> tuple[NestedUse, ...]:
        """Return what the cells of this conversation called, each under its `exec`, also after a `wait`.

        Contract: transcript:projection:parent
        """
        found = {run.run_id: run.calls for run in trajectory.runs}
        parents = (call for turn in self.turns for call in turn.calls)
        nested = [(each.use.id, call) for each in parents for call in found.get(each.run_id or "", ())]
        return tuple(
            NestedUse(ToolUse(f"{id_}/{call.id}", call.tool_id, call.input), call.state, call.result_bytes, call.error)
            for id_, call in nested
            if call.tool_id is not None  # a search calls no tool
        )

    def to_json(self) -> dict[str, Json]:
        """Return `{"version", "turns": [{"role", "text", "calls": [{"id", "name", "input", "result", …}]}]}`.

        Contract: transcript:save:same
        """
        turns: list[Json] = []
        for role, text, calls in self.turns:
            turns.append({"role": role, "text": text, "calls": list(map(_row, calls))})
        return {"version": FORMAT_VERSION, "turns": turns}

    @classmethod
    def from_json(cls, saved: Json) -> "Transcript":
        """Return the transcript that `to_json` gave.

        Raises:
            InvalidInput: It is of another version, or something in it is not right.

        Contract: transcript:save:same, transcript:save:checked
        """
        match saved:
            case {"version": version, "turns": [*turns]} if version == FORMAT_VERSION:
                return cls(tuple(map(_read, turns)))
        raise InvalidInput(f'this is no transcript of version {FORMAT_VERSION}; it needs "version" and "turns"')

    def _last(self, call_id: str) -> Call:
        for call in self.turns[-1].calls if self.turns else ():
            if call.use.id == call_id:
                return call
        raise InvalidInput(f'the last turn has no call "{call_id}"; append the message that makes it first')

    def _replace_last(self, changed: Call) -> "Transcript":
        *before, (role, text, calls) = self.turns
        calls = tuple(changed if call.use.id == changed.use.id else call for call in calls)
        return Transcript((*before, Turn(role, text, calls)))


def _run_named_in(text: str) -> str | None:
    named = parse_arguments(text)
    run_id = named.get("runId") if isinstance(named, dict) else None
    return run_id if isinstance(run_id, str) else None


def _result(call: Call) -> ToolResult:
    if call.result is not None:
        return ToolResult(call.use, call.result, call.failed)
    # `dispatched`: nobody knows, and it must not be repeated in the belief that it never began
    failed = Failed(_INTERRUPTED, ErrorCode.ABORTED, "runtime", True, call.run_id, (), telemetry.fold(()))
    return ToolResult(call.use, json.dumps(failed.to_json(), separators=(",", ":")), failed=True)


def _row(call: Call) -> dict[str, Json]:
    (id_, name, given, signature), result, failed, run_id = call
    row: dict[str, Json] = {"id": id_, "name": name, "input": given}
    row |= {"signature": signature} if signature else {}
    return row | {"result": result, "failed": failed, "runId": run_id}


def _read(row: Json) -> Turn:
    match row:
        case {"role": "user" | "assistant" as role, "text": str(text), "calls": [*calls]}:
            return Turn(role, text, tuple(map(_read_call, calls)))
    raise InvalidInput(f"a turn of the transcript is not as it was saved: {json.dumps(row):.80}")


def _read_call(row: Json) -> Call:
    match row:
        case {"id": str(id_), "name": str(name), "input": given, "result": str() | None as result, **rest}:
            match rest:
                case {"failed": bool(failed), "runId": str() | None as run_id, **more}:
                    match more.get("signature"):
                        case str() | None as signature:
                            return Call(ToolUse(id_, name, given, signature), result, failed, run_id)
    raise InvalidInput(f"a call of the transcript is not as it was saved: {json.dumps(row):.80}")
