"""The values that flow between the units of codemode, as frozen tuples.

Each arrow of the house is one type here: `ToolSpec` (manifest, MCP, plugins → catalog),
`BridgeCall` (guest → bridge), `BridgeReply` (bridge → guest), `TurnEnd` (worker → session)
and the three results (session → whoever asked). `NamedTuple` rather than a dataclass,
because each process pays for the definition of every value that it imports.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from codemode.core.errors import ErrorCode, Phase

Json = Any  # a JSON value: None, bool, int, float, str, list, dict with str keys
Source = Literal["openclaw", "plugin", "mcp", "client"]
Language = Literal["javascript", "typescript"]
Approval = Literal["never", "ask", "always-deny"]
BridgeMethod = Literal["search", "describe", "call", "namespace", "yield", "timer"]


class Measure(NamedTuple):
    """One thing that a worker gives up at its start: whether that holds, and what it does or why it is missing."""

    name: str
    enforced: bool
    detail: str


class RunContext(NamedTuple):
    """What a nested call may know of the run that makes it.

    Tools, hooks and `createScope` receive it; it holds no secret and no live object but
    `aborted` and `report`, which is what `progress` tells.
    """

    agent_id: str
    session_key: str
    session_id: str
    run_id: str
    agent_run_id: str
    call_id: str = ""
    config: Mapping[str, Json] = {}
    sender: str | None = None
    channel: str | None = None
    aborted: Callable[[], bool] = lambda: False
    report: Callable[["RunContext", Json], None] = lambda _context, _update: None

    def progress(self, update: Json) -> None:
        """Tell whoever follows the run how far the call is; from any thread."""
        self.report(self, update)

    def calling(self, call_id: str) -> "RunContext":
        """Return this context for one call: each has its own, and `_replace` is slow."""
        return RunContext(*self[:5], call_id, *self[6:])


Invoke = Callable[[dict[str, Json], RunContext], Awaitable[Json]]


class ToolSpec(NamedTuple):
    """One effective tool, whatever its kind: the executor runs it by `invoke` alone.

    `owner` is the middle part of the id and the guest's `sourceName`. `parameters` is the
    JSON Schema of the input. `invoke` takes the checked input and the run's context and
    returns a value for the JSON adapter, or raises; an exception's text reaches the guest
    redacted, its type and traceback never do.
    """

    id: str
    name: str
    description: str
    source: Source
    owner: str
    parameters: dict[str, Json]
    invoke: Invoke
    label: str | None = None
    approval: Approval = "never"
    timeout_ms: int | None = None
    output_schema: dict[str, Json] | None = None
    origin: str = ""  # which file or server it came from, for listings


class VisibleTool(NamedTuple):
    """A tool as a model sees it; `parameters` is the JSON Schema of its input, an object."""

    name: str
    description: str
    parameters: dict[str, Json]


class Keep(NamedTuple):
    """Run a cell as a global script whose declarations live on, as the REPL does.

    `base` is the snapshot that the cell before it left behind; None begins with a fresh VM.
    """

    base: bytes | None = None


class BridgeCall(NamedTuple):
    """One request that a cell recorded: `id` is unique in its run and grows.

    `target` is the tool id, the namespace path, the query or the yield's reason; `payload`
    the input (call, namespace), the limit (search) or the delay in milliseconds (timer).
    `excess_bytes` is its size where the arguments of its turn were too large; its payload is gone.
    """

    id: int
    method: BridgeMethod
    target: str
    payload: Json = None
    excess_bytes: int = 0


class BridgeReply(NamedTuple):
    """How one request settled, ready to be delivered: `text` is JSON, already adapted.

    When `ok` is false, `text` is `{"name", "message", "code", "toolId"}`.
    """

    id: int
    ok: bool
    text: str


class OutputItem(NamedTuple):
    """One item of `output`: `{"type": "text", "text"}` or `{"type": "json", "value"}`."""

    type: Literal["text", "json"]
    value: Json

    def to_json(self) -> dict[str, Json]:
        """Return the item as the contract spells it."""
        return {"type": self.type, "text" if self.type == "text" else "value": self.value}


class GuestFailure(NamedTuple):
    """Why a turn ended in failure, as data: it crossed the process wall.

    `code` is None for the cell's own uncaught throw. `error` is complete: name, message and
    position in the author's source.
    """

    error: str
    code: ErrorCode | None
    phase: Phase


class TurnEnd(NamedTuple):
    """What one turn of the worker came to; rows are validated, nothing is dispatched yet.

    `state` is `suspended` (requests are open, the VM is at rest), `completed` (`value` is the
    cell's) or `failed` (`failure` says why). `kept` says that the ended cell's VM is still there.
    """

    state: Literal["suspended", "completed", "failed"]
    calls: tuple[BridgeCall, ...] = ()
    cancelled: tuple[int, ...] = ()
    output: tuple[OutputItem, ...] = ()
    omitted_bytes: int = 0
    value: Json = None
    failure: GuestFailure | None = None
    guest_ms: float = 0.0
    kept: bool = False


class PendingCall(NamedTuple):
    """An open request in a `waiting` result."""

    id: str
    method: BridgeMethod
    tool_id: str | None
    state: Literal["running", "awaiting_approval"]

    def to_json(self) -> dict[str, Json]:
        """Return the entry as the contract spells it; `toolId` only where there is one."""
        shown: dict[str, Json] = {"id": self.id, "method": self.method}
        if self.tool_id is not None:
            shown["toolId"] = self.tool_id
        return shown | {"state": self.state}


class Completed(NamedTuple):
    """A cell that came to its end."""

    run_id: str
    value: Json
    output: tuple[OutputItem, ...]
    telemetry: dict[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the `CodeModeResult` of a completed run."""
        return {
            "status": "completed",
            "value": self.value,
            "output": [item.to_json() for item in self.output],
            "telemetry": self.telemetry,
        }


class Waiting(NamedTuple):
    """A cell that is suspended and can be resumed with `wait`."""

    run_id: str
    reason: Literal["pending_tools", "yield"]
    pending: tuple[PendingCall, ...]
    output: tuple[OutputItem, ...]
    telemetry: dict[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the `CodeModeResult` of a waiting run."""
        return {
            "status": "waiting",
            "runId": self.run_id,
            "reason": self.reason,
            "pendingToolCalls": [call.to_json() for call in self.pending],
            "output": [item.to_json() for item in self.output],
            "telemetry": self.telemetry,
        }


class Failed(NamedTuple):
    """A cell, or a request, that failed; `code` is None for the cell's own throw."""

    error: str
    code: ErrorCode | None
    phase: Phase
    dispatched: bool
    run_id: str | None
    output: tuple[OutputItem, ...]
    telemetry: dict[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the `CodeModeResult` of a failed run; absent fields are left out."""
        shown: dict[str, Json] = {"status": "failed", "error": self.error}
        if self.code is not None:
            shown["code"] = self.code.value
        shown |= {"phase": self.phase, "dispatched": self.dispatched}
        if self.run_id is not None:
            shown["runId"] = self.run_id
        return shown | {
            "output": [item.to_json() for item in self.output],
            "telemetry": self.telemetry,
        }


CodeModeResult = Completed | Waiting | Failed


class NamespaceTarget(NamedTuple):
    """Where one callable path of the guest leads: a catalog tool and its input's mapper.

    `to_input` gets the guest's arguments and returns the input object, or raises
    `InvalidInput` with the sentence that the guest sees.
    """

    tool: ToolSpec
    to_input: Callable[[list[Json]], Json]


class GuestScope(NamedTuple):
    """What the guest sees beside the catalog, as JSON texts that it parses when first touched.

    mcp: `null` or `{"header", "servers": [{"ident", "name", "header", "resources", "prompts",
        "tools": [{"ident", "name", "id", "header", "parameters"}]}]}`.
    files: `[{"path", "description", "bytes", "text"}]`, what `API.list` and `API.read` show.
    namespaces: `[{"name", "node"}]`; a node is `["f"]` (callable), `["v", value]`,
        `["o", {key: node}]` or `["a", [node]]`.
    targets: path → target; segments are joined by `PATH_SEPARATOR`, the global's name first.
    prompts: sentences for `exec`'s description, only of what is visible.
    """

    mcp: str = "null"
    files: str = "[]"
    namespaces: str = "[]"
    targets: Mapping[str, NamespaceTarget] = {}
    prompts: tuple[str, ...] = ()


PATH_SEPARATOR = "\x1f"
