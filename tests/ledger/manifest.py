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
    "manifest:find:nearest": ("contract 12", "The manifest is the nearest `codemode.toml` upward."),
    "manifest:find:variable": ("contract 12", "`CODEMODE_MANIFEST` names the manifest."),
    "manifest:load:empty": ("contract 12", "Without a manifest the catalog is empty and cells still run."),
    "manifest:load:unreadable": (
        "issue 2",
        "A manifest that is missing, unreadable or no UTF-8 is one clear `invalid_config`.",
    ),
    "manifest:load:halves": (
        "ours",
        "An escape for half a character, in a document, a client's configuration or a recording, is U+FFFD.",
    ),
    "manifest:load:special-file": (
        "issue 6",
        "A named pipe, a socket or a device as a file to read is one clear error, not a hang; pipes of a shell work.",
    ),
    "manifest:load:position": ("issue 2", "Malformed TOML is `invalid_config` with file, line and column."),
    "manifest:load:unknown-key": ("contract 2", "An unknown key is an error that names the nearest known one."),
    "manifest:load:whole-example": ("contract 9", "The contract's example manifest loads as it is written."),
    "manifest:load:nothing-run": ("contract 2", "Loading a manifest imports, starts and connects nothing."),
    "manifest:load:lean": ("engine", "Loading a manifest imports no pydantic, jsonschema, httpx2, mcp or rich."),
    "manifest:tool:one-executor": ("contract 9", "A manifest tool names exactly one executor."),
    "manifest:tool:owner": (
        "contract 6",
        "The owner holds no colon, has a default for openclaw and client, and must be given for plugin.",
    ),
    "manifest:tool:duplicate-ids": ("contract 6", "Duplicate ids are `invalid_config`."),
    "manifest:schema:checked": ("issue 2", "A schema that is not a schema is `invalid_config` naming path and rule."),
    "manifest:schema:long-names": ("ours", "A name of any length in a schema costs its check no more than its length."),
    "manifest:schema:digits": ("ours", "An index of thousands of digits in a reference leads nowhere."),
    "manifest:schema:large-bounds": ("ours", "A bound that JSON holds inexactly, as of 64 bits, stays a number."),
    "manifest:schema:agrees": ("ours", "Our check of schemas agrees with the meta-schema of draft 2020-12."),
    "manifest:agents:override": ("contract 2", "`[agents.<id>.tools.codeMode]` overrides `tools.codeMode`."),
    "manifest:mcp:raw": ("contract 7", "MCP servers are handed on as raw tables with the place they came from."),
}
