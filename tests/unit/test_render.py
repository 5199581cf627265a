"""Values as people see them: rich on a terminal of a fixed width, plain anywhere else."""

import io
import json

import pytest
from rich.console import Console

from codemode.core.errors import ErrorCode, Internal, InvalidConfig, RuntimeUnavailable
from codemode.core.types import Json
from codemode.render import plain, plain_catalog
from codemode.render.catalog import render_catalog
from codemode.render.error import render_error
from codemode.render.report import report_of_error, report_of_result, report_of_usage
from codemode.render.runs import render_runs
from codemode.render.status import render_status
from codemode.render.table import render_table
from codemode.render.telemetry import render_telemetry
from codemode.render.tool import render_declarations, render_ranking, render_tool
from codemode.render.trajectory import render_trajectory
from codemode.render.value import render_value
from codemode.render.words import age, counted, duration, one_line, printable, size
from codemode.telemetry import fold
from tests.requirements import requirement
from tests.support.golden import assert_golden

HOSTILE = "\x1b[31mred\x1b[0m \x07 \x9b2J \u202eevil"


def drawn(renderable: object, width: int = 80, *, color: bool = False) -> str:
    """Print to a terminal of this width, as the command line does, and return what it shows."""
    terminal = io.StringIO()
    console = Console(
        file=terminal, width=width, force_terminal=color, highlight=False, markup=False, emoji=False,
        color_system="standard" if color else None,
    )  # fmt: skip
    console.print(renderable, soft_wrap=True)
    return "\n".join(line.rstrip() for line in terminal.getvalue().splitlines())


# Words


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0.0 ms"), (0.44, "0.4 ms"), (84.4, "84 ms"), (1234, "1.2 s"), (185_000, "3 min 5 s"),
     (7_800_000, "2 h 10 min"), (273_600_000, "3 d 4 h"), (-3_600_000, "?")],
)  # fmt: skip
def test_durations_take_the_unit_that_reads_best(ms: float, text: str) -> None:
    assert duration(ms) == text


def test_sizes_and_counts_read_as_words() -> None:
    assert (age(12_900), age(500_000), age(7_300_000), age(3e8)) == ("12 s", "8 min", "2 h", "3 d")
    assert (size(812), size(20_123), size(10_200_000)) == ("812 B", "20.1 kB", "10.2 MB")
    assert (counted(1, "call"), counted(12_000, "call")) == ("1 call", "12,000 calls")


@requirement("cli:output:harmless")
def test_control_characters_are_spelled_out() -> None:
    assert printable(HOSTILE) == "\\u001b[31mred\\u001b[0m \\u0007 \\u009b2J \\u202eevil"
    assert printable("a\r\nb\tc") == "a\nb\tc"
    assert one_line("a\n b\t c", 4) == "a b…"


# Values


@pytest.mark.parametrize(
    ("value", "text"),
    [(2, "2"), ("hi", '"hi"'), (None, "null"), (True, "true"), ([], "[]"), ({}, "{}"), ([1, [2]], "[1, [2]]"),
     ({"a": {"b": "ü"}}, '{"a": {"b": "ü"}}'), ("two\nlines", "two\nlines")],
)  # fmt: skip
def test_a_short_value_takes_one_line(value: Json, text: str) -> None:
    assert drawn(render_value(value)) == text


def test_a_container_that_is_too_wide_is_broken_member_by_member() -> None:
    value = {"name": "x" * 60, "tags": ["a", "b"], "deep": {"k": "v"}}

    assert drawn(render_value(value), 40) == (
        '{\n  "name": "' + "x" * 60 + '",\n  "tags": ["a", "b"],\n  "deep": {"k": "v"}\n}'
    )
    assert json.loads(drawn(render_value(value), 40)) == value


def test_an_array_of_plain_values_fills_its_lines() -> None:
    shown = drawn(render_value(list(range(100, 160))), 40)

    assert shown.splitlines()[1] == "  100, 101, 102, 103, 104, 105, 106,"
    assert json.loads(shown) == list(range(100, 160))


