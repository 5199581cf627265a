"""JavaScript as far as it is typed: tokens, and the brackets, strings and templates still open.

Not a parser: a cell in the making rarely parses. Enough is read to know inside what the cursor
stands, for completion and, in TypeScript, for telling a finished input from half of one.
Pure; `place.py` makes sense of the result.
"""

import re
from typing import Literal, NamedTuple

_LEXEME = re.compile(
    r"""
      (?P<skip>\s+|//[^\n]*\n|/\*.*?\*/)
    | (?P<comment>//[^\n]*\Z|/\*.*\Z)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<open>"(?:[^"\\\n]|\\.)*\Z|'(?:[^'\\\n]|\\.)*\Z)
    | (?P<word>[\w$]+)
    | (?P<mark>=>|\?\.|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_PAIRS = {")": "(", "]": "[", "}": "{"}
_BEFORE_REGEX = frozenset({"return", "typeof", "case", "do", "else", "in", "of", "void", "delete", "await", "yield"})


class Token(NamedTuple):
    """A word, a quoted text, a mark such as `=>`, or a whole bracketed group, whose text is its opening bracket."""

    kind: Literal["word", "text", "mark", "group"]
    text: str


class Frame(NamedTuple):
    """An open bracket, with the tokens directly inside it; the outermost frame has no bracket."""

    opener: str
    tokens: list[Token]


class Scan(NamedTuple):
    """What stands before the cursor: `frames` from the outermost to the innermost open one.

    `state` says inside what it ends; `partial` is the text of the string that is open then.
    """

    frames: list[Frame]
    state: Literal["code", "string", "template", "comment"]
    partial: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a bracket, a template or a block comment waits for its end."""
        return len(self.frames) > 1 or self.state == "template"


def scan(text: str) -> Scan:
    """Read a text from its beginning to its end."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.frames = [Frame("", [])]

    def run(self) -> Scan:
        while self.at < len(self.text):
            found = _LEXEME.match(self.text, self.at)
            assert found is not None  # the last alternative takes any character
            kind, lexeme = found.lastgroup, found[0]
            if kind == "comment":
                return Scan(self.frames, "comment")
            if kind == "open":
                return Scan(self.frames, "string", lexeme[1:])
            self.at = found.end()
            if kind == "mark":
                self._mark(lexeme)
            elif kind == "word":
                self._add(Token("word", lexeme))
            elif kind == "text":
                self._add(Token("text", lexeme))
        return Scan(self.frames, "template" if self.frames[-1].opener == "`" else "code")

    def _mark(self, mark: str) -> None:
        if mark in _PAIRS:
            self._close(mark)
        elif mark in "([{":
            self.frames.append(Frame(mark, []))
        elif mark == "`":
            self.frames.append(Frame(mark, []))
            self._template()
        elif mark == "/" and self._may_be_regex() and (found := _REGEX.match(self.text, self.at - 1)):
            self.at = found.end()
            self._add(Token("text", found[0]))
        else:
            self._add(Token("mark", mark))

    def _close(self, mark: str) -> None:
        opener = self.frames[-1].opener
        if opener == "${" and mark == "}":
            self.frames.pop()
            self._template()
        elif opener == _PAIRS[mark]:
            self._leave()

    def _template(self) -> None:
        """Read on inside a template, to its end or to the code inside it."""
        found = _TEMPLATE.match(self.text, self.at)
        assert found is not None  # it matches nothing, too
        self.at = found.end()
        if self.text.startswith("`", self.at):
            self.at += 1
            self._leave()
        elif self.at < len(self.text):
            self.at += 2
            self.frames.append(Frame("${", []))

    def _leave(self) -> None:
        closed = self.frames.pop()
        self._add(Token("group", closed.opener))

    def _add(self, token: Token) -> None:
        self.frames[-1].tokens.append(token)

    def _may_be_regex(self) -> bool:
        """Say whether a slash begins a regex: no value stands before it."""
        tokens = self.frames[-1].tokens
        if not tokens:
            return True
        last = tokens[-1]
        return last.kind == "mark" or (last.kind == "word" and last.text in _BEFORE_REGEX)
