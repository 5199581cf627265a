"""What issue 4 promises to people who have an editor with servers already."""

_ISSUE = "issue 4, done when"

REQUIREMENTS = {
    "editors:formats:listed": (
        _ISSUE,
        "Files of Claude Desktop, Cursor, VS Code and Codex, imported or included, list every tool of every server.",
    ),
    "editors:broken:reported": (_ISSUE, "A broken server is reported with its kind and its stderr, and harms nobody."),
    "editors:cell:one-exec": (
        _ISSUE,
        "One exec lists a folder, stores entities, reads a resource and a prompt of different servers.",
    ),
    "editors:kill:at-once": (_ISSUE, "Killing a server in mid-call rejects that call at once; the next call works."),
    "editors:bad:one-line": (_ISSUE, "Each bad definition and each bad server is one clear line, in time."),
}