@requirement("cli:values:tables")
def test_an_array_of_like_objects_is_a_table() -> None:
    rows = [{"id": 1, "name": "Ada", "paid": True}, {"id": 22, "name": "Bo", "note": "late"}]

    assert_golden("render/table.txt", drawn(render_value(rows)) + "\n")


@requirement("cli:values:tables")
@pytest.mark.parametrize(
    "value",
    [
        [{"a": 1}],
        [{"a": 1}, {"b": 1}, {"c": 1}],
        [{"a": 1}, 2],
        [{"a": {"deep": "x" * 80}}, {"a": 1}],
        [{f"column{number}": 1 for number in range(9)}] * 2,
        [{"text": "two\nlines"}, {"text": "x"}],
        [{}, {}],
    ],
)
def test_other_arrays_stay_json(value: Json) -> None:
    assert json.loads(drawn(render_value(value), 200)) == value


@requirement("cli:values:tables")
def test_a_table_that_does_not_fit_is_shown_as_json() -> None:
    rows = [{f"a_long_column_{number}": number for number in range(8)}] * 2

    assert drawn(render_value(rows), 30).startswith("[")


@requirement("cli:values:folded")
def test_long_arrays_objects_and_texts_are_folded_with_a_count() -> None:
    long = {"rows": list(range(0, 9000, 3)), "text": "y" * 9000, "more": {str(number): number for number in range(99)}}
    shown = drawn(render_value(long))

    assert "… 2,980 more items" in shown
    assert "… 8,000 more characters" in shown
    assert "… 79 more keys" in shown
    assert shown.splitlines()[-1] == "folded; --json prints all of it"
    assert len(shown.splitlines()) < 80


@requirement("cli:values:folded")
def test_a_long_table_is_folded_with_a_count() -> None:
    shown = drawn(render_value([{"id": number, "ok": True} for number in range(2000)]))

    assert shown.splitlines()[-1] == "… 1,980 more of 2,000 rows; folded; --json prints all of it"


@requirement("cli:output:harmless")
@pytest.mark.parametrize("value", [HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}, [{HOSTILE: HOSTILE}] * 2, HOSTILE + "\n"])
def test_a_value_cannot_steer_the_terminal(value: Json) -> None:
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(drawn(render_value(value)))


@requirement("cli:output:plain")
def test_a_piped_value_is_whole_json() -> None:
    value = [{"id": number, "text": "x" * 500} for number in range(500)]

    assert json.loads(plain.value_text(value)) == value


# Errors

CELL = "const a = 1;\nconst b = 2;\nthrow new TypeError('boom');\nreturn a;"


def failed(error: str, **fields: Json) -> dict[str, Json]:
    return {"status": "failed", "error": error, "phase": "guest", "dispatched": False, "output": []} | fields


@requirement("cli:errors:layout")
def test_the_error_of_a_cell_shows_the_line_and_a_caret() -> None:
    report = report_of_result(failed("TypeError: boom (cell.js:3:7)"), CELL, "cells/sum.ts")

    assert plain.error_text(report) == (
        "error: TypeError: boom\n"
        "  at cells/sum.ts:3:7\n"
        "  1 | const a = 1;\n"
        "  2 | const b = 2;\n"
        "  3 | throw new TypeError('boom');\n"
        "    |       ^"
    )
    assert drawn(render_error(report)).replace("│", "|") == plain.error_text(report)


@requirement("cli:errors:layout")
def test_a_limit_says_what_to_do() -> None:
    report = report_of_result(failed("the cell ran for 500 ms", code="timeout"), CELL)

    assert plain.error_text(report) == (
        "error [timeout]: the cell ran for 500 ms\n  More time: --timeout-ms, 60000 at most."
    )


