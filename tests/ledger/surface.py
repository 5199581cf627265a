"""What the model sees of code mode, and what it may say."""

REQUIREMENTS = {
    "surface:tools:exactly-two": ("contract 1", "In code mode a model sees exactly `exec` and `wait`."),
    "surface:schema:flat": ("contract 3", "Both schemas are flat objects without anyOf and without default."),
    "surface:description:constraints": (
        "contract 3",
        "The description of `exec` states each constraint, and how to search, describe, call and read declarations.",
    ),
    "surface:description:only-visible": (
        "contract 3",
        "The description of `exec` speaks of MCP servers and namespaces only if they are visible.",
    ),
    "surface:description:wait": ("contract 3", "The description of `wait` says: only after a waiting result."),
    "surface:size:constant": ("issue 5", "The surface is as large at 10,000 tools as at 10, and at most 700 tokens."),
    "surface:exec:one-text": ("contract 3", "One of code and command holds text; a blank one counts as absent."),
    "surface:exec:alias": ("contract 3", "command is an alias of code; both present and different is invalid_input."),
    "surface:exec:language": (
        "contract 3",
        "language defaults to javascript; another value, or one switched off, is unsupported_language.",
    ),
    "surface:exec:shell": ("contract 3", "A shell line fails with invalid_input that says what to write instead."),
    "surface:exec:fence": ("contract 3", "A Markdown fence around the code is blanked and line numbers stay."),
    "surface:exec:arguments": (
        "ours",
        "Arguments of a wrong type or an unknown name are invalid_input with near names.",
    ),
    "surface:wait:input": ("contract 3", "wait takes runId, and run_id as well."),
}
