"""What `doctor` tries on a machine."""

REQUIREMENTS = {
    "doctor:claims:tried": (
        "issue 6",
        "doctor tries time, memory, output, modules, recursion and a snapshot round trip through real workers.",
    ),
    "doctor:lockdown:reported": ("issue 6", "doctor shows each lockdown measure as a worker reports it."),
    "doctor:lockdown:tried": (
        "issue 6",
        "doctor makes forbidden attempts in processes that are locked down as workers are; one allowed is a failure.",
    ),
    "doctor:versions:named": (
        "issue 6",
        "doctor names what codemode is built on, what is missing or of a wrong version.",
    ),
    "doctor:cache:verified": ("issue 6", "doctor says whether the cache can be written and which files verify."),
    "doctor:store:facts": ("issue 6", "doctor shows place, schema, modes and run counts of the store, and damage."),
    "doctor:manifest:clamps": ("contract 2", "doctor names each number that was clamped, of agents too."),
    "doctor:servers:why-not": ("issue 6", "doctor says of each server that it answers, or why not and what to do."),
    "doctor:catalog:left-out": (
        "issue 5",
        "doctor names each definition of a plugin or a document that is left out, and why.",
    ),
    "doctor:catalog:summed": (
        "issue 6",
        "Of tools that are renamed or left out doctor names a few of a kind, and counts the rest.",
    ),
    "doctor:namespaces:opened": ("issue 5", "doctor opens each namespace, and says which lacks a tool."),
    "doctor:policy:idle": (
        "ours",
        "doctor names each glob of allow, deny, approvals and sandbox that matches no tool.",
    ),
    "doctor:activation:reasons": (
        "contract 2",
        "doctor gives every reason that code mode is off, per agent, and for raw and tool-less requests.",
    ),
    "doctor:status:failed": ("issue 6", "doctor ends with 1 where anything failed, else 0; each trouble has a fix."),
}
