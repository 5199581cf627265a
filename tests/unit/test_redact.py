"""What a redactor knows of a secret: every spelling of it, and what a cut leaves of it."""

import html
import json
import shlex
import sys
import textwrap
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.composition import open_toolbox
from codemode.core.errors import NestedToolFailed
from codemode.core.interpolate import find_variables
from codemode.core.redact import MASK, Redactor
from codemode.core.types import RunContext
from codemode.executor import Executor
from codemode.render.report import report_of_result
from codemode.store.database import Database
from tests.requirements import requirement

AWKWARD = "a\"b\\c/d+e&f =g%5d<h>'i\tj\u00e9k\U0001f511"
SPELLINGS = [
    lambda text: text,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(json.dumps(text))[3:-3],
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: quote(text, safe="").replace("%2F", "%2f"),
    lambda text: quote(quote(text, safe=""), safe=""),
    html.escape,
    lambda text: repr(text)[1:-1],
    lambda text: repr(text.encode())[2:-1],
    lambda text: ascii(text)[1:-1],
    lambda text: "".join(rf"\u{{{ord(char):x}}}" if ord(char) > 126 else char for char in text),
    lambda text: "".join(chr(byte) if byte < 127 else rf"\{byte:03o}" for byte in text.encode()),
    lambda text: shlex.quote(text)[1:-1],
]


@requirement("redaction:known:encoded")
@pytest.mark.parametrize("spell", SPELLINGS)
def test_a_known_secret_is_masked_however_it_is_written(spell) -> None:
    assert Redactor([AWKWARD]).text(f"before {spell(AWKWARD)} after") == f"before {MASK} after"


@requirement("redaction:known:encoded")
@settings(deadline=None)
@given(
    secret=st.text(
        st.characters(min_codepoint=32, max_codepoint=0x1FFFF, exclude_categories=("Cs",)), min_size=6, max_size=40
    )
)
def test_any_secret_is_masked_in_json_and_in_urls(secret: str) -> None:
    redactor = Redactor([secret])

    for spell in (str, lambda text: json.dumps(text)[1:-1], lambda text: quote(text, safe="")):
        assert redactor.text(f"({spell(secret)})").replace(MASK, "") == "()"


@requirement("redaction:known:encoded")
def test_what_a_url_carries_encoded_is_masked_decoded_too() -> None:
    assert Redactor(["key%2Fwith%20space"]).text("key/with space") == MASK


KEY = "-----BEGIN KEY-----\n  MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"


@requirement("redaction:known:wrapped")
@pytest.mark.parametrize("line", KEY.splitlines())
def test_each_line_of_a_secret_of_several_is_one(line: str) -> None:
    assert Redactor(iter([KEY])).text(f"2: {line.strip()}, he said") == f"2: {MASK}, he said"


@requirement("redaction:known:wrapped")
@settings(deadline=None)
@given(
    width=st.integers(1, 20), indent=st.sampled_from(["", "  ", "\t"]), newline=st.sampled_from(["\n", "\r\n", " \n"])
)
def test_a_secret_is_masked_where_a_program_broke_its_lines(width: int, indent: str, newline: str) -> None:
    """Within a word, or at a blank that the line break stands for."""
    secret = "hunter2/hunter2 %7e 'correct' horse"
    wrapped = newline.join(
        textwrap.wrap(f"it said: {secret}!", width, subsequent_indent=indent, break_on_hyphens=False)
        if width > 2
        else ["it said:", *secret, "!"]
    )
    left = Redactor([secret]).text(wrapped)

    assert "".join(left.split()).replace("[redacted]", "*") == "itsaid:*!"
    assert left.count("\n") == wrapped.count("\n")


@requirement("redaction:known:wrapped")
def test_blanks_are_no_secret_and_make_none() -> None:
    redactor = Redactor([" " * 9, "a b c d"])

    assert redactor.text("a          b\nab\ncd") == "a          b\nab\ncd"
    assert redactor.text("so: a b c d\n") == f"so: {MASK}\n"


