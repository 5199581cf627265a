"""Promises of the manifest's tools: how python, command, http and scripted ones run."""

REQUIREMENTS = {
    "tools:python:conventions": (
        "contract 9",
        "Properties arrive as keywords; `context` gets the run context; a lone `input: dict` gets the whole input.",
    ),
    "tools:python:first-call": ("contract 2", "A python target is imported at its first call, and by a probe."),
    "tools:python:folder-importable": ("contract 9", "The manifest's folder is importable, behind all else."),
    "tools:python:import-errors": (
        "issue 2",
        "A module that does not import, or lacks the function, is one clear sentence that names the entry.",
    ),
    "tools:python:sync-in-a-thread": ("issue 4", "A synchronous function runs in a thread and holds up nobody."),
    "tools:python:async-natively": ("issue 4", "An async function runs in the loop and is cancelled with its call."),
    "tools:python:exits": ("ours", "A function that exits or raises StopIteration fails and stops nothing."),
    "tools:python:hanging-thread": ("ours", "A hanging synchronous tool does not keep the process alive."),
    "tools:python:threads-held": (
        "ours",
        "Calls that were given up and never return are counted; the one that finds no thread left fails and says so.",
    ),
    "tools:command:json-in-and-out": ("contract 9", "JSON on stdin; JSON or text on stdout."),
    "tools:command:placeholders": ("contract 9", "Properties fill `{placeholders}` in arguments; no shell."),
    "tools:command:options": ("ours", "A property cannot turn an argument into an option."),
    "tools:command:failures": ("contract 9", "Exit status and stderr tail are in the error."),
    "tools:command:group-killed": ("issue 4", "Timeout and cancellation kill the whole process group."),
    "tools:command:output-bounded": ("issue 4", "A program that prints too much is ended and named."),
    "tools:http:placement": (
        "contract 9",
        "Properties not used in the URL go to the query for GET, HEAD and DELETE, else to a JSON or form body.",
    ),
    "tools:http:failures": ("issue 4", "Status and body excerpt are in the error."),
    "tools:http:redirects-bounded": (
        "issue 4",
        "Redirects are bounded, and configured headers do not follow one to another origin.",
    ),
    "tools:http:size-bounded": ("issue 4", "An answer larger than the bound is refused while it is read."),
    "tools:http:one-client": ("issue 2", "One client serves all calls, opened at the first."),
    "tools:http:no-cookies": ("contract 2", "No cookie of one call is sent with another: calls may be of other runs."),
    "tools:http:path-kept": (
        "ours",
        "A property cannot leave its segment of the URL's path, empty it, or add a header.",
    ),
    "tools:scripted:outcomes": ("contract 9", "A scripted tool gives its value or error after its delay."),
    "tools:scripted:fail-nth": ("issue 4", "A scripted tool fails at the call that failNth names."),
    "tools:variables:at-use": (
        "contract 9",
        "Variables in `command` and `http` are expanded at the first call, and what went in is redacted.",
    ),
    "tools:probe:finds-problems": ("contract 2", "A probe finds what cannot work and runs nothing."),
    "tools:hooks:python-and-command": ("contract 9", "Hooks are Python functions or commands."),
    "tools:core:off-until-listed": ("contract 9", "Core tools are off until they are listed."),
    "tools:core:roots-hold": ("issue 4", "No `..`, absolute path, link or race leads core tools out of their roots."),
    "tools:core:write-whole": ("ours", "A file is written whole or not at all."),
    "tools:core:mode-kept": ("ours", "A file that is written anew keeps its permissions."),
    "tools:core:walk-stops": ("issue 4", "A listing or search whose call was cancelled goes no further."),
    "tools:core:bounded": ("ours", "Listings, searches and files that are too large are refused by name."),
}
