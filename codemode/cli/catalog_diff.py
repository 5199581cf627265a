"""`catalog diff`: a catalog against one that was saved with `catalog --json`, field by field."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from codemode.core.errors import InvalidInput
from codemode.core.files import readable
from codemode.core.types import Json

_OF_A_MACHINE = {"id", "origin"}  # not compared: the key itself, and where a file lay


def load_saved(file: str) -> dict[str, Json]:
    """Return the tools of a saved listing by id; `-` reads standard input.

    Raises:
        InvalidInput: It cannot be read, or is no listing.
    """
    name = "standard input" if file == "-" else f'"{file}"'
    try:
        raw = sys.stdin.buffer.read() if file == "-" else readable(Path(file)).read_bytes()
        listing = json.loads(raw)
    except OSError as error:
        raise InvalidInput(
            f"{name} cannot be read: {error.strerror}; save a listing with codemode catalog --json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not JSON ({error}); save a listing with codemode catalog --json") from error
    tools = listing.get("tools") if isinstance(listing, dict) else None
    if not isinstance(tools, list) or not all(
        isinstance(tool, dict) and isinstance(tool.get("id"), str) for tool in tools
    ):
        raise InvalidInput(f"{name} is no listing of a catalog; save one with codemode catalog --json")
    return {tool["id"]: tool for tool in tools}


def compare(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    """Return how a listing's tools, by id, differ from those of an older one.

    `{same, added, removed, changed: [{id, changes: [{path, old?, new?}]}]}`: a path is that of JSON Pointer,
    `/parameters/properties/id/type`; what has no `old` is new, what has no `new` is gone.

    Contract: diff:fields:schema-path, diff:tools:added-removed
    """
    changed: list[Json] = []
    for tool_id in sorted(set(old) & set(new)):
        changes = list(_changes(_compared(old[tool_id]), _compared(new[tool_id]), ""))
        if changes:
            changed.append({"id": tool_id, "changes": changes})
    added, removed = sorted(set(new) - set(old)), sorted(set(old) - set(new))
    return {"same": not (added or removed or changed), "added": added, "removed": removed, "changed": changed}


def _compared(tool: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in tool.items() if name not in _OF_A_MACHINE}


def _changes(old: Json, new: Json, path: str) -> Iterator[dict[str, Json]]:
    """Yield each place where two values differ; lists of one length are compared item by item."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            below = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                yield {"path": below, "old": old[key]}
            elif key not in old:
                yield {"path": below, "new": new[key]}
            else:
                yield from _changes(old[key], new[key], below)
    elif _are_alike(old, new):
        for at, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, f"{path}/{at}")
    elif json.dumps(old) != json.dumps(new):  # as JSON has it: true is not 1
        yield {"path": path, "old": old, "new": new}


def _are_alike(old: Json, new: Json) -> bool:
    """Say whether two values are lists of schemas that can be compared one by one."""
    both_lists = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    return both_lists and all(isinstance(item, dict) for item in (*old, *new))
