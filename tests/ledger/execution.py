"""Promises of section 4: one deadline, requests served inline, workers that die."""

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
        "A worker starts with an empty environment, in a session of its own, with three pipes and no more.",
    ),
    "execution:worker:follows-parent": ("ours", "A worker ends when its host has died."),
    "execution:worker:exclusive": ("ours", "A worker serves one cell at a time; the first to ask is the first served."),
    "execution:worker:replaced": ("ours", "A worker that is tainted, dead or old is replaced before it is needed."),
    "execution:worker:parked": (
        "ours",
        "A cell that only waits for its calls gives its worker to a cell that wants to compute.",
    ),
    "execution:timeout:kill": (
        "contract 4",
        "A turn that does not end at its deadline is ended by killing the worker within 150 ms; its output is lost.",
    ),
    "execution:timeout:loop": ("contract 4", "A CPU loop ends at the deadline with `timeout`, its output kept."),
    "execution:snapshot:limit": (
        "contract 2",
        "A snapshot larger than `maxSnapshotBytes` is `snapshot_limit_exceeded`, naming both sizes.",
    ),
    "execution:deadline:after-setup": (
        "contract 4",
        "The clock starts when the engine is ready; from there one deadline covers the whole exec or wait.",
    ),
    "execution:drain:inline": (
        "contract 4",
        "All requests of a cell are served within the same exec: sequential calls of instant tools complete in one.",
    ),
    "execution:drain:one-deadline": (
        "contract 4",
        "One deadline of `timeoutMs` covers turns and calls together, not each turn anew.",
    ),
    "execution:drain:completion-order": (
        "contract 4",
        "Results are delivered in the order in which they come, so `Promise.race` picks the true winner.",
    ),
    "execution:calls:started-together": ("contract 4", "The calls of one turn are started together, after the turn."),
    "execution:searches:sliced": (
        "issue 3",
        "However many searches a turn asks for, deadline and other runs are heeded; the rest is for the next wait.",
    ),
    "execution:calls:capped-on-host": (
        "contract 4",
        "The host counts open calls again; beyond the cap the run fails and nothing of that turn is dispatched.",
    ),
    "execution:calls:unawaited": ("contract 4", "A call that is not awaited still runs, and is awaited at the end."),
    "execution:failed:dispatches-nothing": ("contract 4", "A turn that fails dispatches nothing of what it recorded."),
    "execution:waiting:deadline": (
        "contract 4",
        "A run whose calls are open at the deadline is `waiting` with `pending_tools`, open timers included.",
    ),
    "execution:waiting:approval": (
        "contract 4",
        "An open approval ends the call as `waiting` once nothing else runs; it does not consume the deadline.",
    ),
    "execution:yield:rests": (
        "contract 4",
        "A cell that awaits `yield_control()` and nothing else is `waiting` with `yield`; `wait` resumes at once.",
    ),
    "execution:timers:host-backed": (
        "contract 6",
        "Timers fire by the host's clock, survive a suspension, and a cleared one keeps nothing waiting.",
    ),
    "execution:approvals:decided-once": (
        "contract 9",
        "A decision lets the call run with the input that was shown, or rejects it; others are `invalid_input`.",
    ),
    "execution:approvals:denied-alone": ("contract 9", "Where nobody can be asked, an approval is denied at once."),
}
