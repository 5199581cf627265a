"""Promises of the manifest: files, keys, placeholders."""

REQUIREMENTS = {
    "manifest:interpolation:forms": (
        "contract 7",
        "`${VAR}`, `${VAR:-default}`, `${env:VAR}` are expanded and `$$` escapes.",
    ),
    "manifest:interpolation:unset": (
        "contract 7",
        "An unset variable is `invalid_config` that names variable, key and file.",
    ),
}
