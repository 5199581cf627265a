"""Golden files: what was looked at once, and must not change unseen.

`UPDATE_GOLDEN=1 pytest …` writes them anew; read the difference before you commit it.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "fixtures" / "golden"


def assert_golden(name: str, text: str) -> None:
    """Compare a text with `fixtures/golden/<name>`."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")
