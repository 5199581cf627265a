"""The transcript: a conversation that is saved, replayed, and shows what its cells called."""

REQUIREMENTS = {
    "transcript:messages:paired": (
        "contract 10",
        "A transcript keeps every exec and wait call with its result, in the order of the calls.",
    ),
    "transcript:messages:interrupted": ("contract 10", "A call that was left without a result gets a failed one."),
    "transcript:save:same": ("contract 10", "A transcript that was saved and read again is the same."),
    "transcript:save:checked": ("ours", "A saved transcript of another version, or a damaged one, is refused."),
    "transcript:projection:parent": (
        "contract 10",
        "Each nested call is projected as a real tool call under its parent call id, also after a wait.",
    ),
}
