"""What a person decides about calls that await approval, and which tools run from then on without asking.

An answer can hold for one call, or for its tool until the session ends. Nothing of it is stored.
"""

from collections.abc import Mapping, Sequence

from codemode.core.events import CallParked
from codemode.core.types import PendingCall
from codemode.repl.evaluator import Decision
from codemode.repl.printer import Printer
from codemode.repl.reader import Reader

_ANSWERS = {
    "y": "yes", "yes": "yes", "n": "no", "no": "no", "a": "always", "always": "always", "l": "later", "later": "later",
    "": "later",
}  # fmt: skip
_QUESTION = "run it? [y]es, [n]o, [a]lways in this session, [l]ater: "


class Approvals:
    """Asks a person about calls, except about those of tools that were approved for the session.

    Contract: repl:approvals:in-place, repl:approvals:always, repl:approvals:typed-ahead
    """

    def __init__(self, reader: Reader, printer: Printer) -> None:
        """Ask about everything at first."""
        self.always: set[str] = set()  # tool ids
        self._reader = reader
        self._printer = printer

    async def decide(self, asked: Sequence[PendingCall], parked: Mapping[str, CallParked | None]) -> Decision:
        """Return what is decided of these calls; a call that is not in it is put off.

        Args:
            asked: Calls that await approval.
            parked: Call id → its redacted input, and why a hook asks, to be shown.

        Raises:
            EOFError, KeyboardInterrupt: The person gave no answer; nothing is remembered then.
        """
        calls: dict[str, bool] = {}
        always: set[str] = set()
        passed: dict[str, int] = {}
        for call in asked:
            tool = call.tool_id or ""
            if tool in self.always | always:
                calls[call.id] = True
                passed[tool] = passed.get(tool, 0) + 1
                continue
            self._reader.discard()
            self._printer.question(call, parked.get(call.id))
            answer = await self._answer()
            if answer == "always" and tool:
                always.add(tool)
            if answer != "later":
                calls[call.id] = answer != "no"
        for tool, count in passed.items():
            self._printer.passed(tool, count)
        self.remember(always)
        return self.decision(calls, asked)

    def decision(self, calls: Mapping[str, bool], asked: Sequence[PendingCall]) -> Decision:
        """Return these decisions; they hold for the run if all that may run are calls of tools approved always."""
        approved = {call.tool_id for call in asked if calls.get(call.id)}
        return Decision(calls, bool(approved) and approved <= self.always)

    def remember(self, tools: set[str]) -> None:
        """Approve every later call of these tools, and say so."""
        for tool in sorted(tools - self.always):
            self._printer.remembered(tool)
        self.always |= tools

    async def _answer(self) -> str:
        while True:
            answer = _ANSWERS.get((await self._reader.ask(_QUESTION)).lower())
            if answer is not None:
                return answer
