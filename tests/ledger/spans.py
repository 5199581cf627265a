"""Promises of the OpenTelemetry spans."""

REQUIREMENTS = {
    "spans:export:off": ("issue 5", "Without CODEMODE_OTEL nothing of OpenTelemetry is loaded, and nothing is sent."),
    "spans:export:everywhere": (
        "issue 5",
        "Every session sends its spans: of run and wait, of the REPL, of smoke checks, of a program.",
    ),
    "spans:export:missing": (
        "ours",
        "With CODEMODE_OTEL and without the packages, one clear error says what to install.",
    ),
    "spans:export:one-trace": (
        "issue 5",
        "A wait in another process is in the trace of its exec, under it, and so are the calls that it dispatches.",
    ),
    "spans:export:unreachable": ("ours", "A collector that does not answer changes neither result nor exit status."),
    "spans:names:genai": (
        "issue 5",
        "Names and attributes are those of the GenAI semantic conventions for the execution of tools.",
    ),
    "spans:tree:nested": ("contract 10", "Each nested call is a span under that of its exec, also after a wait."),
    "spans:tree:callers": ("issue 5", "In a program the span that is current when a cell begins is its parent."),
    "spans:tree:ends": ("ours", "Each span that began ends, whatever became of its run, with the state and the error."),
    "spans:content:off": ("contract 10", "Spans carry no input unless asked for, and then redacted; never a result."),
}
