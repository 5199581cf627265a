"""Every error that codemode raises, as one tree; each leaf is one contract code.

    CodeModeError
    ├── SetupError         RuntimeUnavailable · InvalidConfig
    ├── InputError         InvalidInput · UnsupportedLanguage · TransformFailed · ModuleAccessDenied
    ├── LimitError         TurnTimeout · MemoryLimit · OutputLimit · SnapshotLimit · TooManyPendingCalls
    ├── ResumeError        SnapshotExpired · SnapshotRestore
    ├── NestedToolFailed   a nested call rejected; carries the tool's id
    ├── Aborted            a person, a signal or the end of the session stopped the run
    ├── Internal           a fault of ours, nothing else
    └── GuestError         the cell's own uncaught throw; it has no code

Exceptions live on one side of a wall; what crosses a wall is data. A message says what
happened, with numbers and units, and what to do about it.
"""

from enum import StrEnum
from typing import ClassVar, Literal

Phase = Literal["input", "transform", "guest", "bridge", "runtime"]


class ErrorCode(StrEnum):
    """The sixteen codes of a failed result.

    Contract: codes:table:complete
    """

    RUNTIME_UNAVAILABLE = "runtime_unavailable"
    INVALID_CONFIG = "invalid_config"
    INVALID_INPUT = "invalid_input"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    TYPESCRIPT_TRANSFORM_FAILED = "typescript_transform_failed"
    MODULE_ACCESS_DENIED = "module_access_denied"
    TIMEOUT = "timeout"
    MEMORY_LIMIT_EXCEEDED = "memory_limit_exceeded"
    OUTPUT_LIMIT_EXCEEDED = "output_limit_exceeded"
    SNAPSHOT_LIMIT_EXCEEDED = "snapshot_limit_exceeded"
    SNAPSHOT_EXPIRED = "snapshot_expired"
    SNAPSHOT_RESTORE_FAILED = "snapshot_restore_failed"
    TOO_MANY_PENDING_TOOL_CALLS = "too_many_pending_tool_calls"
    NESTED_TOOL_FAILED = "nested_tool_failed"
    ABORTED = "aborted"
    INTERNAL_ERROR = "internal_error"


class CodeModeError(Exception):
    """Base of every error of ours.

    `code` is the contract's code (None only for the guest's own throw) and `phase` says
    where in a cell's life it arises; both are properties of the class, so a code can
    never be paired with a foreign message. `dispatched`: a nested call had started, where no
    result of the run is left to say so.
    """

    code: ClassVar[ErrorCode | None] = None
    phase: ClassVar[Phase] = "runtime"
    dispatched = False

    @property
    def message(self) -> str:
        """The sentence that a person reads."""
        return str(self)


class SetupError(CodeModeError):
    """Something outside the cell is missing or wrong."""


class RuntimeUnavailable(SetupError):
    """The engine is missing or damaged, or its worker died."""

    code = ErrorCode.RUNTIME_UNAVAILABLE


class InvalidConfig(SetupError):
    """A manifest, a server definition or a setting cannot be used as written."""

    code = ErrorCode.INVALID_CONFIG
    phase: ClassVar[Phase] = "input"


class InputError(CodeModeError):
    """The arguments of `exec` or `wait`, or the cell's text, are not acceptable."""

    phase: ClassVar[Phase] = "input"


class InvalidInput(InputError):
    """A missing, contradictory or unknown argument."""

    code = ErrorCode.INVALID_INPUT


class UnsupportedLanguage(InputError):
    """A language that is unknown, or that the configuration switched off."""

    code = ErrorCode.UNSUPPORTED_LANGUAGE


class TransformFailed(InputError):
    """TypeScript that cannot be transformed; the message carries `line:column`."""

    code = ErrorCode.TYPESCRIPT_TRANSFORM_FAILED
    phase: ClassVar[Phase] = "transform"


class ModuleAccessDenied(InputError):
    """The cell asks for a module, which the guest does not have."""

    code = ErrorCode.MODULE_ACCESS_DENIED
    phase: ClassVar[Phase] = "transform"


class LimitError(CodeModeError):
    """A configured bound was reached."""

    phase: ClassVar[Phase] = "guest"


class TurnTimeout(LimitError):
    """The wall-clock deadline of one `exec` or `wait` passed while the cell was computing."""

    code = ErrorCode.TIMEOUT


class MemoryLimit(LimitError):
    """The cell asked for more memory than `memoryLimitBytes`."""

    code = ErrorCode.MEMORY_LIMIT_EXCEEDED


class OutputLimit(LimitError):
    """Outputs and value together are larger than `maxOutputBytes`."""

    code = ErrorCode.OUTPUT_LIMIT_EXCEEDED


class SnapshotLimit(LimitError):
    """A snapshot is larger than `maxSnapshotBytes`, or too many runs are suspended."""

    code = ErrorCode.SNAPSHOT_LIMIT_EXCEEDED
    phase: ClassVar[Phase] = "runtime"


class TooManyPendingCalls(LimitError):
    """More nested calls are open than `maxPendingToolCalls` allows."""

    code = ErrorCode.TOO_MANY_PENDING_TOOL_CALLS
    phase: ClassVar[Phase] = "bridge"


class ResumeError(CodeModeError):
    """A suspended run cannot go on."""


class SnapshotExpired(ResumeError):
    """The run was suspended for longer than `snapshotTtlSeconds`."""

    code = ErrorCode.SNAPSHOT_EXPIRED


class SnapshotRestore(ResumeError):
    """A snapshot is damaged, truncated, or of another build of the engine."""

    code = ErrorCode.SNAPSHOT_RESTORE_FAILED


class NestedToolFailed(CodeModeError):
    """A nested call rejected; `tool_id` names the tool, `__cause__` the tool's own error."""

    code = ErrorCode.NESTED_TOOL_FAILED
    phase: ClassVar[Phase] = "bridge"

    def __init__(self, message: str, tool_id: str | None = None) -> None:
        """Keep the tool's id beside the message; it reaches the guest as `toolId`."""
        super().__init__(message)
        self.tool_id = tool_id


class Aborted(CodeModeError):
    """The run, or its session, was ended from outside."""

    code = ErrorCode.ABORTED


class Internal(CodeModeError):
    """A fault of ours. Seeing one is a bug report."""

    code = ErrorCode.INTERNAL_ERROR


class GuestError(CodeModeError):
    """What the cell threw and nobody caught: `Name: message (cell.js:7:9)`. It has no code."""

    phase: ClassVar[Phase] = "guest"


def words_of(error: BaseException) -> str:
    """Return what an exception of somebody else's code says, as a person reads it.

    A group says what each of its members says; a missing key, and what says nothing, is told by its type.

    Contract: executor:errors:words
    """
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(words_of, error.exceptions)))
    said = _said_by(error)
    if not said:
        return f"it failed with {type(error).__name__}, without a message"
    return type_and_words_of(error) if isinstance(error, KeyError) else said


def type_and_words_of(error: BaseException) -> str:
    """Return the type of an exception and what it says, as `ValueError: no order 7`."""
    name, said = type(error).__name__, _said_by(error)
    return f"{name}: {said}" if said else name


def _said_by(error: BaseException) -> str:
    try:
        return str(error).strip()
    except Exception:  # noqa: BLE001  # its own text is broken, which is no reason to lose its type
        return ""
