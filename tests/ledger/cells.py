"""The cells' promises: each file of `fixtures/cells` and `fixtures/hostile` states its own."""

from tests.support.cells import FIXTURES, load_cells

REQUIREMENTS = {
    cell.id: (cell.source, cell.promise) for name in ("cells", "hostile") for cell in load_cells(FIXTURES / name)
} | {
    "cells:command:same": (
        "contract 12",
        "Through the command a cell ends the same, with the exit status of its code.",
    ),
}
