"""Commands that need no host, run in this process on a real store and real manifests."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import typer

from codemode.cli.checks import claims
from codemode.cli.completion import complete_run, complete_server, complete_tool, complete_words
from codemode.cli.listing import find_declarations, find_tool
from codemode.cli.options import say_clamped
from codemode.cli.terminal import Terminal
from codemode.cli.which import choose_waiting
from codemode.core.errors import ErrorCode, InvalidInput, RuntimeUnavailable
from codemode.core.events import CallSettled, CallStarted, ExecStarted, RunEnded
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import Json
from codemode.payload.providers import PROVIDERS
from codemode.store.owner import this_process
from codemode.store.port import NewRun, OpenCall, Suspension
from codemode.store.sqlite import SqliteStore
from tests.requirements import requirement
from tests.support.cells import FIXTURES
from tests.support.command import Done, command_within
from tests.support.streams import Stream

CELLS = str(FIXTURES / "manifests" / "cells" / "codemode.toml")


@pytest.fixture
def codemode(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `codemode …` in an empty folder with a store of its own."""
    return command_within(tmp_path, capfd, monkeypatch)


@pytest.fixture
def store(codemode: Callable[..., Done]) -> Any:
    with_store = SqliteStore()
    yield with_store
    with_store.close()


def begin(store: SqliteStore, session: str = "default") -> str:
    """Begin a run and make one call of it."""
    run_id = store.create(NewRun(session, "main", "ar_1", "javascript", None, Limits(), this_process()))
    store.append(
        run_id,
        [
            ExecStarted(run_id, 1000.0, "ar_1", "javascript", "return 1", 1, {"client": 1}, ["exec", "wait"]),
            CallStarted(run_id, 1010.0, 1, "call", "client:app:add", {"a": 1}),
            CallSettled(run_id, 1030.0, 1, "ok", 3, None),
        ],
    )
    return run_id


def suspend(store: SqliteStore, run_id: str, *calls: OpenCall, reason: Any = "pending_tools") -> None:
    store.suspend(Suspension(run_id, b"vm", "build", reason, calls, (), "scope", b"{}", {"dispatched": True}))


# runs, abort, trace


@requirement("cli:runs:list")
def test_runs_says_why_a_run_waits_or_how_it_failed(codemode: Callable[..., Done], store: SqliteStore) -> None:
    asked, open_, yielded, settled, lost = (begin(store) for _ in range(5))
    suspend(store, asked, OpenCall(7, "call", "add", "client:app:add", "{}", "awaiting_approval"))
    suspend(store, open_, OpenCall(8, "timer", "", None, "{}", "running"))
    suspend(store, yielded, reason="yield")
    suspend(store, settled)
    store.finish(lost, "failed", None, "Error: boom", [RunEnded(lost, 1040.0, "failed", None, "Error: boom", 40.0)])
    rows = {line.split()[0]: re.split(r" {2,}", line) for line in codemode("runs").out.splitlines()}

    assert rows.pop("RUN") == ["RUN", "STATE", "AGE", "ABOUT"]
    assert {run_id: (row[1], row[3]) for run_id, row in rows.items()} == {
        asked: ("waiting", "call 7 (client:app:add) awaits approval"),
        open_: ("waiting", "timer #8"),
        yielded: ("waiting", "yielded"),
        settled: ("waiting", "its calls have settled"),
        lost: ("failed", "Error: boom"),
    }
    assert list(rows) == [lost, settled, yielded, open_, asked]


@requirement("cli:runs:list")
def test_runs_as_json_has_the_fields_of_each_run(codemode: Callable[..., Done], store: SqliteStore) -> None:
    run_id = begin(store)
    suspend(store, run_id, OpenCall(7, "call", "add", "client:app:add", "{}", "awaiting_approval"))
    (shown,) = codemode("runs", "--json").json

    assert (shown["runId"], shown["state"], shown["reason"]) == (run_id, "waiting", "pending_tools")
    assert shown["pendingToolCalls"][0]["state"] == "awaiting_approval"
    assert codemode("runs", "--session", "other", "--json").json == []


