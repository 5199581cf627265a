"""The two tools that a model sees, `exec` and `wait`: their definitions and their inputs.

Here live the names, the descriptions, the flat schemas, and the rules that turn raw arguments
into values. What a provider's request looks like is in `payload`; what a cell may do is decided
by the engine. The text grows with what is visible (MCP, namespaces), never with the number of
tools. Called by `session` and `payload`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast, get_args

from codemode.core.errors import InvalidInput, UnsupportedLanguage
from codemode.core.limits import Limits
from codemode.core.names import VISIBLE_TOOLS, did_you_mean
from codemode.core.types import GuestScope, Json, Language, VisibleTool

EXEC, WAIT = VISIBLE_TOOLS
LANGUAGES: tuple[Language, ...] = get_args(Language)
_TITLES = {"javascript": "JavaScript", "typescript": "TypeScript"}
_EXEC_FIELDS = ("code", "command", "language")
_WAIT_FIELDS = ("runId", "run_id")


class ExecInput(NamedTuple):
    """A checked input of `exec`: the cell's text, with its fence blanked, and its language."""

    code: str
    language: Language


def build_surface(
    sources: Mapping[str, int], scope: GuestScope, languages: tuple[Language, ...], limits: Limits
) -> tuple[VisibleTool, VisibleTool]:
    """Build the definitions of `exec` and `wait` for one catalog.

    Args:
        sources: Tools of the catalog by source, `{"openclaw": 1, "plugin": 0, "mcp": 3, "client": 2}`;
            only whether there are any MCP tools matters.
        scope: What the guest sees beside the catalog; its prompts are taken in.
        languages: The languages that are switched on.
        limits: The limits in force, for the one number that a program must heed.

    Contract: surface:schema:flat, surface:description:constraints, surface:description:only-visible,
    surface:size:constant
    """
    return _build_exec(sources.get("mcp", 0) > 0, scope.prompts, languages, limits), _build_wait()


def _build_exec(mcp: bool, prompts: tuple[str, ...], languages: tuple[Language, ...], limits: Limits) -> VisibleTool:
    titles = " or ".join(_TITLES[language] for language in languages)
    lines = [
        _EXEC_INTRO.replace("{titles}", titles),
        _EXEC_RULES,
        *([_EXEC_MCP] if mcp else []),
        *prompts,
        _EXEC_CALLS.replace("{calls}", str(limits.max_pending_tool_calls)),
        _EXEC_RESULT,
    ]
    has_default = "javascript" in languages
    properties: dict[str, Json] = {
        "code": {"type": "string", "description": "The program's text, without a Markdown fence."},
        "command": {"type": "string", "description": "Alias of code, for hooks. Leave it out."},
        "language": {
            "type": "string",
            "enum": list(languages),
            "description": "javascript when left out." if has_default else "Always send it.",
        },
    }
    return VisibleTool(EXEC, "\n".join(lines), _object_schema(properties, () if has_default else ("language",)))


_EXEC_INTRO = (
    "Run a small {titles} program in a sandbox and get one result. Every other tool is hidden and can only be called "
    "from inside such a program; do joins, loops and parallel calls there."
)
_EXEC_RULES = (
    "- The code is the body of an async function: `await` works, and `return` gives the value (JSON). A program that "
    "is one expression gives its value without `return`.\n"
    "- There are no modules (import, require), files, network, process or environment. The only timers are "
    "setTimeout and clearTimeout.\n"
    "- Find tools: `await tools.search(query, {limit})` gives entries {id, name, description, source}; `ALL_TOOLS` is "
    "the whole list, so filter it, do not return it.\n"
    "- `await tools.describe(id)` adds `parameters`, the JSON Schema of the input. Read it before the first call.\n"
    "- `await tools.call(id, input)` gives the tool's own JSON value. `tools.<name>(input)` is the same where the "
    "name is unambiguous."
)
_EXEC_MCP = (
    "- MCP tools are not in `tools`: `API.list('mcp')` lists TypeScript declarations, `API.read('mcp/<server>.d.ts')` "
    "shows one. Call `await MCP.<server>.<tool>({...})` with one object; it gives {content, structuredContent, "
    "isError}, and isError does not throw. `await MCP.<server>.$api(tool, {schema: true})` gives one tool's schema."
)
_EXEC_CALLS = (
    "- A failed call rejects with an Error {message, code, toolId} that you can catch. At most {calls} calls may be "
    "open at once."
)
_EXEC_RESULT = (
    "- `text(v)`, `json(v)` and console.log add to the output; `await yield_control()` delivers it early.\n"
    "The result's status is completed (value, output), failed (error, code) or waiting (runId): then call wait."
)
_WAIT_DESCRIPTION = (
    "Resume a suspended program. Use it only after exec or wait gave a result with status waiting, with that "
    "result's runId; it gives the same kind of result. Never start the program again instead."
)


