"""Pictures of terminals in the docs: real commands on a real pseudo-terminal, drawn as SVG.

`python -m tests.support.pictures` runs the commands again and rewrites the pictures that show something
else now; one in which only run ids, durations, sizes and the lengths of bars would differ stays as it
is. A picture fetches nothing, not even a font, and is light or dark as its reader wishes.
"""

import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.support.cells import ROOT, clean_environment, run_command
from tests.support.display import Display
from tests.support.person import CTRL_C, Person
from tests.support.terminal import run_in_terminal

FOLDER = ROOT / "docs" / "images"
_SHOP = "-m fixtures/manifests/shop/codemode.toml"
_COLUMNS, _ROWS = 100, 60
_WIDTH, _HEIGHT, _MARGIN = 8.4, 19, 16  # of a character, of a line, of the window's edge
_VARIES = re.compile(r"cm_[0-9a-f-]{36}|[━┄]+|(?:\d+(?:\.\d+)? (?:µs|ms|s|min|B|kB|MB)\b ?)+")
_LIGHT = (
    "#ffffff",
    "#d0d7de",
    "#1f2328",
    "#1f2328 #b3261e #1a7f37 #8a6100 #0550ae #8250df #0b7285 #6e7781 #6e7781 #ffffff",
)
_DARK = (
    "#0d1117",
    "#30363d",
    "#e6edf3",
    "#0d1117 #ff7b72 #7ee787 #e3b341 #79c0ff #d2a8ff #56d4dd #b1bac4 #6e7681 #ffffff",
)
_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15)  # of the terminal's palette, those that are used

Line = list[tuple[str, str]]  # texts, each with its style
Holds = Callable[[list[Line]], bool]


class Picture(NamedTuple):
    """A picture's name, what it shows in words, and how to come to its screen.

    `show` gets an environment and, for what does not end by itself, a test of whether the screen is complete.
    """

    name: str
    title: str
    show: Callable[[Mapping[str, str], Holds], list[Line]]

    @property
    def path(self) -> Path:
        """`docs/images/NAME.svg`."""
        return FOLDER / f"{self.name}.svg"


def _command(command: str, environment: Mapping[str, str], _: Holds) -> list[Line]:
    """Show a command that ends, and what it printed."""
    display = Display(_COLUMNS, _ROWS)
    display.feed(_typed(command))
    screen = run_in_terminal(shlex.split(command), environment, ROOT, _COLUMNS)
    display.feed(screen.text.replace("\n", "\r\n").encode())
    return _lines(display)


def _trace(cell: str, environment: Mapping[str, str], holds: Holds) -> list[Line]:
    """Show the trace of a cell that was driven to its end before."""
    run_command([*_SHOP.split(), "run", "--wait", "--json", cell], environment, ROOT)
    [run] = run_command(["runs", "--json"], environment, ROOT).result
    return _command(f"trace {run['runId']} --inputs", environment, holds)


def _repl(environment: Mapping[str, str], holds: Holds) -> list[Line]:
    """Show a REPL with two cells behind it, and the menu for the third."""
    with Person([*_SHOP.split(), "repl"], environment, ROOT, columns=_COLUMNS, rows=22) as person:
        person.display.feed(_typed(f"{_SHOP} repl"))
        person.runs(1, 'const orders = await tools.list_orders({ status: "open" })')
        person.runs(2, "orders.map(({ id, customerId, lines }) => ({ id, customerId, lines: lines.length }))")
        person.types("await tools.quote_courier({ ")
        person.sees("courier", "Weight of the parcel.")
        person.waits_until(lambda: holds(_lines(person.display)), "what the picture shows")
        shown = _lines(person.display)
        person.types(CTRL_C)
        person.sees_prompt(3)
        person.leaves()
        return shown


PICTURES = [
    Picture("run", "codemode run", partial(_command, f"{_SHOP} run fixtures/cells/shop/weigh_open_orders.js")),
    Picture("error", "codemode run", partial(_command, f"{_SHOP} run fixtures/cells/shop/bad_input.js")),
    Picture(
        "search",
        "codemode catalog search",
        partial(_command, f"{_SHOP} catalog search --explain --limit 3 'order stock'"),
    ),
    Picture("trace", "codemode trace", partial(_trace, "fixtures/cells/shop/ask_then_charge.js")),
    Picture("smoke", "codemode smoke", partial(_command, "smoke fixtures/smoke")),
    Picture("repl", "codemode repl", _repl),
]


