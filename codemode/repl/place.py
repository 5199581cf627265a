"""Where the cursor stands in a cell: at a name, a member, a tool's id, a key or value of an input.

Pure: text in, `Place` out. `completer.py` looks up what fits there.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from codemode.repl.scan import Frame, Token, scan

ITEM = "[]"  # a step of `keys`: into the items of an array
_ID_METHODS = (("tools", "call"), ("tools", "describe"))
_WORD_AT_END = re.compile(r"[\w$]+\Z")
_MAX_CHARS = 50_000  # of a cell; a longer one is no longer typed


class Place(NamedTuple):
    """Something that can be completed.

    prefix: What is typed of it already.
    path: Of a member: the names before the last dot. Of a text, a key, a value: the function whose
        argument it is.
    tool_id: The id in `tools.call("id", …)`, where the argument is that of such a call.
    keys: Of a key or value: the way from the argument to it.
    taken: Of a key: those that stand before it already.
    quote: The quotation mark before the prefix, or nothing.
    """

    kind: Literal["name", "member", "text", "key", "value"]
    prefix: str
    path: tuple[str, ...] = ()
    tool_id: str | None = None
    keys: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()
    quote: str = ""


class _Argument(NamedTuple):
    path: tuple[str, ...]
    tool_id: str | None
    keys: tuple[str, ...]


def locate(text: str) -> Place | None:
    """Return where a text ends, or None where nothing can be completed there."""
    if len(text) > _MAX_CHARS:
        return None
    found = scan(text)
    frames = found.frames
    if found.state == "string":
        return _in_string(frames, found.partial, text[-len(found.partial) - 1])
    if found.state != "code":
        return None
    word = _WORD_AT_END.search(text)
    prefix = word[0] if word else ""
    before = frames[-1].tokens[:-1] if prefix else frames[-1].tokens
    if before and before[-1].text in (".", "?.") and before[-1].kind == "mark":
        path = _chain(before[:-1])
        return Place("member", prefix, path) if path else None
    if prefix[:1].isdigit():
        return None
    return _in_input(frames, before, prefix, "") or Place("name", prefix)


def _in_string(frames: Sequence[Frame], partial: str, quote: str) -> Place | None:
    before = frames[-1].tokens
    if frames[-1].opener == "(" and not before:
        path = _callee(frames, len(frames) - 1)
        return Place("text", partial, path, quote=quote) if path else None
    return _in_input(frames, before, partial, quote)


def _in_input(frames: Sequence[Frame], before: Sequence[Token], prefix: str, quote: str) -> Place | None:
    """Return the key or value of an input object that is being typed."""
    argument = _argument(frames)
    if argument is None:
        return None
    path, tool_id, keys = argument
    if frames[-1].opener == "[":
        if not before or before[-1].text == ",":
            return Place("value", prefix, path, tool_id, (*keys, ITEM), quote=quote)
        return None
    if not before or before[-1].text == ",":
        return Place("key", prefix, path, tool_id, keys, _keys_of(before), quote)
    key = _key_before(before)
    return Place("value", prefix, path, tool_id, (*keys, key), quote=quote) if key is not None else None


def _argument(frames: Sequence[Frame]) -> _Argument | None:
    """Follow the open brackets outward to the call whose input they are part of."""
    keys: list[str] = []
    for at in range(len(frames) - 1, 0, -1):
        opener, before, outer = frames[at].opener, frames[at - 1].tokens, frames[at - 1].opener
        if opener not in ("{", "["):
            return None
        if outer == "(":
            return _argument_of_call(frames, at, tuple(reversed(keys))) if opener == "{" else None
        if outer == "{" and (key := _key_before(before)) is not None:
            keys.append(key)
        elif outer == "[" and (not before or before[-1].text == ","):
            keys.append(ITEM)
        else:
            return None
    return None


def _argument_of_call(frames: Sequence[Frame], at: int, keys: tuple[str, ...]) -> _Argument | None:
    path = _callee(frames, at - 1)
    given = frames[at - 1].tokens
    if path in _ID_METHODS:
        is_second = len(given) == 2 and given[0].kind == "text" and given[1].text == ","
        return _Argument(path, given[0].text[1:-1], keys) if is_second else None
    return _Argument(path, None, keys) if path and not given else None


def _callee(frames: Sequence[Frame], at: int) -> tuple[str, ...]:
    """Return the names before an opening parenthesis: `("tools", "call")`."""
    return _chain(frames[at - 1].tokens)


def _chain(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names that tokens end with, joined by dots; nothing where it does not begin with a name."""
    names: list[str] = []
    at = len(tokens) - 1
    while at >= 0 and tokens[at].kind == "word":
        names.append(tokens[at].text)
        if at == 0 or tokens[at - 1].text not in (".", "?."):
            return tuple(reversed(names))
        at -= 2
    return ()


def _key_before(tokens: Sequence[Token]) -> str | None:
    """Return the key whose colon the tokens end with."""
    if len(tokens) < 2 or tokens[-1].text != ":" or not _begins_member(tokens, len(tokens) - 2):
        return None
    return _key_text(tokens[-2])


def _keys_of(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(_key_text(token) for at, token in enumerate(tokens) if _begins_member(tokens, at))


def _begins_member(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].kind in ("word", "text") and (at == 0 or tokens[at - 1].text == ",")


def _key_text(token: Token) -> str:
    return token.text[1:-1] if token.kind == "text" else token.text
