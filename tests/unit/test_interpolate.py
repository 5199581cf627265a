"""Placeholders in configured text."""

import pytest

from codemode.core.errors import InvalidConfig
from codemode.core.interpolate import Expanded, interpolate
from tests.requirements import requirement

VARIABLES = {"TOKEN": "s3cret-value", "EMPTY": "", "input:key": "typed-in"}
WHERE = "tool.pay.http.url in /shop/codemode.toml"


@requirement("manifest:interpolation:forms")
@pytest.mark.parametrize(
    ("text", "expected", "secrets"),
    [
        ("plain", "plain", set()),
        ("Bearer ${TOKEN}", "Bearer s3cret-value", {"s3cret-value"}),
        ("${env:TOKEN}", "s3cret-value", {"s3cret-value"}),
        ("${MISSING:-fallback}", "fallback", set()),
        ("${EMPTY:-fallback}", "fallback", set()),
        ("${EMPTY}", "", set()),
        ("${env:MISSING:-a:-b}", "a:-b", set()),
        ("${MISSING:-}", "", set()),
        ("$$TOKEN $${TOKEN} $5", "$TOKEN ${TOKEN} $5", set()),
        ("${input:key}", "typed-in", {"typed-in"}),
        ("${TOKEN}${TOKEN}", "s3cret-values3cret-value", {"s3cret-value"}),
    ],
)
def test_each_form_expands_and_reports_the_values_that_went_in(text, expected, secrets):
    assert interpolate(text, WHERE, VARIABLES) == Expanded(expected, frozenset(secrets))


@requirement("manifest:interpolation:unset")
def test_an_unset_variable_names_variable_key_and_file():
    with pytest.raises(InvalidConfig) as caught:
        interpolate("x${NOT_THERE}", WHERE, VARIABLES)

    assert str(caught.value) == (
        "tool.pay.http.url in /shop/codemode.toml: the variable NOT_THERE is not set; "
        "set it, or write ${NOT_THERE:-default}."
    )


@requirement("manifest:interpolation:unset")
def test_all_unset_variables_of_a_value_are_named_each_with_its_place():
    given = {"url": "${A}/${TOKEN}", "list": ["${B}", "${A}"], "headers": {"K": "${env:C}", "L": "${D:-d}"}}
    with pytest.raises(InvalidConfig) as caught:
        interpolate(given, "tool[0].http in f.toml", VARIABLES, "leave it out")
    with pytest.raises(InvalidConfig, match=r"^w: the variables A and B are not set; set them, or write \$\{A:-d"):
        interpolate("${A}${B}", "w", VARIABLES)

    assert str(caught.value) == (
        "tool[0].http in f.toml: the variables A (url), B (list[0]) and C (headers.K) are not set; "
        "set them, write ${A:-default} and so on, or leave it out."
    )


@pytest.mark.parametrize("text", ["${}", "${not a name}", "${TOKEN", "${:-x}", "${9}"])
def test_a_malformed_placeholder_is_an_error_that_quotes_it(text):
    with pytest.raises(InvalidConfig, match="is not a placeholder"):
        interpolate(text, WHERE, VARIABLES)


def test_a_value_is_expanded_all_through_and_its_secrets_are_gathered():
    value = {"command": ["curl", "${TOKEN}"], "env": {"${KEY}": "${env:TOKEN}"}, "n": 1, "on": True}

    expanded = interpolate(value, WHERE, VARIABLES)

    assert expanded.value == {
        "command": ["curl", "s3cret-value"],
        "env": {"${KEY}": "s3cret-value"},
        "n": 1,
        "on": True,
    }
    assert expanded.secrets == {"s3cret-value"}


def test_an_error_inside_a_value_names_the_member():
    with pytest.raises(InvalidConfig, match=r"^mcp\.servers\.x\.args\[1\] in /a/codemode\.toml: the variable NOPE"):
        interpolate({"args": ["a", "${NOPE}"]}, "mcp.servers.x in /a/codemode.toml", {})


def test_the_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("CODEMODE_TEST_VARIABLE", "from the environment")

    assert interpolate("${CODEMODE_TEST_VARIABLE}", WHERE).value == "from the environment"
