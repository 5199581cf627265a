"""Promises of the one way any tool runs: policy, hooks, approvals, schemas, events."""

REQUIREMENTS = {
    "executor:order:policy-first": (
        "contract 9",
        "One function applies policy, hook, approval, schema, timeout, execution, adapter and events, in this order.",
    ),
    "executor:input:json": ("ours", "What a hook makes of an input is adapted as results are, or rejects."),
    "executor:progress:json": ("ours", "A tool's progress is adapted as results are; what has no JSON form raises."),
    "executor:input:null-is-empty": ("contract 6", "`null` or a missing input means `{}`."),
    "executor:approval:parks": ("contract 9", "A call that needs a person runs only after it is made again, approved."),
    "executor:schema:path-and-rule": (
        "contract 6",
        "An input is checked against the schema before anything runs; the rejection names path and rule.",
    ),
    "executor:schema:other-dialects": (
        "ours",
        "A rule of another dialect is understood, or passed over where it is none; the rules beside it hold.",
    ),
    "executor:schema:fast-path-agrees": ("ours", "What the quick check accepts, jsonschema accepts."),
    "executor:schema:no-download": ("ours", "A reference to a URL in a schema is an error and never a download."),
    "executor:schema:lean": ("engine", "A valid input of a common schema is accepted without importing jsonschema."),
    "executor:schema:bounded": (
        "ours",
        "No rule of a schema costs more than one look at each value of an input, and no pattern more than a moment.",
    ),
    "executor:schema:steps": ("ours", "A check that takes too many steps is given up, with few words of large values."),
    "executor:errors:plain": (
        "contract 6",
        "A tool's exception becomes `nested_tool_failed` with its redacted text: no type, stack or path of ours.",
    ),
    "executor:errors:exit": (
        "ours",
        "A tool that exits, cancels itself or raises what is no ordinary exception fails and stops nothing.",
    ),
    "executor:errors:words": (
        "ours",
        "An exception that says little is told by its type, a group by its members; one with a broken text fails only.",
    ),
    "executor:timeout:unheeded": ("ours", "A tool that ignores the end of its time does not hold its call."),
    "executor:timeout:named": ("contract 9", "A call that passes the tool's timeoutMs rejects, naming it."),
    "executor:result:bounded": ("contract 4", "A result of more than 8 MiB of JSON rejects, naming size and bound."),
    "executor:result:adapted": ("contract 6", "Results go through the JSON adapter; what it refuses rejects."),
    "executor:events:one-stream": (
        "contract 10",
        "Each call emits start, progress and settlement, redacted; a refused one settles without having started.",
    ),
    "policy:lists:deny-wins": ("contract 9", "Deny wins over allow."),
    "policy:lists:globs": ("contract 9", "Globs match ids and names, case-insensitively."),
    "policy:sandbox:gate": (
        "contract 9",
        "A sandboxed session has one more gate, where `bundle-mcp` stands for all MCP tools.",
    ),
    "policy:approvals:strictest": (
        "contract 9",
        "`[approvals]` globs and the tool's own approval: the strictest holds.",
    ),
    "policy:approvals:exact": ("ours", "An entry of `[approvals]` that spells a tool exactly decides."),
    "hooks:answers:rewrite": ("contract 9", "A hook may rewrite the input; the next one sees what it left."),
    "hooks:answers:block": ("contract 9", "A hook may block a call with a reason."),
    "hooks:answers:ask": ("contract 9", "A hook may ask for a person's approval."),
    "hooks:failures:block": ("issue 5", "A hook that fails, hangs or answers nonsense blocks the call."),
    "hooks:event:context": (
        "contract 9",
        "A hook sees tool, input and run context; kinds only where the host set them.",
    ),
    "hooks:approved:not-again": ("ours", "Hooks do not run again on an input that a person approved."),
}
