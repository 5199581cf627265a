"""README and docs are executed: examples run, tables are the code's, links lead somewhere."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from codemode.core.errors import InvalidConfig
from codemode.importing.conversion import import_files
from codemode.manifest import load_manifest
from tests.requirements import requirement
from tests.support.cells import FIXTURES, ROOT, clean_environment, differences, load_cell, run_cell
from tests.support.docs import COMMANDS, LANGUAGES, PAGES, Console, Example, examples, regenerate, steps


def _named(pages: list[Path]) -> list[object]:
    return [pytest.param(page, id=page.name) for page in pages]


def _each(*languages: str) -> list[object]:
    return [pytest.param(example, id=example.id) for example in examples(*languages)]


@requirement("docs:examples:console")
@pytest.mark.parametrize("page", _named(PAGES))
def test_every_command_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """The commands of one page run in order and share one state folder, as a reader's would."""
    console = Console(clean_environment(tmp_path / "state"), tmp_path)
    shown = [step for example in examples("console") if example.page == page for step in steps(example)]
    wrong = [(step.command, *found) for step in shown if (found := console.run(step))]

    assert wrong == []


@requirement("docs:examples:cells")
@pytest.mark.parametrize("example", _each("js", "ts"))
def test_every_cell_ends_as_its_header_says(example: Example, tmp_path: Path) -> None:
    """A cell in a page is a cell like those in the fixtures; without a header it must complete."""
    path = tmp_path / f"example.{example.language}"
    path.write_text(example.text, encoding="utf-8")
    cell = load_cell(path)
    if "status" not in cell.header:
        cell = cell._replace(header={**cell.header, "status": ["completed"]})

    assert differences(cell, run_cell(cell, clean_environment(tmp_path / "state"), tmp_path)) == []


@requirement("docs:examples:manifests")
@pytest.mark.parametrize("example", _each("toml"))
def test_every_manifest_loads(example: Example, tmp_path: Path) -> None:
    """A manifest in a page is checked as a file of its own."""
    path = tmp_path / "codemode.toml"
    path.write_text(example.text, encoding="utf-8")

    assert load_manifest(path).path == path


@requirement("docs:examples:manifests")
@pytest.mark.parametrize("example", _each("json5"))
def test_every_configuration_of_another_client_can_be_imported(example: Example, tmp_path: Path) -> None:
    """What a page shows of another client's file is what `codemode import` takes, whole."""
    path = tmp_path / "client.json"
    path.write_text(example.text, encoding="utf-8")
    found = import_files([path], tmp_path)

    assert found.servers
    assert found.skipped == ()


