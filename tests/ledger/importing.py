"""The first manifest, and servers taken over from other clients."""

REQUIREMENTS = {
    "mcp:config:json5": ("ours", "Included files may be JSON5 as OpenClaw's is: bare keys and single quotes."),
    "mcp:config:openclaw": ("ours", "OpenClaw's toolFilter, timeouts and working folder mean what they mean there."),
    "importing:clients:seven": (
        "issue 4",
        "The files of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex, OpenCode and Gemini CLI are read.",
    ),
    "importing:servers:isolated": ("issue 4", "A definition that cannot be used is skipped with its reason."),
    "importing:variables:dialects": ("issue 4", "Every client's way to write a variable becomes ${VAR}."),
    "importing:secrets:variables": ("issue 4", "A secret in clear becomes ${VAR} and appears nowhere in what we say."),
    "importing:write:no-overwrite": ("issue 4", "Nothing that is there is overwritten without --force."),
    "importing:write:keeps-the-rest": ("ours", "Every other line of the manifest stays as it is."),
    "importing:report:complete": ("issue 4", "The report says what was skipped and why, and which variables to set."),
    "importing:init:works-at-once": ("issue 6", "What init writes runs and passes its own check at once."),
}
