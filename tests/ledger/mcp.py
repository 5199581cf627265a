"""What the contract says of MCP: definitions, connections, names, declarations."""

_CONFIG = "contract 7, config"

REQUIREMENTS = {
    # names and calls in the guest
    "mcp:names:camel-case": (
        "contract 7",
        "Names are split on non-alphanumerics and camelCased; leading digits get _.",
    ),
    "mcp:names:collisions": (
        "contract 7",
        "Collisions, guest globals, unsafe words, $api, resources and prompts give way with 2, 3, … in id order.",
    ),
    "mcp:call:one-object": ("contract 7", "An MCP function takes one object argument or none; anything else rejects."),
    "mcp:call:defaults-bounded": ("ours", "Defaults never make an input larger than what crosses the bridge."),
    "mcp:call:defaults": ("contract 7", "The schema's defaults are filled in."),
    "mcp:call:native-result": ("contract 7", "A result is exactly what the server sent."),
    "mcp:call:is-error-resolves": ("contract 7", "isError: true resolves; protocol and transport failures reject."),
    "mcp:operations:capability": (
        "contract 7",
        "resources.list/read and prompts.list/get exist where the server has the capability, and are native.",
    ),
    "mcp:operations:catalog": (
        "ours",
        "Resources and prompts are catalog tools, mcp:<server>:resources/read and so on.",
    ),
    "mcp:scope:files": (
        "contract 7",
        "mcp/index.d.ts and one mcp/<server>.d.ts for each; none without a visible MCP tool.",
    ),
    "mcp:scope:headers": ("contract 7", "The scope carries a header for all, for each server and for each tool."),
    "mcp:scope:only-visible": ("contract 7", "The scope holds the tools it is given and leads nowhere else."),
    "mcp:scope:prompt": ("contract 8", "The description of exec names the servers only while they are visible."),
    # declarations
    "mcp:types:compile": ("contract 7", "Each file compiles alone, and all together, under tsc --strict."),
    "mcp:types:one-namespace": (
        "contract 7",
        "One namespace for each server, with its own McpToolResult and McpApiHeader, $api, a function for each tool.",
    ),
    "mcp:types:schemas": (
        "contract 7",
        "enum, const, unions, nullable, oneOf, anyOf, allOf, $ref, dictionaries, tuples, nested objects, defaults.",
    ),
    "mcp:types:output": ("issue 4", "outputSchema gives the type of structuredContent."),
    "mcp:types:comments": ("contract 7", "Doc comments with @param; */ is defused."),
    "mcp:types:words": ("contract 7", "Keys that are no identifiers are quoted; reserved words are safe."),
    "mcp:types:hostile": ("contract 7", "A hostile schema degrades to unknown and never breaks the file."),
    # definitions
    "mcp:config:roots": (
        _CONFIG,
        "Included JSON may have the root mcpServers, servers with inputs, or be the bare map.",
    ),
    "mcp:config:comments": ("ours", "Included JSON may hold comments and trailing commas, as editors write them."),
    "mcp:config:first-wins": (_CONFIG, "The first definition of a name wins; the others are reported."),
    "mcp:config:provenance": (_CONFIG, "Every server knows the file that it came from."),
    "mcp:config:keys": (
        _CONFIG,
        "Known foreign keys are tolerated; unknown ones are an error with the nearest known key.",
    ),
    "mcp:config:env-file": ("ours", "The variables of VS Code's and Cursor's envFile reach the server, below its env."),
    "mcp:config:foreign": ("ours", "Spellings of other clients that mean something here mean it."),
    "mcp:config:transport": (
        _CONFIG,
        "command means stdio, url HTTP, an explicit type wins, contradictions are an error.",
    ),
    "mcp:config:cwd": (_CONFIG, "cwd is relative to the file of the definition."),
    "mcp:config:interpolation": (
        _CONFIG,
        "Variables are expanded in command, args, env, cwd, url and headers, only to connect; unset is invalid_config.",
    ),
    "mcp:config:redacted": ("contract 10", "Expanded values and headers are never shown; listings print placeholders."),
    "mcp:config:environment": (
        "ours",
        "A server sees the variables of its definition and a short list of harmless ones.",
    ),
    # connections
    "mcp:transport:stdio": ("contract 7", "Servers over stdio work end to end."),
    "mcp:transport:http": ("contract 7", "Servers over streamable HTTP work end to end."),
    "mcp:transport:sse": ("contract 7", "A url whose server only speaks SSE works, and so does an explicit sse."),
    "mcp:start:isolated": ("contract 7", "One server that fails to start does not take the others down."),
    "mcp:start:failure-kinds": (
        "contract 7",
        "A failure has a kind (auth, offline, http, exited, timeout, protocol), an exit status and a stderr tail.",
    ),
    "mcp:start:required": ("contract 7", "A required server that fails stops the run."),
    "mcp:start:timeout": ("issue 4", "The start is bounded, and the error names startTimeoutMs."),
    "mcp:start:parallel": ("issue 4", "Servers start in parallel."),
    "mcp:call:timeout": ("issue 4", "A call is bounded, and the error names callTimeoutMs."),
    "mcp:call:death": ("contract 7", "A server that dies in mid-call rejects that call at once."),
    "mcp:call:reconnect": ("contract 7", "A server that died is connected again for the next call."),
    "mcp:call:cancelled": ("contract 9", "A cancelled call is cancelled at the server."),
    "mcp:call:progress": ("contract 9", "A tool's progress reaches the run."),
    "mcp:call:declined": ("contract 7", "Elicitation and sampling are declined clearly and never hang."),
    "mcp:call:malformed": (
        "ours",
        "An answer that is no JSON-RPC rejects its call at once; odd characters cost nothing.",
    ),
    "mcp:stdout:noise": ("contract 7", "Non-JSON lines on stdout are skipped with one warning that quotes the first."),
    "mcp:warnings:told": ("ours", "What a server does amiss in a call is told while the run goes on, once."),
    "mcp:list:pages": ("contract 7", "tools/list is paged to the end; a repeated cursor or a page cap stops it."),
    "mcp:list:bounded": ("issue 4", "All pages of a list together are bounded by startTimeoutMs."),
    "mcp:tools:many-faults": (
        "ours",
        "A list of many tools that cannot be used is told in a few lines, in linear time.",
    ),
    "mcp:tools:isolated": ("contract 7", "One bad tool or schema never removes its neighbours."),
    "mcp:tools:allow-deny": (_CONFIG, "allow and deny of a server choose among its tools."),
    "mcp:list:changed": ("contract 7", "list_changed shows in the next run; the running one keeps its catalog."),
    # cache and ends
    "mcp:cache:no-start": ("contract 7", "With a cached list no server is started, and the SDK is not even imported."),
    "mcp:cache:refresh": ("contract 7", "A refresh bypasses the cache; the age of a list is known."),
    "mcp:cache:key": (
        "contract 7",
        "The cache is keyed by a hash of the definition and of its variables, never in clear.",
    ),
    "mcp:cache:private": ("ours", "A cache file is written whole and is the user's alone; a damaged one is no list."),
    "mcp:close:no-process-left": ("issue 4", "A server's process never outlives us, nor do its children."),
    "mcp:sharing:one-connection": ("issue 5", "However many sessions of a process use a server, it is connected once."),
    "mcp:sharing:alike": ("issue 5", "Servers that are defined differently, or with other values, are not shared."),
    "mcp:sharing:own-requests": (
        "issue 5",
        "Cancellation, progress and deadline of a request are its session's alone.",
    ),
    "mcp:sharing:nothing-else": ("issue 5", "Policy, approvals and hooks stay each session's own over one connection."),
    "mcp:sharing:last-closes": (
        "issue 5",
        "A server is closed when the last session that uses it ends, or their owner.",
    ),
    "mcp:sharing:reconnect": ("issue 5", "A server that died is connected again once, for all sessions."),
    "mcp:sharing:changes": ("issue 5", "A changed tool list is seen by the next session, whoever heard of it."),
    "mcp:sharing:redacted": (
        "issue 5",
        "Each session learns a connection's secrets, and sees none of another session.",
    ),
    "mcp:close:killed": ("issue 4", "Not even when we are killed."),
    # signing in
    "mcp:auth:oauth": ("issue 4", "A person signs in with the browser, through a port of the loopback, once."),
    "mcp:auth:private": ("issue 4", "Tokens lie in the user's state directory, a file for each server, mode 0600."),
    "mcp:auth:redacted": ("contract 10", "Tokens and codes are never shown; the redactor learns each."),
    "mcp:auth:refresh": ("issue 4", "Tokens are renewed without a person, in whichever process finds them stale."),
    "mcp:auth:one-renewal": (
        "ours",
        "Processes that find a token stale at once renew it once: the others take theirs from it.",
    ),
    "mcp:auth:nobody": ("ours", "Where nobody is at a terminal the failure names the command that signs in."),
    "mcp:auth:spellings": ("ours", "auth, oauth and scopes mean what they mean to other clients."),
    "mcp:auth:headers": ("contract 7", "Bearer tokens from variables, and other headers, reach the server."),
}
