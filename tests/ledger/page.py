"""The page's own lists, bullet by bullet: its end-to-end plan, its validation list, its list for namespaces."""

_PLAN = "page, end-to-end plan"
_VALIDATION = "page, validation list"
_NAMESPACES = "page, list for namespaces"

REQUIREMENTS = {
    "page:plan:sixteen-steps": (
        _PLAN,
        "The sixteen steps hold in one go, with real processes, a real MCP server and a provider on loopback.",
    ),
    "page:validation:disabled": (_VALIDATION, "A disabled configuration leaves the exposure of tools unchanged."),
    "page:validation:object": (_VALIDATION, "A configuration object without enabled: true leaves code mode off."),
    "page:validation:enabled": (
        _VALIDATION,
        "An enabled configuration exposes only exec and wait where tools are active for the request.",
    ),
    "page:validation:unenforced": (
        _VALIDATION,
        "Raw requests, disabled tools and an empty allowlist trigger no enforcement of the payload.",
    ),
    "page:validation:all-tools": (_VALIDATION, "All effective tools but those of MCP appear in ALL_TOOLS."),
    "page:validation:denied": (_VALIDATION, "A denied tool does not appear in ALL_TOOLS."),
    "page:validation:catalog": (_VALIDATION, "tools.search, tools.describe and tools.call work for OpenClaw tools."),
    "page:validation:files": (
        _VALIDATION,
        "API.list and API.read show TypeScript declarations of MCP without a bridge or tool call.",
    ),
    "page:validation:headers": (_VALIDATION, "The $api() of MCP namespaces gives schemas in place."),
    "page:validation:mcp": (
        _VALIDATION,
        "A visible MCP tool is called through its namespace with one object, and is not in tools.*.",
    ),
    "page:validation:control": (
        _VALIDATION,
        "Control tools of Tool Search are hidden from the surface and from the hidden catalog.",
    ),
    "page:validation:nested": (_VALIDATION, "Nested calls keep the behaviour of approvals and hooks."),
    "page:validation:shell": (
        _VALIDATION,
        "A shell exec is hidden from the model and callable by its catalog id where it is allowed.",
    ),
    "page:validation:recursion": (_VALIDATION, "Code mode's own exec and wait cannot be called by a cell."),
    "page:validation:typescript": (
        _VALIDATION,
        "TypeScript is transformed and evaluated; a JavaScript cell loads no TypeScript.",
    ),
    "page:validation:access": (
        _VALIDATION,
        "Access to import, require, file system, network and environment fails.",
    ),
    "page:validation:loop": (_VALIDATION, "An endless loop times out and does not block its host."),
    "page:validation:memory": (_VALIDATION, "Breaking the memory limit ends the VM of the guest."),
    "page:validation:limits": (
        _VALIDATION,
        "The limits of output and snapshot hold for calls that complete and that are suspended.",
    ),
    "page:validation:wait": (_VALIDATION, "wait resumes a suspended snapshot and returns the final value."),
    "page:validation:run-ids": (
        _VALIDATION,
        "A runId that is expired, aborted, of another session, or unknown fails.",
    ),
    "page:validation:persistence": (
        _VALIDATION,
        "What is stored and read again keeps the control calls of code mode: each exec, and each wait.",
    ),
    "page:validation:shown": (_VALIDATION, "Transcript and telemetry show nested tool calls clearly."),
    "page:namespaces:prompt": (_NAMESPACES, "A namespace's prompt appears only while its tools are visible."),
    "page:namespaces:owner": (
        _NAMESPACES,
        "A tool of the same name from another sourceName does not expose a namespace.",
    ),
    "page:namespaces:functions": (_NAMESPACES, "Raw functions in a scope are rejected."),
    "page:namespaces:forged": (_NAMESPACES, "Forged namespace ids and forged paths are rejected."),
    "page:namespaces:declared": (_NAMESPACES, "A callable path cannot target a tool that was not declared."),
    "page:namespaces:shapes": (_NAMESPACES, "Nested objects and shared references are serialised correctly."),
    "page:namespaces:executed": (
        _NAMESPACES,
        "A namespace call is executed as a catalog tool and returns what is safe as JSON.",
    ),
    "page:namespaces:caught": (_NAMESPACES, "A failure can be caught by the cell."),
    "page:namespaces:suspended": (_NAMESPACES, "A suspended namespace call goes on through wait."),
    "page:namespaces:rollback": (
        _NAMESPACES,
        "A plugin that is rolled back leaves no namespace registered.",
    ),
}
