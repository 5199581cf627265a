"""What a store keeps and the verbs it has: the port between a session and durability.

A run is a row, a snapshot, the calls that are open, an inbox of what they settled to, and
a log of events. `SqliteStore` keeps them in one file that several processes share;
`MemoryStore` keeps them for one process. A networked store would implement the same verbs
and pass the same tests.

How the verbs follow each other in the life of a run (in capitals: on disk before it returns):

    create ─ append* ─┬─ finish                       an exec that came to its end
                      └─ SUSPEND ─ SETTLE*            `waiting`; the owners of calls settle them
    CLAIM ─┬─ inbox* ─ UNCLAIM                        a wait that had nothing to deliver in time
           └─ inbox* ─ BEGIN_DELIVERY ─ inbox* ─┬─ finish
                                                └─ SUSPEND

Until `begin_delivery` the snapshot stays in the store, so a process that claims a run and
dies loses nothing: the run is found by its dead owner and waits again. After it the run
has gone on, and a process that dies takes the run with it. That is how a nested call runs
at most once: a snapshot is never restored again after something was delivered to it.

Calls are synchronous and short (tens of microseconds; a write that must be on disk, some
hundreds): they are made from the one thread of an asyncio program without an executor.
Times are Unix milliseconds. Every verb may raise `RuntimeUnavailable` (the store is locked,
damaged, full), `InvalidInput` for an id or a name that is no valid Unicode, and `Aborted`
once the store is closed.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from codemode.core.errors import ErrorCode
from codemode.core.events import Entry, Event
from codemode.core.limits import Limits
from codemode.core.types import BridgeMethod, BridgeReply, Json, Language, PendingCall
from codemode.runs import RunState
from codemode.store.owner import Owner

CallState = Literal["running", "awaiting_approval", "settled"]
WaitReason = Literal["pending_tools", "yield"]
FinalState = Literal["completed", "failed", "aborted"]


class NewRun(NamedTuple):
    """What is known of a run before its first turn. `manifest` is an absolute path."""

    session: str
    agent_id: str
    agent_run_id: str
    language: Language
    manifest: str | None
    limits: Limits
    owner: Owner


class Caller(NamedTuple):
    """Who asks for a run; a run that is not theirs is as unknown to them as none at all.

    `agent_run_id` is None for a command line, whose waits continue the run's own agent run.
    """

    session: str
    agent_id: str
    agent_run_id: str | None = None


class OpenCall(NamedTuple):
    """A request of the guest that it has not been answered yet: the dispatch record.

    input: JSON text as it was, or will be, dispatched (after hooks).
    state: `running` (somebody carries it), `awaiting_approval` (nothing was dispatched) or
        `settled` (its answer is in the inbox, not yet delivered).
    owner: The process that carries it. None where any process may answer in its place, since
        nothing outside happens: approvals, timers, yields, searches, describes.
    due_ms: When a timer fires.
    """

    id: int
    method: BridgeMethod
    target: str
    tool_id: str | None
    input: str
    state: CallState
    owner: Owner | None = None
    due_ms: float | None = None


class Suspension(NamedTuple):
    """Everything that a suspended run needs in order to go on anywhere.

    calls: All requests that the guest still waits for; those of earlier suspensions too.
    settled: Answers in hand that were not delivered any more, in their order.
    scope: Digest and text of the guest's globals; the text is kept once however many runs share it.
    carry: JSON of what the session itself must know (output counted so far, last request id,
        remembered approvals); opaque to the store.
    """

    run_id: str
    snapshot: bytes
    build: str
    reason: WaitReason
    calls: tuple[OpenCall, ...]
    settled: tuple[BridgeReply, ...]
    scope: str
    scope_text: bytes
    carry: Json


class RunRecord(NamedTuple):
    """One run as it stands. `pending` is filled while the run waits; `code` and `error` once it failed."""

    run_id: str
    session: str
    agent_id: str
    agent_run_id: str
    state: RunState
    language: Language
    manifest: str | None
    limits: Limits
    created_ms: float
    ended_ms: float | None
    expires_ms: float | None
    reason: WaitReason | None
    pending: tuple[PendingCall, ...]
    code: ErrorCode | None
    error: str | None

    def to_json(self) -> dict[str, Json]:
        """Return `{"runId", "state", …}`, without what does not apply."""
        shown: dict[str, Json] = {
            "runId": self.run_id,
            "state": self.state,
            "session": self.session,
            "agentId": self.agent_id,
            "agentRunId": self.agent_run_id,
            "language": self.language,
            "manifest": self.manifest,
            "createdMs": self.created_ms,
            "endedMs": self.ended_ms,
            "expiresMs": self.expires_ms if self.state == "waiting" else None,
            "reason": self.reason if self.state == "waiting" else None,
            "code": self.code,
            "error": self.error,
        }
        present = {key: value for key, value in shown.items() if value is not None}
        return present | ({"pendingToolCalls": [call.to_json() for call in self.pending]} if self.pending else {})


class Claimed(NamedTuple):
    """A run that is the claimer's now, with what it was suspended with."""

    run: RunRecord
    snapshot: bytes
    build: str
    calls: tuple[OpenCall, ...]
    scope: str
    scope_text: bytes
    carry: Json