@requirement("cli:errors:layout")
@pytest.mark.parametrize(
    ("error", "caret"),
    [
        ("SyntaxError: x (cell.js:1:1)", 0),
        ("SyntaxError: x (cell.js:2)", None),
        ("SyntaxError: x (cell.js:2:99)", None),
        ("Error: not at cell.js:1:1 but (cell.js:3:2)", 1),
    ],
)
def test_the_last_position_counts_and_a_caret_beyond_the_line_is_left_out(error: str, caret: int | None) -> None:
    assert report_of_result(failed(error), CELL).source[-1].caret == caret


def test_a_position_outside_the_source_shows_no_source() -> None:
    assert report_of_result(failed("Error: x (cell.js:99:1)"), CELL).source == ()
    assert report_of_result(failed("Error: x (cell.js:1:1)"), "").source == ()


def test_a_minified_line_is_cut_and_tabs_do_not_move_the_caret() -> None:
    report = report_of_result(failed("Error: x (cell.js:1:3)"), "\t\tf();" + "x" * 5000)

    assert plain.error_text(report).splitlines()[-2].endswith("…")
    assert plain.error_text(report).splitlines()[-1] == "    |   ^"


@requirement("cli:errors:layout")
def test_a_place_far_into_a_line_is_shown_with_what_is_around_it() -> None:
    """Of `run -e` and of minified cells: 160 characters from the beginning of the line do not hold it."""
    line = "a".join(map(str, range(100)))
    report = report_of_result(failed(f"Error: x (cell.js:1:{line.index('88a') + 1})"), line)
    shown = report.source[-1]

    assert shown.caret == 70
    assert shown.text.startswith("…")
    assert shown.text[shown.caret :] == line[line.index("88a") :]


def test_errors_of_ours_and_wrong_command_lines_have_the_same_layout() -> None:
    assert plain.error_text(report_of_error(InvalidConfig("tools in x.toml: bad"))) == (
        "error [invalid_config]: tools in x.toml: bad"
    )
    assert "codemode doctor" in plain.error_text(report_of_error(RuntimeUnavailable("no engine")))
    assert "CODEMODE_DEBUG=1" in plain.error_text(report_of_error(Internal("KeyError: 'x'")))
    assert plain.error_text(report_of_usage("No such option: --x", "codemode run")) == (
        "error: No such option: --x\n  codemode run --help shows what it takes, with examples."
    )


@requirement("cli:output:harmless")
def test_an_error_cannot_steer_the_terminal() -> None:
    report = report_of_result(failed(f"Error: {HOSTILE} (cell.js:1:1)"), HOSTILE, HOSTILE)

    assert "\x1b" not in plain.error_text(report)
    assert "\x1b" not in drawn(render_error(report))


# Status and telemetry

TELEMETRY = fold(()) | {
    "catalogSize": 18,
    "sources": {"openclaw": 0, "plugin": 3, "mcp": 8, "client": 7},
    "execCount": 1,
    "waitCount": 1,
    "callCount": 3,
    "nestedToolIds": ["plugin:shop:list_orders"],
    "snapshots": {"taken": 1, "restored": 1, "expired": 0, "discarded": 0, "lastBytes": 20123},
    "limitFailures": {"timeout": 1, "memory": 0, "snapshot": 0, "output": 0},
    "durationMs": 1234.5,
    "guestMs": 1.3,
}
RUN = "cm_0c1f8a34-1111-4222-8333-123456789abc"


def waiting(*calls: dict[str, Json], reason: str = "pending_tools") -> dict[str, Json]:
    pending: Json = list(calls)
    return {
        "status": "waiting", "runId": RUN, "reason": reason, "pendingToolCalls": pending, "output": [],
        "telemetry": TELEMETRY,
    }  # fmt: skip


RUNNING = {"id": "2", "method": "call", "toolId": "plugin:shop:quote", "state": "running"}
ASKED = {"id": "13", "method": "call", "toolId": "plugin:billing:refund", "state": "awaiting_approval"}
TIMER = {"id": "3", "method": "timer", "state": "running"}


def test_a_completed_run_says_how_long_and_how_many_calls() -> None:
    result = {"status": "completed", "value": 1, "output": [], "telemetry": TELEMETRY}

    assert plain.status_text(result) == "completed in 1.2 s, 3 calls"
    assert drawn(render_status(result)) == "✓ completed in 1.2 s, 3 calls"


