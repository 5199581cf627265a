"""What the REPL needs of the command line: somewhere to show values, and answers about the catalog.

The command line implements both with what its other commands use, so a value looks the same
wherever it is shown. Protocols only.
"""

from collections.abc import Sequence
from typing import Protocol

from codemode.core.types import Json
from codemode.render.report import ErrorReport


class Screen(Protocol):
    """Shows one kind of value with each method."""

    def text(self, text: str) -> None:
        """Show a text that a cell put out."""

    def value(self, value: Json) -> None:
        """Show a JSON value."""

    def note(self, text: str) -> None:
        """Remark something about what is shown."""

    def error(self, report: ErrorReport) -> None:
        """Show an error: what, where, what to do."""

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show rows of texts."""

    def trajectory(self, trajectory: Json) -> None:
        """Show what happened in a run, with the input of each call."""

    def telemetry(self, telemetry: Json) -> None:
        """Show the counts of the agent run."""


class Lookup(Protocol):
    """Shows what can be asked of the catalog; an unknown name is `InvalidInput`."""

    def tools(self, pattern: str) -> None:
        """Show the tools whose id or name holds a text; all of them without one."""

    def search(self, query: str) -> None:
        """Show the tools that a query means, best first."""

    def describe(self, tool: str) -> None:
        """Show one tool: what it does, how a cell calls it, and what it takes."""

    def types(self, server: str) -> None:
        """Show the declarations of one MCP server; of all of them without a name."""

    def payload(self, provider: str) -> None:
        """Show the request that a model of a provider would get."""
