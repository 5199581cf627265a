"""Promises of plugins: how they are found, what they may register, how one fails."""

REQUIREMENTS = {
    "plugins:load:module": ("contract 8", "A plugin is a module with register(plugin), beside the manifest too."),
    "plugins:load:entry-point": ("contract 8", "A plugin is an entry point of the group codemode.plugins."),
    "plugins:load:fails": (
        "contract 2",
        "A plugin that is not there, does not import, has no register, or whose register fails is invalid_config.",
    ),
    "plugins:load:rolled-back": ("page", "Nothing that a plugin registered stays when its load fails."),
    "plugins:load:ids-unique": ("ours", "Two plugins of one id are invalid_config."),
    "plugins:register:tool": (
        "contract 8",
        "plugin.tool registers plugin:<id>:<name>, called as a manifest's python tool is.",
    ),
    "plugins:register:hook": (
        "contract 8",
        "plugin.hook registers a before_tool_call hook; one that is not right is an error, not a gap.",
    ),
    "plugins:register:namespace": ("contract 8", "plugin.namespace registers a namespace."),
    "plugins:register:isolated": (
        "contract 2",
        "A tool or namespace that is not right is left out and reported; its neighbours stay.",
    ),
    "plugins:register:own-id": (
        "contract 8",
        "The loader sets the id, [[plugin]] id or else the module's or entry point's name; no argument claims another.",
    ),
    "plugins:remove:clears": ("contract 8", "Removing a plugin clears its registrations."),
    "plugins:api:typed": ("ours", "What an author imports from codemode.plugins is typed: mypy finds a wrong field."),
}
