"""Smoke checks from the files to the report: read them all, run them, show, write, end."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from codemode.cli.hangup import run_until_hangup
from codemode.cli.progress import Progress
from codemode.cli.smoke import SmokeOptions
from codemode.cli.status import ExitStatus
from codemode.cli.terminal import Terminal
from codemode.core.errors import InvalidInput
from codemode.core.types import Json
from codemode.mcp.shared import Onlooker
from codemode.render import plain_smoke
from codemode.render.words import counted, printable
from codemode.smoke.cases import Case
from codemode.smoke.finding import gather_cases
from codemode.smoke.verdicts import Verdict, judge
from codemode.supervisor.spawn import Child, spawn_first

_MAX_JOBS = 4  # more cells at once than cores only take turns


def check_cells(terminal: Terminal, options: SmokeOptions) -> ExitStatus:
    """Run the cases that the options name; say whether all hold.

    Contract: smoke:status:exit, smoke:json:one-document, smoke:junit:before
    """
    terminal.json = options.json
    cases = _gather(terminal, options)
    if options.junit:
        _try_junit(options.junit)
    first = spawn_first()  # the engine starts while all the rest is loaded
    began = time.monotonic()
    warnings: list[str] = []
    with Progress(terminal, f"running {counted(len(cases), 'case')}") as progress:
        onlooker = Onlooker(look=progress.look, warn=warnings.append)
        verdicts = run_until_hangup(_run(cases, options, first, onlooker))
    took_ms = (time.monotonic() - began) * 1000
    for warning in dict.fromkeys(warnings):
        terminal.note(f"codemode: {printable(warning)}")
    updated: list[str] = []
    if options.update:
        from codemode.smoke.rewriting import update_files  # only who updates needs it

        updated = update_files(verdicts)
        verdicts = _judge_again(_gather(terminal, options), verdicts)
    if options.junit:
        _write_junit(options.junit, verdicts, took_ms)
    report = _build_report(verdicts, updated, took_ms)
    _show(terminal, report)
    return ExitStatus.OK if report["ok"] else ExitStatus.FAILED


def _gather(terminal: Terminal, options: SmokeOptions) -> list[Case]:
    named = options.manifest or terminal.manifest
    if options.replay and named:
        raise InvalidInput("--replay and a manifest were both given; a recording brings its own catalog")
    if options.replay:
        from codemode.recording.file import check_recording  # few runs are replayed

        return gather_cases(options.paths, check_recording(options.replay), options.wanted)
    return gather_cases(options.paths, Path(named) if named else None, options.wanted)


async def _run(cases: Sequence[Case], options: SmokeOptions, first: Child | None, onlooker: Onlooker) -> list[Verdict]:
    from codemode.smoke.running import Plan, run_cases  # while the engine starts
    from codemode.supervisor.pool import WorkerPool

    jobs = options.jobs or max(2, min(os.cpu_count() or 2, _MAX_JOBS))
    pool = WorkerPool(jobs, first)
    try:
        return await run_cases(cases, pool, Plan(jobs, options.bail, options.refresh), onlooker=onlooker)
    finally:
        await pool.close()


def _judge_again(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Judge what was observed by the expectations as they are written now."""
    return [
        judge(case, verdict.observed) if verdict.observed else verdict
        for case, verdict in zip(cases, verdicts, strict=True)
    ]


def _build_report(verdicts: Sequence[Verdict], updated: Sequence[str], took_ms: float) -> dict[str, Json]:
    """Return `{"ok", "passed", "failed", "skipped", "durationMs", "updated", "cases"}`."""
    states = [verdict.state for verdict in verdicts]
    return {
        "ok": states.count("passed") == len(states),
        **{state: states.count(state) for state in ("passed", "failed", "skipped")},
        "durationMs": round(took_ms, 1),
        "updated": list(updated),
        "cases": [verdict.to_json() for verdict in verdicts],
    }


def _try_junit(file: Path) -> None:
    """Find out before anything runs whether the file can be written; what is there stays until there are verdicts."""
    with _told_of(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.touch()
            file.unlink()
        elif file.is_file() or file.is_dir():  # a pipe takes one document only
            file.open("a").close()


def _write_junit(file: Path, verdicts: Sequence[Verdict], took_ms: float) -> None:
    from codemode.smoke.junit import build_junit  # XML, for who asks for it

    with _told_of(file):
        file.write_text(build_junit(verdicts, took_ms), encoding="utf-8")


@contextmanager
def _told_of(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f'the JUnit file "{file}" cannot be written: {error.strerror}') from error


def _show(terminal: Terminal, report: Mapping[str, Json]) -> None:
    if terminal.json:
        terminal.write_json(report)
        return
    for case in report["cases"]:
        if case["state"] == "failed" or (terminal.verbose and not terminal.quiet):
            _show_verdict(terminal, case)
    for name in () if terminal.quiet else report["updated"]:
        terminal.write(f"updated {printable(name)}")
    if terminal.styled_out:
        from codemode.render.smoke import render_summary

        terminal.print_out(render_summary(report))
    else:
        terminal.write(plain_smoke.summary_text(report))


def _show_verdict(terminal: Terminal, case: Mapping[str, Json]) -> None:
    if terminal.styled_out:
        from codemode.render.smoke import render_verdict

        terminal.print_out(render_verdict(case))
    else:
        terminal.write(plain_smoke.verdict_text(case))
