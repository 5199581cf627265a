"""Promises of reach: many runs in one store, many runs at the same time."""

REQUIREMENTS = {
    "scale:store:size": ("issue 5", "A thousand suspended runs in one store take at most 40 kB each, all told."),
    "scale:store:wait": ("issue 5", "Among a thousand suspended runs any one can be resumed, and the others stay."),
    "scale:store:old": ("issue 5", "Ten thousand old runs in a store cost the life of a new one nothing."),
    "scale:runs:complete": (
        "issue 5",
        "64 runs at the same time with 16 calls each all complete, on two workers in one process.",
    ),
    "scale:runs:cross-talk": ("issue 5", "None of them sees a call, an output or a figure of another."),
}
