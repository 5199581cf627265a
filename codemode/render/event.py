"""The events of a run as lines, for `--verbose`: what happened, and how long after the beginning.

Standard library only; there is no rich form, since such lines are read in logs.
"""

import json
from collections.abc import Callable, Mapping

from codemode.core.types import Json
from codemode.render.words import counted, duration, one_line, size

_MAX_CHARS = 200  # of an input, an update or an error
_Event = Mapping[str, Json]


class Narrator:
    """Tells the events of one command in order; it remembers when they began and which tool a call is of."""

    def __init__(self) -> None:
        """Begin before the first event."""
        self._began: float | None = None
        self._targets: dict[Json, str] = {}

    def line(self, event: _Event) -> str:
        """Return one line for an event, as `core.events.to_json` writes it.

        Contract: cli:verbose:events
        """
        if self._began is None:
            self._began = event["at_ms"]
        if "call_id" in event and event["call_id"] not in self._targets:
            self._targets[event["call_id"]] = event.get("tool_id") or event.get("method") or "?"
        after = duration(max(event["at_ms"] - self._began, 0))
        return f"+{after:<8} {one_line(self._say(event), 1 << 16)}"

    def _say(self, event: _Event) -> str:
        tell = _TELLERS.get(event["event"])
        if tell is None:  # a host of another version
            return str(event["event"])
        call = f"call {event['call_id']} {self._targets[event['call_id']]} " if "call_id" in event else ""
        return call + tell(event)


def _settled(event: _Event) -> str:
    if event["error"]:
        return f"settled: {event['state']}, {_short(event['error'])}"
    return f"settled: {event['state']}, {size(event['result_bytes'])}"


def _turn(event: _Event) -> str:
    calls = event["delivered"]
    told = f"after call{'s' * (len(calls) > 1)} {', '.join(map(str, calls))} " if calls else ""
    return f"turn {told}over, {duration(event['guest_ms'])} in the cell"


def _ended(event: _Event) -> str:
    code = f" [{event['code']}]" if event["code"] else ""
    return f"run {event['run_id']} is {event['state']}{code} after {duration(event['duration_ms'])}"


def _why(reason: Json) -> str:
    return f", as a hook asks: {_short(reason)}" if reason else ""


def _short(value: Json) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MAX_CHARS)


_SERVER_STATES = {"asked": "is asked for its tools", "answered": "has answered", "failed": "has failed"}
_TELLERS: dict[str, Callable[[_Event], str]] = {
    "server": lambda event: f"MCP server {event['server']} {_SERVER_STATES.get(event['state'], event['state'])}",
    "exec_started": lambda event: (
        f"run {event['run_id']} begins: {event['language']}, {counted(event['catalog_size'], 'tool')} in the catalog"
    ),
    "wait_started": lambda event: f"run {event['run_id']} goes on",
    "call_started": lambda event: f"started with {_short(event['input'])}",
    "call_parked": lambda event: f"awaits approval with {_short(event['input'])}{_why(event['reason'])}",
    "call_progress": lambda event: f"reports {_short(event['update'])}",
    "call_settled": _settled,
    "snapshot": lambda event: f"snapshot {event['change']}, {size(event['bytes'])}",
    "turn_measured": _turn,
    "run_ended": _ended,
}