def _build_wait() -> VisibleTool:
    properties: dict[str, Json] = {"runId": {"type": "string", "description": "The runId of the waiting result."}}
    return VisibleTool(WAIT, _WAIT_DESCRIPTION, _object_schema(properties, ("runId",)))


def _object_schema(properties: dict[str, Json], required: tuple[str, ...]) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": list(required)} if required else schema


def parse_exec_input(raw: Json, languages: tuple[Language, ...]) -> ExecInput:
    """Turn the raw arguments of `exec` into a checked input.

    Args:
        raw: `{"code"?, "command"?, "language"?}`; null and blank text count as absent.
        languages: The languages that are switched on.

    Raises:
        InvalidInput: No text, two different texts, a foreign argument, or a shell command.
        UnsupportedLanguage: The language is unknown or switched off.

    Contract: surface:exec:one-text, surface:exec:alias, surface:exec:language, surface:exec:shell,
    surface:exec:fence
    """
    given = _known_arguments(raw, EXEC, _EXEC_FIELDS)
    language = _parse_language(given.get("language"), languages)
    texts = [text for text in (_text(given, "code"), _text(given, "command")) if text]
    if len(set(texts)) > 1:
        raise InvalidInput("exec got a code and a different command; command is an alias of code, so send only code")
    code = _blank_fence(texts[0]) if texts else ""
    if not code.strip():
        raise InvalidInput('exec needs a program in "code", for example: return (await tools.search("order")).length')
    _refuse_shell(code)
    return ExecInput(code, language)


def parse_wait_input(raw: Json) -> str:
    """Return the run id of the raw arguments of `wait`.

    Args:
        raw: `{"runId"}` or `{"run_id"}`.

    Raises:
        InvalidInput: No run id, two different ones, or a foreign argument.

    Contract: surface:wait:input
    """
    given = _known_arguments(raw, WAIT, _WAIT_FIELDS)
    ids = {text.strip() for text in (_text(given, "runId"), _text(given, "run_id")) if text}
    if len(ids) != 1:
        found = "none" if not ids else "two different ones"
        raise InvalidInput(f'wait needs one "runId", that of a waiting result; it got {found}')
    return ids.pop()


def parse_decisions(approve: Iterable[str], deny: Iterable[str]) -> dict[str, bool]:
    """Return what a person said of each call, by its id; a text is one id and no row of them.

    Raises:
        InvalidInput: A call is both approved and denied.

    Contract: approvals:decisions:contradiction
    """
    approved, denied = ((ids,) if isinstance(ids, str) else tuple(ids) for ids in (approve, deny))
    for call_id in approved:
        if call_id in denied:
            raise InvalidInput(
                f'call "{call_id[:40]}" is both approved and denied; say one of them. Nothing was decided'
            )
    return dict.fromkeys(approved, True) | dict.fromkeys(denied, False)


def _known_arguments(raw: Json, tool: str, fields: tuple[str, ...]) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise InvalidInput(f"{tool} takes one object with {_listed(fields)}; it got {_kind(raw)}")
    for name in raw:
        if name not in fields:
            hint = did_you_mean(str(name), fields)
            raise InvalidInput(f'{tool} has no argument "{name}"; it takes {_listed(fields)}.{hint}')
    return raw


