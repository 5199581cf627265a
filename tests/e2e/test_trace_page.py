"""`trace --html`: one page, checked as text always and in a real browser where there is one."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode import trajectory
from codemode.core.names import camel_case
from codemode.render.page import Scale, render_page
from tests.requirements import requirement
from tests.support.browser import CHROMIUM, Browser
from tests.support.cells import BOUND_S, ROOT, clean_environment

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\x1b[31m\u202e"
VOID = {"meta", "img", "br", "hr", "link", "input"}
T0 = 1_700_000_000_000.0


def call_of(number: int, **more: Any) -> trajectory.Call:
    usual = trajectory.Call(number, "call", "client:app:add", "ok", T0 + 10, T0 + 30, {"a": 1}, 12)
    return usual._replace(**more)


def run_of(*calls: trajectory.Call, **more: Any) -> trajectory.Run:
    usual = trajectory.Run("cm_1", "ar_1", "javascript", "return 1", "completed", None, None, T0, T0 + 100, 100.0, 5.0)
    return usual._replace(calls=calls, **more)


def page_of(*runs: trajectory.Run) -> str:
    return render_page(trajectory.to_json(trajectory.Trajectory(runs)))


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed by its own end tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def classes(self, name: str) -> list[dict[str, str | None]]:
        return [found for _, found in self.elements if name in (found.get("class") or "").split()]


# ---- as text ----


@requirement("trace:page:complete")
def test_a_page_shows_calls_waits_and_suspensions_of_each_run() -> None:
    waited = run_of(
        call_of(1),
        call_of(2, deliverer="wait_1", end_ms=T0 + 60, state="error", error="unhappy"),
        call_of(3, start_ms=None, end_ms=None, state="denied", input=None),
        waits=(trajectory.Wait("wait_1", T0 + 55, T0 + 100),),
        suspended=(trajectory.Suspended(T0 + 40, 20_480, "restored", T0 + 56),),
    )
    page = Reader(page_of(waited, run_of(run_id="cm_2", state="failed", code="timeout", error="too late")))

    kinds = [(found.get("class") or "").split()[1:] for found in page.classes("row")]
    assert kinds == [
        ["call", "good"],
        ["call", "bad"],
        ["suspended", "good"],
        ["wait", "good"],
        ["call", "bad"],
    ]
    assert len(page.classes("bar")) == 4  # what never began has none
    for word in ("cm_1", "cm_2", "client:app:add #1", "unhappy", "by wait 1", "20.5 kB", "timeout", "too late"):
        assert word in page.text
    assert '"a": 1' in page.text
    assert "return 1" in page.text


@requirement("trace:page:complete")
def test_a_run_that_is_going_on_or_never_began_has_a_page() -> None:
    going = run_of(call_of(1, state="running", end_ms=None), state="running", end_ms=None)
    parked = run_of(call_of(1, state="awaiting_approval", start_ms=None, end_ms=None), state="waiting", end_ms=None)
    page = Reader(page_of(going, parked, trajectory.Run("cm_3")))

    assert [(found.get("class") or "").split() for found in page.classes("bar")] == [["bar", "endless"]]
    assert "awaiting approval" in page.text
    assert "3 runs" in page.text


@requirement("trace:page:self-contained")
def test_a_page_loads_nothing_and_runs_nothing() -> None:
    page = page_of(run_of(call_of(1, input={"url": "https://example.org/x.js"})))
    read = Reader(page)

    assert {tag for tag, _ in read.elements} & {"script", "link", "img", "iframe", "object", "base", "form"} == set()
    assert [found for _, found in read.elements if found.keys() & {"src", "href", "srcset", "action"}] == []
    assert not re.search(r"url\(|@import|javascript:", page)
    policies = [found["content"] for tag, found in read.elements if tag == "meta" and "http-equiv" in found]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "prefers-color-scheme: dark" in page


@requirement("trace:page:escaped")
def test_what_was_said_stands_there_as_text() -> None:
    hostile = call_of(1, tool_id=HOSTILE, input={HOSTILE: [HOSTILE]}, error=HOSTILE, state="error")
    page = Reader(page_of(run_of(hostile, source=HOSTILE, error=HOSTILE, code=HOSTILE, language=HOSTILE)))

    assert {tag for tag, _ in page.elements} & {"script", "img"} == set()
    assert [found for _, found in page.elements if any(key.startswith("on") for key in found)] == []
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_a_huge_input_is_cut_and_says_so() -> None:
    page = page_of(run_of(call_of(1, input={"text": "x" * 200_000})))

    assert len(page) < 60_000
    assert "200.0 kB in all" in page


@requirement("trace:page:scale")
def test_a_night_of_waiting_leaves_room_for_the_work() -> None:
    hour = 3_600_000.0
    run = run_of(
        call_of(1),
        call_of(2, start_ms=T0 + hour + 20, end_ms=T0 + hour + 90),
        suspended=(trajectory.Suspended(T0 + 50, 1, "restored", T0 + hour),),
        end_ms=T0 + hour + 100,
    )
    styles = [found["style"] or "" for found in Reader(page_of(run)).classes("bar")]
    widths = [float(re.findall(r"width:([\d.]+)%", style)[0]) for style in styles]

    assert widths[0] > 5
    assert widths[1] == pytest.approx(20, abs=1)  # the suspension: a quarter of the rest
    assert widths[2] > 30


@requirement("trace:page:scale")
def test_a_suspension_in_which_a_call_was_in_flight_keeps_its_length() -> None:
    run = run_of(
        call_of(1, start_ms=T0, end_ms=T0 + 900),
        waits=(trajectory.Wait("wait_1", T0 + 400, T0 + 500), trajectory.Wait("wait_2", T0 + 950, None)),
        suspended=(trajectory.Suspended(T0 + 100, 1, None, None),),
        end_ms=None,
        state="waiting",
    )
    styles = [found["style"] or "" for found in Reader(page_of(run)).classes("bar")]

    assert re.findall(r"width:([\d.]+)%", styles[0]) == ["94.74"]  # of 950 ms, all but the last 50


@requirement("trace:page:scale")
@given(
    cuts=st.lists(st.floats(0, 1e9), min_size=4, max_size=8),
    asked=st.lists(st.floats(0, 1e9), min_size=2, max_size=10),
)
def test_moments_keep_their_order_and_come_back_from_their_place(cuts: list[float], asked: list[float]) -> None:
    start, *inner, end = sorted(cuts)
    idle = list(zip(inner[::2], inner[1::2], strict=False))
    scale = Scale(start, end, idle)
    moments = sorted(min(max(moment, start), end) for moment in asked)
    places = [scale.place(moment) for moment in moments]

    assert places == sorted(places)
    assert all(0 <= place <= 100.000001 for place in places)
    for moment, place in zip(moments, places, strict=True):
        assert scale.place(scale.moment(place)) == pytest.approx(place, abs=1e-3)
        assert start <= scale.moment(place) <= end or moment in (start, end)


# ---- through the command ----


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A folder, the state of a run that waited in it, and its id."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "codemode.toml").write_text(
        '[[tool]]\nname = "slow"\ndescription = "Slow."\nvalue = 1\ndelayMs = 60\n'
        '[[tool]]\nname = "bad"\ndescription = "Bad."\nerror = "it is <b>broken</b>"\n'
    )
    cell = "await tools.slow({city: 'Oslo'}); await yield_control(); await tools.bad().catch(() => 0); return 1"
    done = command(folder, "run", "--wait", "--json", "-e", cell)
    assert done.returncode == 0, done.stderr
    run_id = json.loads(command(folder, "runs", "--json").stdout)[0]["runId"]
    return folder, folder / "run.html", run_id


def command(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "codemode", *arguments],
        cwd=folder,
        env=clean_environment(folder / "state"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=BOUND_S,
        check=False,
    )


@requirement("trace:page:file")
def test_the_command_writes_the_page(traced: tuple[Path, Path, str]) -> None:
    folder, path, run_id = traced
    done = command(folder, "trace", run_id, "--html", str(path))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {path}\n")
    page = Reader(path.read_text(encoding="utf-8"))
    assert run_id in page.text
    assert "it is <b>broken</b>" in page.text
    assert len(page.classes("suspended")) == 1
    assert command(folder, "trace", run_id, "--html", "-").stdout == path.read_text(encoding="utf-8")


@requirement("trace:page:file")
def test_a_page_that_cannot_be_written_is_told(traced: tuple[Path, Path, str]) -> None:
    folder, _, run_id = traced
    done = command(folder, "trace", run_id, "--html", str(folder / "missing" / "run.html"))

    assert done.returncode == 2
    assert "cannot write the page" in done.stderr


@requirement("trace:jsonl:documented")
def test_the_docs_name_every_field_of_the_lines(traced: tuple[Path, Path, str]) -> None:
    folder, _, run_id = traced
    lines = [json.loads(line) for line in command(folder, "trace", run_id, "--jsonl").stdout.splitlines()]
    text = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(run|call|wait|suspended)` \| (.*) \|$", text, re.MULTILINE))
    kinds = {"run": trajectory.Run, "call": trajectory.Call, "wait": trajectory.Wait, "suspended": trajectory.Suspended}

    assert {line["type"] for line in lines} == set(documented) == set(kinds)
    assert {line["version"] for line in lines} == {trajectory.FORMAT_VERSION}
    for line in lines:
        assert sorted(re.findall(r"`(\w+)`", documented[line["type"]])) == sorted(line.keys() - {"version", "type"})
    parts = {"calls", "waits", "suspended"}
    for kind, node in kinds.items():
        fields = {camel_case(name, name) for name in node._fields} - parts
        assert fields <= set(re.findall(r"`(\w+)`", documented[kind]))


# ---- in a browser ----

needs_browser = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")


@needs_browser
@requirement("trace:page:hover")
def test_hovering_a_row_tells_more_of_it(traced: tuple[Path, Path, str], tmp_path: Path) -> None:
    folder, path, run_id = traced
    command(folder, "trace", run_id, "--html", str(path))
    shown = "getComputedStyle(document.querySelector('.row.call .tip')).display"
    with Browser(path, tmp_path / "profile") as browser:
        assert browser.value(shown) == "none"
        browser.hover(".row.call .bar")
        browser.until(f"{shown} === 'block'")
        assert "Oslo" in browser.value("document.querySelector('.row.call .tip').innerText")
        boxes = browser.value("[...document.querySelectorAll('.bar')].map((b) => b.getBoundingClientRect().width)")
        assert min(boxes) >= 3
        assert browser.value("performance.getEntriesByType('resource').length") == 0
        assert browser.value("document.documentElement.scrollWidth <= innerWidth")


@needs_browser
def test_the_page_is_dark_where_the_reader_wants_it_dark(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_text(page_of(run_of(call_of(1))), encoding="utf-8")
    seen = []
    for dark in (False, True):
        with Browser(path, tmp_path / f"profile-{dark}", dark=dark) as browser:
            seen.append(browser.value("getComputedStyle(document.body).backgroundColor"))

    assert seen == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


@requirement("trace:page:hover")
def test_the_style_sheet_shows_the_tip_of_what_is_hovered_or_focused() -> None:
    """The same fact as text, for machines without a browser."""
    page = page_of(run_of(call_of(1)))

    assert ".row:hover .tip, .row:focus-within .tip { display: block; }" in page
    assert [found["tabindex"] for found in Reader(page).classes("bar")] == ["0"]
    assert [found["aria-label"] for found in Reader(page).classes("bar")] == ["client:app:add #1, ok, 20 ms"]
