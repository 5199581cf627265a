"""The settings of `tools.codeMode` and the gate."""

import pytest

from codemode.config import CodeModeConfig, ModelRequest, decide_activation, parse_code_mode
from codemode.core.errors import ErrorCode, InvalidConfig
from codemode.core.limits import LIMITS, Clamp, Limits
from codemode.core.tables import Where
from tests.requirements import requirement

WHERE = Where("/shop/codemode.toml", "tools.codeMode")


@requirement("config:fields:defaults")
def test_an_empty_table_gives_every_default():
    config = parse_code_mode({}, WHERE)

    assert config == CodeModeConfig()
    assert config.enabled is False
    assert config.languages == ("javascript", "typescript")
    assert config.limits.to_json() == {
        "timeoutMs": 10000,
        "memoryLimitBytes": 67108864,
        "maxOutputBytes": 65536,
        "maxSnapshotBytes": 10485760,
        "maxPendingToolCalls": 16,
        "snapshotTtlSeconds": 900,
        "searchDefaultLimit": 8,
        "maxSearchLimit": 50,
    }


@requirement("config:fields:enabled-only-by-true")
def test_setting_other_fields_does_not_turn_code_mode_on():
    assert parse_code_mode({"timeoutMs": 500, "runtime": "quickjs-wasi", "mode": "only"}, WHERE).enabled is False
    assert parse_code_mode({"enabled": True}, WHERE).enabled is True


@requirement("config:short-form:flag")
@pytest.mark.parametrize("flag", [True, False])
def test_the_short_form_is_the_flag_alone(flag):
    assert parse_code_mode(flag, WHERE) == CodeModeConfig(enabled=flag, given={"enabled": flag})


@requirement("config:fields:clamped")
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.alias)
def test_a_number_out_of_range_is_clamped_and_said(limit):
    low = parse_code_mode({limit.alias: limit.low - 1}, WHERE)
    high = parse_code_mode({limit.alias: limit.high * 10}, WHERE)

    assert getattr(low.limits, limit.name) == limit.low
    assert getattr(high.limits, limit.name) == limit.high
    assert Clamp(limit.alias, limit.low - 1, limit.low) in low.clamps
    assert Clamp(limit.alias, limit.high * 10, limit.high) in high.clamps


@requirement("config:fields:clamped")
def test_the_default_search_limit_is_clamped_to_the_largest():
    config = parse_code_mode({"searchDefaultLimit": 20, "maxSearchLimit": 5}, WHERE)

    assert config.limits == Limits(search_default_limit=5, max_search_limit=5)
    assert config.clamps == (Clamp("searchDefaultLimit", 20, 5),)


@requirement("config:errors:named")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("on", 'tools.codeMode in /shop/codemode.toml: found "on"; allowed is a table.'),
        ({"enabled": "yes"}, 'tools.codeMode.enabled in /shop/codemode.toml: found "yes"; allowed is true or false.'),
        ({"enabled": 1}, "tools.codeMode.enabled in /shop/codemode.toml: found 1; allowed is true or false."),
        ({"timeoutMs": "fast"}, 'tools.codeMode.timeoutMs in /shop/codemode.toml: found "fast"; allowed is a whole'),
        ({"timeoutMs": True}, "found true; allowed is a whole number."),
        ({"timeoutMs": 1.5}, "found 1.5; allowed is a whole number."),
        ({"runtime": "v8"}, 'tools.codeMode.runtime in /shop/codemode.toml: found "v8"; allowed is "quickjs-wasi".'),
        ({"mode": "also"}, 'found "also"; allowed is "only".'),
        ({"languages": []}, 'found an empty list; allowed is "javascript", "typescript" or both.'),
        ({"languages": "typescript"}, 'found "typescript"; allowed is a list of "javascript" or "typescript".'),
        ({"languages": ["typescrpt"]}, 'Did you mean "typescript"'),
        ({"timeoutMS": 5}, 'unknown key "timeoutMS"; known keys are enabled, languages, maxOutputBytes'),
        ({"timeoutMS": 5}, 'Did you mean "timeoutMs"'),
    ],
)
def test_what_is_wrong_is_named(table, message):
    with pytest.raises(InvalidConfig) as caught:
        parse_code_mode(table, WHERE)

    assert message in str(caught.value)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_languages_come_in_one_order_and_once():
    config = parse_code_mode({"languages": ["typescript", "javascript", "typescript"]}, WHERE)

    assert config.languages == ("javascript", "typescript")
    assert parse_code_mode({"languages": ["typescript"]}, WHERE).languages == ("typescript",)


@requirement("config:agents:override")
def test_an_agent_overrides_field_by_field():
    below = parse_code_mode({"enabled": True, "timeoutMs": 500, "languages": ["javascript"]}, WHERE)

    agent = parse_code_mode({"timeoutMs": 900}, WHERE, below)
    off = parse_code_mode(False, WHERE, below)

    assert (agent.enabled, agent.limits.timeout_ms, agent.languages) == (True, 900, ("javascript",))
    assert (off.enabled, off.limits.timeout_ms) == (False, 500)


@requirement("config:gate:conditions")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "Code mode is on: 3 tools are behind exec and wait."),
        ({"tool_count": 1}, "Code mode is on: 1 tool is behind exec and wait."),
        ({"enabled": False}, "Code mode is off: tools.codeMode.enabled is not true."),
        ({"request": ModelRequest(supports_tools=False)}, "Code mode is off: the model does not support tools."),
        ({"request": ModelRequest(tools_disabled=True)}, "Code mode is off: tools are disabled for this request."),
        ({"request": ModelRequest(raw=True)}, "Code mode is off: this is a raw model call."),
        ({"allow": ()}, "Code mode is off: the allowlist tools.allow is empty."),
        ({"tool_count": 0}, "Code mode is off: no tool is effective after allow and deny."),
    ],
)
def test_each_condition_of_the_gate_can_close_it(change, reason):
    inputs = {"enabled": True, "request": ModelRequest(), "allow": ("*",), "tool_count": 3} | change

    activation = decide_activation(**inputs)

    assert activation.reason == reason
    assert activation.active is ("is on" in reason)