@requirement("redaction:known:wrapped")
def test_a_secret_with_many_blanks_is_looked_for_in_one_go() -> None:
    """A pattern that tries each blank in many places would try 2 to the power of their number, and never end."""
    words = "  ".join(f"w{number}" for number in range(60))
    text = words.replace("w59", "w") + "\n" * 2000 + " " * 2000

    assert Redactor([words, "abc" + " " * 60 + "def"]).text(f"{text}abc{text}") == f"{text}abc{text}"


def test_the_lines_of_a_text_keep_their_numbers() -> None:
    text = Redactor(["first\nsecond\nthird"]).text("a\nfirst\nsecond\nthird\nb")

    assert text.split("\n") == ["a", MASK, "", "", "b"]


def test_an_ordinary_secret_costs_a_plain_pattern() -> None:
    redactor = Redactor([f"token-{number}_x.y~z" for number in range(50)])
    redactor.learn(["token-7_x.y~z"])

    assert redactor.text("token-49_x.y~z and no token") == f"{MASK} and no token"


@requirement("redaction:known:cut")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("it said: hunter2-hun", f"it said: {MASK}"),
        ("it said: hunter2-hun…", f"it said: {MASK}…"),
        ("exited with status 3: …unter2-hunter2 was refused", f"exited with status 3: …{MASK} was refused"),
        ("ter2-hunter2 was refused", f"{MASK} was refused"),
        ("…hunter2-hunter2…", f"…{MASK}…"),
        ("it said: hunte", "it said: hunte"),
        ("hunter1 and hunter3", "hunter1 and hunter3"),
        ("the hunter2-huntsman", "the hunter2-huntsman"),
        ("", ""),
    ],
)
def test_what_a_cut_leaves_of_a_secret_is_masked(text: str, left: str) -> None:
    assert Redactor(["hunter2-hunter2"]).text(text) == left


@requirement("redaction:known:cut")
@pytest.mark.parametrize("shift", [0, 6, 11])
async def test_the_end_of_a_long_stderr_shows_no_part_of_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    monkeypatch.setenv("SESAME", "open-sesame-4711")
    program = f"import sys; sys.stderr.write(sys.argv[1] + 'x' * {4096 - shift}); sys.exit(3)"
    command = json.dumps([sys.executable, "-c", program, "${SESAME}"])
    (tmp_path / "codemode.toml").write_text(f'[[tool]]\nname = "t"\ndescription = "T."\ncommand = {command}\n')
    async with open_toolbox(tmp_path / "codemode.toml") as box:
        context = RunContext("main", "default", "", "cm_1", "ar_1")
        with pytest.raises(NestedToolFailed) as failure:
            await Executor(box.redactor).call(box.catalog.tools[0], {}, context)

    assert "4711" not in failure.value.message
    assert "xxx" in failure.value.message


@requirement("redaction:known:at-once")
async def test_what_a_manifest_names_is_secret_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESAME", "open-sesame-4711")
    monkeypatch.delenv("UNSET", raising=False)
    (tmp_path / "codemode.toml").write_text(
        '[[tool]]\nname = "t"\ndescription = "T."\ncommand = ["echo", "${env:SESAME}", "${UNSET:-fallback}"]\n'
    )
    async with open_toolbox(tmp_path / "codemode.toml") as box:
        assert box.redactor.text("with open-sesame-4711, fallback") == f"with {MASK}, fallback"
        assert box.variables == {"SESAME", "UNSET"}


@requirement("redaction:known:at-once")
def test_variables_are_found_wherever_they_stand() -> None:
    definition = ("${A}", {"headers": {"x": ["Bearer ${env:B}", "${C:-${D}}"]}}, 7, None, "$$ {E} $F ${not a name}")

    assert find_variables(definition) == {"A", "B", "C"}


def test_the_caret_is_left_out_where_a_masked_line_has_moved() -> None:
    result = {"status": "failed", "error": "Error: no (cell.js:2:9)"}
    (first, second) = report_of_result(result, f"let a = {MASK};\nthrow new Error(a)").source
    (masked,) = report_of_result({**result, "error": "Error: no (cell.js:1:9)"}, f"f({MASK})").source

    assert (first.caret, second.caret, masked.caret) == (None, 8, None)


@requirement("redaction:planted:files")
def test_what_is_deleted_from_the_store_leaves_nothing_in_its_file(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.db")
    try:
        assert database.rows("PRAGMA secure_delete") == [(1,)]
    finally:
        database.close()
