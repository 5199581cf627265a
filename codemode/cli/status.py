"""The exit statuses of the command line, and the one way from a result to a status."""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from codemode.core.errors import ErrorCode

if TYPE_CHECKING:
    from codemode.core.types import Json


class ExitStatus(IntEnum):
    """What a process's end says to a shell.

    Contract: cli:status:table
    """

    OK = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    LIMIT = 4
    UNAVAILABLE = 5
    INTERNAL = 70
    ABORTED = 130


STATUS_OF_CODE: dict[ErrorCode, ExitStatus] = {
    ErrorCode.TYPESCRIPT_TRANSFORM_FAILED: ExitStatus.FAILED,
    ErrorCode.MODULE_ACCESS_DENIED: ExitStatus.FAILED,
    ErrorCode.NESTED_TOOL_FAILED: ExitStatus.FAILED,
    ErrorCode.SNAPSHOT_EXPIRED: ExitStatus.FAILED,
    ErrorCode.SNAPSHOT_RESTORE_FAILED: ExitStatus.FAILED,
    ErrorCode.INVALID_CONFIG: ExitStatus.USAGE,
    ErrorCode.INVALID_INPUT: ExitStatus.USAGE,
    ErrorCode.UNSUPPORTED_LANGUAGE: ExitStatus.USAGE,
    ErrorCode.TIMEOUT: ExitStatus.LIMIT,
    ErrorCode.MEMORY_LIMIT_EXCEEDED: ExitStatus.LIMIT,
    ErrorCode.OUTPUT_LIMIT_EXCEEDED: ExitStatus.LIMIT,
    ErrorCode.SNAPSHOT_LIMIT_EXCEEDED: ExitStatus.LIMIT,
    ErrorCode.TOO_MANY_PENDING_TOOL_CALLS: ExitStatus.LIMIT,
    ErrorCode.RUNTIME_UNAVAILABLE: ExitStatus.UNAVAILABLE,
    ErrorCode.INTERNAL_ERROR: ExitStatus.INTERNAL,
    ErrorCode.ABORTED: ExitStatus.ABORTED,
}


def status_of_result(result: Mapping[str, "Json"]) -> ExitStatus:
    """Return the exit status of a `CodeModeResult`, or of anything that has its `status` and `code`.

    Contract: cli:status:table
    """
    if result["status"] == "completed":
        return ExitStatus.OK
    if result["status"] == "waiting":
        return ExitStatus.WAITING
    code = result.get("code")
    return ExitStatus.FAILED if code is None else STATUS_OF_CODE[ErrorCode(code)]
