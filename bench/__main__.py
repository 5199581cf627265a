"""Print the table of figures: `python -m bench [--json] [--quick] [--only PART] [--write FILE]`.

Medians, each with its number of samples and, where there is one, beside its reference taken in
the same minute. Nothing is asserted: a figure is a fact about this machine at this moment.
"""

import argparse
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import mcp_peers, peers
from bench.measure import Figure

PARTS = ("engine", "session", "processes", "runs", "search", "repl", "mcp", "peers")
_YARDSTICK = """\
What is wanted in milliseconds and microseconds was set on a machine on which `quickjs-rs` takes
326 µs for an awaited call and 1.07 ms for a context with an evaluation in it; the rows beside it
below say what this machine takes. Where this one is slower, read those ratios."""
COLUMNS = ("figure", "median", "p90", "n", "wanted", "beside", "its median", "ratio")


def main(arguments: list[str]) -> int:
    """Take the figures and print them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Take and print the project's figures.")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--quick", action="store_true", help="a fifth of the samples")
    parser.add_argument("--only", choices=PARTS, action="append", help="take only this part; may be repeated")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as a page, too")
    parser.add_argument("--install-peers", action="store_true", help="install the programs that we stand beside")
    wanted = parser.parse_args(arguments)
    if wanted.install_peers:
        for failure in (peers.install() | mcp_peers.install()).values():
            print(failure, file=sys.stderr)
    rows = []
    for figure in _taken(wanted.only or PARTS, 0.2 if wanted.quick else 1.0):
        rows.append(figure)
        print(f"taken: {figure.name}", file=sys.stderr, flush=True)
    if wanted.write:
        wanted.write.write_text(_page(rows), encoding="utf-8")
    print(_document(rows) if wanted.json else _table(rows))
    return 0


def _taken(parts: tuple[str, ...] | list[str], scale: float) -> Iterator[Figure]:
    for part in parts:
        yield from importlib.import_module(f"bench.bench_{part}").figures(scale)


def _machine() -> dict[str, object]:
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _document(rows: list[Figure]) -> str:
    figures = [
        {
            "name": row.name,
            "unit": row.unit,
            "wanted": row.goal,
            "median": row.samples and round(row.samples.median, 4),
            "p90": row.samples and round(row.samples.p90, 4),
            "n": row.samples and len(row.samples.values),
            "beside": row.beside or None,
            "reference": row.reference and round(row.reference.median, 4),
            "ratio": row.ratio and round(row.ratio, 3),
            "skipped": row.skipped or None,
        }
        for row in rows
    ]
    return json.dumps({"machine": _machine(), "figures": figures}, indent=2, ensure_ascii=False)


def _table(rows: list[Figure]) -> str:
    cells = [list(COLUMNS), *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    machine = ", ".join(f"{key} {value}" for key, value in _machine().items())
    return "\n".join([machine, "", lines[0], "-" * len(lines[0]), *lines[1:]])


def _page(rows: list[Figure]) -> str:
    """Return the table as a page of the docs."""
    machine = ", ".join(f"{key} {value}" for key, value in _machine().items())
    lines = [" | ".join(row) for row in (COLUMNS, ["---"] * len(COLUMNS), *(_cells(row) for row in rows))]
    table = "\n".join(f"| {line} |" for line in lines)
    written = f"Written by `python -m bench --write FILE`. Medians, and ratios of what was taken in turn; {machine}."
    return f"# Benchmarks\n\n{written}\n\n{_YARDSTICK}\n\n{table}\n"


def _cells(row: Figure) -> list[str]:
    if row.samples is None:
        return [row.name, "-", "", "", row.goal, f"skipped: {row.skipped}", "", ""]
    median, p90 = _number(row.samples.median), _number(row.samples.p90)
    shown = [row.name, f"{median} {row.unit}", p90, str(len(row.samples.values)), row.goal]
    if row.reference is None:
        return [*shown, row.skipped, "", ""]
    return [*shown, row.beside, f"{_number(row.reference.median)} {row.unit}", f"{row.ratio:.2f} x"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
