"""The fail-closed check: a request of code mode offers exactly `exec` and `wait`.

It knows every place where a provider's request may offer tools, and counts what it does not
recognise as an offer too, so that a new kind of tool can never slip through.
"""

from collections.abc import Iterator

from codemode.core.errors import Internal
from codemode.core.names import VISIBLE_TOOLS
from codemode.core.types import Json

_LISTS = ("tools", "functions", "functionDeclarations", "function_declarations")
_OTHER_OFFERS = ("mcp_servers", "web_search_options", "cachedContent", "prompt")  # each can bring tools of its own


def assert_surface(body: Json) -> None:
    """Refuse a request body that offers anything but exactly `exec` and `wait`.

    Args:
        body: The body of any provider's request, as it is about to be sent.

    Raises:
        Internal: Tools are missing, doubled, or foreign; the message lists what was found.

    Contract: payload:closed:exact, payload:closed:grouped
    """
    offered = offered_tools(body)
    if sorted(offered) != sorted(VISIBLE_TOOLS):
        found = ", ".join(offered[:20]) or "no tools"
        more = f" and {len(offered) - 20} more" if len(offered) > 20 else ""
        raise Internal(
            f"the request was not sent: code mode is on, so it must offer exactly exec and wait, but it offers "
            f"{found}{more}. Nothing but codemode may add tools to it"
        )


def offered_tools(body: Json) -> list[str]:
    """Return the name of each tool that a request body offers; nameless ones as `<kind>`."""
    if not isinstance(body, dict):
        return [f"<{type(body).__name__}>"]
    others = [f"<{key}>" for key in _OTHER_OFFERS if body.get(key)]
    return [name for key in _LISTS for name in _names(body.get(key))] + others


def _names(entries: Json) -> Iterator[str]:
    if entries is None:
        return
    if not isinstance(entries, list):
        yield f"<{type(entries).__name__}>"
        return
    for entry in entries:
        yield from _names_of_entry(entry)


def _names_of_entry(entry: Json) -> Iterator[str]:
    """Yield the names in one entry of a list of tools: a tool, or a group with lists of its own."""
    if not isinstance(entry, dict):
        yield f"<{type(entry).__name__}>"
        return
    groups = [key for key in _LISTS if key in entry]
    if not groups:
        yield _name(entry)
    for key in groups:
        yield from _names(entry[key])
    if groups:
        yield from (f"<{key}>" for key in entry if key not in (*groups, "type", "name", "description"))


def _name(entry: dict[str, Json]) -> str:
    kind = entry.get("type", "function")
    inner = entry.get("function", entry)
    name = inner.get("name") if isinstance(inner, dict) else None
    if kind in ("function", "custom") and isinstance(name, str):
        return name
    return f"<{kind if 'type' in entry else ', '.join(sorted(entry))}>"
