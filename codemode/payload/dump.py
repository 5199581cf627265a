"""A request body for people to read: as a summary, its tools, or all of it without secrets."""

from typing import Literal, get_args

from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.redact import Redactor
from codemode.core.types import Json
from codemode.payload.closed import offered_tools
from codemode.payload.sizes import measure, pretty_text

Level = Literal["summary", "tools", "full-redacted"]
LEVELS: tuple[Level, ...] = get_args(Level)
MAX_DUMP_BYTES = 256 << 10
PROMPT_WARNING = "prompts and message texts may show in a full-redacted dump; share it with care"


def parse_level(name: str) -> Level:
    """Return the level of that name.

    Raises:
        InvalidInput: There is none.
    """
    for level in LEVELS:
        if level == name:
            return level
    raise InvalidInput(f'there is no level "{name}"; use {", ".join(LEVELS)}.{did_you_mean(name, LEVELS)}')


def dump_body(body: dict[str, Json], level: Level, redactor: Redactor) -> dict[str, Json]:
    """Return what a level shows of a request body, redacted.

    Returns:
        summary: `{"model"?, "toolNames", "toolCount", "messageCount", "bytes", "tokens", "counter"}`.
        tools: `{"tools": [...]}`, as the provider gets them.
        full-redacted: the body, at most 256 KiB of JSON; longer texts and lists are cut and say so.

    Contract: payload:levels:three, payload:levels:bound
    """
    if level == "summary":
        shown = _summary(body)
    elif level == "tools":
        shown = {"tools": body.get("tools", [])}
    else:
        return fit(redactor.value(body), MAX_DUMP_BYTES)
    redacted: dict[str, Json] = redactor.value(shown)
    return redacted


def _summary(body: dict[str, Json]) -> dict[str, Json]:
    size = measure(body)
    names = offered_tools(body)
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    model = {"model": body["model"]} if "model" in body else {}
    return model | {
        "toolNames": names,
        "toolCount": len(names),
        "messageCount": len(messages),
        "bytes": size.bytes,
        "tokens": size.tokens,
        "counter": size.counter,
    }


def fit(body: dict[str, Json], max_bytes: int) -> dict[str, Json]:
    """Return the body cut until its JSON text for reading holds at most `max_bytes` bytes.

    Texts and lists are cut at ever smaller lengths, each cut saying how much is left out, so that
    the outline of the whole stays to be seen.
    """
    shown, chars, items = body, 1 << 16, 1 << 12
    while len(pretty_text(shown).encode()) > max_bytes:
        if items == 0:
            return {"omitted": f"the request has {measure(body).bytes} bytes of JSON"}
        shown, chars, items = _cut(body, chars, items), chars // 2, items // 2
    return shown


def _cut(value: Json, chars: int, items: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[:chars]}… {len(value) - chars} more characters"
    if isinstance(value, list):
        kept = [_cut(item, chars, items) for item in value[:items]]
        return kept if len(value) <= items else [*kept, f"… {len(value) - items} more items"]
    if isinstance(value, dict):
        members = list(value.items())
        kept_members = {key: _cut(item, chars, items) for key, item in members[:items]}
        left_out = {"…": f"{len(members) - items} more keys"} if len(members) > items else {}
        return kept_members | left_out
    return value
