"""One worker as its exclusive user sees it: turns, snapshots, and how each can fail."""

import asyncio
from collections.abc import Callable

from codemode.core.errors import RuntimeUnavailable, SnapshotLimit, TurnTimeout
from codemode.core.limits import (
    INSPECT_MS,
    KILL_GRACE_MS,
    MAX_TURN_BYTES,
    WORKER_ANSWER_MS,
    WORKER_MAX_CELLS,
    WORKER_START_MS,
)
from codemode.core.protocol import (
    Deliver,
    Drop,
    Inspect,
    ProtocolError,
    Request,
    Resume,
    Start,
    TakeSnapshot,
    encode_request,
    parse_turn,
)
from codemode.core.types import Json, Measure, TurnEnd
from codemode.supervisor.spawn import Child
from codemode.supervisor.wire import Answer, Overdue, TooLarge, Wire


class Worker:
    """A sandbox worker; it serves one cell at a time and holds at most one VM.

    `build` names the engine's build once the worker is ready, and `lockdown` what it has given up.
    `on_wanted` is called when somebody waits for a worker while this one is checked out; its user
    may then give it back.
    """

    def __init__(self, child: Child, on_end: Callable[[], None]) -> None:
        """Begin to wait for the worker's `ready`; `on_end` is called once, when it has ended."""
        self.build = ""
        self.lockdown: tuple[Measure, ...] = ()
        self.on_wanted: Callable[[], None] | None = None
        self._wire = Wire(child, on_end)
        self._tainted = False
        self._cells = 0
        self._scope = ""
        self._failure: RuntimeUnavailable | None = None
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        try:
            header, _ = await self._ask(None, "ready", WORKER_START_MS)
            self.build = str(header.get("build"))
            self.lockdown = tuple(Measure(*measure) for measure in header.get("lockdown", ()))
        except RuntimeUnavailable as error:  # told to whoever checks this worker out
            self._failure = error

    @property
    def reusable(self) -> bool:
        """Whether the next cell may run here: alive, not tainted, not too old."""
        worn = self._tainted or self._cells >= WORKER_MAX_CELLS
        return not (worn or self._wire.fate or self._failure)

    @property
    def is_ready(self) -> bool:
        """Whether a cell could run here now."""
        return self._starting.done() and self.reusable

    async def ready(self) -> None:
        """Wait until a first cell could run.

        Raises:
            RuntimeUnavailable: The worker died, or did not start in time.
        """
        if not self._starting.done():
            await asyncio.wait({self._starting})
        if self._failure is not None:
            raise self._failure

    async def turn(
        self, request: Start | Resume | Deliver, last_id: int, meanwhile: Callable[[], None] = lambda: None
    ) -> TurnEnd:
        """Run one turn of a VM.

        Args:
            request: What begins the turn; a scope that the worker holds already is not sent again.
            last_id: The highest request id seen so far in this run.
            meanwhile: Called once while the worker computes.

        Raises:
            TurnTimeout: No end within budget and grace; the worker was killed.
            RuntimeUnavailable: The worker died or broke the protocol.

        Contract: execution:timeout:kill, execution:worker:crash
        """
        if isinstance(request, Start):
            request = self._without_known_scope(request)
        wait_ms = request.budget_ms + KILL_GRACE_MS
        try:
            header, rows = await self._wire.exchange(encode_request(request), wait_ms, MAX_TURN_BYTES, meanwhile)
            self._expect("turn", header)
            self._tainted = header.get("tainted") is True
            return parse_turn(header, rows, last_id)
        except Overdue:
            raise TurnTimeout(
                f"the cell was inside one built-in from its deadline until {KILL_GRACE_MS} ms later, so its worker "
                "was killed; the output of this turn is lost"
            ) from None
        except (ProtocolError, TooLarge) as error:
            raise self._violated(error) from error

    def _without_known_scope(self, request: Start) -> Start:
        known, self._scope = self._scope == request.scope, request.scope
        self._cells += 1
        return request._replace(scope_text=b"") if known else request

    async def snapshot(self, max_bytes: int, keep: bool = False) -> bytes:
        """Serialise the VM at rest, which the worker then gives up unless `keep`.

        Raises:
            SnapshotLimit: It has more than `max_bytes`; the worker has given the VM up.
            RuntimeUnavailable: The worker died, hung or broke the protocol.

        Contract: execution:snapshot:limit
        """
        try:
            header, blob = await self._ask(TakeSnapshot(max_bytes, keep), "snapshot", WORKER_ANSWER_MS, max_bytes)
        except TooLarge as error:  # it does not keep to what it was told, and was killed
            raise _too_large(f"{error.args[0]}", max_bytes) from error
        if header.get("fits") is False:
            raise _too_large(f"more than {max_bytes}", max_bytes)
        return blob

    async def inspect(self, source: str, wants: list[str]) -> dict[str, Json]:
        """Ask the syntax parser about a text, as `guest/acorn.js` answers; a VM at rest stays.

        Raises:
            RuntimeUnavailable: The worker died, hung or broke the protocol.
        """
        header, _ = await self._ask(Inspect(source, wants, INSPECT_MS), "inspected", INSPECT_MS + KILL_GRACE_MS)
        answer = header.get("answer")
        if not isinstance(answer, dict):
            raise self._violated(ProtocolError("it sent an inspection without an answer"))
        return answer

    async def drop(self) -> None:
        """Make the worker give up its VM.

        Raises:
            RuntimeUnavailable: The worker died, hung or broke the protocol.
        """
        await self._ask(Drop(), "dropped", WORKER_ANSWER_MS)

    def kill(self) -> None:
        """End the process at once; whoever awaits its answer gets `RuntimeUnavailable`."""
        self._wire.kill("was stopped")

    async def _ask(self, request: Request | None, wanted: str, wait_ms: float, max_bytes: int = 0) -> Answer:
        """Exchange what is not a turn; `TooLarge` passes only where a size was allowed."""
        try:
            frame = b"" if request is None else encode_request(request)
            header, blob = await self._wire.exchange(frame, wait_ms, max_bytes)
            self._expect(wanted, header)
        except Overdue:
            raise RuntimeUnavailable(f"the sandbox worker sent no `{wanted}` within {wait_ms / 1000:g} s") from None
        except TooLarge:
            if max_bytes:
                raise
            raise self._wire.ended() from None
        except ProtocolError as error:
            raise self._violated(error) from error
        return header, blob

    def _expect(self, wanted: str, header: dict[str, Json]) -> None:
        if header.get("event") == "fatal":
            raise RuntimeUnavailable(str(header.get("error")))
        if header.get("event") != wanted:
            raise ProtocolError(f"it sent {str(header.get('event'))[:40]!r} where {wanted!r} was due")

    def _violated(self, error: Exception) -> RuntimeUnavailable:
        self._wire.kill(f"broke the protocol ({error}) and was killed")
        return self._wire.ended()


def _too_large(size: str, max_bytes: int) -> SnapshotLimit:
    return SnapshotLimit(
        f"the suspended cell takes {size} bytes; maxSnapshotBytes allows {max_bytes}. Hold less data across await, "
        "or raise the limit"
    )
