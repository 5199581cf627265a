"""Names: tool ids, the guest's safe names, camelCase identifiers, near names, reserved words.

Pure text in, pure text out. Whoever needs a name made safe, unique or guessable asks here,
so that catalog, MCP and namespaces spell the same thing the same way.
"""

import difflib
import heapq
import re
from collections.abc import Iterable

VISIBLE_TOOLS = ("exec", "wait")  # all that a model sees in code mode
CONTROL_TOOLS = frozenset({"exec", "wait", "tool_search_code", "tool_search", "tool_describe", "tool_call"})
UNSAFE_SEGMENTS = frozenset({"__proto__", "constructor", "prototype"})
GUEST_GLOBALS = frozenset(
    {
        "ALL_TOOLS", "tools", "MCP", "API", "namespaces", "text", "json", "yield_control",
        "console", "setTimeout", "clearTimeout", "queueMicrotask", "globalThis",
    }
)  # fmt: skip
TOOLS_RESERVED = frozenset({"search", "describe", "call"})
_RESERVED_PROPERTIES = UNSAFE_SEGMENTS | {
    "then", "toString", "toLocaleString", "valueOf", "toJSON", "hasOwnProperty", "isPrototypeOf",
    "propertyIsEnumerable", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
}  # fmt: skip
_MAX_NEAR_CHARS = 100  # of a name that is compared with others: the time grows with both lengths
_MAX_COMPARED = 2000  # names: half a second, where they are as alike as can be
_WORD = re.compile(r"[A-Za-z0-9]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_$]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_KEYWORDS = frozenset(
    {
        "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else",
        "enum", "export", "extends", "false", "finally", "for", "function", "if", "implements", "import", "in",
        "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public", "return",
        "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while", "with", "yield",
        "eval", "arguments",
    }
)  # fmt: skip


def build_tool_id(source: str, owner: str, name: str) -> str:
    """Return `<source>:<owner>:<name>`; the owner must hold no colon."""
    return f"{source}:{owner}:{name}"


def is_identifier(name: str) -> bool:
    """Say whether a name can be a JavaScript global without quoting (ASCII only)."""
    return bool(_IDENTIFIER.match(name)) and name not in _KEYWORDS


def is_reserved_keyword(name: str) -> bool:
    """Say whether JavaScript or TypeScript in strict mode reserves this word."""
    return name in _KEYWORDS


def is_reserved_property(name: str) -> bool:
    """Say whether a convenience function of this name would shadow something of ours."""
    return name in TOOLS_RESERVED or name in _RESERVED_PROPERTIES or name.startswith("__codemode")


def safe_name(name: str) -> str:
    """Return the convenience name: each character outside `A-Za-z0-9_$` becomes `_`.

    Contract: catalog:names:collisions
    """
    cleaned = _UNSAFE.sub("_", name)
    return f"_{cleaned}" if cleaned[:1].isdigit() else cleaned


def camel_case(name: str, fallback: str) -> str:
    """Return the guest's identifier for an MCP server or tool.

    The first word's first letter becomes lower case, later words' first letter upper case,
    the rest is untouched; leading digits get `_`; nothing left gives the fallback.

    Contract: mcp:names:camel-case
    """
    words = _WORD.findall(name)
    if not words:
        return fallback
    head = words[0][0].lower() + words[0][1:]
    joined = head + "".join(word[0].upper() + word[1:] for word in words[1:])
    return f"_{joined}" if joined[0].isdigit() else joined


def unique_names(wanted: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> dict[str, str]:
    """Give each key its wanted name, or that name with `2`, `3`, … where it is taken.

    Args:
        wanted: `(key, name)` pairs, in the order that decides who keeps the plain name.
        taken: Names that nobody may have.

    Returns:
        `{key: name}`, all names different.
    """
    names = UniqueNames(taken)
    return {key: names.take(name) for key, name in wanted}


class UniqueNames:
    """Gives out names, none twice; `separator` stands before the number of one that is wanted again."""

    def __init__(self, taken: Iterable[str] = (), separator: str = "", first: int = 2) -> None:
        """Begin with what is taken already; the second who wants a name gets the number `first`."""
        self._taken = set(taken)
        self._separator = separator
        self._first = first
        self._next: dict[str, int] = {}  # of a name, the number to be tried: a million may want the same

    def take(self, name: str) -> str:
        """Return this name, or the first numbered one that is free.

        Contract: catalog:names:many-alike
        """
        candidate, number = name, self._next.get(name, self._first)
        while candidate in self._taken:
            candidate, number = f"{name}{self._separator}{number}", number + 1
        if candidate != name:
            self._next[name] = number
        self._taken.add(candidate)
        return candidate


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` known names that a person may have meant, best first.

    Contract: catalog:names:near-bounded
    """
    asked = name.lower()[:_MAX_NEAR_CHARS]
    candidates = {candidate.lower()[:_MAX_NEAR_CHARS]: candidate for candidate in known}
    compared: Iterable[str] = candidates
    if len(candidates) > _MAX_COMPARED:  # those of about the same length
        compared = heapq.nsmallest(_MAX_COMPARED, candidates, key=lambda candidate: abs(len(candidate) - len(asked)))
    close = difflib.get_close_matches(asked, compared, n=count, cutoff=0.5)
    return [candidates[match] for match in close]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "x" or "y"?`, or nothing when nothing is near."""
    close = nearest(name, known, 2)
    quoted = [f'"{match}"' for match in close]
    return f" Did you mean {' or '.join(quoted)}?" if quoted else ""
