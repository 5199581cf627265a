"""Every hostile program of `fixtures/hostile` ends as its header says, and the next cell is fine."""

from pathlib import Path

import pytest

from tests.support.cells import FIXTURES, Cell, clean_environment, differences, load_cells, run_cell

PROGRAMS = [
    pytest.param(cell, id=cell.path.name, marks=pytest.mark.requirement(cell.id))
    for cell in load_cells(FIXTURES / "hostile")
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_hostile_program_ends_as_its_header_says(program: Cell, tmp_path: Path) -> None:
    """The fact is the program's first line."""
    assert differences(program, run_cell(program, clean_environment(tmp_path / "state"), tmp_path)) == []
