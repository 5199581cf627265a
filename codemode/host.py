"""The child process that carries a session for `codemode run` and `codemode wait`.

It speaks JSON lines on the pipes that it was started with: a request in; events as
`{"progress"}` out, then `{"result", "runId", "trajectory"}`. Until then a closed pipe, or any
further line, aborts the run. After the result it lets go of its pipes; if the run waits, it
stays for the calls that it owns, until they have settled and their results are in the store.
"""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from codemode.composition import Setup, open_pool, open_store, open_toolbox, session_over
from codemode.core.errors import InvalidConfig, RuntimeUnavailable
from codemode.core.events import Event, to_json
from codemode.core.files import is_of_this_process
from codemode.core.types import CodeModeResult, Json
from codemode.live.attempt import failed_before_run
from codemode.manifest import find_manifest
from codemode.mcp.shared import Onlooker
from codemode.session import Identity, Session
from codemode.store.port import Caller, Store
from codemode.supervisor.spawn import Child
from codemode.surface import parse_decisions, parse_wait_input
from codemode.trajectory import fold
from codemode.trajectory import to_json as tree_to_json

_READ_BYTES = 1 << 16


class FrontEnd:
    """The pipes to the command line that started this host; `gone` is done once it wants no result."""

    def __init__(self) -> None:
        """Take over descriptors 0 and 1, so that what tools print goes to stderr and not between our lines."""
        self._requests, self._answers = os.dup(0), os.dup(1)
        _point_nowhere(0)
        os.dup2(2, 1)
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._received = bytearray()
        self._listens = True
        self._first_line: asyncio.Future[bytes] = self._loop.create_future()
        self._loop.add_reader(self._requests, self._on_readable)

    async def request(self) -> dict[str, Json] | None:
        """Return the request, or None where the front end had nothing to ask."""
        line = await self._first_line
        request: dict[str, Json] | None = json.loads(line) if line else None
        return request

    def send(self, message: dict[str, Json]) -> None:
        """Write one line; a front end that has gone misses it."""
        if not self._listens:
            return
        data = memoryview(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._answers, data) :]

    def tell(self, event: Event) -> None:
        """Send an event as progress."""
        self.send({"progress": to_json(event)})

    def tell_of_server(self, server: str, state: str) -> None:
        """Send how far a server is as progress: it is `asked` for its tools, has `answered`, or `failed`."""
        self.send({"progress": {"event": "server", "at_ms": time.time() * 1000, "server": server, "state": state}})

    def let_go(self) -> None:
        """Close the pipes, stderr too: whoever started the command must not wait for this process."""
        self._listens = False
        self._loop.remove_reader(self._requests)
        _point_nowhere(1, 2)
        os.close(self._requests)
        os.close(self._answers)

    def _on_readable(self) -> None:
        data = os.read(self._requests, _READ_BYTES)
        self._received += data
        line, newline, rest = self._received.partition(b"\n")
        if not data:
            self._loop.remove_reader(self._requests)
        if not self._first_line.done() and (newline or not data):
            self._first_line.set_result(bytes(line) if newline else b"")
        if not self.gone.done() and (rest or not data):
            self.gone.set_result(None)


def _point_nowhere(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in descriptors:
        os.dup2(nothing, fd)
    os.close(nothing)


async def _carry(first: Child | None) -> None:
    front_end = FrontEnd()
    request = await front_end.request()
    if request is None:
        return
    async with AsyncExitStack() as stack:
        errand = Errand(stack, front_end, request)
        answering = asyncio.create_task(errand.answer(first))
        front_end.gone.add_done_callback(lambda _: errand.abort(answering))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, errand.abort, answering)
        front_end.send(await answering)
        front_end.let_go()
        await errand.finish()


