"""`smoke`: its options; what follows is in `verdicts`, loaded only by a command that got this far."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.options import JsonFlag, Manifest, Refresh, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class SmokeOptions(NamedTuple):
    """Options of `codemode smoke`."""

    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Cells, TOML lists of cases, or folders that hold them.")
    ]
    manifest: Manifest = None
    wanted: Annotated[
        str, typer.Option("-k", "--filter", metavar="TEXT", help="Only cases with this in their name; may be a glob.")
    ] = ""
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Answer nested calls from this recording; nothing is started."),
    ] = None
    bail: Annotated[bool, typer.Option("-x", "--bail", help="Begin no more cases after the first that fails.")] = False
    update: Annotated[bool, typer.Option("--update", help="Write what the cells give into their expectations.")] = False
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML for a CI.")] = None
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", metavar="N", min=1, max=64, help="How many cells run at once.")
    ] = None
    refresh: Refresh = False
    json: JsonFlag = False
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the cases that pass, too.")] = False


@takes(SmokeOptions)
def smoke(terminal: "Terminal", options: SmokeOptions) -> ExitStatus:
    """Run cells and compare what they give with the expectations in their comments.

    A comment at the top of a cell says what is expected: // @value {"n": 3}, // @status failed, // @calls ID. Ends
    with status 0 if everything holds, 1 if something does not, 2 if a file cannot be read.
    """
    from codemode.cli.verdicts import check_cells

    return check_cells(terminal, options)


COMMANDS = (
    (
        smoke,
        examples(
            "codemode smoke checks",
            "codemode smoke checks/total.js --update",
            "codemode smoke checks -k 'orders*' --bail",
            "codemode smoke checks -m ci/codemode.toml --junit smoke.xml",
            "codemode smoke checks/orders.js --replay checks/orders.jsonl",
        ),
    ),
)
