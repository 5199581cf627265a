"""Every cell of `fixtures/cells` ends as its header says."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from codemode.composition import open_pool
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.cells import (
    FIXTURES,
    Cell,
    clean_environment,
    differences,
    load_cells,
    run_cell,
    run_in_session,
)

CELLS = load_cells(FIXTURES / "cells")
OF_THE_COMMAND = [cell for cell in CELLS if {"code", "bare"} & set(cell.header) or "--language" in str(cell.header)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    """Workers that all cells of this module share, as the runs of one session do."""
    pool = open_pool()
    yield pool
    await pool.close()


@pytest.mark.usefixtures("no_kill")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "cell", [pytest.param(cell, id=cell.path.name, marks=pytest.mark.requirement(cell.id)) for cell in CELLS]
)
async def test_a_cell_ends_as_its_header_says(cell: Cell, pool: WorkerPool) -> None:
    """The fact is the cell's first line; workers are used again, so nothing may be left in them."""
    assert differences(cell, await run_in_session(cell, pool)) == []


@requirement("cells:command:same")
@pytest.mark.parametrize("cell", [pytest.param(cell, id=cell.path.name) for cell in OF_THE_COMMAND])
def test_a_cell_ends_the_same_through_the_command(cell: Cell, tmp_path: Path) -> None:
    """Each error code with its exit status, standard input and the choice of a language."""
    assert differences(cell, run_cell(cell, clean_environment(tmp_path / "state"), tmp_path)) == []