class Errand:
    """One request of a front end: a session is opened for it, asked, and kept while its calls are open."""

    def __init__(self, stack: AsyncExitStack, front_end: FrontEnd, request: dict[str, Json]) -> None:
        """Prepare; what is opened is closed with the stack."""
        self._stack = stack
        self._front_end = front_end
        self._request = request
        self._session: Session | None = None
        self._store: Store | None = None
        self._leaving = asyncio.Event()

    async def answer(self, first: Child | None) -> dict[str, Json]:
        """Return `{"result", "runId", "trajectory"}`, whatever happens.

        Contract: host:result:always
        """
        try:
            result = await self._ask(await self._open(first))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # a fault of ours must be told too
            result = failed_before_run(error)
        tree = tree_to_json(fold(self._events(result.run_id)))
        return {"result": result.to_json(), "runId": result.run_id, "trajectory": tree}

    def _events(self, run_id: str | None) -> list[Event]:
        if self._store is None or run_id is None:
            return []
        try:
            return self._store.events(run_id)
        except RuntimeUnavailable:  # the store has failed since; the result is told all the same
            return []

    async def finish(self) -> None:
        """Stay until the calls of a waiting run have settled, or until this process is to end."""
        if self._session is not None:
            settled = asyncio.create_task(self._session.settled())
            leaving = asyncio.create_task(self._leaving.wait())
            await asyncio.wait({settled, leaving}, return_when=asyncio.FIRST_COMPLETED)
            settled.cancel()
            leaving.cancel()

    def abort(self, answering: "asyncio.Task[dict[str, Json]]") -> None:
        """End the run or the opening of the session; after the result, the calls that are still open.

        Contract: host:abort:leaves-nothing
        """
        if answering.done():
            self._leaving.set()
        elif self._session is None or not self._session.stop("the run was aborted"):
            answering.cancel()

    async def _open(self, first: Child | None) -> Session:
        request, stack = self._request, self._stack
        pool = open_pool(first)
        stack.push_async_callback(pool.close)
        store = self._store = open_store()
        stack.callback(store.close)
        setup = Setup(
            manifest=self._find_manifest(store),
            who=Identity(session=request["session"]),
            limits=request["limits"] if request["op"] == "exec" else {},
            may_ask=not request["noInput"],
            refresh=bool(request.get("refresh")),
            record=Path(request["record"]) if request.get("record") else None,
        )
        invite = _invite if request.get("person") and setup.may_ask else None
        onlooker = Onlooker(invite, self._front_end.tell_of_server, _warn)
        box = await stack.enter_async_context(
            open_toolbox(setup.manifest, setup.who.agent_id, setup.refresh, onlooker=onlooker)
        )
        for warning in box.warnings:
            _warn(warning)
        self._session = await stack.enter_async_context(session_over(box, setup, pool, store))
        self._session.listen(self._front_end.tell)
        return self._session

    def _find_manifest(self, store: Store) -> Path | None:
        """Return the manifest or recording that is asked for, or the nearest; for a wait, the one of its run.

        Raises:
            InvalidConfig: It is a pipe of the command, which runs and waits cannot read.

        Contract: host:wait:any-folder
        """
        request = self._request
        if request.get("replay"):
            from codemode.recording.file import check_recording  # few runs are replayed

            return check_recording(Path(request["replay"]))
        if request["op"] == "exec":
            given = request.get("manifest")
            path = Path(given) if given else find_manifest(Path.cwd())
            if path is not None and is_of_this_process(path):  # which is not the one that was meant
                raise InvalidConfig(
                    f"the manifest {path} is open in the command only, not where its cell runs nor for a later wait; "
                    "put it into a file."
                )
            return path
        run = store.get(parse_wait_input(request["input"]), Caller(request["session"], Identity().agent_id))
        return Path(run.manifest) if run.manifest else None

    async def _ask(self, session: Session) -> CodeModeResult:
        request = self._request
        if request["op"] == "exec":
            return await session.exec(request["input"])
        decisions = parse_decisions(request["approve"], request["deny"])
        return await session.wait(
            request["input"], decisions, request["limits"].get("timeout_ms"), always=request["always"]
        )


def _invite(server: str, url: str) -> None:
    from codemode.mcp.signin import invite  # few runs have to

    invite(server, url, lambda text: _tell(f"{text}\n"))


def _warn(warning: str) -> None:
    _tell(f"codemode: {warning}\n")


def _tell(text: str) -> None:
    """Write to stderr, which the front end passes on."""
    sys.stderr.write(text)
    sys.stderr.flush()


async def _carry_and_leave(first: Child | None) -> None:
    await _carry(first)
    os._exit(0)  # everything is closed; neither a thread that hangs nor a task that heeds nothing keeps the process


def main(first: Child | None) -> None:
    """Carry one request; `first` is a worker that was started before this program was loaded."""
    asyncio.run(_carry_and_leave(first))
