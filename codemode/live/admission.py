"""What hooks say about a cell before it starts: the outer `exec`, as one more tool call."""

import asyncio
from collections.abc import Sequence

from codemode.core.errors import InvalidInput, TurnTimeout
from codemode.core.redact import Redactor
from codemode.core.types import Json, Language, RunContext
from codemode.hooks import Hook, HookEvent, run_hooks
from codemode.surface import EXEC, ExecInput, parse_exec_input

TOOL_KIND = "code_mode_exec"  # set by the host from the tool's identity, never from its name


async def admit_cell(
    given: ExecInput,
    hooks: Sequence[Hook],
    context: RunContext,
    redactor: Redactor,
    languages: tuple[Language, ...],
    deadline: float,
) -> ExecInput:
    """Return the cell as the hooks leave it.

    Both aliases of its text are shown to them; where a hook rewrites one, the other follows.

    Raises:
        InvalidInput: A hook blocked the cell, asks for an approval that an `exec` cannot wait
            for, or left what is no input.
        TurnTimeout: The hooks took longer than the whole `exec` may.

    Contract: session:hooks:outer-exec, session:hooks:alias-mirrored, session:hooks:deadline
    """
    if not hooks:
        return given
    shown = {"code": given.code, "command": given.code, "language": given.language}
    event = HookEvent(EXEC, EXEC, shown, context, tool_kind=TOOL_KIND, tool_input_kind=given.language)
    try:
        async with asyncio.timeout_at(deadline):
            decision = await run_hooks(hooks, event)
    except TimeoutError as error:
        raise TurnTimeout("the deadline (timeoutMs) passed while a hook was asked; the cell was not run") from error
    if decision.blocked is not None:
        raise InvalidInput(redactor.text(f"the cell was blocked: {decision.blocked}"))
    if decision.ask is not None:
        raise InvalidInput(redactor.text(f"the cell was blocked: a hook asks for approval ({decision.ask})"))
    return parse_exec_input(_mirrored(decision.input, given.code), languages)


def _mirrored(left: Json, code: str) -> Json:
    if not isinstance(left, dict):
        return left
    rewritten = {alias: left[alias] for alias in ("code", "command") if left.get(alias) not in (None, code)}
    rest = {name: value for name, value in left.items() if name not in ("code", "command")}
    return rest | (rewritten or {"code": code})
