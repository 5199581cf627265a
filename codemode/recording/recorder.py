"""Writing a recording: what cells ask and get, refusals included, and what they see of namespaces.

`Recorder` stands before the executor, `HeardNamespaces` in the place of a session's namespaces. The
file is whole whenever a result is told.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from codemode.catalog import Catalog
from codemode.core.errors import CodeModeError, InvalidConfig, InvalidInput, NestedToolFailed, RuntimeUnavailable
from codemode.core.events import Event, RunEnded, WaitStarted
from codemode.core.redact import Redactor
from codemode.core.types import PATH_SEPARATOR, Json, RunContext, ToolSpec
from codemode.executor import Executor, Method, ToolOutcome
from codemode.manifest import is_recording
from codemode.namespaces import Namespaces
from codemode.recording.file import Lead, RecordedCall, RecordedMapping, RecordedNamespace, load_recording

_Row = TypeVar("_Row", RecordedNamespace, RecordedMapping, RecordedCall)


class _Heard(NamedTuple):
    """What was heard so far, in the order of the file; a call stands beside the number of its run."""

    namespaces: list[RecordedNamespace]
    mappings: list[RecordedMapping]
    calls: list[tuple[int, RecordedCall]]


class Recorder(Executor):
    """An executor that writes down what another one answers."""

    def __init__(self, inner: Executor, path: Path, lines: Sequence[dict[str, Json]], redactor: Redactor) -> None:
        """Make sure that the file can be written; it is when the first result is told.

        Args:
            inner: Who really calls.
            path: Where to write.
            lines: Head and tools, from `describe_toolbox`.
            redactor: Masks what is written.

        Raises:
            InvalidConfig: Nothing can be written there, or what is there is a recording with a fault, or none.

        Contract: recording:record:replaces-own
        """
        super().__init__(redactor)
        self._inner = inner
        self._path = path
        self._lines = list(lines)
        self._heard = _Heard([], [], [])
        self._runs: dict[str, int] = {}
        self._is_told = False
        self._goes_on = False  # with what other processes wrote of the same run
        if path.exists() and not path.is_file():  # a folder, or a device, which the file would replace
            raise InvalidConfig(f"cannot write the recording {path}: it is no file; give the name of one")
        if is_recording(path):
            load_recording(path)
        elif path.exists() and path.stat().st_size:  # somebody's cell, say, that was meant to be run
            raise InvalidConfig(f"cannot write the recording {path}: a file that is no recording is there")
        try:
            draft = self._draft("")
        except RuntimeUnavailable as error:
            raise InvalidConfig(error.message) from error
        draft.unlink()

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

    def report(self, context: RunContext, update: Json) -> None:
        """Let the executor tell of progress, which is not written down."""
        self._inner.report(context, update)

    def number(self, run_id: str) -> int:
        """Return which run of the recording this is, from 0."""
        return self._runs.setdefault(run_id, len(self._runs))

    def add_namespace(self, opened: RecordedNamespace) -> None:
        """Write down what a run sees of a namespace, unless the run before it saw the same.

        Contract: recording:record:namespaces
        """
        known = [each for each in self._heard.namespaces if each.id == opened.id]
        if not known or known[-1]._replace(run=opened.run) != opened:
            self._heard.namespaces.append(opened)

    def add_mapping(self, mapping: RecordedMapping) -> None:
        """Write down what a mapper made of a cell's arguments, unless that is known.

        Contract: recording:record:namespaces
        """
        if mapping not in self._heard.mappings:
            self._heard.mappings.append(mapping)

    def heed(self, event: Event) -> None:
        """Write the file when a result is told; a `wait` goes on with what the file held before.

        Contract: recording:record:waits, recording:record:no-harm
        """
        if isinstance(event, WaitStarted) and not self._runs:
            self._goes_on = True
        self.number(event.run_id)
        if isinstance(event, RunEnded):
            self._save_or_say()
            self._is_told = self._goes_on = True

    def save(self) -> None:
        """Write all of it, redacted, in the order in which the calls were made.

        Where another process may have written of the same run meanwhile, what it wrote stays.

        Raises:
            RuntimeUnavailable: It cannot be written.

        Contract: recording:record:redacted, recording:record:together, recording:format:diffable
        """
        with alone(self._path.parent):
            heard = self._together() if self._goes_on and is_recording(self._path) else self._heard
            calls = [call for _, call in sorted(heard.calls, key=lambda each: (each[0], each[1].number))]
            rows = [*self._lines, *(each.to_json() for each in heard.namespaces)]
            rows += [*(each.to_json() for each in heard.mappings), *(each.to_json() for each in calls)]
            text = "".join(json.dumps(self._redactor.value(row), ensure_ascii=False) + "\n" for row in rows)
            draft = self._draft(text)
            try:
                if self._path.exists():
                    shutil.copymode(self._path, draft)
                draft.replace(self._path.resolve())
            except OSError as error:
                raise self._unwritable(error) from error

    def _save_or_say(self) -> None:
        """Write the file; where that fails, the run has ended all the same, and whoever watches the loop is told."""
        try:
            self.save()
        except CodeModeError as error:
            asyncio.get_running_loop().call_exception_handler({"message": error.message})

    def _together(self) -> _Heard:
        """Return what was heard here, with what is only in the file; it may be of a process that knew fewer secrets."""
        ours, theirs = self._heard, load_recording(self._path)
        namespaces = self._missing(theirs.namespaces, ours.namespaces)
        mappings = self._missing(theirs.mappings, ours.mappings)
        calls = [(0, call) for call in self._missing(theirs.calls, [call for _, call in ours.calls])]
        return _Heard([*namespaces, *ours.namespaces], [*mappings, *ours.mappings], [*calls, *ours.calls])

    def _missing(self, theirs: Sequence[_Row], ours: Sequence[_Row]) -> list[_Row]:
        known = {self._line(each) for each in ours}
        return [each for each in theirs if self._line(each) not in known]

    def _line(self, row: _Row) -> str:
        return json.dumps(self._redactor.value(row.to_json()), sort_keys=True)

    def _draft(self, text: str) -> Path:
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_bytes(text.encode("utf-8", "replace"))  # a tool's description may hold half a character
        except OSError as error:
            raise self._unwritable(error) from error
        return draft

    def _unwritable(self, error: OSError) -> RuntimeUnavailable:
        return RuntimeUnavailable(f"cannot write the recording {self._path}: {error.strerror}")

    def _add(self, context: RunContext, tool: ToolSpec, given: Json, **came: Any) -> None:
        call = RecordedCall(int(context.call_id or 0), tool.id, given, **came)
        self._heard.calls.append((self.number(context.run_id), call))
        if self._is_told:  # it settled after its run's result: nobody writes it later
            self._save_or_say()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other recorders from writing into a folder meanwhile, where the system can."""
    try:
        import fcntl

        held = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # Windows; or there is no such folder, which whoever writes into it will say
        yield
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)  # which gives the lock back


