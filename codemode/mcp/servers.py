"""Server definitions: what a table of any known client format says, as one frozen value.

Manifest tables and JSON files of other clients hold the same few facts under many spellings.
`gather_servers` reads them all, keeps where each came from, and expands nothing; `resolve`
fills in variables and folders, and is called only when a server is about to be connected. An
unknown key is an error with the nearest known one: silence is what people complain about.
"""

import hashlib
import json
import os
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from codemode.core.interpolate import interpolate
from codemode.core.limits import MCP_CALL_MS, MCP_START_MS
from codemode.core.names import did_you_mean
from codemode.core.tables import Field, Where, check_table, shown
from codemode.core.types import Json
from codemode.mcp.env_file import load_env_file
from codemode.mcp.includes import read_include
from codemode.mcp.oauth_settings import OAuthSettings, parse_oauth
from codemode.mcp.process import Command

Transport = Literal["stdio", "http", "sse", "auto"]  # auto: streamable HTTP, then SSE

_FIELDS = {
    "command": Field("any"),
    "args": Field("texts"),
    "env": Field("table"),
    "cwd": Field("text"),
    "url": Field("text"),
    "headers": Field("named texts"),
    "type": Field("text"),
    "enabled": Field("flag"),
    "required": Field("flag"),
    "allow": Field("texts"),
    "deny": Field("texts"),
    "startTimeoutMs": Field("integer"),
    "callTimeoutMs": Field("integer"),
    "auth": Field("any"),
}
_ALIASES = {
    "transport": "type",
    "environment": "env",
    "workingDirectory": "cwd",
    **dict.fromkeys(("serverUrl", "httpUrl", "baseUrl"), "url"),
    **dict.fromkeys(("http_headers", "httpHeaders"), "headers"),
    **dict.fromkeys(("includeTools", "enabled_tools", "enabledTools", "allowedTools"), "allow"),
    **dict.fromkeys(("excludeTools", "disabled_tools", "disabledTools", "blockedTools"), "deny"),
    **dict.fromkeys(("startup_timeout_ms", "connectionTimeoutMs"), "startTimeoutMs"),
    "requestTimeoutMs": "callTimeoutMs",
}
_FOREIGN_FIELDS = {  # of other clients, understood
    "disabled": Field("flag"),
    "bearer_token_env_var": Field("text"),
    "bearerTokenEnv": Field("text"),
    "env_http_headers": Field("named texts"),
    "env_vars": Field("texts"),
    "envFile": Field("text"),
    "oauth": Field("any"),
    "scopes": Field("texts"),
    "startup_timeout_sec": Field("any"),
    "connectTimeout": Field("any"),
    "tool_timeout_sec": Field("any"),
}
_TOLERATED = frozenset(
    {
        "alwaysAllow", "autoApprove", "autoStart", "codex", "default_tools_approval_mode", "description", "dev",
        "displayName", "experimental_environment", "gallery", "icon", "iconUrl", "id", "instructions", "label",
        "lifecycle", "logLevel", "name", "note", "oauth_resource", "protocolVersion", "providerOptions", "sandbox",
        "sandboxEnabled", "supportsParallelToolCalls", "tags", "timeout", "title", "trust", "version",
    }
)  # fmt: skip  # of other clients, without a meaning here
_TYPES: dict[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "sse": "sse", "remote": "auto",
    "http": "http", "streamable-http": "http", "streamable_http": "http", "streamableHttp": "http",
}  # fmt: skip
_BAD_NAME = re.compile(r"[:\x00-\x1f\x7f]|^\s*$")
_VARIABLE = re.compile(r"\$\{(?:env:)?([^}]*?)(?::-[^}]*)?\}")
_INPUT = re.compile(r"\$\{input:([^}]*)\}")
_WITHOUT = 'go on without this server by setting its "enabled" to false'
_INHERITED = frozenset(
    {
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "HOME", "LANG",
        "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "WAYLAND_DISPLAY", "XAUTHORITY",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "ALL_PROXY", "HTTP_PROXY",
        "HTTPS_PROXY", "NO_PROXY", "all_proxy", "http_proxy", "https_proxy", "no_proxy", "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    }
)  # fmt: skip  # the rest of our environment may hold secrets that are not this server's


class ServerSpec(NamedTuple):
    """One server as it is defined: texts hold their placeholders.

    where: Key and file, such as `mcp.servers.everything in /shop/codemode.toml`.
    folder: What a relative `cwd` starts from, and the `cwd` of a server that names none.
    inputs: Values for `${input:…}`, from VS Code's `inputs` with a default.
    oauth: How people sign in; None where nobody is to.
    """

    name: str
    where: Where
    folder: Path
    transport: Transport
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    env_file: str = ""
    enabled: bool = True
    required: bool = False
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    start_timeout_ms: int = MCP_START_MS
    call_timeout_ms: int = MCP_CALL_MS
    inputs: Mapping[str, str] = {}
    oauth: OAuthSettings | None = None

    @property
    def target(self) -> str:
        """What listings show of it: the command line or the URL, with placeholders."""
        return self.url or " ".join(self.command)

    def fingerprint(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return a digest of everything that decides which server this is; no value is in it in clear.

        Contract: mcp:cache:key
        """
        told = [self.transport, self.command, dict(self.env), self.cwd, self.url, dict(self.headers), str(self.folder)]
        told += [self.oauth.client_id, self.oauth.scope] if self.oauth else []
        told += [self.env_file] if self.env_file else []
        text = json.dumps(told, sort_keys=True)
        names = (
            _input_variable(name.removeprefix("input:")) if name.startswith("input:") else name
            for name in _VARIABLE.findall(text)
        )
        values = [environment.get(name, "") for name in sorted(set(names))]
        return hashlib.sha256(json.dumps([text, values]).encode()).hexdigest()


class ServerSet(NamedTuple):
    """All servers by precedence, and a sentence for each definition that another one hides."""

    specs: tuple[ServerSpec, ...] = ()
    shadowed: tuple[str, ...] = ()


class Resolved(NamedTuple):
    """What to connect to, variables filled in; `secrets` must never be shown."""

    command: Command | None
    url: str
    headers: Mapping[str, str]
    secrets: frozenset[str]
    oauth: OAuthSettings | None = None


def gather_servers(tables: Iterable[tuple[Where, Mapping[str, Json]]], include: Iterable[Path] = ()) -> ServerSet:
    """Read all definitions: the manifest's tables first, then each included file in turn.

    Args:
        tables: `(place, {name: table})` in order of precedence.
        include: Files of other clients.

    Raises:
        InvalidConfig: A definition or a file is not acceptable; the message names key and file.

    Contract: mcp:config:first-wins, mcp:config:provenance
    """
    specs: dict[str, ServerSpec] = {}
    shadowed: list[str] = []

    def add(spec: ServerSpec) -> None:
        first = specs.setdefault(spec.name, spec)
        if first is not spec:
            shadowed.append(f"{spec.where} is not used: {first.where} defines the same server before it.")

    for where, servers in tables:
        for name, table in servers.items():
            add(parse_server(name, table, where.at(name), Path(where.file).parent))
    for path in include:
        found = read_include(path, ", which mcp.include names")
        for name, table in found.servers.items():
            add(parse_server(name, table, found.where.at(name), found.folder)._replace(inputs=found.inputs))
        shadowed += (f"{found.where.at(name)} is there twice; the first one is used." for name in found.repeated)
    return ServerSet(tuple(specs.values()), tuple(shadowed))


def parse_server(name: str, table: Json, where: Where, folder: Path) -> ServerSpec:
    """Return the server that a table defines.

    Raises:
        InvalidConfig: An unknown key, a value of the wrong kind, or keys that contradict each other.

    Contract: mcp:config:keys, mcp:config:transport
    """
    if _BAD_NAME.search(name):
        where.fail("a server's name must not be empty nor hold a colon or a control character; rename it.")
    facts = _normalise(table, where)
    command = _command(facts, where)
    _check_contradictions(facts, where)
    headers = _headers(facts)
    return ServerSpec(
        name=name,
        where=where,
        folder=folder,
        transport=_transport(facts, where),
        command=command,
        env=_environment(facts, where),
        env_file=facts.get("envFile", ""),
        cwd=facts.get("cwd", ""),
        url=facts.get("url", ""),
        headers=headers,
        enabled=facts.get("enabled", True) and not facts.get("disabled", False),
        required=facts.get("required", False),
        allow=tuple(facts.get("allow", ("*",))),
        deny=tuple(facts.get("deny", ())),
        start_timeout_ms=_milliseconds(
            facts, "startTimeoutMs", ("startup_timeout_sec", "connectTimeout"), MCP_START_MS, where
        ),
        call_timeout_ms=_milliseconds(facts, "callTimeoutMs", ("tool_timeout_sec",), MCP_CALL_MS, where),
        oauth=_oauth(facts, headers, where),
    )


def resolve(spec: ServerSpec, environment: Mapping[str, str] = os.environ) -> Resolved:
    """Fill in a server's variables and folders; called only to connect.

    Raises:
        InvalidConfig: Variables are unset, or the URL is none; the message names key and file.

    Contract: mcp:config:interpolation
    """
    places = {"workspaceFolder": str(spec.folder), "userHome": str(Path.home())}
    variables = ChainMap(places, _input_values(spec, environment), dict(environment))
    secrets: set[str] = set()

    def fill(**fields: Json) -> dict[str, Json]:
        expanded = interpolate(fields, str(spec.where), variables, _WITHOUT)
        secrets.update(expanded.secrets)
        filled: dict[str, Json] = expanded.value
        return filled

    if not spec.url:
        program, *arguments = spec.command
        filled = fill(command=program, args=arguments, envFile=spec.env_file, cwd=spec.cwd, env=dict(spec.env))
        env = {name: environment[name] for name in environment if name in _INHERITED or name.startswith("LC_")}
        if spec.env_file:
            file = spec.folder / Path(filled["envFile"]).expanduser()
            listed = load_env_file(file, spec.where.at("envFile"))
            secrets.update(listed.values())
            env |= listed
        cwd = spec.folder / Path(filled["cwd"]).expanduser()
        command = Command((os.path.expanduser(filled["command"]), *filled["args"]), env | filled["env"], cwd)  # noqa: PTH111 -- a bare command name must stay bare
        return Resolved(command, "", {}, frozenset(secrets - set(places.values())))
    filled = fill(url=spec.url, headers=dict(spec.headers), auth=spec.oauth._asdict() if spec.oauth else None)
    url, headers = filled["url"], filled["headers"]
    if not re.match(r"https?://[^/\s]", url):
        spec.where.at("url").fail(
            f"found {shown(spec.url)}; allowed is an address that begins with http:// or https://."
        )
    oauth = OAuthSettings(**filled["auth"]) if spec.oauth else None
    return Resolved(None, url, headers, frozenset((secrets | set(headers.values())) - set(places.values())), oauth)


def _normalise(table: Json, where: Where) -> dict[str, Json]:
    if not isinstance(table, dict):
        where.fail(f"found {shown(table)}; allowed is a table with a command or a url.")
    known = _FIELDS | _FOREIGN_FIELDS | {alias: _FIELDS[name] for alias, name in _ALIASES.items()}
    table = _without_filter(table, where)
    meant = {key: value for key, value in table.items() if key not in _TOLERATED and not key.startswith(("_", "$"))}
    for key in meant:
        if key not in known:
            where.fail(f'unknown key "{key}"; known keys are {", ".join(_FIELDS)}.{did_you_mean(key, known)}')
    facts: dict[str, Json] = {}
    for key, value in check_table(meant, known, where).items():
        name = _ALIASES.get(key, key)
        if facts.setdefault(name, value) != value:
            where.fail(f'"{key}" contradicts another spelling of "{name}"; keep one.')
    return facts


def _without_filter(table: dict[str, Json], where: Where) -> dict[str, Json]:
    """Return a definition in which Copilot's `tools` and OpenClaw's `toolFilter` are `allow` and `deny`."""
    if isinstance(table.get("tools"), (list, dict)):  # a table holds Codex's approvals
        rest = {key: value for key, value in table.items() if key != "tools"}
        table = rest if isinstance(table["tools"], dict) else {"allow": table["tools"]} | rest
    if "toolFilter" not in table:
        return table
    lists = {"include": Field("texts"), "exclude": Field("texts")}
    chosen = check_table(table["toolFilter"], lists, where.at("toolFilter"))
    renamed = {"allow": chosen.get("include"), "deny": chosen.get("exclude")}
    rest = {key: value for key, value in table.items() if key != "toolFilter"}
    return rest | {key: names for key, names in renamed.items() if names}


def _command(facts: dict[str, Json], where: Where) -> tuple[str, ...]:
    command = facts.get("command", [])
    parts = [command] if isinstance(command, str) else command
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts) or (parts and not parts[0]):
        where.at("command").fail(f"found {shown(command)}; allowed is a text, or a list of texts.")
    return (*parts, *facts.get("args", []))


def _check_contradictions(facts: dict[str, Json], where: Where) -> None:
    has_command, has_url = bool(facts.get("command")), bool(facts.get("url"))
    if has_command == has_url:
        where.fail("it has both a command and a url; keep one." if has_url else "it needs a command or a url.")
    wrong = ("headers", "auth", "oauth", "scopes") if has_command else ("args", "env", "envFile", "cwd")
    for key in wrong:
        if facts.get(key):
            where.fail(f'"{key}" has no meaning beside {"command" if has_command else "url"}; remove one of the two.')


def _transport(facts: dict[str, Json], where: Where) -> Transport:
    inferred: Transport = "stdio" if facts.get("command") else "auto"
    if "type" not in facts:
        return inferred
    transport = _TYPES.get(facts["type"])
    if transport is None:
        allowed = ", ".join(f'"{name}"' for name in _TYPES)
        where.at("type").fail(f'found "{facts["type"]}"; allowed is {allowed}.{did_you_mean(facts["type"], _TYPES)}')
    if (transport == "stdio") != (inferred == "stdio"):
        where.fail(f'the type "{facts["type"]}" contradicts its {"command" if inferred == "stdio" else "url"}.')
    return transport


def _environment(facts: dict[str, Json], where: Where) -> dict[str, str]:
    forwarded = {name: f"${{{name}:-}}" for name in facts.get("env_vars", ())}
    return forwarded | {name: _scalar(value, where.at("env").at(name)) for name, value in facts.get("env", {}).items()}


def _headers(facts: dict[str, Json]) -> dict[str, str]:
    token = facts.get("bearer_token_env_var", facts.get("bearerTokenEnv"))
    bearer = {"Authorization": f"Bearer ${{{token}}}"} if token else {}
    named = {header: f"${{{name}}}" for header, name in facts.get("env_http_headers", {}).items()}
    given: dict[str, str] = facts.get("headers", {})
    return bearer | named | given


def _oauth(facts: dict[str, Json], headers: Mapping[str, str], where: Where) -> OAuthSettings | None:
    if not facts.get("url"):
        return None
    return parse_oauth(facts, any(name.lower() == "authorization" for name in headers), where)


def _scalar(value: Json, where: Where) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        where.fail(f"found {shown(value)}; allowed is a text.")
    return str(value)


def _milliseconds(facts: dict[str, Json], key: str, in_seconds: Sequence[str], default: int, where: Where) -> int:
    """Return a timeout: `key` counts in milliseconds, those of other clients in seconds."""
    seconds = next((facts[name] for name in in_seconds if name in facts and key not in facts), None)
    found = facts.get(key, default) if seconds is None else seconds
    if isinstance(found, bool) or not isinstance(found, (int, float)) or found <= 0:
        where.fail(f"found {shown(found)} as a timeout; allowed is a number above 0.")
    return int(found) if seconds is None else int(found * 1000)


def _input_values(spec: ServerSpec, environment: Mapping[str, str]) -> dict[str, str]:
    told = json.dumps([spec.command, dict(spec.env), spec.cwd, spec.url, dict(spec.headers)])
    given = {name: environment.get(_input_variable(name), spec.inputs.get(name)) for name in _INPUT.findall(told)}
    if missing := [name for name, value in given.items() if value is None]:
        inputs, variables = "the inputs" if missing[1:] else "the input", "variables" if missing[1:] else "variable"
        to_set = " and ".join(map(_input_variable, missing))
        spec.where.fail(f"it asks for {inputs} {' and '.join(missing)}; set the {variables} {to_set}.")
    return {f"input:{name}": value for name, value in given.items() if value is not None}


def _input_variable(name: str) -> str:
    return f"CODEMODE_INPUT_{re.sub('[^A-Za-z0-9]', '_', name).upper()}"
