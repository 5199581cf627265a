"""The key bindings: Enter asks the parser, and what is typed meanwhile waits its turn."""

from collections.abc import Callable

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer, ValidationState
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codemode.core.types import Language
from codemode.repl.scan import scan
from codemode.repl.syntax import Judge, Verdict
from codemode.repl.validator import CellValidator

_INDENT = "  "


class CellKeys:
    """The bindings of the prompt; `bindings` holds them.

    Contract: repl:input:parser, repl:keys:order
    """

    def __init__(self, judge: Judge, validator: CellValidator, language: Callable[[], Language]) -> None:
        """Ask this judge, and let the validator say what it found wrong."""
        self.bindings = KeyBindings()
        self._judge = judge
        self._validator = validator
        self._language = language
        self._is_deciding = False
        self._held: list[KeyPress] = []
        deciding = Condition(lambda: self._is_deciding)
        typing = has_focus(DEFAULT_BUFFER) & ~is_searching & ~deciding
        self.bindings.add(Keys.Any, filter=deciding, eager=True)(self._hold)
        self.bindings.add("enter", filter=typing)(self._enter)
        self.bindings.add("escape", "enter", filter=typing)(_new_line)
        self.bindings.add("tab", filter=typing & Condition(_is_in_indentation))(_indent)
        for bracket in ")]}":
            self.bindings.add(bracket, filter=typing)(_close)

    def _hold(self, event: KeyPressEvent) -> None:
        self._held += event.key_sequence

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None  # what was chosen from the menu stays
        elif not buffer.document.on_last_line:
            _new_line(event)
        elif not buffer.text.strip() or buffer.text.startswith(":"):
            buffer.validate_and_handle()
        else:
            self._is_deciding = True
            event.app.create_background_task(self._decide(event.app, buffer))

    async def _decide(self, app: "Application[str]", buffer: Buffer) -> None:
        """Ask the parser; run the input, refuse it, or go on with its next line; then type what was held."""
        text = buffer.text
        try:
            verdict = await self._judge.judge(text, self._language())
        finally:
            self._is_deciding = False
        self._act(buffer, text, verdict)
        held, self._held = self._held, []
        app.key_processor.feed_multiple(held)
        app.key_processor.process_keys()

    def _act(self, buffer: Buffer, text: str, verdict: Verdict) -> None:
        if verdict.state == "incomplete":
            is_pasted = bool(self._held)  # by a terminal that types a paste: its lines are indented already
            buffer.insert_text("\n" if is_pasted else "\n" + _indentation(buffer))
        else:
            self._validator.put(text, verdict)
            buffer.validation_state = ValidationState.UNKNOWN  # else it would not ask twice about the same text
            buffer.validate_and_handle()


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n" + _indentation(event.current_buffer))


def _indentation(buffer: Buffer) -> str:
    """Return what the next line begins with: as this one, a step more after an open bracket, nothing in a template."""
    if scan(buffer.document.text_before_cursor).state == "template":
        return ""
    line = buffer.document.current_line_before_cursor
    before = line[: len(line) - len(line.lstrip())]
    return before + (_INDENT if line.rstrip().endswith(("{", "(", "[", "=>")) else "")


def _is_in_indentation() -> bool:
    document = get_app().current_buffer.document
    return bool(document.text.strip()) and not document.current_line_before_cursor.strip()


def _indent(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(_INDENT)


def _close(event: KeyPressEvent) -> None:
    """Type a closing bracket; the first one on its line goes a step back."""
    buffer = event.current_buffer
    line = buffer.document.current_line_before_cursor
    if line.endswith(_INDENT) and not line.strip():
        buffer.delete_before_cursor(len(_INDENT))
    buffer.insert_text(event.data)
