"""`codemode smoke` as it is installed, on real cells."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, FIXTURES, ROOT, clean_environment
from tests.support.command import Done
from tests.support.processes import children_of, has_ended
from tests.support.terminal import run_in_terminal

CHECKS = str(FIXTURES / "smoke" / "checks")
BROKEN = str(FIXTURES / "smoke" / "broken")


Smoke = Callable[..., Done]


@pytest.fixture
def smoke(tmp_path: Path) -> Smoke:
    """Run `codemode smoke …` in an empty folder."""

    def run(*arguments: str, folder: Path = tmp_path) -> Done:
        environment = clean_environment(tmp_path / "state")
        done = subprocess.run(
            [*COMMAND, "smoke", *arguments],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=BOUND_S, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def cells(tmp_path: Path) -> Callable[..., None]:
    """Write cells by name and text."""

    def write(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")

    return write


@requirement("smoke:status:exit", "smoke:run:parallel", "smoke:run:approvals-denied", "smoke:run:waits")
def test_checks_that_hold_end_with_status_0(smoke: Smoke) -> None:
    """The fixtures have each kind of tag, a denied approval, a yield, one that is driven on, and a deadline."""
    done = smoke(CHECKS, "-v", "--jobs", "3", folder=ROOT)
    names = re.findall(r"^ok {6}(\S+?)(?:\.js|\.ts|: .*?)  ", done.out, re.MULTILINE)

    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("10 passed in ")
    assert [name.removeprefix("fixtures/smoke/checks/") for name in names] == [
        "largest_order", "orders_replayed", "printer_is_empty", *["smoke.toml"] * 6, "total_by_customer",
    ]  # fmt: skip


@requirement("smoke:status:exit", "smoke:diff:path")
def test_a_difference_ends_with_status_1_and_names_the_path(smoke: Smoke) -> None:
    done = smoke(BROKEN, CHECKS, folder=ROOT)

    assert (done.status, done.err) == (1, "")
    assert done.out.splitlines()[1:4] == ["  @value $.orders[0].cents", "    expected 4300", "    found    4200"]
    assert done.out.splitlines()[-1].startswith("10 passed, 1 failed in ")


@requirement("smoke:status:exit", "smoke:files:unknown-tag")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.js", "// @vlaue 1\n", 'a.js:1: there is no tag "vlaue"'),
        ("a.js", "// x\n// @value {'n': 1}\n", "a.js:2: @value takes JSON"),
        ("smoke.toml", "[[case]]\nname = 'x'\n", "smoke.toml:1: a case needs its text"),
        ("README", "", '"." holds no cases'),
        ("codemode.toml", "[tols]\n", '"." holds no cases'),
    ],
)
def test_a_bad_file_is_one_clear_error_and_nothing_runs(
    smoke: Smoke, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    done = smoke(".")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error [invalid_input]: {message}")
    assert done.err.count("\n") == 1
    assert json.loads(smoke(".", "--json").out)["error"].startswith(message)


@requirement("smoke:status:exit")
def test_a_bad_manifest_is_status_2(smoke: Smoke, cells: Callable[..., None], tmp_path: Path) -> None:
    cells(a="return 1")
    (tmp_path / "codemode.toml").write_text("[tols]\n")
    done = smoke(".")

    assert (done.status, done.err.startswith("error [invalid_config]: ")) == (2, True)
    assert smoke(".", "-m", str(FIXTURES / "smoke" / "codemode.toml")).status == 0


@requirement("smoke:run:bail")
def test_bail_begins_nothing_after_the_first_failure(smoke: Smoke, cells: Callable[..., None]) -> None:
    cells(a="return 1", b="// @value 2\nreturn 1", c="return 1", d="// @value 2\nreturn 1")
    done = smoke(".", "--bail", "--jobs", "1", "--json")

    assert [case["state"] for case in json.loads(done.out)["cases"]] == ["passed", "failed", "skipped", "skipped"]
    assert done.status == 1


@requirement("smoke:run:warnings")
def test_a_server_that_is_missing_is_named_with_its_reason(
    smoke: Smoke, cells: Callable[..., None], tmp_path: Path
) -> None:
    """Once, however many cases share the manifest; standard output stays the report's."""
    (tmp_path / "codemode.toml").write_text('[mcp.servers.notes]\ncommand = "no-such-program"\n', encoding="utf-8")
    cells(
        a="// @error MCP is not defined; no MCP server is in the catalog\nreturn await MCP.notes.list()", b="return 1"
    )
    done = smoke(".", "--json")

    assert (done.status, json.loads(done.out)["ok"]) == (0, True)
    assert done.err.count('codemode: MCP server "notes" cannot be started: the command "no-such-program"') == 1