def _typed(command: str) -> bytes:
    return f"\x1b[36;1m$\x1b[0m codemode {command}\r\n".encode()


def _lines(display: Display) -> list[Line]:
    """Return what is visible, neighbours of one style together."""
    return [
        [
            ("".join(character for character, _ in cells), style)
            for style, cells in groupby(line, key=lambda cell: cell[1])
        ]
        for line in display.cells()
    ]


def environment_of(state: Path) -> dict[str, str]:
    """Return the environment in which pictures are made: a state of its own, and colours."""
    environment = clean_environment(state) | {"PYTHON": sys.executable}
    del environment["NO_COLOR"]
    return environment


def shape(lines: list[Line]) -> list[tuple[str, list[str]]]:
    """Return each line's words, with a dot for what differs from run to run, and its colours in their order."""
    shapes = []
    for line in lines:
        words = " ".join(_VARIES.sub("· ", "".join(text for text, _ in line)).split())
        shapes.append((words, [style for style, _ in groupby(style for text, style in line if text.strip())]))
    return shapes


def drawn(picture: Picture, lines: list[Line]) -> str:
    """Return the SVG document."""
    width, height = round(_COLUMNS * _WIDTH) + 2 * _MARGIN, len(lines) * _HEIGHT + 2 * _MARGIN
    rows = "\n".join(f'<g class="line">{"".join(_row(number, line))}</g>' for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f"<title>{escape(picture.title)}</title>\n<style>\n{_style()}\n</style>\n"
        f'<rect class="window" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>\n{rows}\n</svg>\n'
    )


def _row(number: int, line: Line) -> Iterator[str]:
    """Yield the elements of a line: what is behind a text, and the text."""
    column, top = 0, _MARGIN + number * _HEIGHT
    for text, style in line:
        left, width = f"{_MARGIN + column * _WIDTH:.1f}", f"{len(text) * _WIDTH:.1f}"
        if "on" in style:
            yield f'<rect class="{style}" x="{left}" y="{top}" width="{width}" height="{_HEIGHT}"/>'
        kind = f' class="{style}"' if style else ""
        yield f'<text{kind} x="{left}" y="{top + 14}" textLength="{width}">{escape(text)}</text>'
        column += len(text)


def _style() -> str:
    fonts = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
    return "\n".join(
        [
            f"text {{ font: 14px {fonts}; white-space: pre }}",
            ".bold { font-weight: bold } .dim { opacity: .65 }",
            ".italic { font-style: italic } .underline { text-decoration: underline }",
            _colours(*_LIGHT),
            f"@media (prefers-color-scheme: dark) {{ {_colours(*_DARK)} }}",
        ]
    )


def _colours(page: str, edge: str, text: str, palette: str) -> str:
    numbered = list(zip(_NUMBERS, palette.split(), strict=True))
    front = [f"text.f{number} {{ fill: {colour} }}" for number, colour in numbered]
    behind = [f"rect.on{number} {{ fill: {colour} }}" for number, colour in numbered]
    return " ".join([f".window {{ fill: {page}; stroke: {edge} }} text {{ fill: {text} }}", *front, *behind])


def read(path: Path) -> list[Line]:
    """Return the lines of a picture that is there already."""
    name = "{http://www.w3.org/2000/svg}"
    groups = ET.parse(path).getroot().iter(f"{name}g")
    return [[(text.text or "", text.get("class", "")) for text in group.iter(f"{name}text")] for group in groups]


def main() -> None:
    """Rewrite the pictures that show something else now."""
    FOLDER.mkdir(exist_ok=True)
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as state:
            lines = picture.show(environment_of(Path(state)), lambda _: True)
        there = read(picture.path) if picture.path.exists() else []
        if shape(there) != shape(lines):
            print(f"{picture.path.relative_to(ROOT)} shows something else now")
            there = lines
        picture.path.write_text(drawn(picture, there), encoding="utf-8")


if __name__ == "__main__":
    main()
