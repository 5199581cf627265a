"""Promises of approvals, from a run that stops for a person to the command that lets it go on."""

REQUIREMENTS = {
    "approvals:run:says-how": (
        "contract 9",
        "A run that needs an approval ends with exit status 3 and says which command decides.",
    ),
    "approvals:run:listed": ("issue 5", "`codemode runs` names each call that awaits a person."),
    "approvals:run:shown": ("ours", "What a call was asked that awaits a person, and why, is shown with it."),
    "approvals:wait:survives": (
        "issue 5",
        "After every process was killed, `wait --approve` completes the run, and the tool ran once.",
    ),
    "approvals:wait:denied": ("contract 9", "`wait --deny` rejects the call in the cell; the tool never runs."),
    "approvals:wait:once": ("contract 4", "A call that was decided cannot be decided again."),
    "approvals:alone:denied": (
        "contract 9",
        "With CI in the environment, or --no-input, what needs an approval is denied at once.",
    ),
    "approvals:always:run": (
        "issue 5",
        "`--approve CALL --always` approves every call of that tool in this run, in any process, and in no other run.",
    ),
    "approvals:decisions:contradiction": ("ours", "A `wait` that both approves and denies a call decides nothing."),
    "approvals:always:needs-approve": ("ours", "`--always` without `--approve` is a usage error."),
}
