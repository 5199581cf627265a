"""Stand-ins for what surrounds the REPL: a screen that remembers, a judge that counts brackets."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from codemode.catalog import Catalog, build_catalog
from codemode.core.types import (
    PATH_SEPARATOR,
    CodeModeResult,
    Completed,
    GuestScope,
    Keep,
    NamespaceTarget,
    OutputItem,
    PendingCall,
    ToolSpec,
    Waiting,
)
from codemode.policy import Policy
from codemode.render.plain import error_text
from codemode.render.report import ErrorReport
from codemode.repl.reader import Input
from codemode.repl.syntax import Verdict


class RecordingScreen:
    """Remembers what is shown, one text for each thing."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def text(self, text: str) -> None:
        self.shown.append(f"text {text}")

    def value(self, value: Any) -> None:
        self.shown.append(f"value {value!r}")

    def note(self, text: str) -> None:
        self.shown.append(f"note {text}")

    def error(self, report: ErrorReport) -> None:
        self.shown.append(error_text(report))

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        self.shown += [" | ".join(row) for row in (headings, *rows)]

    def trajectory(self, trajectory: Any) -> None:
        self.shown.append(f"trajectory of {[run['runId'] for run in trajectory['runs']]}")

    def telemetry(self, telemetry: Any) -> None:
        self.shown.append(f"telemetry {telemetry}")

    def all(self) -> str:
        return "\n".join(self.shown)


class RecordingLookup:
    """Remembers what was asked of the catalog."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda argument: self.asked.append((name, argument))


class BracketJudge:
    """Takes an input as whole when its brackets are closed; `!` in it is wrong. `gate` holds answers back."""

    def __init__(self, names: dict[str, tuple[str, ...]] | None = None) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.judged: list[str] = []
        self._names = names or {}

    async def judge(self, source: str, language: str) -> Verdict:
        self.judged.append(source)
        await self.gate.wait()
        if "!" in source:
            return Verdict("wrong", "Unexpected token", 1, source.index("!") + 1)
        if source.count("{") > source.count("}"):
            return Verdict("incomplete")
        return Verdict("complete", names=self._names.get(source, ()))


class ScriptedReader:
    """Gives prepared inputs and answers; an exception among them is raised."""

    def __init__(self, inputs: Iterable[Any] = (), answers: Iterable[Any] = ()) -> None:
        self._inputs = iter(inputs)
        self._answers = iter(answers)
        self.discarded = 0  # how often what was typed ahead was let go

    async def read(self, number: int) -> Input:
        given = _next(self._inputs)
        return Input(given, None if given.startswith(":") else Verdict("complete"))

    def discard(self) -> None:
        self.discarded += 1

    async def ask(self, question: str) -> str:
        return _next(self._answers)


def _next(given: Any) -> str:
    value = next(given, EOFError())
    if isinstance(value, BaseException):
        raise value
    return value


class ScriptedEngine:
    """A session whose results are prepared; it remembers the ground of each cell and the decisions of each wait."""

    def __init__(self, *results: CodeModeResult) -> None:
        self._results = list(results)
        self.bases: list[bytes | str | None] = []
        self.decided: list[dict[str, bool]] = []
        self.always: list[bool] = []  # whether each wait decided for all later calls, too
        self.snapshots: dict[str, bytes] = {}
        self.stopped = 0

    async def exec(self, raw: Any, *, keep: Keep | None) -> CodeModeResult:
        self.bases.append("fresh" if keep is None else keep.base)
        return self._results.pop(0)

    async def wait(self, raw: Any, decisions: Any, *, always: bool) -> CodeModeResult:
        self.decided.append(dict(decisions))
        self.always.append(always)
        return self._results.pop(0)

    def kept(self, run_id: str) -> bytes | None:
        return self.snapshots.pop(run_id, None)

    def stop(self, reason: str) -> bool:
        self.stopped += 1
        return False


def completed(run_id: str, value: Any = None, *texts: str) -> Completed:
    return Completed(run_id, value, tuple(OutputItem("text", text) for text in texts), {"execCount": 1})


def waiting(run_id: str, *calls: str, state: Any = "awaiting_approval") -> Waiting:
    pending = tuple(PendingCall(call, "call", "plugin:billing:refund", state) for call in calls)
    return Waiting(run_id, "pending_tools" if calls else "yield", pending, (), {"execCount": 1})


async def _never(_input: Any, _context: Any) -> None:
    raise NotImplementedError


def tool(id_: str, parameters: Any = None, description: str = "") -> ToolSpec:
    """Return a tool that nobody calls."""
    source, owner, name = id_.split(":")
    return ToolSpec(id_, name, description or f"Does {name}.", source, owner, parameters or {}, _never)  # type: ignore[arg-type]


ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "note": {"type": "string", "description": "For the parcel."},
        "id": {"type": "string", "description": "Such as o-1001."},
        "status": {"enum": ["open", "paid"]},
        "gift": {"type": "boolean"},
        "ship-to": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "address": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"city": {"type": "string"}}}]},
        "kind": {"const": "order"},
    },
    "$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}}},
}


def catalog_with_everything() -> Catalog:
    """Return a catalog with plain tools, an MCP server with all its parts, and a namespace."""
    tools = [
        tool("plugin:shop:lookup_order", ORDER, "One order by its id."),
        tool("plugin:shop:list_orders", {"type": "object"}),
        tool("client:app:two words", {"properties": {"a": {"type": "number"}}}),
        tool("mcp:every-thing:get_sum", {"properties": {"a": {"type": "number"}, "b": {"type": "number"}}}, "Adds."),
        tool("mcp:every-thing:resources/list"),
        tool("mcp:every-thing:resources/read", {"properties": {"uri": {"type": "string"}}}),
    ]
    paths = {
        "Shop.orders.lookup": tools[0],
        "Shop.orders.cancel": tools[0],
        "MCP.everyThing.getSum": tools[3],
        "MCP.everyThing.resources.list": tools[4],
        "MCP.everyThing.resources.read": tools[5],
    }
    server = {
        "ident": "everyThing", "name": "every-thing", "header": "", "resources": True, "prompts": False,
        "tools": [{"ident": "getSum", "name": "get_sum", "id": tools[3].id, "header": "Adds.", "parameters": {}}],
    }  # fmt: skip
    orders = ["o", {"lookup": ["f"], "cancel": ["f"]}]
    scope = GuestScope(
        mcp=json.dumps({"header": "", "servers": [server]}),
        files='[{"path": "mcp/index.d.ts", "description": "All servers", "text": ""}]',
        namespaces=json.dumps([{"name": "Shop", "node": ["o", {"orders": orders, "currency": ["v", "EUR"]}]}]),
        targets={
            path.replace(".", PATH_SEPARATOR): NamespaceTarget(tool, lambda arguments: arguments[0])
            for path, tool in paths.items()
        },
    )
    return build_catalog(tools, Policy(("*",), (), {})).with_scope(scope)
