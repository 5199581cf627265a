"""The loop: read an input, evaluate and print it, again.

It ends at the end of the inputs or with `:quit`. With a person at hand whatever fails is shown and
the session goes on; without one it ends at the first input that fails, which says how.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from codemode.core.errors import Aborted, CodeModeError
from codemode.core.types import CodeModeResult, Failed
from codemode.repl.commands import Commands, Leave
from codemode.repl.driver import Driver
from codemode.repl.printer import Printer
from codemode.repl.reader import Reader

Outcome = CodeModeResult | CodeModeError | None


class Repl:
    """Reads, evaluates, prints."""

    def __init__(
        self, reader: Reader, driver: Driver, commands: Commands, printer: Printer, warnings: list[str]
    ) -> None:
        """Tie the parts together; what comes to be in `warnings` is told between the inputs, and taken out."""
        self._reader = reader
        self._driver = driver
        self._commands = commands
        self._printer = printer
        self._warnings = warnings
        self._faults: list[str] = []

    async def run(self, *, to_first_failure: bool, declare: Callable[[], None]) -> Outcome:
        """Go round until there is nothing more to read.

        Args:
            to_first_failure: Whether to end there: nobody is at hand who could mend it.
            declare: Called after each input, when names may have changed.

        Returns:
            What ended it: a failed result or an error of ours; or None.

        Contract: repl:pipe:status, repl:errors:go-on, mcp:warnings:told
        """
        asyncio.get_running_loop().set_exception_handler(self._on_fault)
        while True:
            try:
                outcome = await self._round()
            except (Leave, EOFError):
                return None
            except KeyboardInterrupt:
                outcome = Aborted("Ctrl-C")
            finally:
                self._tell_what_came_up()
            if to_first_failure and isinstance(outcome, Failed | CodeModeError):
                return outcome
            declare()

    async def _round(self) -> Outcome:
        text, verdict = await self._reader.read(self._driver.number)
        if not text.strip():
            return None
        try:
            habit = self._commands.meant(text)
            if habit or verdict is None:
                return await self._commands.run(habit or text)
            return await self._driver.run(text, verdict)
        except CodeModeError as error:
            self._printer.error(error)
            return error

    def _on_fault(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Remember what broke beside the loop: a task that nobody awaits, a redrawing of the screen."""
        error = context.get("exception")
        self._faults.append(f"{context['message']}: {type(error).__name__}: {error}" if error else context["message"])

    def _tell_what_came_up(self) -> None:
        for warning in self._warnings:
            self._printer.warning(warning)
        for fault in self._faults:
            self._printer.fault(fault)
        self._warnings.clear()
        self._faults.clear()
