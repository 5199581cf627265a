"""The library: code mode inside a Python program."""

REQUIREMENTS = {
    "library:events:listener-fails": ("ours", "A listener that fails is reported to its loop, and the run goes on."),
    "library:import:lazy": ("ours", "Importing the package loads none of its parts: the command line starts at once."),
    "library:open:nothing-before": ("ours", "A CodeMode opens nothing before its `async with`, and says so when used."),
    "library:open:one-loop": (
        "ours",
        "A CodeMode is used in the thread and event loop that opened it; anyone else is told how to ask.",
    ),
    "library:exec:result": ("contract 3", "exec returns completed, waiting or failed, and never raises for a cell."),
    "library:wait:decides": ("contract 5", "wait goes on with a run and carries a person's decisions."),
    "library:answer:tool-use": ("ours", "A model's tool call of exec or wait is answered with the JSON of its result."),
    "library:tools:function": (
        "ours",
        "A Python function is a tool, under policy, approval and schema like any other.",
    ),
    "library:tools:schema": ("ours", "A tool's schema is read from its signature: types, defaults, descriptions."),
    "library:mock:scripted": ("ours", "MockTool answers as scripted and fails beyond its script."),
    "library:mock:calls": ("ours", "MockTool keeps the input of each call."),
    "library:surface:gate": ("contract 2", "surface() gives exec and wait only where code mode is active."),
    "library:payload:closed": ("contract 10", "payload() builds the request of each provider, checked to be closed."),
    "library:telemetry:agent-run": ("contract 10", "All cells of one CodeMode are one agent run, counted together."),
    "library:trace:runs": ("contract 10", "trace() gives the trajectory of one run, or of all."),
    "library:sharing:workers-and-store": ("ours", "Several sessions in one process share workers and store."),
    "library:sharing:servers": ("issue 5", "Several sessions in one process share connections to MCP servers."),
    "library:sharing:nothing-else": (
        "contract 2",
        "What shares a store sees nothing of another's runs, tools or figures.",
    ),
    "library:store:file": ("contract 5", "With a store file a waiting run goes on in a later CodeMode."),
}