@requirement("cli:runs:abort")
def test_abort_ends_a_waiting_run_and_tells_a_running_one(codemode: Callable[..., Done], store: SqliteStore) -> None:
    waiting, running = begin(store), begin(store)
    suspend(store, waiting)

    assert codemode("abort", waiting) == (0, "", f"{waiting} is aborted\n")
    assert codemode("abort", running) == (0, "", f"{running} was told to stop\n")
    assert store.must_stop(running)
    assert codemode("abort", waiting, "--json").json["code"] == "invalid_input"


@requirement("cli:trace:tree")
def test_trace_shows_a_run_as_text_json_or_lines(codemode: Callable[..., Done], store: SqliteStore) -> None:
    run_id = begin(store)

    assert codemode("trace", run_id).out.splitlines() == [
        f"{run_id}  javascript, running, 0.0 ms", "  client:app:add #1, ok, 20 ms, 3 B",
    ]  # fmt: skip
    assert codemode("trace", run_id, "--inputs").out.splitlines()[-1] == '    {"a": 1}'
    assert codemode("trace", run_id, "--json").json["runs"][0]["calls"][0]["input"] == {"a": 1}
    assert [json.loads(line)["type"] for line in codemode("trace", run_id, "--jsonl").out.splitlines()] == [
        "run",
        "call",
    ]
    assert "give one of them" in codemode("trace", run_id, "--json", "--html", "run.html").json["error"]


@requirement("cli:trace:tree")
def test_trace_says_why_a_run_failed(codemode: Callable[..., Done], store: SqliteStore) -> None:
    run_id = begin(store)
    ended = RunEnded(run_id, 1040.0, "failed", "timeout", "too slow", 40.0)
    store.finish(run_id, "failed", ErrorCode.TIMEOUT, "too slow", [ended])

    assert codemode("trace", run_id).out.splitlines()[-1] == "error [timeout]: too slow"


@requirement("cli:trace:tree", "cli:json:failed-result")
@pytest.mark.parametrize("command", ["trace", "abort"])
def test_a_run_of_another_session_is_as_unknown_as_none(
    codemode: Callable[..., Done], store: SqliteStore, command: str
) -> None:
    theirs = begin(store, session="theirs")
    unknown = codemode(command, "cm_nothing", "--json")
    foreign = codemode(command, theirs, "--json")

    assert (unknown.status, foreign.status) == (2, 2)
    assert foreign.json["error"].replace(theirs, "cm_nothing") == unknown.json["error"]


@requirement("cli:trace:tree")
def test_a_run_that_cannot_be_traced_is_an_error_that_says_where_runs_are_listed(
    codemode: Callable[..., Done], store: SqliteStore
) -> None:
    done = codemode("trace", "cm_nothing")

    assert 'session "default" has no run "cm_nothing"; codemode runs lists those it has' in done.err


@requirement("cli:runs:abort")
def test_an_abort_of_an_unknown_run_says_where_runs_are_listed(codemode: Callable[..., Done]) -> None:
    done = codemode("abort", "cm_nothing", "--session", "the night's")

    assert "codemode runs --session 'the night'\"'\"'s' lists those it has" in done.err


@requirement("cli:runs:unnamed")
def test_a_trace_without_a_run_shows_the_latest(codemode: Callable[..., Done], store: SqliteStore) -> None:
    assert 'session "default" has no runs yet' in codemode("trace").err

    begin(store)
    latest = begin(store)
    assert codemode("trace", "--json").json["runs"][0]["runId"] == latest


@requirement("cli:runs:unnamed")
def test_an_abort_without_a_run_names_those_that_are_open_and_ends_none(
    codemode: Callable[..., Done], store: SqliteStore
) -> None:
    assert 'no run of session "default" waits or runs' in codemode("abort").err

    waiting, running = begin(store), begin(store)
    suspend(store, waiting)
    done = codemode("abort")

    assert (done.status, done.out) == (2, "")
    assert re.search(rf"Name one of these: {running} \(running, \d+ s old\), {waiting} \(waiting, ", done.err)
    assert {record.state for record in store.runs("default")} == {"waiting", "running"}


