"""The plain twins for `catalog lint` and `catalog diff`: what is wrong, or different, one line each.

Standard library only. Nothing is folded: these are read in CI logs.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from codemode.core.types import Json
from codemode.render.words import counted, one_line, printable

_FORMS = {"strict": " strict", "openapi": " parameters"}
_MAX_CHARS = 200  # of a value in a difference


def lint_text(report: Mapping[str, Json]) -> str:
    """Return each tool with what providers have against it, and a line for each provider.

    Args:
        report: As `cli.catalog_lint.build_lint` makes it.
    """
    lines: list[str] = []
    for tool_id, findings in groupby(report["findings"], key=lambda finding: finding["toolId"]):
        lines.append(printable(tool_id))
        lines += [f"  {each['severity']:<7}  {finding_text(each)}. {each['fix']}" for each in findings]
    return "\n".join([*lines, *verdict_lines(report)])


def finding_text(finding: Mapping[str, Json]) -> str:
    """Return `openai strict #/properties/tags: an object without …`."""
    form = _FORMS.get(finding["rule"].partition("-")[0], "")
    return one_line(f"{finding['provider']}{form} {finding['path']}: {finding['says']}", 1 << 16)


def verdict_lines(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield `openai: 23 of 24 tools can be sent, 12 tools with warnings`."""
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
