"""`doctor`: try everything that a run needs, and say what to fix.

What the command needs beyond its options is imported inside it: help must come at once.
"""

from collections import Counter
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
    """Try what a run needs on this machine: sandbox, versions, cache, store, manifest, servers, activation.

    Each finding says what to do. Ends with status 1 where anything failed; with --quiet only what is
    not as it should be is shown.
    """
    from codemode.cli.checks.order import check_all
    from codemode.cli.listing import manifest_path
    from codemode.cli.progress import Progress
    from codemode.cli.show import show_check
    from codemode.cli.versions import versions
    from codemode.mcp.shared import Onlooker

    terminal.json = options.json
    checks = []
    with Progress(terminal, "checking") as progress:
        for check in check_all(manifest_path(terminal, options.manifest), Onlooker(look=progress.look)):
            checks.append(check)
            if not terminal.json and not (terminal.quiet and check.state == "ok"):
                with progress.aside():
                    show_check(terminal, check)
    counts = Counter(check.state for check in checks)
    if terminal.json:
        shown = [check.to_json() for check in checks]
        terminal.write_json({"ok": not counts["failed"], "checks": shown, "versions": dict(versions())})
    else:
        terminal.note(f"{counts['ok']} ok, {counts['warning']} to look at, {counts['failed']} failed")
    return ExitStatus.FAILED if counts["failed"] else ExitStatus.OK


COMMANDS = (
    (
        doctor,
        examples("codemode doctor", "codemode doctor -m shop/codemode.toml --json", "codemode doctor --quiet"),
    ),
)
