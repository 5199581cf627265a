"""Promises of the engine and its process."""

REQUIREMENTS = {
    "sandbox:scope:named": (
        "issue 4",
        "A cell that does not look at ten thousand tools is not given them; one that may look is given all.",
    ),
    "sandbox:value:return": ("contract 6", "The value that the cell returns is the completed turn's value."),
    "sandbox:time:cpu-loop": (
        "contract 4",
        "A CPU loop ends at the deadline with its output kept, whatever the cell catches.",
    ),
    "sandbox:memory:uncatchable": (
        "contract 11",
        "try cannot catch the memory limit; a promise that swallows it does not help.",
    ),
    "sandbox:memory:forged": (
        "contract 11",
        "A guest's own Error('out of memory') or ('interrupted') is a plain guest error.",
    ),
    "sandbox:recursion:range-error": ("contract 6", "Too deep recursion is a catchable RangeError."),
    "sandbox:errors:position": (
        "contract 3",
        "An uncaught error carries name, message and position in the author's source.",
    ),
    "sandbox:errors:near-names": (
        "issue 3",
        "A ReferenceError, and a call of a tool that is not there, name what is near.",
    ),
    "sandbox:errors:bridge-code": ("contract 3", "Only an error object that the bridge made keeps its code."),
    "sandbox:promises:never": ("contract 4", "A result promise that can never settle fails at once, saying so."),
    "sandbox:promises:unhandled": ("contract 4", "An unhandled rejection makes the run failed."),
    "sandbox:promises:unawaited": ("contract 4", "An un-awaited nested call is awaited before completed."),
    "sandbox:calls:sealed": ("engine", "A row is sealed at the moment of the call."),
    "sandbox:calls:cap": (
        "contract 4",
        "One call too many rejects with too_many_pending_tool_calls; uncaught, the turn fails.",
    ),
    "sandbox:calls:cap-caught": ("contract 4", "A cell that catches the cap goes on, its other calls are dispatched."),
    "sandbox:calls:order": (
        "contract 4",
        "Settlements are delivered in the order given, so Promise.race picks the first.",
    ),
    "sandbox:globals:frozen": (
        "contract 6",
        "Our globals are frozen and cannot be replaced; built-ins are not frozen.",
    ),
    "sandbox:globals:none": ("contract 6", "There is no process, require, fetch, or host object."),
    "sandbox:globals:lazy-tools": ("issue 4", "Convenience functions appear when asked for, one by one or all."),
    "sandbox:isolation:poison": ("engine", "Poisoned prototypes neither see nor forge the rows of the bridge."),
    "sandbox:isolation:fresh": ("engine", "Nothing crosses from one cell to the next in a reused worker."),
    "sandbox:random:seeded": ("contract 6", "Math.random differs from run to run although VMs start from one image."),
    "sandbox:timers:cleared": ("contract 6", "A cleared timer does not keep a run waiting."),
    "sandbox:output:bounded": ("contract 3", "Output beyond the limit is cut on code points and its size reported."),
    "sandbox:mcp:one-argument": (
        "contract 7",
        "An MCP function takes one object argument or none; anything else rejects.",
    ),
    "sandbox:mcp:api": (
        "contract 7",
        "$api returns headers without a nested call; an unknown name rejects with near names.",
    ),
    "sandbox:mcp:files": ("contract 7", "API.list and API.read show the virtual files; bad and unknown paths reject."),
    "sandbox:namespaces:paths": ("contract 8", "A namespace function records its path and its arguments."),
    "sandbox:keep:declarations": (
        "contract 13",
        "In the REPL declarations live on from cell to cell and may be repeated.",
    ),
    "sandbox:keep:failure": ("contract 13", "A cell that throws keeps its state; what it left open is forgotten."),
    "sandbox:snapshot:round-trip": ("contract 5", "A restored cell goes on where it was suspended."),
    "sandbox:snapshot:refused": ("contract 5", "A damaged, truncated or foreign snapshot is snapshot_restore_failed."),
    "sandbox:snapshot:flat": ("issue 3", "A cell that is resumed 20 times does not grow."),
    "sandbox:snapshot:bounded": ("contract 4", "Restoring more than the memory limit fails with that limit."),
    "sandbox:cache:verified": ("engine", "A cached artefact that does not verify is rebuilt, never loaded."),
    "sandbox:cache:pruned": ("ours", "What no build has used for 30 days goes from the cache; nothing else does."),
    "sandbox:assets:missing": ("contract 11", "A missing or damaged asset is runtime_unavailable."),
    "sandbox:lockdown:measures": ("issue 3", "The worker cannot open, list, connect, fork or exec after start-up."),
    "sandbox:worker:dies-with-host": ("issue 5", "A worker inside an endless built-in dies with its host."),
    "sandbox:worker:imports": (
        "engine",
        "The worker imports only the standard library, wasmtime and our two innermost packages.",
    ),
    "protocol:frames:grammar": ("engine", "The host accepts exactly the grammar of rows from a worker."),
    "protocol:frames:round-trip": ("engine", "A request that is encoded and parsed is the same request."),
    "json:python:long-keys": ("ours", "A key of any length costs the adapter no more than its length."),
    "json:python:rules": ("contract 6", "Python values become JSON by the adapter's rules, or one clear error."),
    "names:ids:camel-case": (
        "contract 7",
        "Identifiers are camelCase of the name's words; leading digits are prefixed.",
    ),
    "redact:text:secrets": ("contract 10", "Known secrets, credential-looking text and private paths never leave."),
    "limits:table:clamp": ("contract 2", "Numbers out of range are clamped and the clamp is reported."),
    "sandbox:oracle:agrees": ("issue 3", "Cells that need no suspension give the same on the native QuickJS."),
    "json:guest:rules": ("contract 6", "JavaScript values become JSON by the adapter's rules, everywhere the same."),
    "json:guest:refused": (
        "contract 6",
        "Binary, Promise, cycle and too deep values are errors that name path and remedy.",
    ),
}
