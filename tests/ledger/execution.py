"""Promises of section 4: deadlines, turns, and workers that die."""

REQUIREMENTS = {
    "execution:worker:crash": (
        "contract 11",
        "A worker that dies gives `runtime_unavailable`, with its exit and its last words; the pool goes on.",
    ),
    "execution:worker:hostile-frames": (
        "ours",
        "Whatever a worker sends that is not the one expected answer kills it; nothing of it is believed.",
    ),
    "execution:worker:isolated": (
        "ours",
        "A worker starts with an empty environment, in a process group of its own, with three pipes and no more.",
    ),
    "execution:worker:follows-parent": ("ours", "A worker ends when its host has died."),
    "execution:worker:exclusive": ("ours", "A worker serves one cell at a time; the first to ask is the first served."),
    "execution:worker:replaced": ("ours", "A worker that is tainted, dead or old is replaced before it is needed."),
    "execution:timeout:kill": (
        "contract 4",
        "A turn that does not end at its deadline is ended by killing the worker within 150 ms; its output is lost.",
    ),
    "execution:snapshot:limit": (
        "contract 2",
        "A snapshot larger than `maxSnapshotBytes` is `snapshot_limit_exceeded`, naming both sizes.",
    ),
}