@requirement("smoke:filter:names")
def test_only_the_cases_that_are_asked_for_run(smoke: Smoke, cells: Callable[..., None]) -> None:
    cells(orders="return 1", stock="// @value 2\nreturn 1")

    assert smoke(".", "-k", "order").status == 0
    assert smoke(".", "--filter", "nothing").status == 2


@requirement("smoke:json:one-document")
def test_json_is_one_document_with_each_difference(smoke: Smoke, cells: Callable[..., None]) -> None:
    cells(a="// Adds.\n// @value {\"n\": 2}\nconsole.log('x'); return {n: 1}")
    report = json.loads(smoke(".", "--json").out)
    (case,) = report.pop("cases")

    assert report | {"durationMs": 0} == {
        "ok": False, "passed": 0, "failed": 1, "skipped": 0, "durationMs": 0, "updated": [],
    }  # fmt: skip
    assert case | {"durationMs": 0} == {
        "name": "a.js", "title": "Adds.", "file": "a.js", "line": 1, "state": "failed", "durationMs": 0,
        "differences": [{"tag": "value", "path": "$.n", "expected": "2", "found": "1"}],
    }  # fmt: skip


@requirement("smoke:junit:readable")
def test_a_junit_file_is_written_whether_all_holds_or_not(
    smoke: Smoke, cells: Callable[..., None], tmp_path: Path
) -> None:
    cells(a="return 1", b="// @value 1\nreturn '\\u0000]]>'")
    done = smoke(".", "--junit", "reports/smoke.xml")
    root = ET.parse(tmp_path / "reports" / "smoke.xml").getroot()

    assert (done.status, root.attrib["tests"], root.attrib["failures"]) == (1, "2", "1")


@requirement("smoke:junit:before")
def test_a_junit_file_that_cannot_be_written_is_told_before_a_case_runs(
    smoke: Smoke, cells: Callable[..., None], tmp_path: Path
) -> None:
    """It was told in place of the verdicts. `--update` would have written what the case gives."""
    cells(a="// @value 1\nreturn 2", b="")
    for file in (".", "b.js/smoke.xml"):
        refused = smoke("a.js", "--update", "--junit", file)
        assert refused.err.startswith(f'error [invalid_input]: the JUnit file "{file}" cannot be written')
    assert smoke("a.js", "--junit", "b.js").status == 1

    assert (tmp_path / "a.js").read_text(encoding="utf-8").startswith("// @value 1\n")
    assert ET.parse(tmp_path / "b.js").getroot().attrib["failures"] == "1"


@requirement("smoke:update:first-time", "smoke:update:renews")
def test_update_writes_what_the_cells_give_and_then_they_hold(
    smoke: Smoke, cells: Callable[..., None], tmp_path: Path
) -> None:
    cells(a="// @value 1\nreturn 2\n", b="throw new TypeError('boom')\n", c="// @not boom\nthrow 'boom'\n")
    done = smoke(".", "--update")

    assert (tmp_path / "a.js").read_text() == "// @value 2\nreturn 2\n"
    assert (tmp_path / "b.js").read_text().startswith("// @status failed\n// @error TypeError: boom\n\nthrow")
    assert [line for line in done.out.splitlines() if line.startswith("updated")] == [
        "updated a.js", "updated b.js", "updated c.js",
    ]  # fmt: skip
    assert (done.status, done.out.splitlines()[0].split()[:2]) == (1, ["FAILED", "c.js"])
    assert smoke("a.js", "b.js").status == 0


