"""Smoke checks: how expectations are written, what is run, what is reported, how it ends."""

REQUIREMENTS = {
    "smoke:files:found": ("issue 6", "Cells and lists are found in files and folders; what is not there is an error."),
    "smoke:files:header": ("contract 14", "A cell carries its expectations in its leading comments."),
    "smoke:files:toml": ("contract 14", "A TOML file may list cases; its keys are the tags."),
    "smoke:files:unknown-tag": ("issue 6", "A file that cannot be read is one error that begins with file:line."),
    "smoke:tags:all": ("issue 6", "Each tag holds or fails for what it says, and for nothing else."),
    "smoke:tags:default-status": ("ours", "Without a status a cell must complete, or end as its other tags imply."),
    "smoke:paths:subset": ("issue 6", "A path leads to members, items, all of them, and lengths; no further."),
    "smoke:diff:path": ("issue 6", "A difference names the path at which two values differ."),
    "smoke:run:parallel": ("contract 14", "Cases run in parallel on one pool; verdicts keep the order of the cases."),
    "smoke:run:bail": ("issue 6", "--bail begins no case after the first that fails."),
    "smoke:run:warnings": ("ours", "A server that cannot be listed is named with its reason beside the report."),
    "smoke:run:approvals-denied": (
        "ours",
        "Nobody can be asked, so that a call that needs approval is denied at once.",
    ),
    "smoke:run:waits": ("ours", "A case may ask to be driven to its end; outputs are joined."),
    "smoke:run:replay": ("issue 6", "A case may answer from a recording, each from its beginning; nothing is started."),
    "smoke:filter:names": ("issue 6", "--filter keeps the cases with a text or a glob in their name."),
    "smoke:update:renews": ("issue 6", "--update makes what does not hold hold, but for bounds, which stay."),
    "smoke:update:first-time": ("ours", "--update writes a whole description of a cell that has none."),
    "smoke:update:keeps-the-rest": ("issue 6", "--update changes the lines of expectations and no other byte."),
    "smoke:report:redacted": ("ours", "Differences are redacted: reports end up in the logs of a CI."),
    "smoke:junit:readable": ("contract 14", "The JUnit file is XML that a CI reads, whatever a cell says."),
    "smoke:json:one-document": ("contract 12", "--json prints one document with each case and its differences."),
    "smoke:status:exit": ("contract 14", "Exit 0 only if all hold, 1 if not, 2 if a file cannot be read."),
}
