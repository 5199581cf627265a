"""The lexer that prompt-toolkit asks for colours: JavaScript or TypeScript, and `:commands`."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer, PygmentsLexer

from codemode.core.types import Language

if TYPE_CHECKING:
    from collections.abc import Hashable


class CellLexer(Lexer):
    """Colours an input as what it is.

    Contract: repl:input:highlighted
    """

    def __init__(self, language: Callable[[], Language]) -> None:
        """Read cells as the session's language of the moment."""
        self._language = language

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function from a line's number to its coloured parts."""
        text = document.text
        if not text:
            return lambda _line: []
        if text.startswith(":"):
            return lambda line: _command(document.lines[line])
        return pygments_lexer(self._language()).lex_document(document)

    def invalidation_hash(self) -> "Hashable":
        """Return what changes when the same text gets other colours."""
        return self._language()


@cache
def pygments_lexer(language: Language) -> PygmentsLexer:
    """Return the lexer of a language."""
    from pygments.lexers.javascript import JavascriptLexer, TypeScriptLexer  # 35 ms, after the prompt is there

    return PygmentsLexer(TypeScriptLexer if language == "typescript" else JavascriptLexer)


def _command(line: str) -> StyleAndTextTuples:
    name, space, argument = line.partition(" ")
    return [("class:command", name), ("", space), ("class:command.argument", argument)]
