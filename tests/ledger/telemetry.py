"""Telemetry and trajectory: two foldings of one stream of events."""

REQUIREMENTS = {
    "telemetry:shape:fields": ("contract 10", "Telemetry has the fields of CodeModeTelemetry, all of them, always."),
    "telemetry:scope:agent-run": ("contract 10", "Telemetry is cumulative over the runs of one agent run."),
    "telemetry:calls:executed": ("contract 10", "callCount counts executed nested tool calls only, nothing refused."),
    "telemetry:limits:counted": ("contract 10", "Each failure by a limit is counted under its kind."),
    "telemetry:snapshots:counted": ("contract 10", "Snapshots taken, restored, expired and discarded are counted."),
    "telemetry:process:same-figures": ("ours", "A new process that folds the log counts what a live session counted."),
    "trajectory:tree:complete": (
        "contract 10",
        "Each nested call stands under its exec with tool id, state, times, redacted input and result size.",
    ),
    "trajectory:tree:deliverer": (
        "contract 10",
        "A call answered after a wait stays under its exec; the wait delivered it.",
    ),
    "trajectory:tree:failures": ("contract 10", "The trajectory is there even when the outer call fails."),
    "trajectory:tree:suspended": ("contract 10", "The tree shows when a run was suspended, and how that ended."),
    "trajectory:export:versioned": ("contract 10", "JSON and JSON Lines carry a format version."),
}
