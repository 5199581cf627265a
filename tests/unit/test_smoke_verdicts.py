"""What a run came to beside what was expected: each tag, and the reports."""

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from codemode.render import plain_smoke
from codemode.render.smoke import render_summary, render_verdict
from codemode.smoke.cases import Case, Place, Settings
from codemode.smoke.differences import Difference
from codemode.smoke.expectations import parse_text
from codemode.smoke.junit import build_junit
from codemode.smoke.verdicts import Observed, Verdict, judge
from tests.requirements import requirement

COMPLETED = {"status": "completed", "value": {"a": [1, 2], "s": "x"}, "output": [{"type": "text", "text": "hi"}]}
FAILED = {"status": "failed", "error": "Error: boom (cell.js:1:7)", "phase": "guest", "dispatched": False, "output": []}
CODED = FAILED | {"code": "timeout", "error": "the deadline"}
WAITING = {
    "status": "waiting",
    "runId": "cm_1",
    "reason": "pending_tools",
    "output": [],
    "pendingToolCalls": [
        {"id": "1", "method": "call", "toolId": "client:app:slow", "state": "running"},
        {"id": "2", "method": "timer", "state": "running"},
    ],
}


def a_case(*tags: str, name: str = "checks/a.js", title: str = "") -> Case:
    expectations = tuple(parse_text(*tag.split(" ", 1)) if " " in tag else parse_text(tag, "") for tag in tags)
    return Case(name, Place(Path(name), 1), title, "return 1", "javascript", None, Settings(), expectations)


def shown(*tags: str, result: dict[str, Any], calls: tuple[str, ...] = (), took_ms: float = 5) -> list[str]:
    verdict = judge(a_case(*tags), Observed(result, calls, took_ms))
    assert (verdict.state == "failed") == bool(verdict.differences)
    return [f"{each.tag} {each.path}: {each.expected} | {each.found}" for each in verdict.differences]


@requirement("smoke:tags:all")
@pytest.mark.parametrize(
    ("tag", "result"),
    [
        ("status completed", COMPLETED),
        ('value {"s": "x", "a": [1, 2]}', COMPLETED),
        ('partial {"a": [1, 2]}', COMPLETED),
        ("path $.a[*] = [1, 2]", COMPLETED),
        ("path $.a.length = 2", COMPLETED),
        ('output ["hi"]', COMPLETED),
        ("calls b b a", COMPLETED),
        ("max-calls 3", COMPLETED),
        ("duration quick", COMPLETED),
        ("not secret", COMPLETED),
        ("status failed", FAILED),
        ("error boom", FAILED),
        ("phase guest", FAILED),
        ("dispatched false", FAILED),
        ("code timeout", CODED),
        ("status waiting", WAITING),
        ("reason pending_tools", WAITING),
        ("pending call client:app:slow", WAITING),
        ("pending timer", WAITING),
    ],
)
def test_a_tag_holds_for_what_it_says(tag: str, result: dict[str, Any]) -> None:
    assert shown(tag, result=result, calls=("a", "b", "b")) == []


@requirement("smoke:tags:all")
@pytest.mark.parametrize(
    ("tag", "result", "difference"),
    [
        ('value {"s": "x", "a": [1, 3]}', COMPLETED, "value $.a[1]: 3 | 2"),
        ('partial {"b": 1}', COMPLETED, "partial $.b: 1 | nothing"),
        ("path $.a[5] = 1", COMPLETED, "path $.a[5]: 1 | nothing"),
        ("path $.a[*] = [1]", COMPLETED, "path $.a[*][1]: nothing | 2"),
        ("path $.s = 1", COMPLETED, 'path $.s: 1 | "x"'),
        ('output ["ho"]', COMPLETED, 'output $[0].text: "ho" | "hi"'),
        ("max-calls 1", COMPLETED, "max-calls : at most 1 call | 2 calls"),
        ("not hi", COMPLETED, 'not : nowhere "hi" | it is in the result'),
        ("error bang", FAILED, "error : …bang… | Error: boom (cell.js:1:7)"),
        ("code timeout", FAILED, "code : timeout | nothing"),
        ("phase bridge", FAILED, "phase : bridge | guest"),
        ("dispatched true", FAILED, "dispatched : true | false"),
        ("reason yield", WAITING, "reason : yield | pending_tools"),
        ("pending search", WAITING, "pending : search | call client:app:slow, timer"),
        ("status waiting", COMPLETED, "status : waiting | completed"),
        ("value 1", FAILED, "status : completed | failed: Error: boom (cell.js:1:7)"),
        ("value 1", CODED, "status : completed | failed [timeout]: the deadline"),
        ("value 1", WAITING, "status : completed | waiting: call client:app:slow, timer"),
        ("error x", COMPLETED, "status : failed | completed"),
    ],
)
def test_a_tag_fails_for_what_it_says_and_for_nothing_else(tag: str, result: dict[str, Any], difference: str) -> None:
    assert shown(tag, result=result, calls=("a", "b")) == [difference]