@requirement("cli:runs:unnamed")
def test_without_a_name_the_only_run_that_waits_is_meant(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match='no run of session "default" waits; codemode runs lists'):
        choose_waiting(store, "default")

    begin(store)
    first = begin(store)
    suspend(store, first)
    suspend(store, begin(store, session="theirs"))
    assert choose_waiting(store, "default") == first


@requirement("cli:runs:unnamed")
def test_several_runs_that_wait_are_named_the_newest_first(store: SqliteStore) -> None:
    waiting = [begin(store) for _ in range(7)]
    for run_id in waiting:
        suspend(store, run_id)
    with pytest.raises(InvalidInput) as refused:
        choose_waiting(store, "default")

    assert refused.value.message.startswith('7 runs of session "default" wait; name one of them: ')
    assert re.findall(r"cm_\S+", refused.value.message) == waiting[:1:-1]
    assert refused.value.message.endswith(" and 2 more")


@requirement("cli:run:clamped")
def test_a_limit_flag_out_of_range_is_said_with_what_is_used() -> None:
    err = Stream()
    terminal = Terminal(Stream(), err, {})
    say_clamped(terminal, {"timeout_ms": 5, "max_pending_tool_calls": 500, "memory_limit_bytes": 1 << 20})

    assert err.getvalue().splitlines() == [
        "--timeout-ms 5 is out of range: 100, the least there is, is used",
        "--max-pending-tool-calls 500 is out of range: 128, the most there is, is used",
    ]


# The catalog


@pytest.fixture
def shop(tmp_path: Path, codemode: Callable[..., Done]) -> Path:
    """A manifest in which some names are trouble."""
    tools = [
        ("add", "Add two numbers."),
        ("get-it", "Get it."),
        ("get.it", "Get it too."),
        ("then", "A reserved name."),
    ]
    lines = [
        '[tools]\ndeny = ["*:hidden"]',
        "[approvals]\n'client:app:add' = 'ask'",
        "[tools.codeMode]\nenabled = true",
    ]
    lines += [f'[[tool]]\nname = "{name}"\ndescription = "{text}"\nvalue = 1' for name, text in tools]
    lines.append('[[tool]]\nname = "add"\nowner = "other"\ndescription = "Add more."\nvalue = 2')
    lines.append('[[tool]]\nname = "hidden"\ndescription = "Denied."\nvalue = 1')
    path = tmp_path / "codemode.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@requirement("cli:catalog:list")
def test_the_listing_says_how_each_tool_is_called_and_who_must_approve(
    codemode: Callable[..., Done], shop: Path
) -> None:
    listing = codemode("catalog", "--json").json
    tools = {tool["id"]: tool for tool in listing["tools"]}

    assert listing["manifest"] == str(shop)
    assert {id_: tool["call"] for id_, tool in tools.items()} == {id_: f'tools.call("{id_}", input)' for id_ in tools}
    assert {id_ for id_, tool in tools.items() if tool["approval"] == "ask"} == {"client:app:add"}
    assert sorted({note["kind"] for note in listing["notes"]}) == ["collision", "reserved"]
    assert "client:app:hidden" not in tools


@requirement("cli:catalog:list")
def test_options_before_and_after_the_subcommand_are_the_same(
    codemode: Callable[..., Done], shop: Path, tmp_path: Path
) -> None:
    moved = shop.rename(tmp_path / "moved.toml")
    listing = codemode("catalog", "-m", str(moved), "--json").json

    assert codemode("catalog", "-m", str(moved), "--json", "list").json == listing
    assert codemode("catalog", "list", "-m", str(moved), "--json").json == listing
    assert codemode("-m", str(moved), "catalog", "list", "--json").json == listing
    assert codemode("catalog", "--json").json["size"] == 0


@requirement("cli:catalog:describe")
def test_a_tool_is_found_by_id_or_by_a_name_that_only_one_has(codemode: Callable[..., Done], shop: Path) -> None:
    ambiguous = codemode("catalog", "describe", "add")
    unknown = codemode("catalog", "describe", "zzz")

    assert codemode("catalog", "describe", "client:other:add").out.startswith("client:other:add\nAdd more.\n")
    assert codemode("catalog", "describe", "get.it", "--json").json["id"] == "client:app:get.it"
    assert ambiguous.status == unknown.status == 2
    assert (
        'the name "add" means several tools: client:app:add, client:other:add. Give one of these ids' in ambiguous.err
    )
    assert 'there is no tool "zzz" in the catalog. codemode catalog lists them.' in unknown.err
    assert "approval: ask" in codemode("catalog", "describe", "client:app:add").out


