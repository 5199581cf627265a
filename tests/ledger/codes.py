"""The sixteen codes, each at its moment, through the command."""

from codemode.core.errors import ErrorCode

REQUIREMENTS = {
    "codes:table:complete": ("contract 11", "All sixteen codes arise, and nothing else is a code."),
    "codes:none:guest": ("contract 3", "A guest's own uncaught exception has no code."),
} | {
    f"codes:{code.replace('_', '-')}:arises": (
        "contract 11",
        f"`{code}` arises at its moment, with its phase and its exit status, in one JSON document.",
    )
    for code in ErrorCode
}