def _text(given: dict[str, Json], field: str) -> str:
    """Return the text of a field, or "" where it is missing, null or blank."""
    value = given.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f'"{field}" must be a text; it is {_kind(value)}')
    return value if value.strip() else ""


def _parse_language(value: Json, languages: tuple[Language, ...]) -> Language:
    wanted = "javascript" if value is None else value
    if wanted in languages:
        return cast("Language", wanted)
    usable = _listed(languages)
    if wanted in LANGUAGES:
        raise UnsupportedLanguage(f'language "{wanted}" is switched off by tools.codeMode.languages; use {usable}')
    hint = did_you_mean(wanted, languages) if isinstance(wanted, str) else ""
    found = f'"{wanted}"' if isinstance(wanted, str) else _kind(wanted)
    raise UnsupportedLanguage(f"language {found} is not supported; use {usable}.{hint}")


def _listed(words: tuple[str, ...]) -> str:
    return " or ".join(f'"{word}"' for word in words)


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    kinds: dict[type, str] = {dict: "an object", list: "an array", str: "a text", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else f"a {type(value).__name__}")


_FENCE = re.compile(
    r"\A(?P<open>\s*(?P<mark>`{3,}|~{3,})[^\n`]*\n)(?P<body>.*?)(?P<close>^[ \t]*(?P=mark)\s*)\Z",
    re.DOTALL | re.MULTILINE,
)


def _blank_fence(code: str) -> str:
    """Return the code with a Markdown fence around it blanked; every line keeps its number."""
    fenced = _FENCE.match(code)
    if fenced is None:
        return code
    return "\n" * fenced["open"].count("\n") + fenced["body"] + "\n" * fenced["close"].count("\n")


_SHELL_COMMANDS = frozenset(
    {
        "apt", "apt-get", "awk", "bash", "brew", "bun", "cargo", "cat", "cd", "chmod", "chown", "cp", "curl",
        "date", "deno", "df", "diff", "docker", "du", "echo", "env", "find", "git", "go", "grep", "head",
        "hostname", "jq", "kill", "kubectl", "ln", "ls", "make", "mkdir", "mv", "nc", "node", "npm", "npx", "pip",
        "pip3", "pnpm", "ps", "pwd", "python", "python3", "rg", "rm", "rmdir", "rsync", "scp", "sed", "sh", "sleep",
        "sort", "ssh", "sudo", "systemctl", "tail", "tar", "tee", "top", "touch", "tree", "uname", "unzip", "uv",
        "uvx", "wc", "wget", "which", "whoami", "xargs", "yarn", "zip", "zsh",
    }
)  # fmt: skip
_SHELL_LINE = re.compile(
    r"\A(?:\$ )?(?P<command>[a-z][a-z0-9-]*)"
    r"(?:\s*\Z|\s+(?:-{1,2}[A-Za-z]|[./~$\"'*]|(?!(?:in|of|as|instanceof|satisfies)\b)\w).*\Z)"
)


def _refuse_shell(code: str) -> None:
    """Refuse text of which every line reads as a shell command.

    Such text often parses (`ls -la` is a subtraction, `cat /etc/hosts` a division), so that
    without this check the model would be told of an unknown variable.
    """
    first, *rest = (line.strip() for line in code.splitlines() if line.strip())
    commands = [line for line in (first, *rest) if not line.startswith("# ")]
    if not first.startswith("#!") and not (commands and all(map(_is_shell_line, commands))):
        return
    raise InvalidInput(
        f'exec runs a JavaScript program, not a shell; it got "{first[:80]}". Write a program: find a tool with '
        f'await tools.search("run a command") and return await tools.call(id, {{…}})'
    )


def _is_shell_line(line: str) -> bool:
    found = _SHELL_LINE.match(line)
    return found is not None and found["command"] in _SHELL_COMMANDS
