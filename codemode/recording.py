"""Recordings: the nested calls of a run in a file, and a catalog that answers from it.

A recording is JSON Lines, one line for each tool and each call: a call that changes is one changed
line of a diff, and nothing in it (no time, no run id) changes by itself. It is redacted. It can
stand wherever a manifest does, so a run that began on it goes on with it in any process.

`Recorder` stands before the executor and writes down what cells ask and get, refusals included.
`Player` gives tools that answer with that, strictly: what was not recorded fails.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from codemode.config import CodeModeConfig, parse_code_mode
from codemode.core.errors import InvalidConfig, NestedToolFailed, RuntimeUnavailable
from codemode.core.events import CallStarted, Event, RunEnded, WaitStarted
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.tables import Field, Where, check_table
from codemode.core.types import Json, RunContext, ToolSpec
from codemode.executor import Executor, Method, ToolOutcome
from codemode.manifest import is_recording

FORMAT_VERSION = 1
_SHOWN_CHARS = 200  # of an input, in an error
_SHOWN_INPUTS = 5
_HEAD_FIELDS = {
    "recording": Field("integer", required=True),
    "codeMode": Field("table"),
    "variables": Field("texts"),
}
_TOOL_FIELDS = {
    "type": Field("text"),
    "id": Field("text", required=True),
    "name": Field("text", required=True),
    "label": Field("text"),
    "description": Field("any", required=True),
    "source": Field("text", ("openclaw", "plugin", "mcp", "client"), required=True),
    "owner": Field("text", required=True),
    "parameters": Field("table", required=True),
    "outputSchema": Field("table"),
    "operation": Field("flag"),
}
_CALL_FIELDS = {
    "type": Field("text"),
    "call": Field("integer", required=True),
    "tool": Field("text", required=True),
    "input": Field("any", required=True),
    "value": Field("any"),
    "error": Field("any"),
}


class RecordedCall(NamedTuple):
    """One nested call: its number in its run, what it was asked, and the value or the error that came of it."""

    number: int
    tool_id: str
    input: Json
    value: Json = None
    error: str | None = None

    @property
    def key(self) -> str:
        """What a call must be like to get this answer."""
        return _key(self.tool_id, self.input)

    def to_json(self) -> dict[str, Json]:
        """Return the line of this call."""
        line = {"type": "call", "call": self.number, "tool": self.tool_id, "input": self.input}
        return line | ({"value": self.value} if self.error is None else {"error": self.error})


class Recording(NamedTuple):
    """What a file holds: settings, tools as their lines, calls in the order in which they were made.

    variables: The names of those whose values were masked; where they are set, they are masked again.
    """

    config: CodeModeConfig
    tools: tuple[dict[str, Json], ...]
    calls: tuple[RecordedCall, ...]
    variables: tuple[str, ...] = ()


def check_recording(path: Path) -> Path:
    """Return the path of a recording.

    Raises:
        InvalidConfig: There is none, or it is something else: a manifest would run real tools.

    Contract: recording:replay:no-manifest
    """
    if not path.is_file():
        raise InvalidConfig(f"there is no recording {path}; make one with codemode run --record {path}")
    if not is_recording(path):
        raise InvalidConfig(f"{path} is no recording; make one with codemode run --record FILE")
    return path


def load_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        InvalidConfig: It cannot be read, is of a newer format, or a line of it is not right.

    Contract: recording:format:checked
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"cannot read the recording {path}: {error}") from error
    places = [Where(f"{path}:{number}") for number in range(1, len(lines) + 1)]
    rows = [(_parse(line, where), where) for line, where in zip(lines, places, strict=True) if line.strip()]
    head = check_table(rows[0][0], _HEAD_FIELDS, rows[0][1])
    config = _read_settings(head, rows[0][1])
    tools = tuple(check_table(row, _TOOL_FIELDS, where) for row, where in rows[1:] if row.get("type") == "tool")
    calls = tuple(_read_call(row, where) for row, where in rows[1:] if row.get("type") == "call")
    for row, where in rows[1:]:
        if row.get("type") not in ("tool", "call"):
            where.at("type").fail(f'found {json.dumps(row.get("type"))}; allowed is "tool" or "call".')
    return Recording(config, tools, calls, tuple(head.get("variables", ())))


def _parse(line: str, where: Where) -> dict[str, Json]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        where.fail(f"not JSON: {error}.")
    if not isinstance(row, dict):
        where.fail("found no object; each line of a recording is one.")
    found: dict[str, Json] = row
    return found


def _read_settings(head: dict[str, Json], where: Where) -> CodeModeConfig:
    if head["recording"] != FORMAT_VERSION:
        where.fail(f"found format {head['recording']}; this codemode reads {FORMAT_VERSION}. Record it anew.")
    return parse_code_mode({"enabled": True} | head.get("codeMode", {}), where.at("codeMode"))


def _read_call(row: dict[str, Json], where: Where) -> RecordedCall:
    fields = check_table(row, _CALL_FIELDS, where)
    if ("value" in fields) == ("error" in fields):
        where.fail("a call has either a value or an error.")
    return RecordedCall(fields["call"], fields["tool"], fields["input"], fields.get("value"), fields.get("error"))


class Recorder(Executor):
    """An executor that writes down what another one answers; the file is whole whenever a result is told."""

    def __init__(self, inner: Executor, path: Path, lines: Sequence[dict[str, Json]], redactor: Redactor) -> None:
        """Write the beginning of the file, over what was there.

        Args:
            inner: Who really calls.
            path: Where to write.
            lines: Head and tools, from `describe_toolbox`.
            redactor: Masks what is written.

        Raises:
            InvalidConfig: Nothing can be written there.
        """
        super().__init__(redactor)
        self._inner = inner
        self._path = path
        self._lines = list(lines)
        self._calls: list[tuple[int, RecordedCall]] = []  # with the order of its run
        self._runs: dict[str, int] = {}
        self._is_told = False
        self._earlier = load_recording(path).calls if is_recording(path) else ()
        try:
            self.save()
        except RuntimeUnavailable as error:
            raise InvalidConfig(error.message) from error

    async def call(
        self,
        tool: ToolSpec,
        input: Json,  # noqa: A002  # the contract's word
        context: RunContext,
        *,
        method: Method = "call",
        approved: bool = False,
    ) -> ToolOutcome:
        """Have the call made, and write down what came of it; one that was interrupted has no answer.

        Raises:
            NestedToolFailed: As the executor.
            ApprovalNeeded: As the executor; it is written down once it was decided.

        Contract: recording:record:refusals
        """
        given = {} if input is None else input
        try:
            outcome = await self._inner.call(tool, input, context, method=method, approved=approved)
        except NestedToolFailed as error:
            self._add(context, tool, given, error=error.message)
            raise
        self._add(context, tool, given, value=json.loads(outcome.text))
        return outcome

    def heed(self, event: Event) -> None:
        """Write the file when a result is told; a `wait` goes on with what the file held before.

        Contract: recording:record:waits
        """
        if isinstance(event, WaitStarted) and not self._runs:
            self._calls = [(0, call) for call in self._earlier]
        self._runs.setdefault(event.run_id, len(self._runs))
        if isinstance(event, RunEnded):
            self._is_told = True
            self.save()

    def save(self) -> None:
        """Write all of it, redacted, in the order in which the calls were made.

        Raises:
            RuntimeUnavailable: It cannot be written.

        Contract: recording:record:redacted, recording:format:diffable
        """
        calls = [call.to_json() for _, call in sorted(self._calls, key=lambda each: (each[0], each[1].number))]
        lines = [self._redactor.value(line) for line in (*self._lines, *calls)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(self._path)
        except OSError as error:
            raise RuntimeUnavailable(f"cannot write the recording {self._path}: {error.strerror}") from error

    def _add(self, context: RunContext, tool: ToolSpec, given: Json, **came: Any) -> None:
        order = self._runs.setdefault(context.run_id, len(self._runs))
        self._calls.append((order, RecordedCall(int(context.call_id or 0), tool.id, given, **came)))
        if self._is_told:  # it settled after its run's result: nobody writes it later
            self.save()


def describe_toolbox(
    config: CodeModeConfig, variables: Iterable[str], tools: Iterable[ToolSpec]
) -> list[dict[str, Json]]:
    """Return the first lines of a recording: its head, and each tool that a cell can reach."""
    usual = Limits().to_json()
    settings: dict[str, Json] = {"languages": list(config.languages)}
    settings |= {alias: value for alias, value in config.limits.to_json().items() if value != usual[alias]}
    head: dict[str, Json] = {"recording": FORMAT_VERSION, "codeMode": settings, "variables": sorted(variables)}
    return [head, *map(_describe_tool, tools)]


def _describe_tool(tool: ToolSpec) -> dict[str, Json]:
    line: dict[str, Json] = {"type": "tool", "id": tool.id, "name": tool.name}
    line |= {"label": tool.label} if tool.label else {}
    line |= {"description": tool.description, "source": tool.source, "owner": tool.owner}
    line |= {"parameters": tool.parameters}
    line |= {"outputSchema": tool.output_schema} if tool.output_schema else {}
    return line | ({"operation": True} if getattr(tool.invoke, "is_operation", False) else {})


class Player:
    """Answers nested calls from a recording; each recorded answer is given once, in the recorded order.

    `recall` returns the events of a run that an earlier process wrote, so that a `wait` goes on after
    the answers that were given there.
    """

    def __init__(self, recording: Recording, name: str, redactor: Redactor) -> None:
        """Begin before the first answer; `name` is the file's, for errors."""
        self.recall: Callable[[str], Iterable[Event]] = lambda _run_id: ()
        self._name = name
        self._redactor = redactor
        self._calls = recording.calls
        self._given: Counter[str] = Counter()
        self._known_runs: set[str] = set()
        self.tools = tuple(self._build_tool(line) for line in recording.tools)

    def answer(self, tool_id: str, given: Json, context: RunContext) -> Json:
        """Return the next answer to exactly this call.

        Raises:
            NestedToolFailed: That is what was recorded; or nothing was, and the message says what was.

        Contract: recording:replay:strict, recording:replay:in-order, recording:replay:across-processes
        """
        asked = self._redactor.value(given)
        key = _key(tool_id, asked)
        self._catch_up(context.run_id)
        answers = [call for call in self._calls if call.key == key]
        if self._given[key] >= len(answers):
            self._refuse(tool_id, asked, len(answers))
        call = answers[self._given[key]]
        self._given[key] += 1
        if call.error is not None:
            raise NestedToolFailed(call.error, tool_id)
        return call.value

    def _catch_up(self, run_id: str) -> None:
        """Count what an earlier process gave to this run; the event of the first call here is not written yet."""
        if run_id not in self._known_runs:
            self._known_runs.add(run_id)
            self._given.update(_keys_of(self.recall(run_id)))

    def _refuse(self, tool_id: str, asked: Json, answers: int) -> NoReturn:
        said = f"{self._name} has no answer for {tool_id} with {_shown(asked)}"
        if answers:
            raise NestedToolFailed(f"{said}: it was recorded {_times(answers)}, and is asked once more", tool_id)
        inputs = Counter(_shown(call.input) for call in self._calls if call.tool_id == tool_id)
        if inputs:
            listed = ", ".join(f"{text} ({_times(count)})" for text, count in inputs.most_common(_SHOWN_INPUTS))
            more = f" and {len(inputs) - _SHOWN_INPUTS} more" if len(inputs) > _SHOWN_INPUTS else ""
            raise NestedToolFailed(f"{said}; recorded of this tool: {listed}{more}", tool_id)
        tools = ", ".join(sorted({call.tool_id for call in self._calls})) or "nothing"
        raise NestedToolFailed(f"{said}; no call of this tool was recorded. Recorded: {tools}", tool_id)

    def _build_tool(self, line: dict[str, Json]) -> ToolSpec:
        return ToolSpec(
            id=line["id"],
            name=line["name"],
            description=line["description"],
            source=line["source"],
            owner=line["owner"],
            parameters=line["parameters"],
            invoke=_Replayed(self, line["id"], line.get("operation", False)),
            label=line.get("label"),
            output_schema=line.get("outputSchema"),
            origin=self._name,
        )


class _Replayed:
    """A tool's `invoke` that asks a player; `is_operation` is what it was of an MCP server."""

    def __init__(self, player: Player, tool_id: str, is_operation: bool) -> None:
        self.is_operation = is_operation
        self._player = player
        self._tool_id = tool_id

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:
        return self._player.answer(self._tool_id, given, context)


def _keys_of(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, CallStarted) and event.tool_id is not None:
            yield _key(event.tool_id, event.input)


def _key(tool_id: str, given: Json) -> str:
    return f"{tool_id} {json.dumps(given, sort_keys=True, ensure_ascii=False)}"


def _shown(given: Json) -> str:
    text = json.dumps(given, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
