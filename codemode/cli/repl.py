"""`repl`: its options; what follows is in `interactive`, loaded only by a command that got this far."""

import gc
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.options import LimitFlags, Manifest, Refresh, Session, examples, say_clamped, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class ReplOptions(NamedTuple):
    """Options of `codemode repl`."""

    manifest: Manifest = None
    session: Session = "default"
    language: Annotated[
        str, typer.Option("-l", "--language", metavar="NAME", help="How cells are read: javascript or typescript.")
    ] = "javascript"
    fresh: Annotated[bool, typer.Option("--fresh", help="Give each cell a VM of its own, as the model has it.")] = False
    refresh: Refresh = False
    limits: LimitFlags = MappingProxyType({})


@takes(ReplOptions)
def repl(terminal: "Terminal", options: ReplOptions) -> ExitStatus:
    """Read cells, run them, print what they give; variables live on from cell to cell.

    Fed from a pipe it runs the lines and ends with the status of the first cell that fails.
    """
    from codemode.supervisor.spawn import spawn_first

    say_clamped(terminal, options.limits)
    gc.disable()  # while modules are loaded there is no garbage, and looking for it takes a tenth of the time
    first = spawn_first()  # the engine starts while all the rest is loaded
    from codemode.cli.interactive import open_repl

    return open_repl(terminal, options, first)


COMMANDS = (
    (
        repl,
        examples(
            "codemode repl",
            "codemode repl -m shop/codemode.toml --timeout-ms 30000",
            "codemode repl --fresh --language typescript",
            "echo 'await tools.list_orders({})' | codemode repl",
        ),
    ),
)
