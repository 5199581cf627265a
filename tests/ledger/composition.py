"""Promises of the composition root: what a manifest gives, what is shared, what is not loaded."""

REQUIREMENTS = {
    "composition:toolbox:manifest": (
        "contract 2",
        "The catalog holds the manifest's tools after allow and deny, under the settings of the agent.",
    ),
    "composition:toolbox:empty": ("contract 12", "Without a manifest the catalog is empty and cells still run."),
    "composition:servers:isolated": (
        "contract 7",
        "A server that does not start is reported and the run goes on without it, unless it is required.",
    ),
    "composition:session:settings": (
        "contract 12",
        "Limits that a front end gives go over the manifest's, within their clamps; a run remembers its manifest.",
    ),
    "composition:session:shared": ("ours", "Sessions of one process share workers and store, and nothing else."),
    "composition:start:light": (
        "ours",
        "A cell without a manifest is run without loading schema, model, terminal or MCP libraries.",
    ),
}