class Inbox(NamedTuple):
    """Answers in the order in which they came; `position` goes into the next look."""

    replies: tuple[BridgeReply, ...]
    position: int


class Pruned(NamedTuple):
    """What was removed: ended runs with their logs, and by how many bytes the store became smaller."""

    runs: int
    freed_bytes: int


class Store(Protocol):
    """The verbs. `events`, wherever they are taken, are written with the change or not at all."""

    def create(self, new: NewRun) -> str:
        """Begin a run, `running`, and return its id: `cm_` and a random UUID."""
        ...

    def append(self, run_id: str, events: Sequence[Entry]) -> None:
        """Add events to a run's log, in one write. Callers gather some and flush them."""
        ...

    def suspend(self, suspension: Suspension, events: Sequence[Entry] = ()) -> None:
        """Move a run from `running` to `waiting`; its time to live starts now.

        A call that was open before keeps its record, so what another process settled in the
        meantime is not lost; records of calls that are no longer open go.

        Raises:
            SnapshotLimit: The session holds 64 suspended runs; this one is still `running`.
            Aborted: Somebody asked for the end of this run; it is still `running`.
        """
        ...

    def claim(self, run_id: str, caller: Caller, owner: Owner) -> Claimed:
        """Move a run from `waiting` to `running` for `owner`; of any number of claimers one wins.

        Raises:
            InvalidInput: Unknown, finished, or not the caller's (one message for all three);
                or somebody else is waiting for it right now.
            SnapshotExpired: It was suspended for too long.
            Aborted: It was aborted.
            RuntimeUnavailable: The process that ran it died; said once, then it is a finished run.
        """
        ...

    def unclaim(self, run_id: str, carry: Json = None, events: Sequence[Entry] = ()) -> None:
        """Give a claimed run back, to which nothing was delivered; its expiry stays what it was.

        `carry` replaces the suspension's, as when an approval is to be remembered; None keeps it.

        Raises:
            Aborted: Somebody asked for the end of this run; it is still `running`.
        """
        ...

    def begin_delivery(self, run_id: str, events: Sequence[Entry] = ()) -> None:
        """Discard the snapshot of a claimed run: from here on it can only go forward.

        Call it after the VM is restored and before anything is delivered to it.

        Raises:
            Aborted: Somebody asked for the end of this run; it is still `running`.
        """
        ...

    def dispatch(self, run_id: str, call_id: int, owner: Owner) -> bool:
        """Record that an approved call starts now, carried by `owner`; False if it already did.

        Start the tool only when this returned True.
        """
        ...

    def settle(self, run_id: str, reply: BridgeReply, events: Sequence[Entry] = ()) -> bool:
        """Put a call's answer into the inbox of its run, whoever runs it now.

        Returns:
            False, and nothing is written, where the call is settled already, is no longer open,
            or its run has ended.
        """
        ...

    def inbox(self, run_id: str, after: int = 0) -> Inbox:
        """Return the answers that came after a position, cheaply enough to be asked every few ms.

        A call whose process died is answered here: a rejection that says it was interrupted and
        may have taken effect. It is never dispatched again.
        """
        ...

    def finish(
        self,
        run_id: str,
        state: FinalState,
        code: ErrorCode | None = None,
        error: str | None = None,
        events: Sequence[Entry] = (),
    ) -> None:
        """End a running run: its slot is free, its snapshot and calls are gone, its log stays.

        `error` is redacted already, as the failed result has it.
        """
        ...

    def abort(self, run_id: str, caller: Caller) -> RunState:
        """End a waiting run, or ask the process that runs it to end it.

        Returns:
            `aborted`, or `running` where its owner was told and will see it in `must_stop`.

        Raises:
            InvalidInput: Unknown, finished, or not the caller's.
        """
        ...

    def must_stop(self, run_id: str) -> bool:
        """Say whether work for this run should end: an abort was asked for, or the run has ended.

        Asked by whoever runs it, and by a process that carries its calls while it waits.
        """
        ...

    def get(self, run_id: str, caller: Caller) -> RunRecord:
        """Return one run.

        Raises:
            InvalidInput: Unknown, or not the caller's.
        """
        ...

    def runs(self, session: str) -> tuple[RunRecord, ...]:
        """Return all runs of a session, newest first, finished ones too."""
        ...

    def events(self, run_id: str) -> list[Event]:
        """Return the log of one run, in the order in which it was written."""
        ...

    def agent_run_events(self, agent_run_id: str) -> list[Event]:
        """Return the logs of all runs of one agent run, as one."""
        ...

    def sweep(self) -> list[Event]:
        """Expire what is too old and find the runs of dead processes; return what was logged.

        A run whose process died before it delivered anything waits again; another has failed. Ended
        runs that are too old or too many go, a few at a time. Call it at start and by timer.
        """
        ...

    def prune(self, session: str, min_age_ms: float) -> Pruned:
        """Remove the runs of a session that ended at least so long ago, with their logs."""
        ...

    def close(self) -> None:
        """Let go of the store. One in memory takes its runs with it: they are aborted."""
        ...
