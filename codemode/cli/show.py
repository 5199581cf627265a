"""What a command shows: one function for each value, which picks the rich or the plain form.

The rich renderables are imported where a terminal is there to see them: rich takes 80 ms.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from codemode.cli.terminal import Terminal
from codemode.core.types import Json
from codemode.render import plain, plain_catalog, plain_lint
from codemode.render.report import ErrorReport
from codemode.render.words import printable

if TYPE_CHECKING:
    from codemode.cli.checks.check import Check


def show_outputs(terminal: Terminal, result: Mapping[str, Json]) -> None:
    """Show on stdout the output items of a result in their order and, if it completed, its value.

    A value of null says nothing: most cells that only write have it.

    Contract: cli:output:streams
    """
    for item in result["output"]:
        if item["type"] == "json":
            show_value(terminal, item["value"])
        else:
            terminal.write(printable(item["text"]) if terminal.styled_out else item["text"])
    if result["status"] == "completed" and result["value"] is not None:
        show_value(terminal, result["value"])


def show_value(terminal: Terminal, value: Json, hint: str = "") -> None:
    """Show a JSON value on stdout; a `hint` says how to see all of one that is folded there."""
    if terminal.styled_out:
        from codemode.render.value import WHOLE_HINT, render_value

        terminal.print_out(render_value(value, hint or WHOLE_HINT))
    else:
        terminal.write(plain.value_text(value))


def show_status(terminal: Terminal, result: Mapping[str, Json], session: str = "default") -> None:
    """Show on stderr what became of a run of a session and how to go on."""
    if terminal.quiet:
        return
    if terminal.styled_err:
        from codemode.render.status import render_status

        terminal.print_err(render_status(result, session))
    else:
        terminal.note(plain.status_text(result, session))


def show_telemetry(terminal: Terminal, telemetry: Mapping[str, Json]) -> None:
    """Show on stderr the counts of an agent run."""
    if terminal.quiet:
        return
    if terminal.styled_err:
        from codemode.render.telemetry import render_telemetry

        terminal.print_err(render_telemetry(telemetry))
    else:
        terminal.note(plain.telemetry_text(telemetry))


def show_trajectory(terminal: Terminal, trajectory: Mapping[str, Json], *, inputs: bool, on_stdout: bool) -> None:
    """Show a trajectory: on stdout for who asked for it, on stderr beside a run's result."""
    if on_stdout:
        styled, print_rich, write = terminal.styled_out, terminal.print_out, terminal.write
    else:
        styled, print_rich, write = terminal.styled_err, terminal.print_err, terminal.note
    if terminal.quiet and not on_stdout:
        return
    if styled:
        from codemode.render.trajectory import render_trajectory

        print_rich(render_trajectory(trajectory, inputs=inputs))
    else:
        write(plain.trajectory_text(trajectory, inputs=inputs))


def show_error(terminal: Terminal, report: ErrorReport) -> None:
    """Show an error on stderr, in its one layout."""
    if terminal.styled_err:
        from codemode.render.error import render_error

        terminal.print_err(render_error(report))
    else:
        terminal.complain(plain.error_text(report))


def show_table(terminal: Terminal, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows of texts on stdout."""
    if terminal.styled_out:
        from codemode.render.table import render_table

        terminal.print_out(render_table(headings, rows))
    else:
        terminal.write(plain.table_text(headings, rows))


def show_runs(terminal: Terminal, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Show runs on stdout, each as id, state, age and what there is to say about it."""
    if terminal.styled_out:
        from codemode.render.runs import render_runs

        terminal.print_out(render_runs(rows))
    else:
        terminal.write(plain.table_text(("run", "state", "age", "about"), rows))


def show_catalog(terminal: Terminal, listing: Mapping[str, Json]) -> None:
    """Show what a cell can reach on stdout, and on stderr, where that is another place, what is wrong."""
    if terminal.styled_out:
        from codemode.render.catalog import render_catalog

        terminal.print_out(render_catalog(listing))
        return
    if listing["tools"]:
        terminal.write(plain_catalog.catalog_text(listing))
    for lines in (plain_catalog.server_lines, plain_catalog.failure_lines, plain_catalog.note_lines):
        for line in lines(listing):
            terminal.note(line)
    terminal.note(plain_catalog.summary_line(listing))


def show_tool(terminal: Terminal, tool: Mapping[str, Json]) -> None:
    """Show one tool on stdout."""
    if terminal.styled_out:
        from codemode.render.tool import render_tool

        terminal.print_out(render_tool(tool))
    else:
        terminal.write(plain_catalog.tool_text(tool))


def show_ranking(terminal: Terminal, ranking: Sequence[Mapping[str, Json]]) -> None:
    """Show the results of a search on stdout."""
    if terminal.styled_out:
        from codemode.render.tool import render_ranking

        terminal.print_out(render_ranking(ranking))
    else:
        terminal.write(plain_catalog.ranking_text(ranking))


def show_failures(terminal: Terminal, failures: Sequence[Mapping[str, Json]]) -> None:
    """Show on stderr which servers are missing in what is shown on stdout."""
    for line in plain_catalog.failure_lines({"failures": failures}):
        terminal.note(line)


def show_declarations(terminal: Terminal, files: Sequence[Mapping[str, Json]]) -> None:
    """Show TypeScript declarations on stdout, each file under its path where there are several."""
    text = "\n".join(f"// {file['path']}\n{file['text']}" if len(files) > 1 else file["text"] for file in files)
    if terminal.styled_out:
        from codemode.render.tool import render_declarations

        terminal.print_out(render_declarations(printable(text)))
    else:
        terminal.write(text.rstrip("\n"))


def show_lint(terminal: Terminal, report: Mapping[str, Json]) -> None:
    """Show on stdout what providers have against the tools of a catalog; a verbose terminal shows each warning."""
    if terminal.styled_out:
        from codemode.render.lint import render_lint

        terminal.print_out(render_lint(report, every=terminal.verbose))
    else:
        terminal.write(plain_lint.lint_text(report, every=terminal.verbose))


def show_diff(terminal: Terminal, difference: Mapping[str, Json], listing: Mapping[str, Json]) -> None:
    """Show on stdout how a catalog differs from an older one, and on stderr which servers are missing in it."""
    show_failures(terminal, listing["failures"])
    if terminal.styled_out:
        from codemode.render.lint import render_diff

        terminal.print_out(render_diff(difference))
        return
    for _, line in plain_lint.diff_lines(difference):
        terminal.write(line)
    terminal.note(plain_lint.diff_summary(difference))


def show_check(terminal: Terminal, check: "Check") -> None:
    """Show one check of `doctor` on stdout, with what to do under it."""
    if terminal.styled_out:
        from codemode.render.check import render_check

        terminal.print_out(render_check(*check))
    else:
        terminal.write(plain.check_text(*check))
