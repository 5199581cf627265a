"""Promises of `tools.codeMode` and of the activation gate."""

REQUIREMENTS = {
    "config:fields:defaults": ("contract 2", "Each field has its default; without the table code mode is off."),
    "config:fields:clamped": ("contract 2", "Numbers out of range are clamped, and every clamp is remembered."),
    "config:fields:enabled-only-by-true": (
        "contract 2",
        "Only the boolean true turns code mode on; setting other fields does not.",
    ),
    "config:short-form:flag": ("contract 2", "`tools.codeMode = true` and `= false` are accepted."),
    "config:agents:override": ("contract 2", "An agent's table overrides the global one field by field."),
    "config:errors:named": (
        "contract 2",
        "What is wrong is `invalid_config`, naming file, key, found and allowed values, and the nearest known key.",
    ),
    "config:gate:conditions": (
        "contract 2",
        "Each of the six conditions of the gate, from `enabled` to one effective tool, can turn code mode off.",
    ),
}
