"""Expectations written anew: what changes, and that nothing else does."""

import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codemode.core.errors import InvalidInput
from codemode.smoke.cases import Case, load_cell
from codemode.smoke.lists import load_list
from codemode.smoke.rewriting import update_files
from codemode.smoke.verdicts import Observed, Verdict, judge
from tests.requirements import requirement
from tests.unit.test_smoke_verdicts import CODED, COMPLETED, FAILED, WAITING

Update = Callable[..., str]


@pytest.fixture
def update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Update:
    """Write a cell, pretend it came to a result, update it; return its text, which must hold then."""
    monkeypatch.chdir(tmp_path)

    def write_and_update(
        text: str, result: dict[str, Any] = COMPLETED, calls: tuple[str, ...] = (), *, holds: bool = True
    ) -> str:
        path = tmp_path / "a.js"
        path.write_bytes(text.encode())
        observed = Observed(result, calls, 5)
        update_files([judge(load_cell(path), observed)])
        assert (judge(load_cell(path), observed).state == "passed") == holds
        return path.read_bytes().decode()

    return write_and_update


@requirement("smoke:update:first-time")
@pytest.mark.parametrize(
    ("result", "calls", "header"),
    [
        (
            COMPLETED,
            ("b", "a", "b"),
            '// @status completed\n// @value {"a":[1,2],"s":"x"}\n// @output ["hi"]\n// @calls a b b\n\n',
        ),
        (FAILED, (), "// @status failed\n// @error Error: boom\n\n"),
        (CODED, (), "// @status failed\n// @code timeout\n// @error the deadline\n\n"),
        (WAITING, (), "// @status waiting\n// @reason pending_tools\n\n"),
    ],
)
def test_a_cell_without_expectations_gets_all_of_them(
    update: Update, result: dict[str, Any], calls: tuple[str, ...], header: str
) -> None:
    assert update("return 1\n", result, calls) == f"{header}return 1\n"
    assert update("// Adds.\nreturn 1\n", result, calls) == f"// Adds.\n{header.rstrip()}\nreturn 1\n"


