"""Every cell of `fixtures/cells` ends as its header says, through the real command."""

from pathlib import Path

import pytest

from tests.support.cells import FIXTURES, Cell, clean_environment, differences, load_cells, run_cell

CELLS = [
    pytest.param(cell, id=cell.path.name, marks=pytest.mark.requirement(cell.id))
    for cell in load_cells(FIXTURES / "cells")
]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_ends_as_its_header_says(cell: Cell, tmp_path: Path) -> None:
    """The fact is the cell's first line."""
    assert differences(cell, run_cell(cell, clean_environment(tmp_path / "state"), tmp_path)) == []