def test_a_waiting_run_lists_its_open_calls_and_the_next_command() -> None:
    assert plain.status_text(waiting(RUNNING, TIMER)) == (
        f"waiting: 2 open calls, 1.2 s so far\n"
        f"  2  call  plugin:shop:quote  running\n"
        f"  3  timer  running\n"
        f"next: codemode wait {RUN}"
    )
    assert_golden("render/waiting.txt", drawn(render_status(waiting(RUNNING, ASKED, TIMER))) + "\n")


def test_an_open_approval_says_how_to_decide_it() -> None:
    shown = plain.status_text(waiting(RUNNING, ASKED)).splitlines()[-2:]

    assert shown == [f"next: codemode wait {RUN} --approve 13", "      or --deny 13"]
    assert drawn(render_status(waiting(RUNNING, ASKED))).splitlines()[-2:] == ["  " + line for line in shown]


def test_the_next_command_names_the_session_and_fits_eighty_columns() -> None:
    run_id = "cm_" + "0c1f8a34-7b1e-4d8f-9a53-6f2d1c0b7e11"
    result = waiting(RUNNING, ASKED) | {"runId": run_id}

    assert all(len(line) <= 80 for line in drawn(render_status(result)).splitlines())
    assert plain.next_steps(waiting(), "a b") == [(f"codemode wait {RUN} --session 'a b'", "")]


def test_a_yield_is_called_one() -> None:
    assert plain.status_line(waiting(reason="yield")) == "waiting: it yielded, 1.2 s so far"


@requirement("cli:errors:layout")
def test_the_place_of_an_error_has_a_line_of_its_own_and_no_other() -> None:
    failed = {"status": "failed", "error": "no `import` here (cell.js:1:3); use tools", "code": "module_access_denied"}
    report = report_of_result(failed, "a\n", "x.js")

    assert (report.what, report.place) == ("no `import` here; use tools", "x.js:1:3")


def test_the_telemetry_panel_leaves_out_what_never_happened() -> None:
    assert_golden("render/telemetry.txt", drawn(render_telemetry(TELEMETRY)) + "\n")
    assert "snapshots" not in drawn(render_telemetry(fold(())))
    assert plain.telemetry_text(fold(())) == ("catalog   0 tools\ntime      0.0 ms in the cell of 0.0 ms")


def test_a_table_of_texts_is_padded_in_a_pipe_and_headed_on_a_terminal() -> None:
    rows = [("cm_1", "waiting"), ("cm_22", "failed")]

    assert plain.table_text(("run", "state"), rows) == "RUN    STATE\ncm_1   waiting\ncm_22  failed"
    assert "cm_22  failed" in drawn(render_table(("run", "state"), rows)).replace("   ", "  ")


@requirement("cli:runs:list")
def test_each_run_takes_one_line_and_older_ones_are_folded() -> None:
    rows = [(f"{RUN[:-2]}{number:02}", "failed" if number else "waiting", "8 min", "x" * 90) for number in range(42)]
    lines = drawn(render_runs(rows)).splitlines()

    assert lines[0] == f"◌ {RUN[:-2]}00  waiting    8 min {'x' * 19}…"
    assert len(lines) == 41
    assert lines[-1] == "… 2 older runs; --json lists all"


# Catalog


def tool(name: str, source: str = "plugin", owner: str = "shop", **fields: Json) -> dict[str, Json]:
    return {
        "id": f"{source}:{owner}:{name}", "name": name, "description": f"Does {name}, which is " + "long " * 30,
        "source": source, "sourceName": owner, "call": f"tools.{name}(input)", "approval": "never", "parameters": {},
    } | fields  # fmt: skip


