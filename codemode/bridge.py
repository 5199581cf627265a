"""What a cell may ask of its host, besides time: search, describe, call, namespace.

The narrow place between hostile code and tools. Every id and every path is resolved here
again, whatever the guest believes; each request is answered by JSON text or by a rejection
that the guest sees as a plain Error. Called by the live run; timers and yields are its own.
"""

import json
from collections.abc import Coroutine
from typing import Any, NamedTuple

from codemode.catalog import Catalog
from codemode.core.errors import CodeModeError, InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES, Limits
from codemode.core.names import did_you_mean
from codemode.core.types import PATH_SEPARATOR, BridgeCall, BridgeReply, Json, RunContext, ToolSpec
from codemode.executor import Executor, Method, ToolOutcome


class Target(NamedTuple):
    """What a nested call came down to: a tool of the catalog and the input for it."""

    tool: ToolSpec
    input: Json


class Bridge:
    """Serves the requests of one run: its catalog, one executor, its limits."""

    def __init__(self, catalog: Catalog, executor: Executor, limits: Limits) -> None:
        """Keep what requests are answered from."""
        self._catalog = catalog
        self._executor = executor
        self._limits = limits

    def look_up(self, call: BridgeCall) -> BridgeReply:
        """Answer a `search` or a `describe`.

        Contract: bridge:search:limits, bridge:describe:rejects, bridge:replies:bounded
        """
        try:
            _check_size(call)
            value = self._search(call) if call.method == "search" else self._catalog.describe(call.target)
            return _bounded(call, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        except NestedToolFailed as error:
            return reject(call.id, error)

    def resolve(self, call: BridgeCall) -> Target:
        """Return what a `call` or `namespace` request leads to.

        Raises:
            NestedToolFailed: Unknown or ambiguous, or arguments that the path does not take.

        Contract: bridge:call:resolved-on-host, bridge:namespace:forged, bridge:arguments:bounded
        """
        _check_size(call)
        if call.method == "call":
            return Target(self._catalog.resolve(call.target), call.payload)
        target = self._catalog.scope.targets.get(call.target)
        if target is None:
            raise NestedToolFailed(self._unknown_path(call.target))
        try:
            return Target(target.tool, target.to_input(_arguments(call)))
        except InvalidInput as error:
            raise NestedToolFailed(error.message, target.tool.id) from error

    def recall(self, tool_id: str, given: Json) -> Target:
        """Return the target of a call that was resolved in an earlier process.

        Raises:
            NestedToolFailed: The tool is gone.

        Contract: bridge:recall:gone
        """
        tool = self._catalog.tool(tool_id)
        if tool is None:
            raise NestedToolFailed(f"{tool_id} is not available any more", tool_id)
        return Target(tool, given)

    def carry_out(
        self, call: BridgeCall, target: Target, context: RunContext, approved: bool = False
    ) -> Coroutine[Any, Any, ToolOutcome]:
        """Run a resolved call through the executor.

        Raises:
            NestedToolFailed: The guest sees it as a rejection: `reject` gives its reply.
            ApprovalNeeded: A person must decide first; nothing has run.

        Contract: bridge:call:plain-value, bridge:call:rejection
        """
        method: Method = "call" if call.method == "call" else "namespace"
        return self._executor.call(target.tool, target.input, context, method=method, approved=approved)

    def _search(self, call: BridgeCall) -> Json:
        limit = self._limits.search_default_limit if call.payload is None else call.payload
        answer = self._catalog.search(call.target, min(limit, self._limits.max_search_limit))
        return {"entries": answer.entries, "hint": answer.hint}

    def _unknown_path(self, path: str) -> str:
        shown = path.replace(PATH_SEPARATOR, ".")[:200]
        known = [known.replace(PATH_SEPARATOR, ".") for known in self._catalog.scope.targets]
        return f'nothing can be called at "{shown}".{did_you_mean(shown, known)}'


def reject(call_id: int, error: CodeModeError) -> BridgeReply:
    """Return the rejection that the guest sees: a plain Error with `message`, `code`, `toolId`."""
    tool_id = error.tool_id if isinstance(error, NestedToolFailed) else None
    shown = {"name": "Error", "message": error.message, "code": error.code, "toolId": tool_id}
    return BridgeReply(call_id, False, json.dumps(shown, ensure_ascii=False, separators=(",", ":")))


def _check_size(call: BridgeCall) -> None:
    if call.excess_bytes:
        raise NestedToolFailed(
            f"the arguments of one turn are larger than {MAX_BRIDGE_BYTES} bytes (this request: {call.excess_bytes})"
        )


def _bounded(call: BridgeCall, text: str) -> BridgeReply:
    size = len(text.encode())
    if size > MAX_BRIDGE_BYTES:
        raise NestedToolFailed(
            f"the answer of {call.method} has {size} bytes; the bridge takes {MAX_BRIDGE_BYTES}. Ask for less"
        )
    return BridgeReply(call.id, True, text)


def _arguments(call: BridgeCall) -> list[Json]:
    arguments = call.payload.get("args")
    if not isinstance(arguments, list):
        raise InvalidInput("a namespace call carries no list of arguments")
    return arguments
