"""An error on a terminal, in its one layout: what, where with the offending line, what to do.

The plain twin is `plain.error_text`.
"""

from rich.console import Group, RenderableType
from rich.text import Text

from codemode.render.report import ErrorReport, SourceLine


def render_error(report: ErrorReport) -> RenderableType:
    """Return the report in colour; the caret stands under the offending column.

    Contract: cli:errors:layout
    """
    code = f" [{report.code}]" if report.code else ""
    parts: list[RenderableType] = [Text.assemble(("error", "bold red"), (code, "red"), ": ", report.what)]
    if report.place:
        parts.append(Text.assemble("  at ", (report.place, "bold")))
    width = len(str(report.source[-1].number)) if report.source else 0
    parts.extend(_source_line(line, width) for line in report.source)
    if report.advice:
        parts.append(Text.assemble("  ", (report.advice, "cyan")))
    return Group(*parts)


def _source_line(line: SourceLine, width: int) -> Text:
    number = (f"  {line.number:>{width}} │ ", "dim")
    if line.caret is None:
        return Text.assemble(number, line.text, no_wrap=True)
    caret = Text.assemble(("\n" + " " * (width + 3) + "│ ", "dim"), " " * line.caret, ("^", "bold red"))
    return Text.assemble(number, (line.text, "bold"), no_wrap=True) + caret
