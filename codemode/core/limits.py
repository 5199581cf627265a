"""The one table of numbers: each with its unit in the name and its reason beside it.

`LIMITS` holds what a manifest may set; the constants below it hold the fixed bounds of the
engine, the bridge and the worker. Nothing else in the package spells a limit.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Limit(NamedTuple):
    """One numeric setting of `[tools.codeMode]`: its names, its default and its clamp."""

    name: str
    alias: str
    default: int
    low: int
    high: int
    why: str


LIMITS: tuple[Limit, ...] = (
    Limit("timeout_ms", "timeoutMs", 10_000, 100, 60_000, "wall clock of one exec or wait"),
    Limit("memory_limit_bytes", "memoryLimitBytes", 64 << 20, 1 << 20, 1 << 30, "heap of the cell; 1 MiB boots"),
    Limit("max_output_bytes", "maxOutputBytes", 65_536, 1024, 10 << 20, "outputs and value of a whole run"),
    Limit("max_snapshot_bytes", "maxSnapshotBytes", 10 << 20, 1024, 256 << 20, "stored bytes of one suspended run"),
    Limit("max_pending_tool_calls", "maxPendingToolCalls", 16, 1, 128, "nested calls open at once"),
    Limit("snapshot_ttl_seconds", "snapshotTtlSeconds", 900, 1, 86_400, "how long a suspended run can be resumed"),
    Limit("search_default_limit", "searchDefaultLimit", 8, 1, 50, "entries of a search without a limit"),
    Limit("max_search_limit", "maxSearchLimit", 50, 1, 50, "entries of any search"),
)


class Limits(NamedTuple):
    """The limits in force for one run, all within their clamps."""

    timeout_ms: int = 10_000
    memory_limit_bytes: int = 64 << 20
    max_output_bytes: int = 65_536
    max_snapshot_bytes: int = 10 << 20
    max_pending_tool_calls: int = 16
    snapshot_ttl_seconds: int = 900
    search_default_limit: int = 8
    max_search_limit: int = 50

    def to_json(self) -> dict[str, int]:
        """Return the limits under their contract names: `{"timeoutMs": 10000, …}`."""
        return {limit.alias: getattr(self, limit.name) for limit in LIMITS}


class Clamp(NamedTuple):
    """A number that was out of range: what was found and what is used instead."""

    alias: str
    found: int
    used: int


def clamp_limits(given: Mapping[str, int]) -> tuple[Limits, tuple[Clamp, ...]]:
    """Build limits from numbers under their Python names, and say which were clamped.

    Args:
        given: `{"timeout_ms": 500}`; names that are missing keep their default.

    Returns:
        The limits and one `Clamp` for each number that was moved into its range.
    """
    values: dict[str, int] = {}
    clamps: list[Clamp] = []
    for limit in LIMITS:
        found = given.get(limit.name, limit.default)
        used = min(max(found, limit.low), limit.high)
        if used != found:
            clamps.append(Clamp(limit.alias, found, used))
        values[limit.name] = used
    if values["search_default_limit"] > values["max_search_limit"]:
        if "search_default_limit" in given:
            clamps.append(Clamp("searchDefaultLimit", values["search_default_limit"], values["max_search_limit"]))
        values["search_default_limit"] = values["max_search_limit"]
    return Limits(**values), tuple(clamps)


MAX_LIVE_SUSPENDED_RUNS = 64  # per session: a model that forgets its runs must not fill the store
MAX_OTHER_PENDING = 1024  # searches, describes, timers, yields: cheap, but not unbounded
MAX_BRIDGE_BYTES = 8 << 20  # JSON of one turn's arguments, and of each delivered result
MAX_ERROR_BYTES = 8 << 10  # a failed result's `error`
MAX_SAFE_INTEGER = 2**53  # what a JavaScript number holds exactly
MAX_JSON_DEPTH = 100  # deeper values are refused by the adapter on either side
MAX_FRAME_BYTES = 512 << 20  # a frame holds at most a snapshot (256 MiB) or a cell's rows
KILL_GRACE_MS = 150  # from deadline to SIGKILL, for built-ins that never poll
STORE_HEADROOM_BYTES = 16 << 20  # wasm memory above the cell's limit: lets the prelude report
GUEST_STACK_BYTES = 512 << 10  # 768 KiB trapped on hostile recursion, 96 KiB gave 407 frames
WASM_STACK_BYTES = 16 << 20  # native stack that GUEST_STACK_BYTES of interpreter frames needs
WORKER_STACK_BYTES = 64 << 20  # of the worker's process; must exceed WASM_STACK_BYTES
WORKER_DATA_BYTES = 1536 << 20  # private memory of a worker: the largest cell (1 GiB) and all else
WORKER_START_MS = 30_000  # from spawn to `ready`; the first start on a machine compiles the engine
INSPECT_MS = 2000  # to parse what is being typed; the REPL asks at each end of a line
WORKER_ANSWER_MS = 30_000  # for a snapshot of a large memory, or to drop a VM
WORKER_MAX_CELLS = 1000  # after which a worker is replaced: leaks stay small
MAX_HEADER_BYTES = 1 << 20  # a frame's JSON header, the error text included
MAX_TURN_BYTES = 40 << 20  # a turn's rows: arguments, outputs and value, each at its largest, and brackets
STDERR_TAIL_BYTES = 4096  # what an error shows of a dead process's last words
MAX_CHECK_STEPS = 100_000  # rules that one input is checked by, where jsonschema must be asked: a second or two
PATTERN_MS = 100  # for all texts of one input that are matched with patterns of its schema
HOOK_TIMEOUT_MS = 10_000  # a hook that does not answer blocks the call
MAX_TOOL_THREADS = 128  # synchronous python tools running at once: the highest maxPendingToolCalls
MAX_HTTP_REDIRECTS = 5  # of one http tool's call
HTTP_CONNECT_MS = 10_000  # to reach a host; the answer itself is bounded by the tool's timeoutMs
ERROR_EXCERPT_CHARS = 500  # of a response body or a rejected value, in an error
MCP_START_MS = 30_000  # spawn, handshake and tool list of a server: a cold `npx` downloads first
MCP_CALL_MS = 60_000  # what other MCP clients wait for one answer
MCP_SIGN_IN_MS = 300_000  # for a person to sign in at a server with the browser
MCP_RETRY_MS = 30_000  # a server that failed is not tried again sooner, so that a REPL stays quick
MCP_EXIT_MS = 100  # from a closed stdin to SIGTERM: most servers leave by themselves within 20 ms
MCP_LISTED_EXIT_MS = 30  # the same, of a server that was only listed and has nothing to finish
MCP_TERM_MS = 1000  # from SIGTERM to SIGKILL of a server's whole group
MCP_KILL_MS = 5000  # from SIGKILL until it is gone: at once, where the machine has time for it
MAX_MCP_PAGES = 200  # of one tool list: a server whose cursors never end must not hold the run
MAX_MCP_MESSAGE_BYTES = 64 << 20  # one message of a server; results above MAX_BRIDGE_BYTES are refused by name
MAX_OPENAPI_DEFINITIONS = 100  # schemas in the $defs of one operation: large documents refer to hundreds, in circles
MAX_DECLARED_NODES = 1000  # schema nodes of one tool's declaration; the rest is `unknown`
MAX_REPEATED_CHARS = 100_000  # of properties that references bring into one declaration again; the rest is any object
MAX_DECLARED_DEPTH = 12  # nesting of one declaration; deeper is `unknown`
PARK_AFTER_MS = 5  # a cell that waits for its calls keeps its worker so long: what parking costs
MIN_TURN_MS = 10  # with less than this before the deadline nothing is delivered any more: the run waits instead
INBOX_POLL_MS = 20  # how often a wait looks for answers that another process carries
UPKEEP_MS = 250  # how often a process with live runs writes events and heeds aborts from elsewhere
SWEEP_MS = 30_000  # how often it expires runs
KEEP_ENDED_DAYS = 30  # an ended run and its log stay so long for `runs` and `trace`
KEEP_ENDED_RUNS = 10_000  # and no longer than until so many have begun after it: a busy store stays bounded too
KEEP_ENGINE_DAYS = 30  # a compiled engine that no build has used for so long goes from the cache
PRUNE_BATCH = 100  # ended runs removed in one transaction: others wait no longer than for any write
PRUNE_MS = 20  # what one sweep spends on removing them, batch by batch; every command begins with one
HTTP_SILENCE_MS = 300_000  # an http tool without a timeoutMs gives up when nothing arrives for so long
COMMAND_FLUSH_MS = 250  # what a finished command's children may still write before its group is killed
CALL_EXIT_MS = 2000  # how long the end of a session waits for calls that it cancelled
MAX_LISTED_FILES = 10_000  # entries of one list_files or search_files: more is no answer
MAX_SEARCHED_FILE_BYTES = 4 << 20  # larger files are not searched for text
CORE_EXEC_MS = 60_000  # of the core tool exec
