"""Playing a recording: tools and namespaces that answer with what is in it, and with nothing else."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NoReturn

from codemode.catalog import Catalog
from codemode.core.errors import InvalidInput, NestedToolFailed
from codemode.core.events import CallStarted, Event
from codemode.core.redact import Redactor
from codemode.core.types import PATH_SEPARATOR, Json, NamespaceTarget, RunContext, ToolSpec
from codemode.namespaces import Namespace, Namespaces
from codemode.recording.file import Lead, RecordedMapping, RecordedNamespace, Recording, call_key, mapping_key

_SHOWN_CHARS = 200  # of an input, in an error
_SHOWN_INPUTS = 5


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
        self._recording = recording
        self._mappings: defaultdict[str, list[RecordedMapping]] = defaultdict(list)
        for mapping in recording.mappings:
            self._mappings[mapping.key].append(mapping)
        self._given: Counter[str] = Counter()
        self._known_runs: set[str] = set()
        self.tools = tuple(self._build_tool(line) for line in recording.tools)
        self.namespaces = PlayedNamespaces(self, recording.namespaces) if recording.namespaces else None

    def answer(self, tool_id: str, given: Json, context: RunContext) -> Json:
        """Return the next answer to exactly this call.

        Raises:
            NestedToolFailed: That is what was recorded; or nothing was, and the message says what was.

        Contract: recording:replay:strict, recording:replay:in-order, recording:replay:across-processes
        """
        asked = self._redactor.value(given)
        key = call_key(tool_id, asked)
        self._catch_up(context.run_id)
        answers = [call for call in self._calls if call.key == key]
        if self._given[key] >= len(answers):
            self._refuse(tool_id, asked, len(answers))
        call = answers[self._given[key]]
        self._given[key] += 1
        if call.error is not None:
            raise NestedToolFailed(call.error, tool_id)
        return call.value

    def map(self, lead: Lead, tool_id: str, arguments: list[Json]) -> Json:
        """Return the input that a namespace's mapper made of these arguments.

        Where they led to several inputs, it is the first that still has an answer.

        Raises:
            InvalidInput: The mapper did not take them; or nothing was recorded, and the message says what was.

        Contract: recording:replay:namespaces, recording:replay:strict
        """
        asked = self._redactor.value(arguments)
        found = self._mappings[mapping_key(lead.path, asked)]
        if not found:
            called = ".".join(lead.path)
            known = [each.arguments for each in self._recording.mappings if each.path == lead.path]
            listed = f"recorded: {_listed(known)}" if known else "no call of it was recorded"
            raise InvalidInput(f"{self._name} has no answer for {called} with {_shown(asked)}; {listed}")
        chosen = next((each for each in found if self._is_left(call_key(tool_id, each.input))), found[0])
        if chosen.error is not None:
            raise InvalidInput(chosen.error)
        return chosen.input

    def _is_left(self, key: str) -> bool:
        return self._given[key] < sum(call.key == key for call in self._calls)

    def _catch_up(self, run_id: str) -> None:
        """Count what an earlier process gave to this run; the event of the first call here is not written yet."""
        if run_id not in self._known_runs:
            self._known_runs.add(run_id)
            self._given.update(_keys_of(self.recall(run_id)))

    def _refuse(self, tool_id: str, asked: Json, answers: int) -> NoReturn:
        said = f"{self._name} has no answer for {tool_id} with {_shown(asked)}"
        if answers:
            raise NestedToolFailed(f"{said}: it was recorded {_times(answers)}, and is asked once more", tool_id)
        inputs = [call.input for call in self._calls if call.tool_id == tool_id]
        if inputs:
            raise NestedToolFailed(f"{said}; recorded of this tool: {_listed(inputs)}", tool_id)
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


class PlayedNamespaces(Namespaces):
    """The namespaces of a recording: each run sees what the run of its number saw, without a plugin.

    A run beyond those that were recorded sees what the last one saw.
    """

    def __init__(self, player: Player, recorded: Iterable[RecordedNamespace]) -> None:
        """Show what was recorded; `player` knows what mappers made."""
        self._player = player
        self._recorded = tuple(recorded)
        self._opened = 0
        latest = {each.id: each for each in self._recorded}
        super().__init__(map(_registration, latest.values()))

    async def open(self, catalog: Catalog, context: RunContext) -> tuple[Catalog, Json]:
        """Show a new run what its number saw.

        Contract: recording:replay:namespaces
        """
        self._opened += 1
        seen = {each.id: each for each in self._recorded if each.run <= self._opened}
        shown = [seen[each.id] for each in self.visible(catalog) if each.id in seen]
        if not shown:
            return catalog, None
        faces = [{"name": each.global_name, "node": each.scope} for each in shown]
        text = json.dumps(faces, ensure_ascii=False, separators=(",", ":"))
        written = {
            each.id: {
                PATH_SEPARATOR.join(lead.path): {"tool": lead.tool, "mapper": lead.is_mapped or None}
                for lead in each.leads
            }
            for each in shown
        }
        return self.reopen(catalog.with_scope(catalog.scope._replace(namespaces=text)), written, context), written

    def reopen(self, catalog: Catalog, written: Json, context: RunContext) -> Catalog:  # noqa: ARG002  # no mapper runs
        """Return the catalog with the paths that lead to recorded answers."""
        targets = dict(catalog.scope.targets)
        for namespace in self.registered:
            for path, stored in written.get(namespace.id, {}).items():
                tool = catalog.tool(namespace.tool_id(stored["tool"]))
                if tool is not None:
                    lead = Lead(tuple(path.split(PATH_SEPARATOR)), stored["tool"], stored["mapper"] is not None)
                    targets[path] = NamespaceTarget(tool, partial(self._to_input, lead, tool.id))
        return catalog.with_scope(catalog.scope._replace(targets=targets))

    def _to_input(self, lead: Lead, tool_id: str, arguments: list[Json]) -> Json:
        if lead.is_mapped:
            return self._player.map(lead, tool_id, arguments)
        return arguments[0] if arguments else {}


def _registration(recorded: RecordedNamespace) -> Namespace:
    def create_scope(_context: RunContext) -> NoReturn:
        raise AssertionError("a recorded namespace is never made anew")

    return Namespace(
        recorded.id,
        recorded.plugin,
        recorded.global_name,
        recorded.description,
        recorded.tools,
        create_scope,
        recorded.prompt,
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
            yield call_key(event.tool_id, event.input)


def _listed(values: Iterable[Json]) -> str:
    counts = Counter(map(_shown, values))
    listed = ", ".join(f"{text} ({_times(count)})" for text, count in counts.most_common(_SHOWN_INPUTS))
    return listed + (f" and {len(counts) - _SHOWN_INPUTS} more" if len(counts) > _SHOWN_INPUTS else "")


def _shown(given: Json) -> str:
    text = json.dumps(given, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
