"""The validator that prompt-toolkit asks when an input is to be run."""

from prompt_toolkit.document import Document
from prompt_toolkit.validation import ValidationError, Validator

from codemode.core.errors import InvalidInput
from codemode.repl.commands import find_command
from codemode.repl.syntax import Verdict

_COMPLETE = Verdict("complete")


class CellValidator(Validator):
    """Refuses what the parser found wrong, once: the same input is let through the second time.

    A parser and an engine need not agree on everything, and the engine has the last word.

    Contract: repl:input:wrong
    """

    def __init__(self) -> None:
        """Begin without a verdict."""
        self._verdict = _COMPLETE
        self._judged = ""
        self._refused = ""

    def put(self, text: str, verdict: Verdict) -> None:
        """Remember what the parser said of an input."""
        self._judged, self._verdict = text, verdict

    def verdict_of(self, text: str) -> Verdict:
        """Return what the parser said of an input; one that it was not asked about is taken as whole."""
        return self._verdict if text == self._judged else _COMPLETE

    def validate(self, document: Document) -> None:
        """Accept an input, or say what is wrong and where."""
        text = document.text
        verdict = self.verdict_of(text)
        if text.startswith(":"):
            _check_command(text)
        elif verdict.state == "wrong" and text != self._refused:
            self._refused = text
            place = document.translate_row_col_to_index(verdict.line - 1, verdict.column - 1)
            raise ValidationError(place, f"{verdict.message}. Enter once more runs it all the same")


def _check_command(text: str) -> None:
    name = text[1:].partition(" ")[0]
    try:
        find_command(name)
    except InvalidInput as error:
        raise ValidationError(len(name) + 1, error.message) from None