@requirement("smoke:run:parallel")
def test_cases_run_at_the_same_time(smoke: Smoke, tmp_path: Path) -> None:
    """Each of two cells waits for what only the other one brings about."""
    (tmp_path / "codemode.toml").write_text(
        '[[tool]]\nname = "meet"\ndescription = "Wait for one more."\npython = "meeting:meet"\ntimeoutMs = 60000\n'
    )
    (tmp_path / "meeting.py").write_text(
        "import threading\nbarrier = threading.Barrier(2, timeout=50)\ndef meet():\n    return barrier.wait() < 2\n"
    )
    for name in "ab":
        (tmp_path / f"{name}.js").write_text(
            "// @value true\n// @flags --timeout-ms 60000\nreturn await tools.meet({})\n"
        )

    assert smoke(".", "--jobs", "2").status == 0


@requirement("smoke:run:replay")
def test_each_case_gets_the_answers_of_a_recording_from_its_beginning(
    smoke: Smoke, cells: Callable[..., None], tmp_path: Path
) -> None:
    """The tool is gone when it is replayed, and each of two cells may ask once."""
    recording = FIXTURES / "smoke" / "checks" / "orders.jsonl"
    once = "return (await tools.list_orders({})).length"
    cells(a=f"// @value 3\n{once}", b=f"// @value 3\n{once}", c=f"// @error has no answer\n{once} + ({once[7:]})")

    assert smoke(".", "--replay", str(recording)).status == 0
    both = smoke(".", "--replay", str(recording), "-m", str(FIXTURES / "smoke" / "codemode.toml"))
    assert both.err.startswith("error [invalid_input]: --replay and a manifest were both given")
    assert smoke(".", "--replay", "no.jsonl").err.startswith("error [invalid_config]: there is no recording no.jsonl")


@requirement("smoke:report:redacted")
def test_secrets_of_the_manifest_do_not_reach_the_report(smoke: Smoke, tmp_path: Path) -> None:
    (tmp_path / "codemode.toml").write_text(
        '[[tool]]\nname = "tell"\ndescription = "Tell."\ncommand = ["echo", "${HOME}/told-value"]\n'
    )
    (tmp_path / "a.js").write_text("// @value 1\nreturn await tools.tell({})\n")
    done = smoke(".")

    assert done.status == 1
    assert "told-value" in done.out
    assert str(Path.home()) + "/told" not in done.out


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_it_and_leaves_nothing_behind(cells: Callable[..., None], tmp_path: Path) -> None:
    cells(a="// @flags --timeout-ms 60000\nfor (;;);")
    environment = clean_environment(tmp_path / "state")
    process = subprocess.Popen([*COMMAND, "smoke", "."], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    with process:
        while not (workers := children_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        status = process.wait(BOUND_S)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read().decode()

    assert status == 130
    assert all(map(has_ended, workers))  # each ends when its pipe does


def test_on_a_terminal_the_report_has_colours(tmp_path: Path) -> None:
    screen = run_in_terminal(["smoke", BROKEN], clean_environment(tmp_path / "state") | {"NO_COLOR": ""}, ROOT)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.text)

    assert screen.exit_status == 1
    assert "✗ fixtures/smoke/broken/wrong_total.js" in plain
    assert "\x1b[32m" in screen.text


def test_the_documented_workflow_uses_options_that_exist(smoke: Smoke) -> None:
    page = (ROOT / "docs" / "smoke.md").read_text(encoding="utf-8")
    used = set(re.findall(r"(?<=`| )(--?[a-z]+)\b", "\n".join(re.findall(r"codemode smoke.*", page))))
    offered = smoke("--help").out

    assert used
    assert [option for option in sorted(used) if not re.search(rf"{option}\b", offered)] == []
