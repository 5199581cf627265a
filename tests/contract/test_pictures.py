"""The pictures in the docs show what the commands print, on a real terminal, and fetch nothing."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.requirements import requirement
from tests.support.docs import PAGES
from tests.support.pictures import FOLDER, PICTURES, Picture, drawn, environment_of, read, shape

EACH = [pytest.param(picture, id=picture.name) for picture in PICTURES]


@requirement("docs:pictures:current")
@pytest.mark.parametrize("picture", EACH)
def test_a_picture_shows_what_the_command_shows_now(picture: Picture, tmp_path: Path) -> None:
    """Words and colours are compared; run ids, durations, sizes and the lengths of bars are not.

    `python -m tests.support.pictures` makes the pictures anew.
    """
    committed = shape(read(picture.path))

    lines = picture.show(environment_of(tmp_path), lambda shown: shape(shown) == committed)

    assert shape(lines) == committed


@requirement("docs:pictures:current")
@pytest.mark.parametrize("picture", EACH)
def test_a_picture_is_drawn_as_they_are_drawn_now(picture: Picture) -> None:
    """Drawing again what a file shows gives the file."""
    assert drawn(picture, read(picture.path)) == picture.path.read_text(encoding="utf-8")


@requirement("docs:pictures:offline")
@pytest.mark.parametrize("picture", EACH)
def test_a_picture_fetches_nothing(picture: Picture) -> None:
    """No element loads anything, no rule has an address, and no font is a file."""
    text = picture.path.read_text(encoding="utf-8")
    names = {element.tag.rpartition("}")[2] for element in ET.fromstring(text).iter()}

    assert names <= {"svg", "title", "style", "rect", "g", "text"}
    assert re.findall(r"\w+://[^\"\s]+|url\(|@import|@font-face|href", text) == ["http://www.w3.org/2000/svg"]


@requirement("docs:pictures:shown")
def test_every_picture_is_in_a_page_and_says_in_words_what_it_shows() -> None:
    """The text beside a picture is what a reader has who cannot see it."""
    shown = {}
    for page in PAGES:
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            shown[(page.parent / target).resolve()] = words

    assert set(shown) == {picture.path for picture in PICTURES} == set(FOLDER.iterdir())
    assert [target.name for target, words in shown.items() if len(words) < 20] == []


def test_a_shape_forgets_only_what_differs_from_run_to_run() -> None:
    """One word more, one colour less, or another count is another picture."""
    line = [("✓ ", "f2"), ("list_orders #1   ", ""), ("1.9 ms ", ""), ("   ━━━ ", "f6"), ("635 B", "dim")]
    slower = [("✓ ", "f2"), ("list_orders #1 ", ""), ("1 min 3 s ", ""), ("━━━━━━━", "f6"), (" 1.2 kB", "dim")]
    second = [("✓ ", "f2"), ("list_orders #2   ", ""), *line[2:]]
    plain = [("✓ ", ""), *line[1:]]

    assert shape([line]) == shape([slower])
    assert shape([line]) != shape([second])
    assert shape([line]) != shape([plain])
