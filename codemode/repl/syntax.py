"""What the parser says of an input: whether it is whole, what is wrong with it, what it declares.

The parser runs in a worker, beside hostile code and never here; it is asked at the end of a
line, not at each key press. Where it cannot be asked, the engine will say what is wrong.
"""

import re
from typing import Literal, NamedTuple, Protocol

from codemode.core.errors import RuntimeUnavailable
from codemode.core.types import Json, Language
from codemode.repl.scan import scan
from codemode.supervisor.pool import WorkerPool

_NAMED = re.compile(r"\s*(?:(?:async\s+)?function\b\s*\*?|class\b)\s*([\w$]+)")


class Verdict(NamedTuple):
    """What an input is; `message`, `line` and `column` (from 1) say what is wrong and where.

    names: What it declares.
    is_expression: Whether it is one single expression.
    """

    state: Literal["complete", "incomplete", "wrong"]
    message: str = ""
    line: int = 1
    column: int = 1
    names: tuple[str, ...] = ()
    is_expression: bool = False


class Judge(Protocol):
    """Who is asked about an input."""

    async def judge(self, source: str, language: Language) -> Verdict:
        """Say what an input is."""


class Syntax:
    """Asks the parser of the workers."""

    def __init__(self, pool: WorkerPool) -> None:
        """Use the workers of a session."""
        self._pool = pool

    async def judge(self, source: str, language: Language) -> Verdict:
        """Say whether an input can run, or waits for its other half.

        A TypeScript input is read by its brackets where it is no JavaScript.

        Contract: repl:input:parser
        """
        try:
            answer = await self._inspect(source)
        except RuntimeUnavailable:
            return Verdict("complete")
        error = answer.get("error")
        if error is None:
            return _complete(answer, source)
        if error.get("incomplete"):
            return Verdict("incomplete")
        if language == "typescript":
            return Verdict("incomplete" if scan(source).is_open else "complete")
        hint = "; is it TypeScript? :language typescript" if error.get("typescript") else ""
        return Verdict("wrong", error["message"] + hint, error["line"], error["column"])

    async def _inspect(self, source: str) -> dict[str, Json]:
        worker = await self._pool.acquire()
        try:
            return await worker.inspect(source, ["names"])
        finally:
            self._pool.release(worker)


def _complete(answer: dict[str, Json], source: str) -> Verdict:
    named = _NAMED.match(source)  # a sole function or class is read as the value that it is, and declares all the same
    names = answer["names"] or ([named[1]] if named and answer["form"] != "statements" else [])
    return Verdict("complete", names=tuple(names), is_expression=answer["form"] == "expression" and not named)
