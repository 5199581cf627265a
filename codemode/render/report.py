"""The one layout of an error: what happened, where, and what to do.

`ErrorReport` is built here from a failed result or from an exception of ours, and shown by
`error.py` on a terminal and by `plain.py` anywhere else.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from codemode.core.errors import CodeModeError, ErrorCode
from codemode.core.redact import MASK
from codemode.core.types import Json
from codemode.render.words import printable

_POSITION = re.compile(r"\bcell\.(?:js|ts):(\d+)(?::(\d+))?")
_CONTEXT_LINES = 2  # shown before the offending line
_MAX_LINE_CHARS = 160  # of a source line; a minified cell would fill the screen
_MAX_BEFORE_CARET = 70  # of such a line, so that a terminal of 80 columns shows the offending place

_ADVICE: dict[str, str] = {
    ErrorCode.TIMEOUT: "More time: --timeout-ms, 60000 at most.",
    ErrorCode.MEMORY_LIMIT_EXCEEDED: "Hold less at once, or raise --memory-limit-bytes.",
    ErrorCode.OUTPUT_LIMIT_EXCEEDED: "More room: --max-output-bytes.",
    ErrorCode.SNAPSHOT_LIMIT_EXCEEDED: "Finish or abort waiting runs (codemode runs), or raise --max-snapshot-bytes.",
    ErrorCode.TOO_MANY_PENDING_TOOL_CALLS: "Await the calls in smaller groups, or raise --max-pending-tool-calls.",
    ErrorCode.SNAPSHOT_EXPIRED: "Run the cell again; --snapshot-ttl-seconds says how long a run can wait.",
    ErrorCode.SNAPSHOT_RESTORE_FAILED: "Run the cell again.",
    ErrorCode.RUNTIME_UNAVAILABLE: "codemode doctor checks the engine and says what is missing.",
    ErrorCode.INTERNAL_ERROR: "This is a fault of codemode. Please report it; CODEMODE_DEBUG=1 shows its traceback.",
}


class SourceLine(NamedTuple):
    """A line of the cell beside an error; `caret` is the offending column, counted from 0."""

    number: int
    text: str
    caret: int | None = None


class ErrorReport(NamedTuple):
    """What, where, what to do. `code` is "" for the cell's own throw, `place` and `advice` where unknown."""

    what: str
    code: str
    place: str
    source: tuple[SourceLine, ...]
    advice: str


def report_of_result(result: Mapping[str, Json], source: str = "", name: str = "cell.js") -> ErrorReport:
    """Build the report of a failed result.

    Args:
        result: `{"status": "failed", "error", "code"?, "phase", "dispatched", …}`.
        source: The cell's text, redacted, to show the offending line; "" where it is not at hand.
        name: What the person calls the cell: its file's path.
    """
    what = printable(str(result.get("error", "")))
    code = str(result.get("code", ""))
    positions = list(_POSITION.finditer(what))
    line, column = (int(positions[-1][1]), int(positions[-1][2] or 0)) if positions else (0, 0)
    place = f"{printable(name)}:{positions[-1][0].partition(':')[2]}" if positions else ""
    if positions:
        what = what.replace(f" ({positions[-1][0]})", "", 1)  # the place has a line of its own
    return ErrorReport(what, code, place, _excerpt(source, line, column), _ADVICE.get(code, ""))


def report_of_error(error: CodeModeError) -> ErrorReport:
    """Build the report of an exception of ours; its message says where and what to do."""
    code = error.code.value if error.code else ""
    advice = "" if error.dispatched else _ADVICE.get(code, "")  # an engine that came so far is there
    return ErrorReport(printable(error.message), code, "", (), advice)


def report_of_usage(message: str, command: str) -> ErrorReport:
    """Build the report of a wrong command line; `command` is the one whose help explains it."""
    return ErrorReport(printable(message), "", "", (), f"{command} --help shows what it takes, with examples.")


def _excerpt(source: str, line: int, column: int) -> tuple[SourceLine, ...]:
    lines = source.split("\n")
    if not source or not 1 <= line <= len(lines):
        return ()
    first = max(1, line - _CONTEXT_LINES)
    shown = [SourceLine(number, _shortened(_harmless(lines[number - 1]))) for number in range(first, line)]
    text = _harmless(lines[line - 1])
    if not 1 <= column <= len(text) + 1 or MASK in text:  # what is masked has moved
        return (*shown, SourceLine(line, _shortened(text)))
    left_out = max(0, column - 1 - _MAX_BEFORE_CARET)
    text = f"…{text[left_out + 1 :]}" if left_out else text
    return (*shown, SourceLine(line, _shortened(text), column - 1 - left_out))


def _harmless(line: str) -> str:
    return printable(line.rstrip("\r")).replace("\t", " ")


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LINE_CHARS else text[:_MAX_LINE_CHARS] + "…"
