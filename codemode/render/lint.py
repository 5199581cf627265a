"""What `catalog lint` and `catalog diff` found, on a terminal; the plain twins are in `plain_lint`."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from codemode.core.types import Json
from codemode.render.plain_lint import (
    diff_lines,
    diff_summary,
    finding_text,
    rule_sums,
    shown_findings,
    verdict_lines,
)
from codemode.render.words import printable

_MARKS = {"error": ("✗ ", "bold red"), "warning": ("! ", "yellow")}
_DIFF_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def render_lint(report: Mapping[str, Json], *, every: bool) -> RenderableType:
    """Return the errors under their tools, the warnings by rule or each of them, and a line for each provider.

    Contract: cli:catalog:lint
    """
    parts: list[RenderableType] = []
    for tool_id, findings in shown_findings(report, every=every):
        parts.append(Text(printable(tool_id), "bold cyan"))
        for finding in findings:
            line = Text.assemble(
                "  ", _MARKS[finding["severity"]], f"{finding_text(finding)}. ", (finding["fix"], "dim")
            )
            parts.append(line)
    for total in () if every else rule_sums(report):
        head = Text.assemble(_MARKS["warning"], (f"{total.provider} {total.rule}", "bold"), f", {total.where}")
        parts.append(Text.assemble(head, f"\n    {total.says}.\n", (f"    {total.fix}", "dim")))
    return Group(*parts, *(Text(line) for line in verdict_lines(report, every=every)))


def render_diff(difference: Mapping[str, Json]) -> RenderableType:
    """Return each difference on a line of its own, and their counts.

    Contract: cli:catalog:diff
    """
    lines = [Text(line, _DIFF_STYLES[mark]) for mark, line in diff_lines(difference)]
    return Group(*lines, Text(diff_summary(difference), "dim"))
