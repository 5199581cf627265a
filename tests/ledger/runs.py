"""Runs: their states, and what the store promises about them."""

REQUIREMENTS = {
    "runs:states:table": (
        "contract 4",
        "running goes to waiting, completed, failed, aborted; waiting to running, failed, expired, aborted; no others.",
    ),
    "runs:states:illegal": ("contract 4", "An illegal transition raises and changes nothing."),
    "runs:ids:random": ("contract 3", "A run's id is `cm_` and a random UUID, and stays the same for its life."),
    "runs:record:complete": ("contract 5", "A run keeps its manifest path, its limits and its catalog entries."),
    "runs:scopes:shared": (
        "contract 5",
        "The catalog that many runs share is kept once, and goes with the last of them.",
    ),
    "runs:slots:sixty-four": (
        "contract 2",
        "At most 64 suspended runs are live per session; the next suspension is snapshot_limit_exceeded.",
    ),
    "runs:slots:kept": ("contract 2", "A run that resumes and suspends again keeps its slot."),
    "runs:slots:freed": ("contract 4", "Whatever ends a run frees its slot."),
    "runs:ttl:last-suspension": ("contract 4", "The time to live counts from the last suspension of the VM."),
    "runs:ttl:not-renewed": ("contract 4", "A wait that delivers nothing does not renew the time to live."),
    "runs:ttl:expires": (
        "contract 4",
        "A run that was suspended for too long is snapshot_expired, by wait or by sweep.",
    ),
    "runs:ttl:swept": ("contract 4", "A sweep expires what is too old, and logs it."),
    "runs:snapshots:discarded": ("contract 4", "Leaving `waiting` discards the snapshot, however the run leaves it."),
    "runs:snapshots:once": ("contract 5", "A snapshot to which something was delivered is never restored again."),
    "runs:claims:one-wins": ("contract 5", "Of any number of waits, in any number of processes, one claims the run."),
    "runs:claims:concurrent": (
        "contract 3",
        "A second concurrent wait is refused with invalid_input; the first goes on.",
    ),
    "runs:claims:same-message": (
        "contract 4",
        "An unknown, a finished and a foreign run are told apart by nobody: one invalid_input for all.",
    ),
    "runs:calls:settled-once": (
        "contract 5",
        "A call settles once; later answers, and those of ended runs, are ignored.",
    ),
    "runs:calls:settled-meanwhile": (
        "contract 5",
        "What another process settles while a run goes on is still there when it suspends again.",
    ),
    "runs:calls:dispatched-once": ("contract 5", "A nested call is dispatched at most once, approvals included."),
    "runs:calls:interrupted": (
        "contract 5",
        "A call whose process died rejects with nested_tool_failed: interrupted, and may have taken effect.",
    ),
    "runs:inbox:order": ("contract 4", "Answers are delivered in the order in which they came."),
    "runs:owners:pid-and-start": ("contract 5", "A dead owner is known by its pid and its start time, not by a lease."),
    "runs:owners:rescued": (
        "contract 5",
        "A run whose process died before it delivered anything waits again, with all that it had.",
    ),
    "runs:owners:lost": (
        "contract 5",
        "A run whose process died later has failed, and whoever waits for it is told so.",
    ),
    "runs:abort:waiting": ("contract 4", "Aborting a waiting run ends it at once: snapshot, calls and slot are gone."),
    "runs:abort:running": (
        "contract 4",
        "Aborting a running run from another process is seen by the one that runs it.",
    ),
    "runs:list:newest-first": ("contract 12", "A session's runs are listed newest first, finished ones too."),
    "runs:retention:age": ("ours", "A sweep removes runs that ended more than 30 days ago, with their logs."),
    "runs:retention:count": ("ours", "It also removes ended runs after which 10,000 others have begun."),
    "runs:retention:live": (
        "ours",
        "A run that has not ended is never removed, nor is an ended one of the same agent run.",
    ),
    "runs:retention:now": (
        "ours",
        "`codemode runs --prune AGE` removes a session's runs that ended so long ago, and says how many.",
    ),
    "runs:store:place": ("contract 5", "The store lies in the user's state folder, or in CODEMODE_STATE_DIR."),
    "runs:store:private": ("contract 5", "The store's file has mode 0600, a folder made for it 0700."),
    "runs:store:shared": ("contract 5", "Several processes may create and use one store at the same moment."),
    "runs:store:speaks": (
        "ours",
        "A locked, damaged, full or unwritable store is one clear sentence, never a traceback.",
    ),
    "runs:store:newer-schema": ("ours", "A store that a newer version wrote is refused and left as it is."),
    "runs:store:older-schema": ("ours", "A store that an older version wrote is brought up to date; nothing is lost."),
    "runs:store:memory-close": ("contract 5", "Closing an in-memory store aborts its open runs."),
}
