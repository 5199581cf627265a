"""Code mode for Python people.

What a program needs is here; each name is loaded when it is first used, because the command line,
which starts for every cell, needs none of them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codemode.core.errors import CodeModeError, ErrorCode
    from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
    from codemode.library.functions import tool
    from codemode.library.mock import MockTool
    from codemode.library.mode import CodeMode

__version__ = "0.1.0"
__all__ = [
    "CodeMode",
    "CodeModeError",
    "CodeModeResult",
    "Completed",
    "ErrorCode",
    "Failed",
    "MockTool",
    "Waiting",
    "tool",
]
_HOMES = {
    "CodeMode": "codemode.library.mode",
    "CodeModeError": "codemode.core.errors",
    "CodeModeResult": "codemode.core.types",
    "Completed": "codemode.core.types",
    "ErrorCode": "codemode.core.errors",
    "Failed": "codemode.core.types",
    "MockTool": "codemode.library.mock",
    "Waiting": "codemode.core.types",
    "tool": "codemode.library.functions",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home, once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # only a program that uses the library comes here

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