LISTING: dict[str, Json] = {
    "manifest": "/shop/codemode.toml",
    "size": 3,
    "sources": {"openclaw": 0, "plugin": 2, "mcp": 1, "client": 0},
    "tools": [
        tool("get-sum", "mcp", "everything", origin="/shop/.vscode/mcp.json"),
        tool("list_orders"),
        tool("refund"),
    ],
    "namespaces": [{"name": "Shop", "plugin": "shop", "description": "The shop, " + "long " * 30, "tools": []}],
    "notes": [{"toolId": "plugin:shop:then", "kind": "reserved", "text": "tools.then is taken"}],
    "failures": [
        {
            "server": "gone",
            "kind": "exited",
            "message": "It ended with 3.",
            "stderr": "no\nsuch file",
            "origin": "/etc/mcp.json",
        }
    ],
    "warnings": ["server x printed a banner"],
    "ages": {"everything": 185.0, "empty": 2.0},
}


@requirement("cli:catalog:list")
def test_the_catalog_is_grouped_by_owner_and_says_what_is_wrong() -> None:
    shown = drawn(render_catalog(LISTING))

    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith(("✗", "!")))
    assert_golden("render/catalog.txt", shown + "\n")


@requirement("cli:catalog:list", "cli:output:plain")
def test_the_piped_catalog_begins_each_line_with_the_id() -> None:
    lines = plain_catalog.catalog_text(LISTING).splitlines()

    assert [line.split()[0] for line in lines] == [
        "ID", "mcp:everything:get-sum", "plugin:shop:list_orders", "plugin:shop:refund",
        "namespaces.Shop",
    ]  # fmt: skip


@requirement("mcp:config:provenance", "mcp:cache:refresh")
def test_a_piped_listing_says_beside_it_where_each_server_is_defined_and_how_old_its_list_is() -> None:
    assert list(plain_catalog.server_lines(LISTING)) == [
        "MCP server empty: 0 tools, listed 2 s ago",
        "MCP server everything: 1 tool, listed 3 min ago, from .vscode/mcp.json",
    ]
    assert list(plain_catalog.failure_lines(LISTING)) == [
        "MCP server gone [exited], from /etc/mcp.json: It ended with 3. Its stderr ends with: no such file"
    ]


SCHEMA: Json = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "status": {"enum": ["open", "paid"], "default": "open", "description": "Only these."},
        "id": {"type": "string", "description": "Order id."},
        "lines": {"type": "array", "items": {"type": ["integer", "null"]}},
        "address": {"type": "object", "properties": {"street": {}, "city": {}}},
        "any": True,
        "either": {"anyOf": [{"type": "string"}, {"const": 7}, {"type": "array", "items": {"type": "object"}}]},
        "odd": {"type": 7},
    },
}


@requirement("cli:catalog:describe")
def test_a_tool_is_described_with_its_input_required_ones_first() -> None:
    described = tool(
        "lookup",
        approval="ask",
        origin="tools.lookup in /shop/codemode.toml",
        parameters=SCHEMA,
        description="One order.",
    )

    assert_golden("render/tool.txt", drawn(render_tool(described)) + "\n")
    assert_golden("render/tool.plain.txt", plain_catalog.tool_text(described) + "\n")


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {}, "required": 7}, {"type": "object"}])
def test_a_tool_without_input_has_no_table(schema: Json) -> None:
    assert "INPUT" not in plain_catalog.tool_text(tool("ping", parameters=schema))


@requirement("cli:catalog:search")
def test_a_ranking_gives_reasons_under_each_result() -> None:
    reason = {"term": "orders", "found": "order", "how": "stem", "points": 1.5}
    entry = tool("list_orders", score=2.0, coverage=0.5, reasons=[reason])

    assert plain_catalog.ranking_text([entry]).splitlines()[1:] == [
        "    score 2.00, covers 50% of the query", "    orders has the stem order: 1.50",
    ]  # fmt: skip
    assert drawn(render_ranking([entry])).splitlines()[1:] == plain_catalog.ranking_text([entry]).splitlines()[1:]
    assert all(len(line) <= 80 for line in drawn(render_ranking([entry, tool("x")])).splitlines())


