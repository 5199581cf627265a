"""What bash splits at colons is put together, and what is offered is cut to what bash replaces."""

import os

import pytest

from codemode.cli.bash_words import ASKED, join_words, whole_words
from tests.requirements import requirement


@requirement("cli:completion:colons")
@pytest.mark.parametrize(
    ("pieces", "at", "words", "place", "aside"),
    [
        ("codemode describe client : app : a", 6, "codemode describe client:app:a", 2, "client:app:"),
        ("codemode describe client :", 3, "codemode describe client:", 2, "client:"),
        ("codemode describe client : app more", 4, "codemode describe client:app", 2, "client:"),
        ("codemode describe a :: b", 4, "codemode describe a::b", 2, "a::"),
        ("codemode a : b wait cm_", 5, "codemode a:b wait cm_", 3, ""),
        ("codemode wait cm_1", 2, "codemode wait cm_1", 2, ""),
        ("codemode client:app:a", 1, "codemode client:app:a", 1, ""),
        (": wait", 1, ": wait", 1, ""),
        ("codemode : a", 1, "codemode :", 1, ""),
    ],
)
def test_the_pieces_of_a_word_are_put_together(pieces: str, at: int, words: str, place: int, aside: str) -> None:
    joined = join_words(pieces.split(), at)

    assert (joined.words[: place + 1], joined.at) == (words.split(), place)
    assert joined.aside == aside


def test_a_word_that_is_only_begun_is_empty() -> None:
    assert join_words(["codemode", "describe", "a", ":", "b", ""], 5) == (["codemode", "describe", "a:b", ""], 3, "")


@requirement("cli:completion:colons")
def test_what_is_offered_loses_what_bash_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {ASKED: "complete_bash", "COMP_WORDS": "codemode\nshow\na\n:\nb", "COMP_CWORD": "4"}
    seen = []

    def complete() -> None:
        with whole_words(asked):
            seen.append((asked["COMP_WORDS"], asked["COMP_CWORD"]))
            print("a:bc\na:bd")
            raise SystemExit(0)  # that is how typer ends a completion

    with pytest.raises(SystemExit):
        complete()
    assert seen == [("codemode\nshow\na:b", "2")]
    assert capsys.readouterr().out == "bc\nbd\n"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {ASKED: "complete_zsh", "COMP_WORDS": "codemode\nshow\na\n:\nb", "COMP_CWORD": "4"},
        {ASKED: "complete_bash", "COMP_WORDS": "codemode\nshow\na", "COMP_CWORD": "2"},
        {ASKED: "complete_bash", "COMP_WORDS": "codemode", "COMP_CWORD": "many"},
        {ASKED: "complete_bash"},
        dict(os.environ),
    ],
)
def test_any_other_question_is_left_alone(asked: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(asked)
    with whole_words(asked):
        print("a:bc")

    assert asked == before
    assert capsys.readouterr().out == "a:bc\n"