@requirement("docs:examples:programs")
@pytest.mark.parametrize("example", _each("python"))
def test_every_program_runs(example: Example, tmp_path: Path) -> None:
    """A program runs as a script with warnings as errors; `# prints` comments are compared."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.text],
        cwd=ROOT,
        env=clean_environment(tmp_path / "state"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    expected = re.findall(r"# prints (.*)$", example.text, re.MULTILINE)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[: len(expected)] == expected


@requirement("docs:examples:targets")
def test_every_make_target_exists() -> None:
    """A shell block names targets of the Makefile, or commands that a reader runs on their own machine."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = {target for example in examples("sh") for target in re.findall(r"^make (\S+)", example.text, re.MULTILINE)}

    assert [target for target in sorted(wanted) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    assert wanted >= {"demo", "test"}


@requirement("docs:tables:generated")
@pytest.mark.parametrize("page", _named(PAGES))
def test_generated_tables_are_those_of_the_code(page: Path) -> None:
    """`python -m tests.support.docs` changes nothing."""
    text = page.read_text(encoding="utf-8")

    assert regenerate(text) == text


@requirement("docs:cli:commands")
def test_every_command_has_a_section() -> None:
    """A command that is added appears in the page, and one that goes leaves it."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert re.findall(r"^<!-- generated: help-(\S+) -->$", page, re.MULTILINE) == list(COMMANDS)
    assert sorted(re.findall(r"^\| \[`([\w-]+)`\]", page, re.MULTILINE)) == sorted(COMMANDS)


@requirement("docs:architecture:files")
def test_every_file_and_folder_of_the_package_stands_in_the_map() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tables = "".join(line for line in page.splitlines() if line.startswith("| `"))
    package = [each for each in (ROOT / "codemode").iterdir() if not each.name.startswith("__")]
    files = {each.stem for each in package if each.suffix == ".py"}
    folders = {f"codemode/{each.name}" for each in package if each.is_dir()}

    named = set(re.findall(r"`([\w/]+)`", tables)) - {"fixtures", "bench", "core", "exec", "wait", "CodeMode"}

    assert named == files | folders


@requirement("docs:configuration:variables")
def test_every_variable_that_the_code_reads_is_in_the_page() -> None:
    """`CODEMODE_SERVER` is ours to set, and `CODEMODE_PROBE` is what `doctor` looks for in vain."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "codemode").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r'"(CODEMODE_[A-Z_]+[A-Z])"', source)}

    assert read - {"CODEMODE_SERVER", "CODEMODE_PROBE"} == set(re.findall(r"^\| `(CODEMODE_\w+)`", page, re.MULTILINE))


@requirement("docs:configuration:keys")
@pytest.mark.parametrize(
    "table",
    ["", "[tools]", "[tools.sandbox]", "[tools.sandbox.tools]", "[[tool]]", "[[hook]]",
     "[core]", "[mcp]", "[[plugin]]", "[[openapi]]", "[agents.a]"],
)  # fmt: skip
def test_every_key_of_a_manifest_is_in_a_page(table: str, tmp_path: Path) -> None:
    """The keys are those that the error for an unknown one lists."""
    path = tmp_path / "codemode.toml"
    path.write_text(f"{table}\nxyzzy = 1\n", encoding="utf-8")
    with pytest.raises(InvalidConfig) as caught:
        load_manifest(path)
    known = re.search(r"known keys are ([^.]+)\.", caught.value.message)
    assert known
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [
        key for key in known[1].split(", ") if not re.search(rf"[`\[.{{ ]{key}[`\]. ]|^{key} = ", pages, re.MULTILINE)
    ] == []


@requirement("docs:links:resolve")
@pytest.mark.parametrize("page", _named(PAGES))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    """A relative link names a file of the repository, and a fragment one of its headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = page if not name else (page.parent / name).resolve()
        if not file.exists() or (fragment and fragment not in _anchors(file)):
            broken.append(target)

    assert broken == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@requirement("docs:tour:code")
@pytest.mark.parametrize("page", _named(PAGES))
def test_the_code_that_a_page_names_is_there(page: Path) -> None:
    """Files and folders exist, and hold the functions that are said to be in them."""
    text = page.read_text(encoding="utf-8")
    places = re.findall(r"`(codemode/[\w/]+(?:\.py)?)`", text)
    named = re.findall(r"`([\w.]+)`\s+in\s+`(codemode/[\w/]+\.py)`", text)
    if page.name == "tour.md":
        assert len(named) >= 15

    assert [place for place in places if not (ROOT / place).exists()] == []
    assert [f"{name} in {file}" for name, file in named if name not in _definitions(ROOT / file)] == []


def _definitions(file: Path) -> set[str]:
    """Return what a module defines: `name` of a function or class, `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
            found |= {f"{node.name}.{inner.name}" for inner in getattr(node, "body", []) if hasattr(inner, "name")}
    return found


@requirement("docs:readme:dependencies")
def test_the_readme_has_a_line_for_each_dependency() -> None:
    """Each runtime dependency of pyproject.toml, and the two packages that are not used as one might expect."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [re.split(r"[<>=!~\[ ]", each)[0] for each in project["dependencies"]]

    assert [name for name in [*names, "esbuild-py", "quickjs"] if f"| `{name}` |" not in readme] == []


def test_only_known_languages_are_fenced() -> None:
    """A block without a language, or with an unknown one, would not be checked at all."""
    assert [example.id for example in examples() if example.language not in LANGUAGES] == []


def test_every_fixture_that_the_pages_name_exists() -> None:
    """A path under fixtures/ that a page mentions is there."""
    named = {path for page in PAGES for path in re.findall(r"fixtures/[\w./-]*\w", page.read_text(encoding="utf-8"))}

    assert [path for path in sorted(named) if not (FIXTURES.parent / path).exists()] == []
