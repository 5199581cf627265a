"""Promises of the session: results, runs that wait, ends from outside; and of bridge and host."""

REQUIREMENTS = {
    "session:hangup:leaves-nothing": (
        "issue 5",
        "Where the terminal is closed, or the process told to end, what a REPL or smoke checks started ends too.",
    ),
    "session:errors:debug": (
        "contract 10",
        "With CODEMODE_DEBUG=1 a fault of ours shows its traceback, redacted; without it nobody sees one.",
    ),
    "session:errors:never-raised": (
        "contract 3",
        "Bad arguments, unknown runs and limits are `failed` results with code and phase, never raised errors.",
    ),
    "session:errors:cut": ("contract 3", "The error of a failed result is cut to 8 KiB."),
    "session:errors:redacted": ("contract 10", "The error of a failed result shows no secret that the host knows."),
    "session:result:new-output": ("contract 3", "`output` holds only what is new since the last result."),
    "session:result:dispatched": ("contract 3", "`dispatched` says whether any nested call of the run ever started."),
    "session:result:run-id": ("contract 3", "The run id stays the same for the life of a run."),
    "session:telemetry:agent-run": ("contract 10", "Each result carries the telemetry of its whole agent run."),
    "session:wait:refused-alike": (
        "contract 4",
        "Unknown, finished and foreign runs are refused with one and the same message.",
    ),
    "session:wait:second-refused": ("contract 3", "A second concurrent wait is refused; the first goes on."),
    "session:wait:own-timeout": ("contract 5", "A wait takes `timeoutMs` from its own argument, else the manifest's."),
    "session:wait:keeps-catalog": (
        "contract 5",
        "A resumed run keeps its catalog; a tool that is gone or denied today rejects.",
    ),
    "session:wait:nothing-new": (
        "contract 4",
        "A wait that delivers nothing leaves the run waiting, its expiry unchanged.",
    ),
    "session:wait:other-process": (
        "contract 5",
        "A wait in another process delivers results as the process that carries the calls stores them.",
    ),
    "session:late:stored": ("contract 5", "What a call settles to while its run waits is stored for the next wait."),
    "session:late:carried-on": ("contract 5", "Calls in flight are carried on until they settle, then it is over."),
    "session:abort:live": ("contract 4", "Aborting a live run ends it at once with `aborted`, its worker killed."),
    "session:abort:waiting": ("contract 4", "Aborting a waiting run discards it; a wait on it says `aborted`."),
    "session:abort:cancels-calls": ("contract 4", "Aborting a run cancels its open calls."),
    "session:abort:from-elsewhere": ("contract 4", "A run is aborted from another process, also while it computes."),
    "session:abort:cancelled-task": (
        "ours",
        "Cancelling the coroutine of an exec aborts its run and leaves nothing behind.",
    ),
    "session:faults:owed": (
        "ours",
        "The end of a run that the store cannot take is told to the caller, and to the store as soon as it can be.",
    ),
    "session:faults:walk": (
        "contract 5",
        "Whatever moment a process is killed at, no call is made twice, no result is lost, no run is stuck.",
    ),
    "session:close:live-aborted": ("contract 4", "Ending a session aborts what is live in it."),
    "session:keep:state": (
        "contract 13",
        "A cell that is to be kept leaves a snapshot, from which the next one goes on.",
    ),
    "session:close:calls-interrupted": (
        "contract 5",
        "A call whose process ends is rejected, saying that it was interrupted and may have taken effect.",
    ),
    "session:hooks:outer-exec": (
        "contract 3",
        "Hooks see the outer exec with `code_mode_exec` and its language, and may block it.",
    ),
    "session:hooks:deadline": ("contract 4", "A hook that hangs over a cell is left at the deadline of its exec."),
    "session:hooks:alias-mirrored": ("contract 3", "If a hook rewrites one alias of the code, the other follows."),
    "session:runs:independent": ("contract 2", "Runs at the same time in one session do not see each other."),
    "output:limit:cumulative": ("contract 3", "Outputs and value are counted over the whole life of a run."),
    "output:limit:prefix": ("contract 11", "At the output limit the prefix that fits is kept, cut between characters."),
    "output:limit:says-left-out": ("contract 11", "At the output limit the error says how many bytes were left out."),
    "bridge:search:limits": ("contract 6", "A search without a limit gives the default, a larger limit is clamped."),
    "bridge:describe:rejects": ("contract 6", "Describing an unknown tool is a rejection in the guest."),
    "bridge:replies:bounded": ("contract 4", "An answer over 8 MiB is a rejection that names size and bound."),
    "bridge:call:resolved-on-host": ("contract 6", "An id is resolved again on the host, whatever the guest sent."),
    "bridge:call:plain-value": ("contract 6", "A call gives the tool's JSON value itself, without an envelope."),
    "bridge:call:rejection": ("contract 6", "A rejection carries name, message, code and toolId, and nothing else."),
    "bridge:namespace:forged": ("contract 8", "The host resolves every path again; a forged one is refused."),
    "bridge:recall:gone": ("contract 5", "A stored call whose tool is gone rejects."),
    "host:start:early": ("ours", "For run and wait the host is started before the command line is loaded."),
    "host:wait:any-folder": ("contract 5", "A wait works from any folder, with the manifest of its run."),
    "host:abort:leaves-nothing": (
        "contract 12",
        "Ctrl-C, or a front end that dies, aborts the run: no process, no open call, no waiting run is left.",
    ),
    "host:front-end:ctrl-c": ("contract 12", "After Ctrl-C the answer of the host, `aborted`, is still shown."),
    "host:front-end:died": ("ours", "A host that dies without an answer is one clear error, with what is known."),
    "host:result:always": (
        "contract 3",
        "Whatever fails in the host, before a session too, the front end gets one result and no traceback.",
    ),
    "host:result:carried": (
        "contract 5",
        "A run may end as `waiting` and return at once; its calls go on in the host until they have settled.",
    ),
    "host:pipes:not-the-callers": ("ours", "The host keeps none of the caller's descriptors: `$(…)` does not wait."),
    "host:output:prints": ("ours", "What a tool prints reaches the user's stderr and never the protocol."),
}
