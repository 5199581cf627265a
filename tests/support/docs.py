"""Documentation as a test: find its examples, run them, and regenerate its tables.

Examples are fenced blocks. What a fence's language means:

    console   `$ command` lines, each followed by what it prints; run from the repository root.
              In the expected text `…` stands for anything within a line and, alone, for any lines;
              a duration or a size for any other, a run id for the run that the page met under it
    js, ts    a cell with a header as in `fixtures/cells`; it must end as the header says
              after `<!-- numbers vary -->` every number stands for any other
    toml      a manifest that loads
    json5     what another client has in its configuration, from which servers can be imported
    python    a program that exits with 0
    sh        `make` targets, which must exist; anything else is not run
    text      pictures; not run

`python -m tests.support.docs` rewrites what stands between `<!-- generated: NAME -->` and
`<!-- end -->` in every page from the tables and the help in the code.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codemode.cli.overview import ROOMS
from codemode.cli.status import STATUS_OF_CODE
from codemode.core import errors, limits
from codemode.repl import commands as repl_commands
from codemode.runs import TRANSITIONS
from tests.support.cells import BOUND_S, COMMAND, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"console", "js", "ts", "toml", "json5", "python", "sh", "text"}
COMMANDS = tuple(ROOMS)
_FENCE = re.compile(r"^(<!-- numbers vary -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_RUN_ID = re.compile(r"cm_[0-9a-f]{8}-[0-9a-f-]{27}")
_NUMBER = re.compile(r" *\d[\d,.]*")
_MEASURE = re.compile(r"\d+(?:\.\d+)? ?(?:µs|ms|s|min|B|kB|MB)\b")


class Example(NamedTuple):
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    numbers_vary: bool = False

    @property
    def id(self) -> str:
        """`README.md:41:console`."""
        return f"{self.page.name}:{self.line}:{self.language}"


class Step(NamedTuple):
    """One command of a console block and what it prints."""

    command: str
    expected: str
    numbers_vary: bool = False


def examples(*languages: str) -> list[Example]:
    """Return the blocks of all pages in these languages, in reading order; without a language, all of them."""
    return [each for page in PAGES for each in _blocks(page) if not languages or each.language in languages]


def _blocks(page: Path) -> Iterator[Example]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        yield Example(page, line, match[2], match[3], match[1] is not None)


def steps(example: Example) -> list[Step]:
    """Split a console block into its commands; a command goes on where a line ends with a backslash."""
    found: list[list[str]] = []
    for line in example.text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:]])
        elif len(found[-1]) == 1 and found[-1][0].endswith("\\"):
            found[-1][0] = found[-1][0][:-1] + line.strip()
        else:
            found[-1].append(line)
    return [Step(lines[0], "\n".join(lines[1:]).rstrip(), example.numbers_vary) for lines in found]


class Console:
    """Runs the commands of one page in order, in one state folder, and compares what they print."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        """Put `codemode` on the PATH as the command of this checkout."""
        shim = folder / "codemode"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m codemode "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
        path = f"{folder}{os.pathsep}{environment['PATH']}"
        self._folder = folder
        self._environment = {**environment, "PATH": path, "PYTHON": sys.executable, "COLUMNS": "100"}
        self._runs: dict[str, str] = {}

    def run(self, step: Step) -> tuple[str, str] | None:
        """Run one command; return (expected, printed) where they differ."""
        step = step._replace(command=self._here(step.command), expected=self._here(step.expected))
        command = _RUN_ID.sub(lambda match: self._runs.get(match[0], match[0]), step.command)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BOUND_S,
            check=False,
        )
        printed = done.stdout.decode(errors="replace").rstrip()
        self._learn(step.expected, printed)
        return None if self._pattern(step).fullmatch(printed) else (step.expected, printed)

    def _here(self, text: str) -> str:
        """Return a text with a folder of its own for /tmp, where an earlier test of the page left its files."""
        return text.replace("/tmp/", f"{self._folder}/")

    def _learn(self, expected: str, printed: str) -> None:
        for documented, met in zip(_RUN_ID.findall(expected), _RUN_ID.findall(printed), strict=False):
            self._runs.setdefault(documented, met)

    def _pattern(self, step: Step) -> re.Pattern[str]:
        """Return what the printed text must match: `…` is anything, a duration or size any other."""
        text = _RUN_ID.sub(lambda match: self._runs.get(match[0], match[0]), step.expected)
        varying = _NUMBER if step.numbers_vary else _MEASURE
        lines = [re.escape(line).replace("…", ".*") for line in varying.sub("\x00", text).split("\n")]
        joined = "\n".join("(?s:.*)" if line == ".*" else line for line in lines)
        return re.compile(joined.replace("\x00", varying.pattern))


def _limits_table() -> str:
    rows = ["| field | default | lowest | highest | what it bounds |", "| --- | ---: | ---: | ---: | --- |"]
    rows += [f"| `{each.alias}` | {each.default} | {each.low} | {each.high} | {each.why} |" for each in limits.LIMITS]
    return "\n".join(rows)


def _constants_table() -> str:
    """Draw the fixed bounds with the reason that stands beside each in the code."""
    source = Path(limits.__file__).read_text(encoding="utf-8")
    rows = ["| bound | value | why |", "| --- | ---: | --- |"]
    for name, why in re.findall(r"^([A-Z][A-Z_]+) = .*?# (.*)$", source, re.MULTILINE):
        rows.append(f"| `{name}` | {getattr(limits, name)} | {why} |")
    return "\n".join(rows)


def _codes_table() -> str:
    """Draw each code with its phase, its exit status and the sentence of its class."""
    rows = ["| code | exit status | phase | when |", "| --- | ---: | --- | --- |"]
    leaves = {kind.code: kind for kind in _subclasses(errors.CodeModeError) if vars(kind).get("code")}
    for code in errors.ErrorCode:
        kind = leaves[code]
        sentence = (kind.__doc__ or "").split("\n")[0]
        rows.append(f"| `{code.value}` | {STATUS_OF_CODE[code].value} | {kind.phase} | {sentence} |")
    return "\n".join(rows)


def _subclasses(kind: type[errors.CodeModeError]) -> Iterator[type[errors.CodeModeError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _error_tree() -> str:
    lines = (errors.__doc__ or "").split("\n")
    return "```text\n" + "\n".join(line[4:] for line in lines if line.startswith("    ")) + "\n```"


def _states_table() -> str:
    rows = ["| from | to |", "| --- | --- |"]
    rows += [
        f"| `{state}` | {', '.join(f'`{to}`' for to in after) or 'nowhere'} |" for state, after in TRANSITIONS.items()
    ]
    return "\n".join(rows)


def _help(*command: str) -> str:
    """Show what `codemode COMMAND --help` prints on a terminal of 90 columns."""
    done = subprocess.run(
        [*COMMAND, *command, "--help"],
        env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return f"```text\n{done.stdout.strip()}\n```"


def _repl_commands_table() -> str:
    rows = ["| command | does |", "| --- | --- |"]
    rows += [f"| `:{f'{each.name} {each.usage}'.rstrip()}` | {each.about} |" for each in repl_commands.COMMANDS]
    return "\n".join(rows)


def _repl_keys_table() -> str:
    return "\n".join(["| key | does |", "| --- | --- |", *(f"| {key} | {does} |" for key, does in repl_commands.KEYS)])


GENERATORS: dict[str, Callable[[], str]] = {
    "help": _help,
    **{f"help-{name}": partial(_help, name) for name in COMMANDS},
    "limits": _limits_table,
    "constants": _constants_table,
    "codes": _codes_table,
    "error-tree": _error_tree,
    "states": _states_table,
    "repl-commands": _repl_commands_table,
    "repl-keys": _repl_keys_table,
}


def regenerate(text: str) -> str:
    """Return a page's text with every generated part made anew."""
    return _GENERATED.sub(lambda match: f"{match[1]}{GENERATORS[match[2]]()}\n{match[3]}", text)


def main() -> None:
    """Rewrite the generated parts of every page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(regenerate(text), encoding="utf-8")


if __name__ == "__main__":
    main()
