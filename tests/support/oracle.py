"""The native oracle: a cell run by the `quickjs` package, for comparison only.

It is an older QuickJS without snapshots and without a wall around it, so it gives an
independent opinion on plain JavaScript: what a cell returns and what it outputs. It knows
nothing of tools, suspension or limits.
"""

import json
from typing import Any

import quickjs

_PROLOGUE = """
const output = [];
let result;
const text = (v) => { output.push({type: "text", text: typeof v === "string" ? v : JSON.stringify(v)}) };
const json = (v) => { output.push({type: "json", value: v}) };
const console = {log: (...parts) => text(parts.map(p => typeof p === "string" ? p : JSON.stringify(p)).join(" "))};
"""


class Unsupported(Exception):
    """The oracle is too old for this program, or never finished it."""


def run_natively(source: str) -> dict[str, Any]:
    """Return `{"value", "output"}` or `{"error": "Name: message"}` of a cell made of statements."""
    context = quickjs.Context()
    context.set_memory_limit(256 << 20)
    context.set_max_stack_size(4 << 20)
    context.eval(_PROLOGUE)
    try:
        context.eval(
            f"(async () => {{{source}\n}})().then(value => {{ result = {{value: value ?? null}} }},"
            "error => { result = {error: `${error.name}: ${error.message}`} }); null"
        )
    except quickjs.JSException as error:
        raise Unsupported(str(error)) from error
    while context.execute_pending_job():
        pass
    shown = context.eval("JSON.stringify(result === undefined ? null : {...result, output})")
    if shown == "null":
        raise Unsupported("the program did not come to an end")
    return dict(json.loads(shown))
