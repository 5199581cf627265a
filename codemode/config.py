"""The settings of `tools.codeMode`: read, check, clamp; and the gate that turns code mode on.

The table comes from the manifest as plain data. Numbers out of range are clamped and
remembered; anything else that is wrong is `InvalidConfig`. `decide_activation` is the one
place that says whether a model request gets `exec` and `wait` or the tools as they were.
"""

from collections.abc import Mapping
from typing import NamedTuple

from codemode.core.limits import LIMITS, Clamp, Limits, clamp_limits
from codemode.core.tables import Field, Where, check_table
from codemode.core.types import Json, Language

_LANGUAGES: tuple[Language, ...] = ("javascript", "typescript")
_FIELDS: dict[str, Field] = {
    "enabled": Field("flag"),
    "runtime": Field("text", ("quickjs-wasi",)),
    "mode": Field("text", ("only",)),
    "languages": Field("texts", _LANGUAGES),
} | {limit.alias: Field("integer") for limit in LIMITS}


class CodeModeConfig(NamedTuple):
    """The settings in force, and `given`: the fields that were written, for a layer above."""

    enabled: bool = False
    languages: tuple[Language, ...] = _LANGUAGES
    limits: Limits = Limits()
    clamps: tuple[Clamp, ...] = ()
    given: Mapping[str, Json] = {}


class ModelRequest(NamedTuple):
    """What a request to a model says about tools."""

    supports_tools: bool = True
    tools_disabled: bool = False
    raw: bool = False


class Activation(NamedTuple):
    """Whether code mode is active for a request, and why, in words."""

    active: bool
    reason: str


def parse_code_mode(table: Json, where: Where, below: CodeModeConfig | None = None) -> CodeModeConfig:
    """Turn a `codeMode` table, or its short form `true` or `false`, into settings.

    Args:
        table: `{"enabled": true, "timeoutMs": 500, …}` as the file has it.
        where: The place of the table, for errors.
        below: Settings that this table overrides field by field, as an agent's over the global.

    Raises:
        InvalidConfig: A wrong type, an unknown key, or a value that is not allowed.

    Contract: config:fields:defaults, config:fields:clamped, config:short-form:flag, config:agents:override
    """
    fields: dict[str, Json] = {"enabled": table} if isinstance(table, bool) else check_table(table, _FIELDS, where)
    if fields.get("languages") == []:
        where.at("languages").fail('found an empty list; allowed is "javascript", "typescript" or both.')
    given = {**below.given, **fields} if below else fields
    limits, clamps = clamp_limits({limit.name: given[limit.alias] for limit in LIMITS if limit.alias in given})
    chosen = given.get("languages", _LANGUAGES)
    languages = tuple(language for language in _LANGUAGES if language in chosen)
    return CodeModeConfig(given.get("enabled", False), languages, limits, clamps, given)


def decide_activation(enabled: bool, request: ModelRequest, allow: tuple[str, ...], tool_count: int) -> Activation:
    """Say whether this model request gets `exec` and `wait` instead of the tools.

    Args:
        enabled: `tools.codeMode.enabled` of the agent.
        request: What the request says about tools.
        allow: The allowlist's globs.
        tool_count: How many tools are effective after allow and deny.

    Contract: config:gate:conditions
    """
    unmet = unmet_conditions(enabled, request, allow, tool_count)
    if unmet:
        return Activation(False, f"Code mode is off: {unmet[0]}.")
    tools = "1 tool is" if tool_count == 1 else f"{tool_count} tools are"
    return Activation(True, f"Code mode is on: {tools} behind exec and wait.")


def unmet_conditions(enabled: bool, request: ModelRequest, allow: tuple[str, ...], tool_count: int) -> list[str]:
    """Return why code mode is off for a request, every reason in words; none where it is on.

    The arguments are those of `decide_activation`.
    """
    conditions = (
        (enabled, "tools.codeMode.enabled is not true"),
        (request.supports_tools, "the model does not support tools"),
        (not request.tools_disabled, "tools are disabled for this request"),
        (not request.raw, "this is a raw model call"),
        (bool(allow), "the allowlist tools.allow is empty"),
        (tool_count > 0, "no tool is effective after allow and deny"),
    )
    return [reason for holds, reason in conditions if not holds]