@requirement("cli:catalog:search")
def test_a_search_gives_reasons_only_when_asked(codemode: Callable[..., Done], shop: Path) -> None:
    plain = codemode("catalog", "search", "add", "--json").json
    explained = codemode("catalog", "search", "add", "more", "--explain", "--json", "-n", "1").json

    assert all("reasons" not in entry for entry in plain)
    assert [entry["id"] for entry in explained] == ["client:other:add"]
    assert {reason["term"] for reason in explained[0]["reasons"]} == {"add", "more"}
    assert codemode("catalog", "search", "x", "-n", "0").status == 2


@requirement("cli:catalog:types")
def test_without_servers_types_has_nothing(codemode: Callable[..., Done], shop: Path) -> None:
    assert codemode("catalog", "types", "--json").json == []
    assert codemode("catalog", "types").err == "no MCP server is visible, so there are no declarations\n"
    assert 'there is no MCP server "x" in the catalog; there are: none.' in codemode("catalog", "types", "x").err


@requirement("cli:catalog:describe")
@pytest.mark.parametrize("called", ["tools.echo", "tools.echo(input)", "tools.echo({ n: 1 })"])
def test_a_tool_is_found_by_the_call_that_a_cell_makes(codemode: Callable[..., Done], called: str) -> None:
    assert codemode("catalog", "describe", called, "-m", CELLS, "--json").json["name"] == "echo"


class FakeCatalog:
    """What the finders of a listing ask of a catalog with servers."""

    class scope:  # noqa: N801  # it stands for an attribute
        files = json.dumps(
            [
                {"path": "mcp/index.d.ts", "description": "all", "text": "I"},
                {"path": "mcp/shelf.d.ts", "description": "one", "text": "S"},
            ]
        )
        targets: ClassVar[dict[str, Any]] = {}

    tools = ()

    def names(self) -> dict[str, str]:
        return {}

    def tool(self, _id: str) -> None:
        return None

    def explain(self, _query: str, _limit: int) -> list[Any]:
        return []


@requirement("cli:catalog:types")
def test_the_declarations_of_one_server_come_without_the_index() -> None:
    catalog: Any = FakeCatalog()
    box: Any = SimpleNamespace(catalog=catalog, servers=None, redactor=Redactor())

    assert [file["text"] for file in find_declarations(box, None)] == ["I", "S"]
    assert [file["text"] for file in find_declarations(box, "shelf")] == ["S"]
    with pytest.raises(InvalidInput, match='there is no MCP server "index" in the catalog; there are: shelf'):
        find_declarations(box, "index")
    with pytest.raises(InvalidInput, match='there is no tool "x" in the catalog'):
        find_tool(catalog, "x")


# debug-payload


@requirement("cli:payload:body", "payload:closed:inactive")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_direct_mode_shows_the_tools_as_they_were(codemode: Callable[..., Done], shop: Path, provider: str) -> None:
    shop.write_text(shop.read_text().replace("enabled = true", "enabled = false"))
    body = codemode("debug-payload", "--provider", provider, "--json").json

    assert sorted(set(re.findall(r'"name": "([^"]+)"', json.dumps(body["tools"])))) == (
        ["add", "add_2", "get-it", "get.it", "then"]
        if provider == "gemini"
        else ["add", "add_2", "get-it", "get_it", "then"]
    )


@requirement("cli:payload:levels")
def test_each_level_says_what_was_sent(codemode: Callable[..., Done], shop: Path) -> None:
    summary = codemode("debug-payload", "--level", "summary", "--model", "my-model")
    full = codemode("debug-payload", "--level", "full-redacted", "--prompt", "hi", "--json")

    assert json.loads(summary.out)["model"] == "my-model"
    assert summary.err.splitlines()[0] == "Code mode is on: 5 tools are behind exec and wait."
    assert re.fullmatch(r"openai: 2 tools, .* tokens \(.*\)", summary.err.splitlines()[1])
    assert full.json["messages"] == [{"role": "user", "content": "hi"}]
    assert full.err == ""


