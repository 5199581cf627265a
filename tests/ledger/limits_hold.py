"""Limits that hold against hostile cells and hostile workers, and walls between cells."""

REQUIREMENTS = {
    "limits:programs:end": (
        "issue 3",
        "Every hostile program of the list ends with its own code; the host answers meanwhile, the next cell is fine.",
    ),
    "limits:memory:process": (
        "issue 3",
        "A worker's resident memory stays below the memory limit and a stated constant, whatever the cell does.",
    ),
    "limits:memory:snapshot": (
        "issue 3",
        "Taking and restoring a snapshot of a large cell stays within the same bound.",
    ),
    "limits:output:resumes": (
        "contract 3",
        "`maxOutputBytes` counts over all resumes of a run; the prefix that fits is kept, cut on a code point.",
    ),
    "limits:output:valid-json": ("contract 11", "At the output limit the whole result is valid JSON in UTF-8."),
    "limits:runs:sixty-four": (
        "contract 2",
        "The 65th suspension of a session is `snapshot_limit_exceeded`; a run that suspends again keeps its slot.",
    ),
    "limits:calls:over-turns": ("contract 4", "Calls that are open from earlier turns count toward the cap."),
    "bridge:arguments:bounded": (
        "contract 4",
        "Arguments of one turn beyond 8 MiB of UTF-8 reject, naming size and bound, and are not dispatched.",
    ),
    "limits:results:bounded": (
        "contract 4",
        "A result is at most 8 MiB of UTF-8; one that the cell has no memory for is `memory_limit_exceeded`.",
    ),
    "limits:snapshot:keeps-worker": (
        "ours",
        "A suspension that is too large costs no worker; its output is kept.",
    ),
    "limits:races:suspended": (
        "contract 4",
        "`race`, `any` and `allSettled` across a suspension see the order in which calls settled.",
    ),
    "limits:timers:suspended": ("contract 6", "Timers across a suspension fire in the order of their moments."),
    "isolation:worker:reused": ("issue 3", "Nothing crosses from one cell to the next in a reused worker."),
    "isolation:catalog:session": (
        "contract 2",
        "Nothing of another session's catalog is in a cell on the same worker.",
    ),
    "isolation:random:run": ("contract 6", "`Math.random` differs from run to run on one worker."),
    "isolation:failure:next": ("issue 3", "After each kind of failure the next cell of the worker starts clean."),
    "fuzz:wire:bytes": (
        "issue 3",
        "Whatever bytes a worker sends, the host gets the one expected frame or ends the worker; nothing else happens.",
    ),
    "fuzz:rows:grammar": (
        "issue 3",
        "Rows that pass hold only what the grammar says: growing ids, texts that encode, numbers that JSON has.",
    ),
    "fuzz:worker:requests": (
        "issue 3",
        "Whatever bytes a host sends, a worker answers with one event or ends; it never hangs or answers twice.",
    ),
    "fuzz:snapshot:bytes": (
        "issue 3",
        "A snapshot that was changed anywhere, or forged with a right digest, is refused and harms only its run.",
    ),
}
