"""Print: results and their parts, in order, each output item once.

It knows the screen and nothing about evaluation; outputs may come early, while a cell runs.
"""

from collections.abc import Callable, Sequence

from codemode.core.errors import CodeModeError
from codemode.core.events import CallParked
from codemode.core.types import Completed, Failed, OutputItem, PendingCall, Waiting
from codemode.render.report import report_of_error, report_of_result
from codemode.render.words import counted
from codemode.repl.evaluator import Evaluated
from codemode.repl.screen import Screen


class Printer:
    """Prints what became of cells."""

    def __init__(self, screen: Screen, redact: Callable[[str], str] = str) -> None:
        """Print on a screen; what is shown of a cell beside its error goes through `redact`."""
        self._screen = screen
        self._redact = redact
        self._shown = 0  # of the outputs since the last result

    def stream(self, outputs: Sequence[OutputItem]) -> None:
        """Print what is new of the outputs since the last result.

        Contract: repl:output:streams
        """
        for item in outputs[self._shown :]:
            if item.type == "json":
                self._screen.value(item.value)
            else:
                self._screen.text(item.value)
        self._shown = len(outputs)

    def result(self, evaluated: Evaluated, *, is_asked: bool = False) -> None:
        """Print the rest of the outputs, then the value, the error, or what the cell waits for.

        Args:
            evaluated: What became of a cell.
            is_asked: Whether a person is asked next, so that nothing need be said of waiting.

        Contract: repl:value:prints
        """
        result, cell, overtook = evaluated
        self.stream(result.output)
        self._shown = 0
        match result:
            case Completed():
                if result.value is not None:
                    self._screen.value(result.value)
            case Failed():
                self._screen.error(report_of_result(result.to_json(), self._redact(cell.source), cell.name))
            case Waiting() if not is_asked:
                self._waiting(result)
        if overtook:
            self._screen.note(f"variables are now those of cell {cell.name}; :undo goes back to the later cells")

    def given_up(self) -> None:
        """Say that a cell was given up before it had a result."""
        self._shown = 0
        self._screen.note("aborted")

    def cut_short(self) -> None:
        """Say that Ctrl-C ended the printing of a result."""
        self._shown = 0
        self._screen.note("… the rest was not printed")

    def put_off(self) -> None:
        """Say how a decision that was put off is made."""
        self._screen.note("it waits; :approve and :deny decide")

    def error(self, error: CodeModeError) -> None:
        """Print an error of ours."""
        self._screen.error(report_of_error(error))

    def warning(self, text: str) -> None:
        """Print what a server did that a person should know."""
        self._screen.note(f"codemode: {text}")

    def fault(self, text: str) -> None:
        """Print what broke beside the cells."""
        self._screen.note(f"a fault of codemode: {text}")

    def question(self, call: PendingCall, parked: CallParked | None) -> None:
        """Print the call that a person is to decide on, with its redacted input and why a hook asks.

        Contract: approvals:run:shown
        """
        self._screen.note(f"{call.tool_id} wants to run (call {call.id}), with")
        self._screen.value(parked and parked.input)
        if parked is not None and parked.reason:
            self._screen.note(f"a hook asks: {parked.reason}")

    def passed(self, tool: str, count: int) -> None:
        """Say that calls run without being asked about."""
        self._screen.note(f"{counted(count, 'call')} of {tool} approved: you said always")

    def remembered(self, tool: str) -> None:
        """Say what an approval for the session means, and how it is taken back."""
        self._screen.note(f"{tool} runs without asking until you leave; :ask asks again")

    def _waiting(self, result: Waiting) -> None:
        asked = [call for call in result.pending if call.state == "awaiting_approval"]
        if result.reason == "yield":
            self._screen.note("the cell yielded; :wait goes on with it")
            return
        for call in result.pending:
            self._screen.note(f"  {_pending(call)}")
        how = ":wait goes on with it" if len(asked) < len(result.pending) else ":approve or :deny decides"
        self._screen.note(f"the cell waits for {counted(len(result.pending), 'open call')}; {how}")


def _pending(call: PendingCall) -> str:
    return f"{call.id}  {call.tool_id or call.method}  {call.state.replace('_', ' ')}"
