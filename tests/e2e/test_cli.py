"""The installed command: what goes to which stream, in which form, and with which status it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codemode.cli.overview import ROOMS
from codemode.core.types import Json
from codemode.payload.dump import LEVELS
from codemode.payload.providers import PROVIDERS
from tests.requirements import requirement
from tests.support.cells import BOUND_S, COMMAND, FIXTURES, LOST, clean_environment, run_command
from tests.support.command import Done
from tests.support.terminal import run_in_terminal

CELLS = str(FIXTURES / "manifests" / "cells" / "codemode.toml")
RUN_ID = re.compile(r"cm_[0-9a-f-]{36}")
ESCAPE = "\x1b["


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = clean_environment(tmp_path / "state")
    kept.pop("NO_COLOR")
    return kept


@pytest.fixture
def codemode(environment: dict[str, str], tmp_path: Path):
    """Run `codemode …` in an empty folder, its streams piped."""

    def run(*arguments: str, stdin: str = "", **more: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=environment | more, input=stdin, text=True, encoding="utf-8",
            capture_output=True, timeout=BOUND_S, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def result_of(done: Done) -> Json:
    """Return the one document on stdout."""
    assert done.out.count("\n") == 1
    return json.loads(done.out)


# Streams


@requirement("cli:output:streams", "cli:output:plain")
def test_outputs_and_value_go_to_stdout_and_the_rest_plainly_to_stderr(codemode) -> None:
    done = codemode("run", "-m", CELLS, "-e", "text('one'); json({n: 2}); return await tools.add({a: 1, b: 2})")

    assert done.status == 0
    assert done.out == 'one\n{\n  "n": 2\n}\n3\n'
    assert re.search(r"^  client:app:add #1, ok, ", done.err, re.MULTILINE)
    assert re.search(r"^catalog   \d+ tools, client \d+$", done.err, re.MULTILINE)
    assert re.search(r"^completed in .*, 1 call$", done.err, re.MULTILINE)
    assert not re.search(r"[\x1b│─╭]", done.out + done.err)


@requirement("cli:output:plain")
def test_a_piped_value_is_whole(codemode) -> None:
    done = codemode("run", "-e", "return Array.from({length: 1500}, (_, n) => ({n, text: 'x'.repeat(5)}))")

    assert len(json.loads(done.out)) == 1500


def test_quiet_says_nothing_but_the_value(codemode) -> None:
    assert codemode("run", "-q", "-e", "return 'ü'") == (0, '"ü"\n', "")


def test_a_cell_without_value_prints_nothing(codemode) -> None:
    assert codemode("run", "-q", "-e", "const a = 1;") == (0, "", "")


@requirement("cli:json:one-document")
def test_json_prints_the_result_and_nothing_else(codemode) -> None:
    done = codemode("run", "--json", "-e", "text('one'); console.log('two'); return null")
    result = result_of(done)

    assert (done.status, done.err) == (0, "")
    assert list(result) == ["status", "value", "output", "telemetry"]
    assert [item["text"] for item in result["output"]] == ["one", "two"]


@requirement("cli:trace:tree")
def test_with_json_the_tree_is_shown_only_when_asked_for(codemode) -> None:
    done = codemode("run", "--json", "--trace", "-m", CELLS, "-e", "return await tools.add({a: 1, b: 2})")

    assert result_of(done)["value"] == 3
    assert '    {"a": 1, "b": 2}' in done.err.splitlines()


@requirement("cli:output:broken-pipe")
def test_a_broken_pipe_is_quiet(environment: dict[str, str], tmp_path: Path) -> None:
    """The reader leaves after one line; the command has far more to say."""
    cell = "return Array.from({length: 20000}, (_, n) => n)"
    with subprocess.Popen(
        [*COMMAND, "run", "-q", "-e", cell, "--max-output-bytes", "1000000"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as command:  # fmt: skip
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.readline()
        command.stdout.close()

        assert command.stderr.read() == b""
    assert command.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
@requirement("cli:errors:no-traceback")
def test_a_full_disk_is_one_sentence(environment: dict[str, str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "run", "-q", "-e", "return 1"], cwd=tmp_path, env=environment, stdout=full,
            stderr=subprocess.PIPE, timeout=BOUND_S, check=False,
        )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == b"error: the output could not be written: No space left on device\n"


@requirement("cli:errors:no-traceback")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_closed_streams_are_no_error(environment: dict[str, str], tmp_path: Path, closed: str) -> None:
    shell = f"{' '.join(COMMAND)} run -q -e 'return 1' {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", shell], cwd=tmp_path, env=environment, capture_output=True, timeout=BOUND_S, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")


@requirement("cli:json:one-document")
def test_piped_text_is_utf_8_whatever_the_locale(environment: dict[str, str], tmp_path: Path) -> None:
    odd = environment | {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    done = subprocess.run(
        [*COMMAND, "run", "--json", "-e", "return '田中 ü'"], cwd=tmp_path, env=odd, capture_output=True,
        timeout=BOUND_S, check=False,
    )  # fmt: skip

    assert json.loads(done.stdout.decode("utf-8"))["value"] == "田中 ü"


@requirement("cli:errors:no-traceback")
def test_bytes_that_are_no_text_on_the_command_line_are_no_traceback(codemode) -> None:
    done = codemode("run", "-q", "-e", b"return '\xff'.length")

    assert (done.status, done.out) == (0, "1\n")


@requirement("cli:start:no-rich")
@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["runs"], ["catalog", "-m", CELLS], ["rnu"]])
def test_a_piped_command_never_loads_rich_or_pydantic(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    program = (
        f"import sys; from codemode.cli.app import main; main({arguments!r}); "
        "sys.exit(sorted({'rich', 'pydantic', 'mcp', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=BOUND_S,
        check=False,
    )

    assert done.stderr.decode().splitlines()[-1] == "[]"


@requirement("cli:start:overview", "cli:start:one-room")
@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [(["--help"], []), (["-h"], []), (["runs"], ["runs", "typer"]), (["doctor", "--help"], ["doctor", "typer"])],
)
def test_only_the_room_of_the_command_is_loaded(
    arguments: list[str], loaded: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    program = (
        f"import sys; sys.argv = ['codemode', *{arguments!r}]; from codemode.__main__ import main; main(); "
        "from codemode.cli.overview import ROOMS; rooms = {f'codemode.cli.{room}' for room in ROOMS.values()}; "
        "sys.exit(' '.join(sorted(name.split('.')[-1] for name in {*rooms, 'typer'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=BOUND_S,
        check=False,
    )

    assert done.stderr.decode().splitlines()[-1].split() == loaded


# A terminal


@requirement("cli:values:tables", "cli:output:streams")
def test_on_a_terminal_like_objects_are_a_table_and_the_status_is_coloured(
    environment: dict[str, str], tmp_path: Path
) -> None:
    screen = run_in_terminal(["run", "-e", "return [{id: 1, n: 'Ada'}, {id: 2, n: 'Bo'}]"], environment, tmp_path)

    assert screen.exit_status == 0
    assert "id" in screen.text
    assert "╭─" in screen.text
    assert f"{ESCAPE}1;32m✓" in screen.text


@requirement("cli:output:no-color")
def test_no_color_is_honoured_on_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    plain = environment | {"NO_COLOR": "1"}
    screen = run_in_terminal(["run", "-e", "return [{id: 1, n: 'Ada'}, {id: 2, n: 'Bo'}]"], plain, tmp_path)

    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.text)
    assert "✓ " in screen.text


@requirement("cli:output:harmless")
def test_a_cell_cannot_steer_the_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    cell = r"text('\u001b]0;owned\u0007'); throw new Error('\u001b[2J')"
    screen = run_in_terminal(["run", "-e", cell], environment, tmp_path)

    assert screen.exit_status == 1
    assert "\x1b]" not in screen.text
    assert "\x1b[2J" not in screen.text
    assert "\\u001b]0;owned" in screen.text


@pytest.mark.parametrize("columns", [80, 160])
def test_what_is_drawn_fits_the_terminal(environment: dict[str, str], tmp_path: Path, columns: int) -> None:
    cell = "await Promise.all([tools.add({a: 1}), tools.later({ms: 5})]); return ALL_TOOLS.slice(0, 4)"
    screen = run_in_terminal(["run", "-m", CELLS, "-e", cell], environment, tmp_path, columns)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.text)

    assert max(len(line) for line in drawn.splitlines()) <= columns


# Where cells come from, and what is wrong with them


@requirement("cli:run:sources", "cli:run:typescript-suffix")
def test_a_cell_comes_from_a_file_or_from_standard_input(codemode, tmp_path: Path) -> None:
    (tmp_path / "cell.ts").write_text("const n: number = 4; return n")

    assert codemode("run", "-q", "cell.ts").out == "4\n"
    assert codemode("run", "-q", "-", stdin="return 'from stdin'").out == '"from stdin"\n'


@requirement("cli:json:failed-result", "cli:errors:did-you-mean")
def test_a_file_that_is_not_there_is_a_failed_result_with_json(codemode, tmp_path: Path) -> None:
    (tmp_path / "report.js").write_text("return 1")
    done = codemode("run", "--json", "reprot.js")
    result = result_of(done)

    assert done.status == 2
    assert (result["status"], result["code"], result["phase"]) == ("failed", "invalid_input", "input")
    assert 'Did you mean "report.js"' in result["error"]
    assert codemode("run", "reprot.js").err.startswith('error [invalid_input]: there is no file "reprot.js".')


@requirement("cli:json:failed-result")
@pytest.mark.parametrize("command", [["run", "-e", "return 1"], ["catalog"], ["debug-payload"], ["catalog", "types"]])
def test_a_bad_manifest_is_one_error_with_line_and_column(codemode, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "codemode.toml").write_text("[tools]\nallow = [")
    done = codemode(*command)
    result = result_of(codemode(*command, "--json"))

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error [invalid_config]: ")
    assert "codemode.toml:2:10: not TOML" in done.err
    assert (result["status"], result["code"]) == ("failed", "invalid_config")


@requirement("cli:errors:layout")
def test_the_error_of_a_file_shows_its_path_its_line_and_a_caret(codemode, tmp_path: Path) -> None:
    (tmp_path / "sum.ts").write_text("const n: number = 1;\n\n  throw new TypeError('boom');\n")
    done = codemode("run", "-q", "sum.ts")

    assert done.status == 1
    what, where, *_, line, caret = done.err.splitlines()
    column = int(where.removeprefix("  at sum.ts:3:"))
    assert what == "error: TypeError: boom"
    assert line == "  3 |   throw new TypeError('boom');"
    assert caret == f"    | {'':>{column - 1}}^"
    assert "throw new TypeError"[column - 3 :].startswith(("throw", "new", "TypeError"))


@requirement("cli:run:limits", "cli:status:table")
def test_a_limit_flag_holds_and_its_end_says_what_to_do(codemode) -> None:
    done = codemode("run", "-q", "-e", "text('before'); while (true) {}", "--timeout-ms", "300")

    assert done.status == 4
    if LOST not in done.err:  # as where the machine gave the worker no time after the deadline
        assert done.out == "before\n"
        assert "--timeout-ms" in done.err.splitlines()[-1]


def test_the_manifest_may_be_named_before_or_after_the_command(codemode) -> None:
    for arguments in (["-m", CELLS, "run"], ["run", "-m", CELLS]):
        assert codemode(*arguments, "-q", "-e", "return await tools.add({a: 2, b: 2})").out == "4\n"
    assert codemode("-m", CELLS, "catalog", "describe", "add").out.startswith("client:app:add\n")


# Waiting runs


@requirement("cli:status:table", "cli:runs:list", "cli:trace:tree")
def test_a_run_waits_is_listed_goes_on_and_has_a_trace(codemode) -> None:
    first = codemode("run", "-m", CELLS, "--timeout-ms", "500", "-e", "return await tools.later({ms: 900, value: 7})")
    run_id = RUN_ID.findall(first.err)[-1]

    assert first.status == 3
    assert f"next: codemode wait {run_id}" in first.err
    assert re.search(
        rf"^{run_id}  waiting  .*  (client:app:later #1|its calls have settled)$", codemode("runs").out, re.MULTILINE
    )
    assert codemode("wait", run_id, "-q") == (0, "7\n", "")

    listed = result_of(codemode("runs", "--json"))
    trace = result_of(codemode("trace", run_id, "--json"))
    lines = [json.loads(line) for line in codemode("trace", run_id, "--jsonl").out.splitlines()]

    assert [(run["runId"], run["state"]) for run in listed] == [(run_id, "completed")]
    assert [call["toolId"] for call in trace["runs"][0]["calls"]] == ["client:app:later"]
    assert [line["type"] for line in lines] == ["run", "wait", "suspended", "call"]
    assert "suspended, restored" in codemode("trace", run_id).out
    assert '{"ms": 900, "value": 7}' in codemode("trace", run_id, "--inputs").out


@requirement("cli:run:wait")
def test_wait_drives_a_run_to_its_end_with_all_outputs_in_order(codemode) -> None:
    cell = "text('a'); await yield_control(); text('b'); await yield_control(); text('c'); return 1"
    done = codemode("run", "--wait", "-e", cell)
    result = result_of(codemode("run", "--wait", "--json", "-e", cell))

    assert (done.status, done.out) == (0, "a\nb\nc\n1\n")
    assert [item["text"] for item in result["output"]] == ["a", "b", "c"]
    assert result["telemetry"]["waitCount"] == 2


@requirement("cli:runs:unnamed")
def test_a_wait_without_a_run_goes_on_with_the_only_one_that_waits(codemode) -> None:
    codemode("run", "-q", "-e", "await yield_control(); return 5")

    assert codemode("wait", "-q")[:2] == (0, "5\n")
    assert codemode("wait", "-q") == (
        2, "", 'error [invalid_input]: no run of session "default" waits; codemode runs lists those that it has\n'
    )  # fmt: skip


@requirement("cli:runs:list")
def test_a_wait_for_an_unknown_run_says_where_runs_are_listed(codemode) -> None:
    done = codemode("wait", "cm_nothing", "--session", "nightly")

    assert done.status == 2
    assert done.err.splitlines()[-1] == (
        "  codemode runs --session nightly lists the runs of this session, and what they wait for."
    )


@requirement("cli:run:clamped")
def test_a_limit_that_is_moved_into_its_range_is_said_once(codemode) -> None:
    done = codemode("run", "--json", "--max-pending-tool-calls", "500", "-e", "return 1")

    assert result_of(done)["value"] == 1
    assert done.err == "--max-pending-tool-calls 500 is out of range: 128, the most there is, is used\n"


def test_wait_goes_on_to_the_end_from_another_process(codemode) -> None:
    cell = "text('a'); await yield_control(); text('b'); await yield_control(); text('c'); return 1"
    run_id = result_of(codemode("run", "--json", "-e", cell))["runId"]

    assert codemode("wait", run_id, "--wait", "-q").out == "b\nc\n1\n"


@requirement("cli:runs:abort")
def test_abort_ends_a_waiting_run(codemode) -> None:
    waiting = result_of(codemode("run", "--json", "-e", "await yield_control()"))
    run_id = waiting["runId"]

    assert result_of(codemode("abort", run_id, "--json")) == {"runId": run_id, "state": "aborted"}
    assert codemode("wait", run_id).status == 130
    assert re.search(rf"^{run_id}  aborted ", codemode("runs").out, re.MULTILINE)
    again = codemode("abort", run_id)
    assert (again.status, again.out) == (2, "")


def test_abort_says_what_it_did(codemode) -> None:
    run_id = result_of(codemode("run", "--json", "-e", "await yield_control()"))["runId"]

    assert codemode("abort", run_id).err == f"{run_id} is aborted\n"


@requirement("cli:runs:list")
def test_sessions_are_apart(codemode) -> None:
    run_id = result_of(codemode("run", "--session", "a", "--json", "-e", "await yield_control()"))["runId"]

    assert codemode("runs", "--session", "b") == (0, "", 'session "b" has no runs yet\n')
    assert codemode("wait", run_id, "--session", "b").status == 2
    assert codemode("trace", run_id, "--session", "b").status == 2
    assert codemode("wait", run_id, "--session", "a").status == 0


@requirement("cli:status:table")
def test_control_c_aborts_the_run_and_shows_its_result(environment: dict[str, str], tmp_path: Path) -> None:
    command = subprocess.Popen(
        [*COMMAND, "run", "--json", "-m", CELLS, "--trace", "-e", "text('on'); await tools.never()",
         "--timeout-ms", "60000"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    wait_for_run(environment, tmp_path)
    os.kill(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=BOUND_S)

    assert command.returncode == 130
    assert json.loads(out)["code"] == "aborted"
    assert b"Traceback" not in err


def wait_for_run(environment: dict[str, str], folder: Path) -> None:
    """Return once a run is in the store; each look takes a while by itself."""
    deadline = time.monotonic() + BOUND_S
    while not run_command(["runs", "--json"], environment, folder).result:
        assert time.monotonic() < deadline


# The catalog


@requirement("cli:catalog:list")
def test_the_catalog_lists_tools_with_how_to_call_them_and_what_is_wrong(codemode) -> None:
    listing = result_of(codemode("catalog", "--json", "-m", CELLS))
    tools = {tool["id"]: tool for tool in listing["tools"]}

    assert listing["manifest"] == CELLS
    assert listing["size"] == len(listing["tools"]) == sum(listing["sources"].values())
    assert tools["client:app:add"]["call"] == "tools.add(input)"
    assert tools["client:app:add"]["parameters"]["required"] == ["a"]
    assert {"collision", "reserved"} <= {note["kind"] for note in listing["notes"]}
    assert listing["tools"] == sorted(listing["tools"], key=lambda tool: tool["id"])
    assert result_of(codemode("catalog", "list", "--json", "-m", CELLS)) == listing


@requirement("cli:catalog:list")
def test_the_piped_catalog_has_one_line_for_each_tool(codemode) -> None:
    done = codemode("catalog", "-m", CELLS)
    size = result_of(codemode("catalog", "--json", "-m", CELLS))["size"]

    assert len(done.out.splitlines()) == size + 1
    assert re.search(r"^client:app:add +Add two numbers\.$", done.out, re.MULTILINE)
    assert re.search(rf"^{size} tools \(.*\) from {re.escape(CELLS)}$", done.err, re.MULTILINE)


def test_without_a_manifest_the_catalog_is_empty_and_says_so(codemode) -> None:
    assert codemode("catalog") == (0, "", "0 tools; there is no codemode.toml here\n")


@requirement("cli:catalog:search")
def test_a_search_ranks_and_explains(codemode) -> None:
    ranking = result_of(codemode("catalog", "search", "add", "numbers", "--json", "-m", CELLS))
    explained = codemode("catalog", "search", "add", "--explain", "-n", "1", "-m", CELLS)

    assert ranking[0]["id"] == "client:app:add"
    assert ranking == sorted(ranking, key=lambda entry: -entry["score"])
    assert explained.out.splitlines()[0] == "client:app:add  Add two numbers."
    assert re.search(r"covers 100% of the query\n    add is the name add: .*\n    add is add: ", explained.out)
    assert codemode("catalog", "search", "zebra", "-m", CELLS).err.startswith("nothing matches")


@requirement("cli:catalog:describe")
def test_describe_shows_a_tool_and_near_ones_when_there_is_none(codemode) -> None:
    done = codemode("catalog", "describe", "client:app:add", "-m", CELLS)
    wrong = codemode("catalog", "describe", "ad", "-m", CELLS)

    assert "call: tools.add(input)" in done.out
    assert re.search(r"^a +number +required", done.out, re.MULTILINE)
    assert result_of(codemode("catalog", "describe", "add", "--json", "-m", CELLS))["name"] == "add"
    assert wrong.status == 2
    assert "Near: client:app:add" in wrong.err


@pytest.fixture
def shelf(tmp_path: Path) -> dict[str, str]:
    """A manifest with a server that works and one that does not; the cache of listings is fresh."""
    server = str(FIXTURES / "servers" / "shelf.py")
    (tmp_path / "codemode.toml").write_text(
        "[tools]\ncodeMode = true\n"
        f"[mcp.servers.shelf]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(server)}]\n"
        '[mcp.servers.gone]\ncommand = "no-such-command-anywhere"\n'
    )
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@requirement("cli:catalog:list", "cli:catalog:types")
def test_servers_are_listed_with_their_declarations_and_broken_ones_with_their_kind(codemode, shelf) -> None:
    done = codemode("catalog", **shelf)
    listing = result_of(codemode("catalog", "--json", **shelf))
    types = codemode("catalog", "types", "shelf", **shelf)

    assert "mcp:shelf:find_books" in done.out
    assert re.search(r"^MCP server gone \[offline\], from codemode.toml: ", done.err, re.MULTILINE)
    assert [failure["server"] for failure in listing["failures"]] == ["gone"]
    calls = {tool["id"]: tool["call"] for tool in listing["tools"]}
    assert calls["mcp:shelf:find_books"] == "MCP.shelf.findBooks(input)"
    assert "function findBooks(input: {" in types.out
    assert [file["path"] for file in result_of(codemode("catalog", "types", "--json", **shelf))] == [
        "mcp/index.d.ts", "mcp/shelf.d.ts",
    ]  # fmt: skip
    assert 'Did you mean "shelf"' in codemode("catalog", "types", "shelv", **shelf).err


@requirement("cli:catalog:types")
def test_declarations_are_found_by_either_name_and_what_has_none_says_why(codemode, shelf, tmp_path) -> None:
    """A person knows the name in their configuration, a cell the one in its code."""
    manifest = tmp_path / "codemode.toml"
    manifest.write_text(manifest.read_text().replace("servers.shelf", "servers.book-shelf"))
    own, ident, every, gone = (
        codemode("catalog", "types", *server, **shelf) for server in (["book-shelf"], ["bookShelf"], [], ["gone"])
    )

    assert own.out == ident.out
    assert "declare namespace MCP.bookShelf {" in own.out
    assert (own.err, ident.err) == ("", "")
    assert "mcp/bookShelf.d.ts" in every.out
    assert every.err.startswith("MCP server gone [offline], from ")
    assert gone.status == 2
    assert gone.err.startswith('error [invalid_input]: there are no declarations: MCP server "gone" ')


@requirement("cli:catalog:types")
def test_without_servers_there_are_no_declarations(codemode) -> None:
    assert codemode("catalog", "types").err == "no MCP server is visible, so there are no declarations\n"


# Model requests


@requirement("cli:payload:body", "surface:tools:exactly-two")
@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "gemini"])
def test_json_is_the_request_body_itself_with_exactly_exec_and_wait(codemode, provider: str) -> None:
    body = result_of(codemode("debug-payload", "--provider", provider, "--json", "-m", CELLS))
    names = re.findall(r'"name": "([^"]+)"', json.dumps(body["tools"]))

    assert names == ["exec", "wait"]
    assert {"messages", "input", "contents"} & set(body)


@requirement("cli:payload:levels")
def test_the_levels_show_a_summary_the_tools_or_all(codemode) -> None:
    summary = json.loads(codemode("debug-payload", "--level", "summary", "-m", CELLS).out)
    tools = codemode("debug-payload", "-m", CELLS)
    full = codemode("debug-payload", "--level", "full-redacted", "--prompt", "Who?", "-m", CELLS)

    assert summary["toolNames"] == ["exec", "wait"]
    assert list(json.loads(tools.out)) == ["tools"]
    assert tools.err.startswith("Code mode is on: ")
    assert json.loads(full.out)["messages"] == [{"role": "user", "content": "Who?"}]
    assert "prompts and message texts may show" in full.err
    assert result_of(codemode("debug-payload", "--level", "summary", "--json", "-m", CELLS)) == summary


@requirement("cli:payload:gate")
@pytest.mark.parametrize("flag", ["--raw", "--disable-tools", "--no-model-tools"])
def test_a_request_without_tools_is_not_code_mode(codemode, flag: str) -> None:
    done = codemode("debug-payload", flag, "--level", "summary", "-m", CELLS)

    assert json.loads(done.out)["toolNames"] == []
    assert done.err.startswith("Code mode is off: ")


@requirement("cli:payload:gate")
def test_switched_off_the_tools_are_exposed_as_they_were(codemode, tmp_path: Path) -> None:
    (tmp_path / "codemode.toml").write_text('[[tool]]\nname = "ping"\ndescription = "Say pong."\nvalue = "pong"\n')
    body = result_of(codemode("debug-payload", "--json"))

    assert [tool["function"]["name"] for tool in body["tools"]] == ["ping"]


@requirement("cli:payload:direct")
def test_direct_compares_bytes_and_tokens_and_says_how_they_were_counted(codemode) -> None:
    compared = result_of(codemode("debug-payload", "--direct", "--json", "-m", CELLS))
    shown = codemode("debug-payload", "--direct", "-m", CELLS)

    assert compared["direct"]["bytes"] - compared["surface"]["bytes"] == compared["saved"]["bytes"]
    assert compared["counter"] in ("o200k", "estimate")
    assert [line.split()[0] for line in shown.out.splitlines()] == ["OPENAI", "code", "direct", "saved"]
    assert ("estimate" in shown.err) == (compared["counter"] == "estimate")


def test_an_unknown_provider_or_level_is_refused_with_the_nearest(codemode) -> None:
    for flags in (["--provider", "antropic"], ["--level", "summry"]):
        done = codemode("debug-payload", *flags)
        assert (done.status, done.out) == (2, "")
        assert "Did you mean" in done.err


# Doctor


@requirement("cli:doctor:checks")
def test_doctor_finds_nothing_wrong_with_a_working_manifest(codemode) -> None:
    done = codemode("doctor", "-m", CELLS)
    report = result_of(codemode("doctor", "--json", "-m", CELLS))

    assert done.status == 0
    assert re.fullmatch(r"\d+ ok, \d+ to look at, 0 failed\n", done.err)
    assert {"engine", "store", "manifest", "tools", "code mode"} <= {check["name"] for check in report["checks"]}
    assert report["ok"]
    assert report["versions"]["quickjs-wasi"]


@requirement("cli:doctor:checks")
def test_doctor_says_what_is_broken_and_what_to_do(codemode, shelf, tmp_path: Path) -> None:
    manifest = tmp_path / "codemode.toml"
    more = '\n[[tool]]\nname = "lost"\ndescription = "Gone."\npython = "no_such_module:function"\n'
    manifest.write_text(
        manifest.read_text().replace("codeMode = true", "codeMode = { enabled = true, timeoutMs = 5 }") + more
    )
    done = codemode("doctor", **shelf)
    report = result_of(codemode("doctor", "--json", **shelf))
    states = {(check["name"], check["state"]) for check in report["checks"]}

    assert done.status == 1
    assert {("tool", "failed"), ("server", "failed"), ("server", "ok"), ("limits", "warning")} <= states
    assert "tools.codeMode.timeoutMs = 5 is out of range; 100 is used" in done.out
    assert "no_such_module" in done.out


@requirement("cli:doctor:checks")
def test_doctor_names_the_place_in_a_broken_manifest_and_a_store_that_cannot_be(codemode, tmp_path: Path) -> None:
    (tmp_path / "codemode.toml").write_text("[tools]\nalow = []\n")
    (tmp_path / "file").write_text("")
    done = codemode("doctor", CODEMODE_STATE_DIR=str(tmp_path / "file"))

    assert done.status == 1
    assert re.search(r"^failed   manifest: .*alow", done.out, re.MULTILINE)
    assert re.search(r"^failed   store: ", done.out, re.MULTILINE)


# Completion


@pytest.fixture
def offered(codemode):
    """Return what bash is offered for a line; the last word is being typed."""

    def complete(line: str, **more: str) -> list[str]:
        words = line.split(" ")
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_CODEMODE_COMPLETE": "complete_bash"}
        return codemode(**asked, **more).out.split()

    return complete


@requirement("cli:completion:words")
def test_a_shell_completes_commands_options_and_their_words(offered) -> None:
    assert offered("codemode ru") == ["run", "runs"]
    assert offered("codemode run --timeout") == ["--timeout-ms"]
    assert offered("codemode run --language t") == ["typescript"]
    assert offered("codemode debug-payload --provider ") == list(PROVIDERS)
    assert offered("codemode debug-payload --level ") == list(LEVELS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="this machine has no bash")
@requirement("cli:completion:colons")
def test_bash_itself_completes_an_id_over_its_colons(environment: dict[str, str], tmp_path: Path) -> None:
    """Bash calls the function that its own script defines, with the words split as bash splits them."""
    command = tmp_path / "codemode"
    command.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    typed = f"codemode catalog -m {CELLS} describe client:app:ad"
    words = f"codemode catalog -m {CELLS} describe client : app : ad"
    script = (
        f'PATH={tmp_path}:$PATH; eval "$(_CODEMODE_COMPLETE=source_bash codemode)"; COMP_LINE="{typed}"; '
        f"COMP_WORDS=({words}); COMP_CWORD=9; _codemode_completion codemode; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=BOUND_S, check=False,
    )  # fmt: skip

    assert (done.stdout.split(), done.stderr) == (["adapted", "add"], "")


@requirement("cli:completion:words")
def test_a_shell_completes_run_ids_of_the_session(codemode, offered) -> None:
    run_id = result_of(codemode("run", "--json", "--session", "a", "-e", "await yield_control()"))["runId"]

    assert offered("codemode wait --session a cm_") == [run_id]
    assert offered("codemode wait cm_") == []


@requirement("cli:completion:words")
def test_a_shell_completes_tool_ids_and_servers_and_never_complains(offered, shelf, tmp_path: Path) -> None:
    assert "client:app:add" in offered(f"codemode catalog -m {CELLS} describe client:app:")
    assert offered("codemode catalog types s", **shelf) == ["shelf"]

    (tmp_path / "codemode.toml").write_text("not toml")
    assert offered("codemode catalog describe c") == []


# Help


@requirement("cli:help:examples")
@pytest.mark.parametrize(
    "command", [*ROOMS, *(f"catalog {name}" for name in ("list", "search", "describe", "types", "lint", "diff"))]
)
def test_help_ends_with_examples(codemode, command: str) -> None:
    done = codemode(*command.split(), "--help")

    assert (done.status, done.err) == (0, "")
    assert f"\n    codemode {command}" in done.out.partition("\n  Examples:")[2]


@requirement("cli:version:engine")
def test_version_names_the_engine(codemode) -> None:
    assert re.search(r"^quickjs-wasi \d+\.\d+\.\d+$", codemode("--version").out, re.MULTILINE)
