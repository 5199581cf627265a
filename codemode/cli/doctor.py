"""`doctor`: try everything that a run needs, and say what to fix.

What the command needs beyond its options is imported inside it: help must come at once.
"""

from typing import TYPE_CHECKING, NamedTuple

from codemode.cli.options import JsonFlag, Manifest, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class DoctorOptions(NamedTuple):
    """Options of `codemode doctor`."""

    manifest: Manifest = None
    json: JsonFlag = False


@takes(DoctorOptions)
def doctor(terminal: "Terminal", options: DoctorOptions) -> ExitStatus:
    """Check engine, store, manifest, tools and servers on this machine, and say what to fix.

    Ends with status 1 where anything failed.
    """
    from codemode.cli.checks import check_all
    from codemode.cli.listing import manifest_path
    from codemode.cli.show import show_check
    from codemode.cli.versions import versions

    terminal.json = options.json
    checks = []
    for check in check_all(manifest_path(terminal, options.manifest)):
        checks.append(check)
        if not terminal.json:
            show_check(terminal, check)
    failed = [check for check in checks if check.state == "failed"]
    if terminal.json:
        shown = [check.to_json() for check in checks]
        terminal.write_json({"ok": not failed, "checks": shown, "versions": dict(versions())})
    return ExitStatus.FAILED if failed else ExitStatus.OK


COMMANDS = ((doctor, examples("codemode doctor", "codemode doctor -m shop/codemode.toml --json")),)
