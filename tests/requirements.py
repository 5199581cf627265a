"""The requirement ledger: every promise has an id, a source, a sentence and a test.

Each area keeps its entries in `tests/ledger/<area>.py` as `REQUIREMENTS`. A test claims its
sentences with `@requirement("area:topic:fact")`; `tests/contract/test_ledger.py` checks both
directions: each promise has a test or a written reason for deferral, and an unknown id
fails where it is written.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pytest

from tests import ledger

T = TypeVar("T")


class Requirement(NamedTuple):
    """One promise: `source` is the contract section or "ours"; `deferred` says why not yet."""

    source: str
    behaviour: str
    deferred: str | None = None
    divergence: str | None = None


def _gather() -> dict[str, Requirement]:
    gathered: dict[str, Requirement] = {}
    for module in pkgutil.iter_modules(ledger.__path__):
        entries = importlib.import_module(f"tests.ledger.{module.name}").REQUIREMENTS
        for key, (source, behaviour, *rest) in entries.items():
            if key in gathered:
                raise ValueError(f"requirement {key} is written twice")
            gathered[key] = Requirement(source, behaviour, *rest)
    return gathered


REQUIREMENTS = _gather()


def requirement(*ids: str) -> Callable[[T], T]:
    """Claim promises for a test; an unknown id fails at import."""
    unknown = [id_ for id_ in ids if id_ not in REQUIREMENTS]
    if unknown:
        raise KeyError(f"not in the ledger: {unknown}")

    def mark(test: T) -> T:
        for id_ in ids:
            test = pytest.mark.requirement(id_)(test)
        return test

    return mark
