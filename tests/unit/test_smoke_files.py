"""Where cases are found, and what their files say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from codemode.core.errors import InvalidInput
from codemode.smoke.cases import Case, load_cell
from codemode.smoke.finding import gather_cases
from codemode.smoke.lists import load_list
from tests.requirements import requirement

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str = "return 1\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    return write_file


def names(cases: list[Case]) -> list[str]:
    return [case.name for case in cases]


def refusal(*paths: str, wanted: str = "") -> str:
    with pytest.raises(InvalidInput) as caught:
        gather_cases(paths, None, wanted)
    return str(caught.value)


@requirement("smoke:files:found")
def test_a_folder_gives_its_cells_and_lists_and_those_below(write: Write) -> None:
    for name in ("b.js", "a.ts", "below/c.mjs", "below/d.mts", "types.d.ts", "notes.md", ".hidden/e.js"):
        write(f"checks/{name}")
    write("checks/node_modules/f.js")
    write("checks/codemode.toml", "")
    for name in ("smoke.toml", "more.smoke.toml"):
        write(f"checks/{name}", '[[case]]\nname = "one"\ncell = "return 1"\n')
    found = names(gather_cases(["checks"], None))

    assert found == [
        "checks/a.ts", "checks/b.js", "checks/below/c.mjs", "checks/below/d.mts",
        "checks/more.smoke.toml: one", "checks/smoke.toml: one",
    ]  # fmt: skip


@requirement("smoke:files:found")
def test_files_come_in_the_order_of_the_paths_and_each_once(write: Write) -> None:
    write("a.js"), write("b.js")

    assert names(gather_cases(["b.js", ".", "a.js"], None)) == ["b.js", "a.js"]


@requirement("smoke:files:found")
def test_what_is_not_there_is_said(write: Write) -> None:
    write("total.js"), write("notes.md"), write("empty/README")

    assert refusal("totl.js") == 'there is no file or folder "totl.js". Did you mean "total.js"?'
    assert refusal("no/such.js") == 'there is no file or folder "no/such.js".'
    assert refusal("notes.md") == '"notes.md" is no case: a cell ends in .js or .ts, a list of cases in .toml'
    assert refusal("empty").startswith('"empty" holds no cases')


@requirement("smoke:filter:names")
def test_a_filter_is_a_part_of_a_name_or_a_glob(write: Write) -> None:
    for name in ("orders/Total.js", "orders/list.js", "stock.js"):
        write(name)

    assert names(gather_cases(["."], None, "total")) == ["orders/Total.js"]
    assert names(gather_cases(["."], None, "orders/*")) == ["orders/Total.js", "orders/list.js"]
    assert names(gather_cases(["."], None, "t*")) == ["orders/Total.js"]
    assert names(gather_cases(["."], None, "[ls]*.js")) == ["orders/list.js", "stock.js"]
    assert refusal(".", wanted="stok.js").startswith('no case has "stok.js" in its name. Did you mean "stock.js"')


@requirement("smoke:files:header")
def test_a_cell_brings_its_text_language_and_settings(write: Write) -> None:
    write("codemode.toml"), write("other/codemode.toml", "")
    path = write("checks/a.ts", "// Adds.\n// @manifest ../other\n// @flags --timeout-ms 500 --wait\nreturn 1\n")
    case = load_cell(path)

    assert (case.title, case.language, case.number) == ("Adds.", "typescript", None)
    assert case.code.startswith("// Adds.")
    assert case.manifest == path.parent / "../other/codemode.toml"
    assert (dict(case.settings.limits), case.settings.to_end) == ({"timeout_ms": 500}, True)
    assert load_cell(write("b.js", "// @flags --language typescript\n")).language == "typescript"
    assert load_cell(write("c.js", "\ufeff// Marked.\r\n// @value 1\r\n")).title == "Marked."


@requirement("smoke:files:found")
def test_the_manifest_is_the_given_one_else_the_named_else_the_nearest(write: Write) -> None:
    nearest, given = write("codemode.toml", ""), write("ci.toml", "")
    plain, named = write("checks/a.js"), write("checks/b.js", "// @manifest ../ci.toml\n")

    assert load_cell(plain).manifest == nearest
    assert load_cell(named).manifest == named.parent / "../ci.toml"
    assert load_cell(named, given).manifest == given


@requirement("smoke:run:replay")
def test_a_recording_goes_before_a_manifest_and_a_case_before_its_list(write: Write) -> None:
    write("codemode.toml", ""), write("a.jsonl", '{"recording": 1}\n'), write("b.jsonl", '{"recording": 1}\n')
    cell = load_cell(write("a.js", "// @manifest codemode.toml\n// @replay a.jsonl\n"))
    cases = load_list(
        write(
            "smoke.toml",
            'replay = "b.jsonl"\n[[case]]\nname = "x"\ncell = "1"\n'
            '[[case]]\nname = "y"\ncell = "1"\nmanifest = "codemode.toml"\n',
        )
    )

    assert [case.manifest and case.manifest.name for case in (cell, *cases)] == ["a.jsonl", "b.jsonl", "codemode.toml"]


@requirement("smoke:files:unknown-tag")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// ok\n// @valeu 1\n", 'a.js:2: there is no tag "valeu"'),
        ("// @value {\nreturn 1", "a.js:1: @value takes JSON"),
        ("//\n// @manifest nowhere\n", 'a.js:2: there is no manifest "nowhere"; it is looked for from .'),
        ("// @replay no.jsonl\n", 'a.js:1: there is no recording "no.jsonl"'),
        ("// x\n// @replay a.js\n", 'a.js:2: "a.js" is no recording; make one with codemode run --record FILE'),
        ("// @flags --timeout 5\n", 'a.js:1: @flags has no "--timeout"'),
        ("// @flags --timeout-ms\n", 'a.js:1: --timeout-ms takes a whole number; found ""'),
        ("//\n// @flags --language ruby\n", 'a.js:2: --language takes javascript or typescript; found "ruby"'),
        ('// @flags "\n', "a.js:1: @flags cannot be read"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(write: Write, text: str, message: str) -> None:
    write("a.js", text)

    assert refusal("a.js").startswith(message)


@requirement("smoke:files:unknown-tag")
def test_a_file_that_is_no_text_is_named(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_bytes(b"return '\xff'")

    assert refusal("a.js") == "a.js:1: the file is not UTF-8 text (byte 8); save it as UTF-8"


LIST = """
manifest = "shop.toml"

