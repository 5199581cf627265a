"""A double for a tool: it answers as it was told and remembers what it was asked.

For the tests of programs that use `CodeMode`, and for cells whose tools do not exist yet.
"""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from codemode.core.types import Json
from codemode.definitions import ToolEntry
from codemode.library.functions import ToolFields, tool

_ANYTHING: dict[str, Json] = {"type": "object"}


class MockTool:
    """Stands for a tool; `calls` holds the input of each call so far, in their order.

    weather = MockTool("weather", answers=[{"sky": "clear"}, TimeoutError("no answer")])
    """

    def __init__(
        self, name: str, returns: Any = None, *, answers: Iterable[Any] | None = None, **fields: Unpack[ToolFields]
    ) -> None:
        """Script its answers.

        Args:
            name: The tool's name; its id is `client:app:<name>`.
            returns: What every call gives. An exception is raised; a function, an asynchronous one too, is called
                with the input.
            answers: One for each call instead, each as `returns`; a call beyond them fails and says so.
            **fields: What else there is to say of the tool, as for `tool`; any object is an input
                unless `parameters` says otherwise.

        Contract: library:mock:scripted, library:mock:calls
        """
        self.calls: list[dict[str, Json]] = []
        self._returns = returns
        self._answers: Iterator[Any] | None = None if answers is None else iter(answers)
        stated: ToolFields = {"description": f"A double of {name}.", "parameters": _ANYTHING, **fields}
        self._entry = tool(self._answer, name, **stated)

    @property
    def entry(self) -> ToolEntry:
        """The tool, as a session takes it."""
        return self._entry

    async def _answer(self, input: dict[str, Json]) -> Any:  # noqa: A002  # so it gets the whole input
        self.calls.append(input)
        answer = self._returns if self._answers is None else self._next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        given = answer(input) if callable(answer) else answer
        return await given if inspect.isawaitable(given) else given

    def _next(self, answers: Iterator[Any]) -> Any:
        nothing = object()
        answer = next(answers, nothing)
        if answer is nothing:
            raise LookupError(f"{self._entry.name} has no answer for call {len(self.calls)}; script one more")
        return answer
