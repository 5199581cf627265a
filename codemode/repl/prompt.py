"""The reader of a real terminal: prompt-toolkit's session, put together from our parts.

Loading this module loads prompt-toolkit, so only a REPL on such a terminal does.
"""

import asyncio
import os
import termios
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input as Keyboard
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.patch_stdout import patch_stdout

from codemode.core.types import Language
from codemode.repl.bindings import CellKeys
from codemode.repl.commands import Argument
from codemode.repl.completer import CellCompleter, SafeCompleter
from codemode.repl.history import PrivateHistory
from codemode.repl.index import Word
from codemode.repl.lexer import CellLexer, pygments_lexer
from codemode.repl.reader import Input
from codemode.repl.style import STYLE
from codemode.repl.syntax import Judge
from codemode.repl.toolbar import Toolbar
from codemode.repl.validator import CellValidator
from codemode.repl.vocabulary import Vocabulary

_SOON = ("rich.console", "codemode.render.value", "codemode.render.error")  # 80 ms; the first result needs them
_MENU_LINES = 8  # kept free below the input, as far as the window has them
_OTHER_LINES = 3  # of a window: the input, the bar, what the parser says
_REFRESH_S = 1.0  # the VM's age in the bottom bar


class Parts(NamedTuple):
    """What the prompt is made of; `history` is a file, `arguments` gives what fits a command's argument.

    keyboard, display: Those of a test; without them the terminal of this process.
    """

    judge: Judge
    vocabulary: Vocabulary
    toolbar: Toolbar
    language: Callable[[], Language]
    arguments: Callable[[Argument], Iterable[Word]]
    history: Path
    keyboard: Keyboard | None = None
    display: Output | None = None


class PromptReader:
    """Reads inputs with editing, highlighting, completion and history."""

    def __init__(self, parts: Parts) -> None:
        """Put the session together; nothing is drawn yet."""
        self._parts = parts
        self._validator = CellValidator()
        self._session = self._build_session()
        self._asking: PromptSession[str] = PromptSession(input=parts.keyboard, output=parts.display, style=STYLE)
        self._warming: asyncio.Future[None] | None = None

    def _build_session(self) -> "PromptSession[str]":
        parts = self._parts
        completer = CellCompleter(parts.vocabulary, parts.arguments)
        return PromptSession(
            multiline=True,
            lexer=CellLexer(parts.language),
            completer=SafeCompleter(completer, self._on_fault),
            validator=self._validator,
            validate_while_typing=False,
            history=PrivateHistory(parts.history),
            key_bindings=CellKeys(parts.judge, self._validator, parts.language).bindings,
            bottom_toolbar=parts.toolbar,
            prompt_continuation=_continuation,
            style=STYLE,
            include_default_pygments_style=False,
            search_ignore_case=True,
            enable_suspend=True,
            enable_open_in_editor=True,
            tempfile_suffix=lambda: ".ts" if parts.language() == "typescript" else ".js",
            refresh_interval=_REFRESH_S,
            color_depth=ColorDepth.from_env(),
            input=parts.keyboard,
            output=parts.display,
        )

    async def read(self, number: int) -> Input:
        """Show the prompt and return what was typed.

        Raises:
            EOFError: Ctrl-D in an empty input.
            KeyboardInterrupt: Ctrl-C.

        Contract: repl:ctrl-c:clears, repl:ctrl-d:leaves
        """
        rows = self._session.output.get_size().rows
        self._session.reserve_space_for_menu = max(min(_MENU_LINES, rows - _OTHER_LINES), 0)
        with patch_stdout(raw=True):  # what tools print meanwhile goes above the prompt
            text = await self._session.prompt_async(
                [("class:prompt", f"[{number}]> ")], pre_run=self._warm, set_exception_handler=False
            )
        self._parts.toolbar.fault = ""
        is_cell = text.strip() and not text.startswith(":")
        return Input(text, self._validator.verdict_of(text) if is_cell else None)

    def discard(self) -> None:
        """Let go of what was typed ahead.

        Contract: repl:approvals:typed-ahead
        """
        keyboard = self._asking.input
        clear_typeahead(keyboard)
        if os.isatty(keyboard.fileno()):
            termios.tcflush(keyboard.fileno(), termios.TCIFLUSH)

    async def ask(self, question: str) -> str:
        """Show a question and return the line that answers it."""
        return (await self._asking.prompt_async(question, set_exception_handler=False)).strip()

    def _warm(self) -> None:
        """Build, once the prompt is there, what the first key press would wait for."""
        if self._warming is None:
            self._warming = asyncio.get_running_loop().run_in_executor(None, self._load)

    def _load(self) -> None:
        pygments_lexer(self._parts.language())
        self._parts.vocabulary.warm()
        for name in _SOON:
            import_module(name)

    def _on_fault(self, sentence: str) -> None:
        self._parts.toolbar.fault = sentence


def _continuation(width: int, _line: int, wraps: int) -> StyleAndTextTuples:
    """Return what stands before a further line; nothing is seen before the rest of one that the terminal wraps."""
    return [("class:continuation", " " * width if wraps else f"{'.' * (width - 2)}> ")]
