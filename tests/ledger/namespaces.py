"""Promises of plugin namespaces: who sees them, what crosses, where their calls lead."""

REQUIREMENTS = {
    "namespaces:register:id-unique": ("contract 8", "A second namespace of one id is invalid_config."),
    "namespaces:gate:all-tools": (
        "contract 8",
        "A namespace is visible only if every required tool is in the run's catalog, after policy.",
    ),
    "namespaces:gate:owner": (
        "contract 8",
        "A tool of the same name and another owner never makes a namespace visible.",
    ),
    "namespaces:prompt:only-visible": (
        "contract 8",
        "Description and prompt are in exec's description only while the namespace is visible.",
    ),
    "namespaces:global:identifier": ("contract 8", "A globalName that is no identifier is rejected."),
    "namespaces:global:built-ins": ("contract 8", "A globalName that cells know already is rejected."),
    "namespaces:guest:global-and-map": (
        "contract 8",
        "A namespace is a frozen global and namespaces.<globalName>, and both are one object.",
    ),
    "namespaces:scope:once": (
        "contract 8",
        "createScope runs once for each run, whatever process goes on with it, and in the REPL once for its VM.",
    ),
    "namespaces:scope:context": (
        "contract 9",
        "createScope gets agentId, sessionKey, sessionId, runId, config and aborted of the run.",
    ),
    "namespaces:scope:deadline": ("contract 4", "createScope counts toward the deadline of its exec."),
    "namespaces:scope:before-guest": (
        "contract 8",
        "What may not cross fails the run with invalid_config before any guest code.",
    ),
    "namespaces:scope:values": (
        "contract 8",
        "Plain values, arrays, nested objects cross; shared references are copied; others become a fallback or null.",
    ),
    "namespaces:scope:refused": (
        "contract 8",
        "Raw functions, cycles and unsafe path segments are rejected, each with its path.",
    ),
    "namespaces:scope:declared-tools": ("contract 8", "Every callable path may target only declared tools."),
    "namespaces:mapper:input": (
        "contract 8",
        "The mapper gets the list of arguments and returns the input; without one the first argument is it, or {}.",
    ),
    "namespaces:mapper:failure": ("ours", "A mapper that fails rejects the call; nothing was dispatched."),
    "namespaces:mapper:portable": (
        "ours",
        "A mapper is stored by place and captured values and works in any process; another is rejected at once.",
    ),
    "namespaces:call:forged": ("contract 8", "The host resolves every path again; forged ids and paths are refused."),
    "namespaces:call:tool-call": (
        "contract 8",
        "A namespace call is a catalog tool call: policy, approvals, hooks, telemetry, trajectory.",
    ),
    "namespaces:call:failure": ("page", "A failed call can be caught in the cell."),
    "namespaces:wait:same": (
        "contract 8",
        "A run that waits goes on with the same namespace in another process, its pending call too.",
    ),
    "namespaces:wait:tool-gone": ("contract 5", "After a wait, a path whose tool or namespace is gone rejects."),
}