@requirement("payload:levels:redacted")
def test_what_looks_like_a_credential_is_masked_in_the_body(codemode: Callable[..., Done], shop: Path) -> None:
    key = "sk-proj-" + "a1B2" * 8
    done = codemode("debug-payload", "--prompt", f"my key is {key}", "--json")

    assert key not in done.out
    assert "[redacted]" in done.out


@requirement("cli:payload:gate")
def test_an_agent_may_have_its_own_settings(codemode: Callable[..., Done], shop: Path) -> None:
    shop.write_text(shop.read_text() + "[agents.quiet.tools]\ncodeMode = false\n")

    assert codemode("debug-payload", "--agent", "quiet").err.startswith("Code mode is off: ")
    assert codemode("debug-payload").err.startswith("Code mode is on: ")


@requirement("cli:payload:direct")
def test_the_comparison_adds_up(codemode: Callable[..., Done], shop: Path) -> None:
    compared = codemode("debug-payload", "--direct", "--json", "--provider", "anthropic").json
    shown = codemode("debug-payload", "--direct").out.splitlines()

    assert compared["surface"]["tools"] == 2
    assert compared["direct"]["tools"] == 5
    assert compared["saved"]["tokens"] == compared["direct"]["tokens"] - compared["surface"]["tokens"]
    assert compared["saved"]["share"] < 0, "five tiny tools are smaller than exec and wait, and it says so"
    assert re.match(r"added +\d.*\(\d+\.\d%\)$", shown[-1])


# doctor


@requirement("cli:doctor:checks")
def test_an_engine_that_fails_or_answers_wrong_is_said(
    codemode: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeUnavailable("the engine is damaged")

    monkeypatch.setattr(claims, "open_session", broken)
    done = codemode("doctor", "--json")
    (engine,) = [check for check in done.json["checks"] if check["name"] == "engine"]

    assert done.status == 1
    assert (engine["state"], engine["says"]) == ("failed", "the engine is damaged")
    assert "wheel" in engine["fix"]
    assert not done.json["ok"]


@requirement("cli:doctor:checks")
def test_a_cell_that_ends_otherwise_is_no_working_engine(
    codemode: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "ENGINE", claims.ENGINE._replace(cell="return 41"))

    assert "failed   engine: a test cell ended with the value 41" in codemode("doctor").out


# Completion


def context_of(command: str = "trace", **params: Json) -> typer.Context:
    """A command line as far as it is typed: what completers read of it."""
    child: Any = type("Context", (), {"params": params, "parent": None, "info_name": command})()
    return child


@requirement("cli:completion:words")
def test_completers_offer_what_begins_like_the_word(codemode: Callable[..., Done], store: SqliteStore) -> None:
    run_id = begin(store)

    assert complete_run(context_of(), "cm_") == [(run_id, "running")]
    assert complete_run(context_of(session="other"), "") == []
    assert complete_tool(context_of(manifest=CELLS), "client:app:ad")[0][0] == "client:app:adapted"
    assert complete_server(context_of(manifest=CELLS), "") == []
    assert complete_words("ab", "ac", "b")("a") == ["ab", "ac"]


@requirement("cli:completion:words")
def test_a_command_is_offered_the_runs_that_it_can_use(store: SqliteStore) -> None:
    ended, waiting, running = (begin(store) for _ in range(3))
    suspend(store, waiting)
    store.finish(ended, "failed", None, "Error: x", [RunEnded(ended, 1040.0, "failed", None, "Error: x", 40.0)])

    offered = {name: [run for run, _ in complete_run(context_of(name), "")] for name in ("wait", "abort", "trace")}
    assert offered == {"wait": [waiting], "abort": [running, waiting], "trace": [running, waiting, ended]}


@requirement("cli:completion:words")
def test_completers_offer_nothing_where_something_is_wrong(
    codemode: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "codemode.toml").write_text("not toml")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "file" / "state"))

    assert complete_run(context_of(), "") == []
    assert complete_tool(context_of(), "") == []
    assert complete_server(context_of(), "") == []
