"""Scripted tools: stand-ins with a fixed outcome, for smoke tests and tools that do not exist yet."""

import asyncio

from codemode.core.errors import NestedToolFailed
from codemode.core.limits import MAX_MCP_MESSAGE_BYTES
from codemode.core.types import Json, RunContext
from codemode.definitions import Script


class ScriptedTool:
    """Plays one script; it counts its calls for `failNth`."""

    def __init__(self, script: Script) -> None:
        """Keep the script."""
        self._script = script
        self._calls = 0

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:  # noqa: ARG002
        """Wait for `delayMs`, then give the value or fail.

        Raises:
            NestedToolFailed: The script says so, or this is the call that `failNth` names.

        Contract: tools:scripted:outcomes, tools:scripted:fail-nth
        """
        script = self._script
        self._calls += 1
        this_call = self._calls
        if script.delay_ms:
            await asyncio.sleep(script.delay_ms / 1000)
        if this_call == script.fail_nth:
            raise NestedToolFailed(f"scripted failure of call {this_call}")
        match script.outcome:
            case "error":
                raise NestedToolFailed(str(script.value))
            case "hugeBytes":
                return "x" * min(int(script.value), MAX_MCP_MESSAGE_BYTES)  # more would be refused alike
            case "nonJson":
                return object()
            case _:
                return script.value

    def probe(self) -> None:
        """Find nothing wrong: a script has no outside."""