@requirement("smoke:update:renews")
@pytest.mark.parametrize(
    ("before", "result", "after"),
    [
        ("// @value 1\n", COMPLETED, '// @value {"a":[1,2],"s":"x"}\n'),
        ("// @calls a\n", COMPLETED, "// @calls\n"),
        ('// @partial {"s": 1, "gone": 2}\n', COMPLETED, '// @partial {"s":"x"}\n'),
        ('// @partial {"a": [0]}\n', COMPLETED, '// @partial {"a":[1,2]}\n'),
        ("// @path $.a[1] = 9\n", COMPLETED, "// @path $.a[1] = 2\n"),
        ("// @path $.a[*] = 9\n", COMPLETED, "// @path $.a[*] = [1,2]\n"),
        ("// @path $.b = 9\n// @path $.s = 9\n", COMPLETED, '// @path $.s = "x"\n'),
        ("// @output []\n", COMPLETED, '// @output ["hi"]\n'),
        ("// @error bang\n", FAILED, "// @error Error: boom\n"),
        ("// @code timeout\n// @phase bridge\n", FAILED, "// @phase guest\n"),
        ("// @dispatched true\n", FAILED, "// @dispatched false\n"),
        ("// @reason yield\n// @pending search\n", WAITING, "// @reason pending_tools\n"),
        ("// @status failed\n", COMPLETED, '// @status completed\n// @value {"a":[1,2],"s":"x"}\n'),
        ("// @value 1\n// @calls\n", FAILED, "// @calls\n// @status failed\n// @error Error: boom\n"),
        ("// @code timeout\n", WAITING, "// @status waiting\n// @reason pending_tools\n"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_made_to_hold(update: Update, before: str, result: dict[str, Any], after: str) -> None:
    assert update(before + "return 1\n", result) == after + "return 1\n"


@requirement("smoke:update:keeps-the-rest")
def test_every_other_byte_stays() -> None:
    """Line ends, a byte order mark, prose, settings, and how what holds is written."""
    before = (
        "\ufeff// Adds.\r\n//@output   [ \"hi\" ]\r\n// @flags --wait\r\n// @value {\r\n//   \"a\": 1 }\r\n"
        "//    more prose\r\n\r\nreturn 1 // @value 3"
    )  # fmt: skip
    after = before.replace('{\r\n//   "a": 1 }', '{"a":[1,2],"s":"x"}')

    assert edited(before) == after
    assert edited(after) == after


def edited(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.js")
        path.write_bytes(text.encode())
        path.chmod(0o640)
        update_files([judge(load_cell(path), Observed(COMPLETED, (), 5))])
        assert path.stat().st_mode & 0o777 == 0o640
        assert [each.name for each in path.parent.iterdir()] == ["a.js"]
        return path.read_bytes().decode()


@requirement("smoke:update:renews")
def test_bounds_are_a_persons_decision(update: Update) -> None:
    before = "// @max-calls 0\n// @not hi\nreturn 1\n"

    assert update(before, COMPLETED, ("a",), holds=False) == before


@requirement("smoke:update:keeps-the-rest")
def test_a_skipped_case_and_one_that_holds_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.js"
    path.write_text("// @output  ['x']\n".replace("'", '"'))
    case = load_cell(path)

    assert update_files([Verdict(case, "skipped")]) == []
    assert update_files([judge(case, Observed(COMPLETED | {"output": [{"type": "text", "text": "x"}]}, (), 5))]) == []


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.js"
    path.write_text("return 1")
    verdict = judge(load_cell(path), Observed(COMPLETED, (), 5))
    monkeypatch.setattr("tempfile.mkstemp", refuse)

    with pytest.raises(InvalidInput, match=r"a\.js cannot be written: disk full"):
        update_files([verdict])


def refuse(**_given: object) -> None:
    raise OSError(28, "disk full")


LIST = """\
# A list.
[[case]]
name = "multi"   # said of the name
cell = '''
return [
[[1]]]
'''
value = [
  1,  # one
  2,
]  # two
flags = "--wait"

# between
[[case]]
name = "nulls"
value = 3   # three
cell = "return null"

[[case]]
name = "paths"
cell = "x"
path = { "$.a" = 1, "$.b" = 2 }
output = ["x"]

[[case]]
name = "fresh"
cell = "return 1"
"""
UPDATED = """\
# A list.
[[case]]
name = "multi"   # said of the name
cell = '''
return [
[[1]]]
'''
value = { "a" = [1, "it's"], "b" = true }  # two
flags = "--wait"

# between
[[case]]
name = "nulls"
value-json = 'null'   # three
cell = "return null"

[[case]]
name = "paths"
cell = "x"
path-json = { "$.a" = "null" }
output = ["hi", { "type" = "json", "value" = 1.5 }]

[[case]]
name = "fresh"
cell = "return 1"
status = "failed"
error = "Error: boom"
"""


def observe(result: dict[str, Any]) -> Observed:
    return Observed(result, (), 5)


@requirement("smoke:update:renews", "smoke:update:keeps-the-rest")
def test_a_list_is_changed_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "smoke.toml"
    path.write_text(LIST)
    hi = [{"type": "text", "text": "hi"}, {"type": "json", "value": 1.5}]
    results = [
        COMPLETED | {"value": {"a": [1, "it's"], "b": True}},
        COMPLETED | {"value": None},
        COMPLETED | {"value": {"a": None}, "output": hi},
        FAILED,
    ]
    cases = load_list(path)
    changed = update_files(judge(case, observe(result)) for case, result in zip(cases, results, strict=True))

    assert changed == [case.name for case in cases]
    assert path.read_text() == UPDATED
    assert [judge(case, observe(result)).state for case, result in zip(load_list(path), results, strict=True)] == [
        "passed"
    ] * 4


@requirement("smoke:update:keeps-the-rest")
@pytest.mark.parametrize(
    "text",
    [
        '[[case]]\nname = "a"\ncell = "x"\n[case.value]\nb = 1\n',
        '[[case]]\nname = "a"\ncell = "x"\nvalue.b = 1\nvalue.c = 2\n',
    ],
)
def test_a_key_with_a_table_of_its_own_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "smoke.toml"
    path.write_text(text)

    with pytest.raises(InvalidInput, match=r'smoke.toml:1: "value" has a table of its own'):
        update_files([judge(load_list(path)[0], observe(COMPLETED))])
    assert path.read_text() == text


@requirement("smoke:update:keeps-the-rest")
def test_windows_line_ends_of_a_list_stay(tmp_path: Path) -> None:
    path = tmp_path / "smoke.toml"
    path.write_bytes(b'[[case]]\r\nname = "a"\r\ncell = "x"\r\nvalue = 1\r\n')
    cases: list[Case] = load_list(path)
    update_files([judge(cases[0], observe(COMPLETED | {"value": "'\x7f"}))])

    assert path.read_bytes() == b'[[case]]\r\nname = "a"\r\ncell = "x"\r\nvalue = "\'\\u007f"\r\n'
    assert tomllib.loads(path.read_text())["case"][0]["value"] == "'\x7f"
