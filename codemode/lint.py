"""Can a provider take a tool's schema as it is, and what is to be changed? The rules are data, in `lint_rules`.

This is about direct exposure: with code mode on a model gets `exec` and `wait` alone. An error is
a schema that the provider refuses in whatever form it is sent; a warning one that it refuses only
in its narrow form, `strict: true` of OpenAI and of Anthropic, or Gemini's `parameters` (OpenAPI). What
codemode sends itself is the wide form: no strict tool, `parametersJsonSchema`.
"""

from typing import NamedTuple

from codemode.core.schemas import find_schema_fault, walk_schema
from codemode.core.types import Json, ToolSpec
from codemode.lint_rules import RULES, Rule, Severity


class Finding(NamedTuple):
    """What one provider has against one tool.

    `path` points into its `parameters`, as `#/properties/tags`, or is `name`. `says` and `fix` are sentences.
    """

    tool_id: str
    provider: str
    severity: Severity
    rule: str
    path: str
    says: str
    fix: str

    def to_json(self) -> dict[str, Json]:
        """Return `{"toolId", "provider", "severity", "rule", "path", "says", "fix"}`."""
        return {"toolId": self.tool_id, **{name: getattr(self, name) for name in self._fields[1:]}}


def lint_tool(tool: ToolSpec, provider: str, sent_as: str) -> list[Finding]:
    """Return what a provider has against a tool, in the order of its schema.

    Args:
        tool: Its parameters are the schema.
        provider: One of `RULES`.
        sent_as: The name under which the provider gets it.

    Contract: lint:findings:path-and-fix, lint:severity:wide-form
    """
    schema = tool.parameters
    found: list[Finding] = []

    def add(severity: Severity, rule: str, path: str, says: str, fix: str) -> None:
        found.append(Finding(tool.id, provider, severity, rule, path, says, fix))

    if sent_as != tool.name:
        says = f'it is sent as "{sent_as}", since "{tool.name}" is not allowed or is taken already'
        add("warning", "name", "name", says, "Rename it.")
    fault = find_schema_fault(schema)
    if fault is not None:
        place, _, rest = fault.partition(" ") if fault.startswith("/") else ("", "", fault)
        add("error", "not-a-schema", f"#{place}", rest, "Correct the schema; it must be one of draft 2020-12.")
        return found
    for path, _, part in walk_schema(schema):
        if isinstance(part, dict):
            for rule in RULES[provider]:
                breach = rule.find(part) if _applies(rule, path) else None
                if breach is not None:
                    add(rule.severity, rule.name, f"#{path}", breach, rule.fix)
    return found


def _applies(rule: Rule, path: str) -> bool:
    return rule.scope == "everywhere" or (rule.scope == "root") == (path == "")
