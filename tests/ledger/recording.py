"""Recordings: nested calls written down and played back."""

REQUIREMENTS = {
    "recording:format:diffable": (
        "contract 12",
        "A recording is JSON Lines without times or run ids: recorded again, the same run gives the same file.",
    ),
    "recording:format:checked": ("ours", "A recording is checked whole; an error names file, line and key."),
    "recording:record:redacted": ("contract 12", "A recording holds no secret."),
    "recording:record:refusals": (
        "ours",
        "What was refused is recorded as the cell saw it; interrupted calls are not.",
    ),
    "recording:record:namespaces": (
        "issue 5",
        "A recording holds what runs saw of plugins' namespaces, and what their mappers made of arguments.",
    ),
    "recording:replay:namespaces": (
        "issue 5",
        "A replayed cell reaches the namespaces of plugins as it did, without the plugins and as strictly.",
    ),
    "recording:record:replaces-own": ("ours", "A recording replaces another one, and no other file."),
    "recording:record:waits": ("ours", "A wait goes on with the recording of its run."),
    "recording:record:no-harm": (
        "ours",
        "Where the file cannot be written at the end of a run, that is said, and the run keeps its result.",
    ),
    "recording:record:together": ("ours", "What several processes hear of one run is all in its recording."),
    "recording:replay:servers": (
        "contract 12",
        "Replay needs neither servers nor secrets: the recording is the catalog.",
    ),
    "recording:replay:strict": ("contract 12", "A call that was not recorded fails and says what was recorded."),
    "recording:replay:in-order": ("ours", "The same call asked again gets the next answer that was recorded for it."),
    "recording:replay:across-processes": ("ours", "A wait on a replayed run is replayed too, from where it stood."),
    "recording:replay:no-manifest": ("ours", "What is to be replayed must be a recording: a manifest runs real tools."),
    "recording:replay:secrets": (
        "ours",
        "A value that came masked out of a recording finds the calls that were recorded with the real one.",
    ),
}
