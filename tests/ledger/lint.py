"""What providers take of a tool's schema, and how catalogs differ."""

REQUIREMENTS = {
    "cli:catalog:lint-summary": ("ours", "catalog lint shows errors first and sums up warnings by rule."),
    "lint:findings:path-and-fix": (
        "issue 4",
        "A finding names the tool, the provider, the path in the schema, what is wrong and what to change.",
    ),
    "lint:severity:wide-form": (
        "issue 4",
        "An error is a schema that a provider refuses in any form; a warning one it refuses in its narrow form.",
    ),
    "lint:rules:openai-strict": ("issue 4", "OpenAI's strict mode: closed, all required, typed, no foreign keyword."),
    "lint:rules:anthropic": ("issue 4", "Anthropic: an object at the root without alternatives, plain property names."),
    "lint:rules:anthropic-strict": (
        "issue 4",
        "Anthropic's strict tools: closed, not recursive, no bounds, no foreign keyword, few optional properties.",
    ),
    "lint:rules:gemini-openapi": ("issue 4", "Gemini's parameters: the fields of its OpenAPI subset and no other."),
    "lint:rules:robust": ("ours", "No schema, however odd, makes lint fail."),
    "cli:catalog:lint": (
        "contract 12",
        "catalog lint ends with 1 when a tool cannot be sent at all, with 0 on warnings; --json has all findings.",
    ),
    "diff:tools:added-removed": ("contract 12", "catalog diff names the tools that came and those that went."),
    "diff:fields:schema-path": ("issue 4", "catalog diff names each field that changed, within schemas by its path."),
    "diff:input:refused": ("ours", "catalog diff says of a file that is no saved listing how to save one."),
    "cli:catalog:diff": ("contract 12", "catalog diff ends with 1 where the catalogs differ, else with 0."),
}
