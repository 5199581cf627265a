"""`catalog lint` as data: what each provider has against the tools of a catalog."""

from collections.abc import Iterable

from codemode.composition import Toolbox
from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.types import Json
from codemode.lint import Finding, lint_tool
from codemode.lint_rules import RULES
from codemode.payload.providers import PROVIDERS, build_direct_tools


def parse_linted(name: str | None) -> tuple[str, ...]:
    """Return the providers that an option names: one, or all of them.

    Raises:
        InvalidInput: There are no rules for it.
    """
    if name is not None and name not in RULES:
        raise InvalidInput(f'there are no rules for "{name}"; use {", ".join(RULES)}.{did_you_mean(name, RULES)}')
    return tuple(RULES) if name is None else (name,)


def build_lint(box: Toolbox, providers: Iterable[str]) -> dict[str, Json]:
    """Return what providers have against the tools, in id order.

    `{ok, tools, providers: {name: {refused, warned}}, findings}`: `refused` lists the ids of tools that a
    provider takes in no form, `warned` those that it takes in its wide form only; `ok` says that none is refused.
    """
    found = [finding for provider in providers for finding in _lint(box, provider)]
    found.sort(key=lambda finding: finding.tool_id)
    verdicts: dict[str, Json] = {}
    for provider in providers:
        refused = _ids(found, provider, "error")
        warned = [tool_id for tool_id in _ids(found, provider, "warning") if tool_id not in refused]
        verdicts[provider] = {"refused": refused, "warned": warned}
    return {
        "ok": not any(finding.severity == "error" for finding in found),
        "tools": box.catalog.size,
        "providers": verdicts,
        "findings": [finding.to_json() for finding in found],
    }


def _lint(box: Toolbox, provider: str) -> Iterable[Finding]:
    tools = box.catalog.tools
    for tool, sent in zip(tools, build_direct_tools(tools, PROVIDERS[provider]), strict=True):
        yield from lint_tool(tool, provider, sent.name)


def _ids(found: Iterable[Finding], provider: str, severity: str) -> list[str]:
    return list(dict.fromkeys(each.tool_id for each in found if (each.provider, each.severity) == (provider, severity)))
