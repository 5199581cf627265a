"""The ledger holds in both directions."""

import re
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

_LISTED = re.compile(r"Contract: ([\w:,\s-]+?)(?=\n\s*\n|\n\s*\"{3}|\"{3})")


def test_every_promise_is_claimed_by_a_test_or_deferred_with_a_reason(request: pytest.FixtureRequest) -> None:
    """A promise without a test is a wish; a deferred one that has a test is done."""
    if len(request.session.items) < 2 or request.config.option.keyword or request.config.option.markexpr:
        pytest.skip("the whole suite must be collected")
    claimed = {mark.args[0] for item in request.session.items for mark in item.iter_markers("requirement") if mark.args}
    collected_all = {item.path.parts[-2] for item in request.session.items} >= {"unit", "contract", "e2e"}
    if not collected_all:
        pytest.skip("the whole suite must be collected")

    assert sorted(key for key, entry in REQUIREMENTS.items() if entry.deferred is None and key not in claimed) == []
    assert sorted(key for key, entry in REQUIREMENTS.items() if entry.deferred and key in claimed) == []


def test_every_promise_that_a_docstring_names_is_in_the_ledger() -> None:
    """`Contract:` in a docstring is followed by the ids of what the code beside it keeps, over one line or more."""
    named = {
        promise
        for file in Path("codemode").rglob("*.py")
        for listed in _LISTED.findall(file.read_text(encoding="utf-8"))
        for promise in re.split(r",\s+", listed.strip())
    }

    assert named
    assert sorted(named - REQUIREMENTS.keys()) == []