[[case]]
name = "one"
cell = "return 1"
value = { a = [1, 2.5, "x"] }
error = ["a", "b"]
path = { "$.a" = 1, '$["b c"]' = true }

[[ case ]]
name = "two"
file = "two.ts"
manifest = "other.toml"
flags = "--wait"
value-json = 'null'
path-json = { "$.a" = '[null]' }
output = ["x"]
max-calls = 0
"""


@requirement("smoke:files:toml")
def test_a_list_has_the_tags_as_keys(write: Write) -> None:
    write("shop.toml", ""), write("other.toml", ""), write("two.ts", "// @value 5\nreturn null")
    one, two = load_list(write("smoke.toml", LIST))

    assert (one.name, one.place.line, one.number, one.language) == ("smoke.toml: one", 4, 0, "javascript")
    assert [(each.tag, each.wanted) for each in one.expectations] == [
        ("value", {"a": [1, 2.5, "x"]}), ("error", "a"), ("error", "b"), ("path", 1), ("path", True),
    ]  # fmt: skip
    assert [each.path.text for each in one.expectations if each.path] == ["$.a", '$["b c"]']
    assert (two.code, two.language, two.place.line) == ("// @value 5\nreturn null", "typescript", 11)
    assert (one.manifest and one.manifest.name, two.manifest and two.manifest.name) == ("shop.toml", "other.toml")
    assert two.settings.to_end
    assert [(each.tag, each.wanted) for each in two.expectations] == [
        ("value", None), ("path", [None]), ("output", [{"type": "text", "text": "x"}]), ("max-calls", 0),
    ]  # fmt: skip


@requirement("smoke:files:unknown-tag", "smoke:files:toml")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[case]\n", "smoke.toml:1: not TOML"),
        ("x = 'a\n", "smoke.toml:2: not TOML"),
        ("", 'smoke.toml:1: the key "case" is missing'),
        ("[[cases]]\n", 'smoke.toml:1: unknown key "cases"'),
        ("\n[[case]]\nname = 'x'\n", "smoke.toml:2: a case needs its text as cell"),
        ("[[case]]\nname = 'x'\ncell = '1'\nfile = 'a.js'\n", "smoke.toml:1: a case needs its text"),
        ("[[case]]\ncell = '1'\n", 'smoke.toml:1: the key "name" is missing'),
        ("[[case]]\nname = 'x'\nfile = 'a.js'\n", 'smoke.toml:1: there is no file "a.js"'),
        ("\n[[case]]\nname = 'x'\ncell = '1'\nvalu = 1\n", 'smoke.toml:2: unknown key "valu"'),
        ("[[case]]\nname = 'x'\ncell = '1'\nvalue-json = '{'\n", "smoke.toml:1: value takes JSON"),
        ("[[case]]\nname = 'x'\ncell = '1'\nstatus = 'done'\n", "smoke.toml:1: status takes completed or"),
        ("[[case]]\nname = 'x'\ncell = '1'\npath = { 'a' = 1 }\n", "smoke.toml:1: a path begins with $"),
        ("[[case]]\nname = 'x'\ncell = '1'\npath = { '$.a =' = 1 }\n", 'smoke.toml:1: "$.a =" is no path'),
        ("case = [{ name = 'x', cell = '1' }]\n", "smoke.toml:1: write each case as a table of its own"),
    ],
)
def test_a_bad_list_is_named_with_the_line_of_its_case(write: Write, text: str, message: str) -> None:
    write("smoke.toml", text)

    assert refusal("smoke.toml").startswith(message)
