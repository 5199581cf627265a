"""The plain twins for `catalog lint` and `catalog diff`: what is wrong, or different, one line each.

Standard library only. Warnings are summed up by rule unless each is asked for: a usual MCP server
has dozens of them, and in a CI log nobody would find the error among them.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from codemode.core.types import Json
from codemode.render.words import counted, one_line, printable

_FORMS = {"strict": " strict", "openapi": " parameters"}
_MAX_CHARS = 200  # of a value in a difference


class RuleSum(NamedTuple):
    """What one rule of a provider warns of: how often, what, and what to do."""

    provider: str
    rule: str
    where: str
    says: str
    fix: str


def lint_text(report: Mapping[str, Json], *, every: bool) -> str:
    """Return the errors under their tools, the warnings by rule, and a line for each provider.

    Args:
        report: As `cli.catalog_lint.build_lint` makes it.
        every: Show each warning under its tool, too.

    Contract: cli:catalog:lint-summary
    """
    lines: list[str] = []
    for tool_id, findings in shown_findings(report, every=every):
        lines.append(printable(tool_id))
        lines += [f"  {each['severity']:<7}  {finding_text(each)}. {each['fix']}" for each in findings]
    for total in () if every else rule_sums(report):
        lines.append(f"warning  {total.provider} {total.rule}, {total.where}: {total.says}. {total.fix}")
    return "\n".join([*lines, *verdict_lines(report, every=every)])


def shown_findings(report: Mapping[str, Json], *, every: bool) -> Iterator[tuple[str, list[Mapping[str, Json]]]]:
    """Yield each tool with the findings that are shown under it: its errors, or all."""
    found = [each for each in report["findings"] if every or each["severity"] == "error"]
    for tool_id, findings in groupby(found, key=lambda finding: str(finding["toolId"])):
        yield tool_id, list(findings)


def rule_sums(report: Mapping[str, Json]) -> list[RuleSum]:
    """Return the warnings by provider and rule, the one of most tools first."""
    by_rule: dict[tuple[str, str], list[Mapping[str, Json]]] = {}
    for finding in report["findings"]:
        if finding["severity"] == "warning":
            by_rule.setdefault((finding["provider"], finding["rule"]), []).append(finding)
    counted_tools = {key: len({each["toolId"] for each in found}) for key, found in by_rule.items()}
    sums: list[RuleSum] = []
    for key in sorted(by_rule, key=lambda key: -counted_tools[key]):
        first, tools = by_rule[key][0], counted_tools[key]
        where = printable(first["toolId"]) if tools == 1 else counted(tools, "tool")
        alike = len({each["says"] for each in by_rule[key]}) == 1
        says = one_line(first["says"] if alike else f"for one, {first['says']}", 1 << 16)
        sums.append(RuleSum(*key, where, says, first["fix"]))
    return sums


def finding_text(finding: Mapping[str, Json]) -> str:
    """Return `openai strict #/properties/tags: an object without …`."""
    form = _FORMS.get(finding["rule"].partition("-")[0], "")
    return one_line(f"{finding['provider']}{form} {finding['path']}: {finding['says']}", 1 << 16)


def verdict_lines(report: Mapping[str, Json], *, every: bool) -> Iterator[str]:
    """Yield how to see what was summed up, then `openai: 23 of 24 tools can be sent, 12 tools with warnings`."""
    warnings = sum(finding["severity"] == "warning" for finding in report["findings"])
    if warnings and not every:
        yield f"{counted(warnings, 'warning')} by rule; --verbose shows each with its path"
    for provider, verdict in report["providers"].items():
        sendable = report["tools"] - len(verdict["refused"])
        warned = f", {counted(len(verdict['warned']), 'tool')} with warnings" if verdict["warned"] else ""
        yield f"{provider}: {sendable} of {counted(report['tools'], 'tool')} can be sent{warned}"


def diff_lines(difference: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield a mark and a line for each difference: `+` and `-` for a tool or a field, `~` for a change.

    Args:
        difference: As `cli.catalog_diff.compare` makes it.
    """
    yield from (("-", f"- {printable(tool_id)}") for tool_id in difference["removed"])
    yield from (("+", f"+ {printable(tool_id)}") for tool_id in difference["added"])
    for tool in difference["changed"]:
        yield "~", f"~ {printable(tool['id'])}"
        for change in tool["changes"]:
            yield _change(change)


def _change(change: Mapping[str, Json]) -> tuple[str, str]:
    path = printable(change["path"])
    if "old" not in change:
        return "+", f"    + {path}: {_shown(change['new'])}"
    if "new" not in change:
        return "-", f"    - {path}: {_shown(change['old'])}"
    return "~", f"    ~ {path}: {_shown(change['old'])} → {_shown(change['new'])}"


def _shown(value: Json) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), _MAX_CHARS)


def diff_summary(difference: Mapping[str, Json]) -> str:
    """Return `1 tool added, 2 removed, 3 changed`, or that nothing differs."""
    if difference["same"]:
        return "the catalog is the same"
    added, removed, changed = (len(difference[key]) for key in ("added", "removed", "changed"))
    return f"{counted(added, 'tool')} added, {removed} removed, {changed} changed"
