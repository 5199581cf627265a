"""From a host's answers to what a person sees and the exit status, with answers written by hand."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from codemode.cli.drive import Go, drive
from codemode.cli.source import Cell
from codemode.cli.terminal import Terminal
from codemode.core.types import Json
from codemode.telemetry import fold
from tests.requirements import requirement
from tests.support.streams import Stream

RUN = "cm_1"
CELL = Cell("const a = 1;\nthrow new Error('no');", "cells/a.js", None)
TELEMETRY = fold(()) | {"execCount": 1, "durationMs": 12.0}
STARTED: Json = {
    "event": "call_started", "run_id": RUN, "at_ms": 5.0, "call_id": 1, "method": "call", "tool_id": "client:app:add",
    "input": {"a": 1},
}  # fmt: skip
NOTHING: Json = {"version": 1, "runs": []}
ONE_CALL: Json = {
    "version": 1,
    "runs": [
        {
            "runId": RUN, "agentRunId": "ar", "language": "javascript", "source": "", "state": "completed",
            "code": None, "error": None, "startMs": 0.0, "endMs": 10.0, "durationMs": 12.0, "guestMs": 1.0,
            "calls": [
                {"id": 1, "method": "call", "toolId": "client:app:add", "state": "ok", "startMs": 1.0, "endMs": 3.0,
                 "input": {"a": 1}, "resultBytes": 1, "error": None, "deliverer": "exec", "updates": 0, "reason": None},
            ],
            "waits": [], "suspended": [],
        }
    ],
}  # fmt: skip


def texts(*items: str) -> list[Json]:
    return [{"type": "text", "text": item} for item in items]


def completed(value: Json, *output: str, trajectory: Json = NOTHING) -> Json:
    result = {"status": "completed", "value": value, "output": texts(*output), "telemetry": TELEMETRY}
    return {"result": result, "runId": RUN, "trajectory": trajectory}


def waiting(*output: str, state: str = "running", reason: str = "pending_tools") -> Json:
    pending = [{"id": "4", "method": "call", "toolId": "client:app:pay", "state": state}]
    result = {
        "status": "waiting", "runId": RUN, "reason": reason, "pendingToolCalls": pending if state else [],
        "output": texts(*output), "telemetry": TELEMETRY,
    }  # fmt: skip
    return {"result": result, "runId": RUN, "trajectory": NOTHING}


def failed(error: str, code: str | None = None, telemetry: Json = TELEMETRY) -> Json:
    result = {
        "status": "failed", "error": error, "phase": "guest", "dispatched": False, "output": texts("before"),
        "telemetry": telemetry,
    }  # fmt: skip
    begun = ONE_CALL["runs"][0] | {"source": CELL.text, "state": "failed", "calls": []}
    trajectory = {"version": 1, "runs": [begun]}
    return {"result": result | ({"code": code} if code else {}), "runId": RUN, "trajectory": trajectory}


class Hosts:
    """Answers requests in order, and remembers them."""

    def __init__(self, answers: Iterator[Json], words: str) -> None:
        self.answers = answers
        self.words = words
        self.requests: list[Json] = []

    def __call__(self, request: Json, follow: Callable[[Any], None], pass_on: Callable[[str], None]) -> Json:
        pass_on(self.words)
        self.requests.append(json.loads(json.dumps(request)))
        follow(STARTED)
        return next(self.answers)


class Shown:
    """One drive: its status, and what went to each stream."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[Json], **flags: Any) -> None:
        self.hosts = Hosts(iter(answers), flags.get("words", ""))
        monkeypatch.setattr("codemode.cli.drive.run_request", self.hosts)
        out, err = Stream(), Stream()
        terminal = Terminal(out, err, {})
        terminal.json = flags.get("json", False)
        terminal.speak(flags.get("quiet", False), flags.get("verbose", False))
        request = {"op": "exec", "input": {}, "limits": flags.get("limits", {}), "session": "s", "noInput": True}
        go = Go(flags.get("to_end", False), flags.get("trace", False))
        self.status = drive(terminal, request, CELL, go)
        self.out, self.err = out.getvalue(), err.getvalue()


@requirement("cli:output:streams", "cli:status:table")
def test_outputs_come_before_the_value_and_the_status_last(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [completed({"n": 1}, "one", "two", trajectory=ONE_CALL)])

    assert shown.status == 0
    assert shown.out == 'one\ntwo\n{\n  "n": 1\n}\n'
    assert shown.err.splitlines()[0] == "cm_1  javascript, completed, 12 ms"
    assert shown.err.splitlines()[-1] == "completed in 12 ms"