@requirement("smoke:tags:all")
def test_calls_are_counted_by_id() -> None:
    assert shown("calls a a b", result=COMPLETED, calls=("a", "c")) == [
        "calls a: 2 calls | 1 call",
        "calls b: 1 call | no call",
        "calls c: no call | 1 call",
    ]
    assert shown("calls", result=COMPLETED, calls=("a",)) == ["calls a: no call | 1 call"]


@requirement("smoke:tags:all")
def test_a_duration_is_an_upper_bound() -> None:
    assert shown("duration quick", result=COMPLETED, took_ms=1200) == ["duration : quick, at most 1,000 ms | 1,200 ms"]
    assert shown("duration slow", result=COMPLETED, took_ms=1200) == []


@requirement("smoke:tags:default-status")
def test_a_cell_without_tags_must_complete() -> None:
    assert shown(result=COMPLETED) == []
    assert shown(result=WAITING) == ["status : completed | waiting: call client:app:slow, timer"]


@requirement("smoke:tags:all")
def test_a_secret_is_found_in_its_escaped_form_too() -> None:
    assert shown('not a"b', result=COMPLETED | {"value": 'a"b'}) == ['not : nowhere "a\\"b" | it is in the result']


def three() -> list[Verdict]:
    wild = Difference("value", "$.a", '"\x1b[31m"', '"]]>\ufffe\x00<&\U0001f600"')
    observed = Observed(COMPLETED, (), 1234.5)
    return [
        Verdict(a_case(title="Adds."), "passed", (), observed),
        Verdict(a_case(name="checks/b.js"), "failed", (wild,) * 12, observed),
        Verdict(a_case(name="checks/c.js"), "skipped"),
    ]


@requirement("smoke:junit:readable")
def test_junit_xml_can_be_read_whatever_a_cell_says() -> None:
    root = ET.fromstring(build_junit(three(), 2000))
    suites = root.findall("testsuite")
    passed, failed, skipped = root.iter("testcase")

    assert {key: root.attrib[key] for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1", "time": "2.000",
    }  # fmt: skip
    assert [suite.attrib["name"] for suite in suites] == ["checks/a.js", "checks/b.js", "checks/c.js"]
    assert passed.attrib == {
        "classname": "checks.a", "name": "Adds.", "file": "checks/a.js", "line": "1", "time": "1.234",
    }  # fmt: skip
    assert skipped.find("skipped") is not None
    failure = failed.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == '@value $.a   expected "\ufffd[31m"   found    "]]>\ufffd\ufffd<&\U0001f600"'
    assert failure.attrib["type"] == "value"


def test_a_report_counts_what_it_leaves_out_and_cannot_steer_a_terminal() -> None:
    text = plain_smoke.verdict_text(three()[1].to_json())

    assert text.splitlines()[0] == "FAILED  checks/b.js  1.2 s"
    assert text.splitlines()[1:4] == [
        "  @value $.a",
        '    expected "\\u001b[31m"',
        '    found    "]]>\ufffe\\u0000<&😀"',
    ]
    assert text.splitlines()[-1] == "  and 2 more differences"
    assert plain_smoke.verdict_text(three()[2].to_json()) == "skipped checks/c.js"


def test_a_summary_names_the_states_that_there_are() -> None:
    report = {"ok": False, "passed": 1200, "failed": 1, "skipped": 0, "durationMs": 1500}

    assert plain_smoke.summary_text(report) == "1,200 passed, 1 failed in 1.5 s"


def test_on_a_terminal_it_says_the_same() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_verdict(three()[1].to_json()))
    console.print(render_summary({"ok": True, "passed": 1, "failed": 0, "skipped": 0, "durationMs": 3}))
    lines = console.export_text().splitlines()

    assert lines[0].strip() == "✗ checks/b.js  1.2 s"
    assert lines[-1].strip() == "1 passed in 3.0 ms"