class HeardNamespaces(Namespaces):
    """The namespaces of a session, which tell a recorder what runs see of them and what mappers make."""

    def __init__(self, inner: Namespaces, recorder: Recorder) -> None:
        """Stand for a session's namespaces."""
        super().__init__(inner.registered)
        self._recorder = recorder

    async def open(self, catalog: Catalog, context: RunContext) -> tuple[Catalog, Json]:
        """Make the scopes of a new run, and write them down.

        Raises:
            InvalidConfig: As without a recorder.
        """
        opened, written = await super().open(catalog, context)
        nodes = {face["name"]: face["node"] for face in json.loads(opened.scope.namespaces)}
        for each in self.registered:
            if each.id in (written or {}):
                leads = (_lead(path, stored) for path, stored in written[each.id].items())
                self._recorder.add_namespace(
                    RecordedNamespace(
                        self._recorder.number(context.run_id) + 1,
                        each.id,
                        each.plugin_id,
                        each.global_name,
                        each.description,
                        each.prompt,
                        each.required_tool_names,
                        nodes[each.global_name],
                        tuple(leads),
                    )
                )
        return self._listen(opened, written), written

    def reopen(self, catalog: Catalog, written: Json, context: RunContext) -> Catalog:
        """Return the catalog with the paths of an earlier process, and go on listening."""
        return self._listen(super().reopen(catalog, written, context), written)

    def _listen(self, catalog: Catalog, written: Json) -> Catalog:
        targets = dict(catalog.scope.targets)
        mapped = (path for each in (written or {}).values() for path, stored in each.items() if stored["mapper"])
        for path in mapped:
            if path in targets:
                targets[path] = targets[path]._replace(to_input=self._heard(path, targets[path].to_input))
        return catalog.with_scope(catalog.scope._replace(targets=targets))

    def _heard(self, path: str, to_input: Callable[[list[Json]], Json]) -> Callable[[list[Json]], Json]:
        segments = tuple(path.split(PATH_SEPARATOR))

        def heard(arguments: list[Json]) -> Json:
            try:
                given = to_input(arguments)
            except InvalidInput as error:
                self._recorder.add_mapping(RecordedMapping(segments, arguments, error=error.message))
                raise
            self._recorder.add_mapping(RecordedMapping(segments, arguments, given))
            return given

        return heard


def _lead(path: str, stored: dict[str, Json]) -> Lead:
    return Lead(tuple(path.split(PATH_SEPARATOR)), stored["tool"], stored["mapper"] is not None)