@requirement("cli:trace:tree")
def test_inputs_are_shown_only_with_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = completed(None, trajectory=ONE_CALL)

    assert '{"a": 1}' not in Shown(monkeypatch, [answer]).err
    assert '    {"a": 1}' in Shown(monkeypatch, [answer], trace=True).err.splitlines()


@requirement("cli:json:one-document")
def test_json_is_the_result_alone_and_the_tree_only_with_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = completed(1, "one", trajectory=ONE_CALL)
    silent = Shown(monkeypatch, [answer], json=True)
    traced = Shown(monkeypatch, [answer], json=True, trace=True)

    assert json.loads(silent.out) == json.loads(traced.out) == answer["result"]
    assert silent.err == ""
    assert traced.err.splitlines() == [
        "cm_1  javascript, completed, 12 ms", "  client:app:add #1, ok, 2.0 ms, 1 B", '    {"a": 1}',
    ]  # fmt: skip


@requirement("cli:run:wait")
def test_to_the_end_sends_waits_until_there_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [waiting("a"), waiting("b", state="", reason="yield"), completed(3, "c")]
    shown = Shown(monkeypatch, answers, to_end=True, limits={"timeout_ms": 500, "max_output_bytes": 2000})

    assert (shown.status, shown.out) == (0, "a\nb\nc\n3\n")
    assert [request["op"] for request in shown.hosts.requests] == ["exec", "wait", "wait"]
    assert shown.hosts.requests[1] == {
        "op": "wait", "input": {"runId": RUN}, "approve": [], "deny": [], "limits": {"timeout_ms": 500},
        "session": "s", "noInput": True, "record": None, "person": None, "always": False,
    }  # fmt: skip


@requirement("cli:run:wait", "cli:json:one-document")
def test_to_the_end_with_json_is_one_document_with_all_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [waiting("a"), completed(3, "b")], to_end=True, json=True)

    assert json.loads(shown.out)["output"] == texts("a", "b")
    assert shown.out.count("\n") == 1
    assert "limits" in shown.hosts.requests[1]
    assert shown.hosts.requests[1]["limits"] == {}


@requirement("cli:run:wait")
def test_an_open_approval_ends_the_drive_and_says_how_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [waiting("a", state="awaiting_approval")], to_end=True)

    assert shown.status == 3
    assert "next: codemode wait cm_1 --approve 4\n      or --deny 4\n" in shown.err


def test_without_to_the_end_one_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [waiting("a")])

    assert (shown.status, len(shown.hosts.requests)) == (3, 1)
    assert (
        "waiting: 1 open call, 12 ms so far\n  4  call  client:app:pay  running\nnext: codemode wait cm_1" in shown.err
    )


@requirement("cli:errors:layout")
def test_a_failure_shows_the_line_of_the_cell_and_keeps_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [failed("Error: no (cell.js:2:11)")])

    assert (shown.status, shown.out) == (1, "before\n")
    assert shown.err.endswith(
        "error: Error: no\n  at cells/a.js:2:11\n  1 | const a = 1;\n  2 | throw new Error('no');\n    |           ^\n"
    )


@requirement("cli:quiet:errors-only")
def test_quiet_leaves_only_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [failed("it took too long", "timeout")], quiet=True)

    assert shown.status == 4
    assert shown.err.splitlines()[0] == "error [timeout]: it took too long"
    assert Shown(monkeypatch, [completed(1, trajectory=ONE_CALL)], quiet=True).err == ""


@requirement("cli:verbose:events")
def test_verbose_tells_each_event_before_the_result_and_quiet_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [waiting("a"), completed(1)]
    shown = Shown(monkeypatch, list(answers), to_end=True, verbose=True)

    assert shown.err.splitlines()[:2] == ['+0.0 ms   call 1 client:app:add started with {"a": 1}'] * 2
    assert shown.out == "a\n1\n"
    assert Shown(monkeypatch, list(answers), to_end=True, verbose=True, quiet=True).err == ""
    assert "started with" not in Shown(monkeypatch, list(answers), to_end=True).err


@requirement("cli:quiet:errors-only")
def test_what_a_host_says_is_passed_on_unless_the_command_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "codemode: MCP server git is offline\n"

    assert Shown(monkeypatch, [completed(1)], words=words).err.startswith(words)
    assert Shown(monkeypatch, [completed(1)], words=words, quiet=True).err == ""


def test_a_run_that_never_began_has_no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch, [failed("bad manifest", "invalid_config", fold(()))])

    assert shown.err == "error [invalid_config]: bad manifest\n"
