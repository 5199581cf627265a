"""What a cell, a server or a document can make the host do costs no more than its size.

Many of these tests end in a second or never: that they end is what they test. What they replace took hours.
"""

from pathlib import Path

import pytest

from codemode.core.jsonsafe import NotJson, adapt, to_text
from codemode.core.names import nearest, unique_names
from codemode.core.schemas import find_schema_fault
from codemode.core.tables import Where
from codemode.mcp.adapter import adapt_server
from codemode.mcp.listings import Listing
from codemode.mcp.servers import ServerSpec
from tests.requirements import requirement

LONG = "k" * (4 << 20)
DIGITS = "9" * 5000  # more than Python makes a number of


@requirement("json:python:long-keys")
def test_a_long_key_is_not_copied_for_each_item_under_it() -> None:
    assert len(to_text({LONG: [10**20] + [0] * 500_000})) > 5_000_000


@requirement("json:python:long-keys")
def test_the_place_of_what_is_no_json_shows_the_beginning_of_long_keys() -> None:
    with pytest.raises(NotJson) as caught:
        adapt({LONG: [{"a": b""}]})

    assert str(caught.value).startswith(f"value.{'k' * 200}[0].a is binary")


@requirement("json:python:rules")
@pytest.mark.parametrize("value", [{"a": [10**5000]}, {"a": [-(10**5000)]}, {"a": [{10**5000: 1}]}])
def test_a_number_of_more_digits_than_python_spells_is_no_json(value: object) -> None:
    with pytest.raises(NotJson, match=r"value\.a\[0\] is a whole number with thousands of digits"):
        adapt(value)


@requirement("manifest:schema:long-names")
def test_a_long_name_in_a_schema_is_not_copied_for_each_schema_under_it() -> None:
    inner = {str(at): {} for at in range(100_000)}

    assert find_schema_fault({"properties": {LONG: {"properties": inner}}}) is None


@requirement("manifest:schema:digits")
def test_an_index_of_thousands_of_digits_leads_nowhere() -> None:
    fault = find_schema_fault({"prefixItems": [{}], "$ref": f"#/prefixItems/{DIGITS}"})

    assert (fault or "").startswith("/$ref leads nowhere")


@requirement("catalog:names:many-alike")
def test_a_hundred_thousand_equal_names_are_numbered() -> None:
    names = unique_names((str(at), "tool") for at in range(100_000))

    assert names["0"] == "tool"
    assert names["99999"] == "tool100000"


@requirement("catalog:names:near-bounded")
def test_near_names_are_found_among_a_hundred_thousand() -> None:
    known = ["a" * 250 + str(at) for at in range(100_000)] + ["list_invoices"]

    assert nearest("a" * 200, known)
    assert nearest("list_invoice", known) == ["list_invoices"]


@requirement("mcp:tools:many-faults")
def test_a_hundred_thousand_bad_tools_are_left_out_with_a_few_words(server: ServerSpec) -> None:
    bad = [{"at": at} for at in range(50_000)] + [{"name": "a", "at": at} for at in range(50_000)]
    tools, warnings = adapt_server(server, Listing(0, {}, bad), send=None)  # type: ignore[arg-type]

    assert [tool.name for tool in tools] == ["a"]
    assert len(warnings) == 21
    assert warnings[-1] == "49,981 more of its tools are left out."


@pytest.fixture
def server() -> ServerSpec:
    return ServerSpec("memory", Where("mcp.json"), Path(), "stdio")