@requirement("cli:catalog:types")
def test_declarations_are_highlighted_and_whole() -> None:
    told = "  /** Finds a book by its author, its title, or a few words that somebody remembers of it. */\n"
    text = f"declare namespace MCP.shelf {{\n{told}  function find(input: {{ a: string }}): Promise<unknown>;\n}}"

    assert drawn(render_declarations(text), 40).strip() == text
    assert "\x1b[" in drawn(render_declarations(text), color=True)


# Trajectory


def call(id_: int, tool: str, start: float | None, end: float | None, **fields: Json) -> dict[str, Json]:
    return {
        "id": id_, "method": "call", "toolId": tool, "state": "ok", "startMs": start, "endMs": end,
        "input": {"id": id_}, "resultBytes": 1200, "error": None, "deliverer": "exec", "updates": 0, "reason": None,
    } | fields  # fmt: skip


TRAJECTORY: Json = {
    "version": 1,
    "runs": [
        {
            "runId": RUN, "agentRunId": "ar", "language": "typescript", "source": "", "state": "completed",
            "code": None, "error": None, "startMs": 1000.0, "endMs": 5400.0, "durationMs": 700.0, "guestMs": 2.0,
            "calls": [
                call(1, "plugin:shop:list_orders", 1010, 1100),
                call(2, "plugin:shop:list_customers_of_the_whole_country", 1010, 1200),
                call(3, "plugin:shop:courier_quote", 1210, 4300, deliverer="w-1", updates=2),
                call(4, "mcp:everything:get-sum", 4400, 4600, state="error", error=f"Error: {HOSTILE}", resultBytes=0),
                call(5, "plugin:billing:refund", None, None, state="awaiting_approval", resultBytes=0, deliverer=None),
                call(6, None, 4610, 4620, method="search"),
            ],
            "waits": [{"id": "w-1", "startMs": 4000.0, "endMs": 5400.0}],
            "suspended": [{"startMs": 1500.0, "bytes": 20123, "end": "restored", "endMs": 4000.0}],
        }
    ],
}  # fmt: skip


@requirement("cli:trace:tree")
@pytest.mark.parametrize("width", [80, 160])
def test_a_trajectory_is_drawn_along_one_time_axis(width: int) -> None:
    shown = drawn(render_trajectory(TRAJECTORY, inputs=width == 160), width)

    assert all(len(line) <= width for line in shown.splitlines())
    assert_golden(f"render/trajectory.{width}.txt", shown + "\n")


@requirement("cli:trace:tree", "cli:output:plain")
def test_a_piped_trajectory_has_a_line_for_each_thing_that_happened() -> None:
    assert plain.trajectory_text(TRAJECTORY).splitlines() == [
        f"{RUN}  typescript, completed, 700 ms",
        "  plugin:shop:list_orders #1, ok, 90 ms, 1.2 kB",
        "  plugin:shop:list_customers_of_the_whole_country #2, ok, 190 ms, 1.2 kB",
        "  plugin:shop:courier_quote #3, ok, 3.1 s, 1.2 kB, by wait 1, 2 updates",
        "  suspended, restored, 2.5 s, 20.1 kB",
        "  wait 1, 1.4 s",
        "  mcp:everything:get-sum #4, error, 200 ms",
        f"    Error: {printable(HOSTILE)}",
        "  search #6, ok, 10 ms, 1.2 kB",
        "  plugin:billing:refund #5, awaiting approval",
        '    {"id": 5}',
    ]


def test_a_run_that_only_began_has_a_tree_too() -> None:
    run = TRAJECTORY["runs"][0] | {
        "state": "running", "language": "", "startMs": None, "endMs": None, "calls": [], "waits": [], "suspended": [],
    }  # fmt: skip

    assert drawn(render_trajectory({"runs": [run]})) == f"◌ {RUN}  cell, running, 700 ms"


@requirement("cli:errors:layout")
@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_fits_the_layout(code: ErrorCode) -> None:
    text = plain.error_text(report_of_result(failed("it went wrong", code=code.value)))

    assert text.startswith(f"error [{code.value}]: it went wrong")
