"""Who may be called, and who must be asked first. Pure: it decides, it does nothing.

Globs match ids and names, case-insensitively; deny wins over allow, and the sandbox gate of a
sandboxed session comes on top. A denied tool is nowhere: the catalog leaves it out and the
executor refuses it even by guessed id, also after a `wait` under a changed manifest.
"""

import fnmatch
import re
from collections.abc import Iterable
from functools import cached_property

from codemode.core.types import Approval, ToolSpec
from codemode.definitions import SandboxGate

_STRICTNESS: dict[Approval, int] = {"never": 0, "ask": 1, "always-deny": 2}
_ALL_MCP = "bundle-mcp"
_NO_SANDBOX = SandboxGate()


class Policy:
    """The operator's allow and deny lists, approvals and sandbox gate."""

    def __init__(
        self,
        allow: Iterable[str] = ("*",),
        deny: Iterable[str] = (),
        approvals: Iterable[tuple[str, Approval]] = (),
        sandbox: SandboxGate = _NO_SANDBOX,
    ) -> None:
        """Keep the globs of `[tools]`, `[approvals]` and `[tools.sandbox]` as the manifest has them."""
        self.allow = tuple(allow)
        self._allowed = _Globs(self.allow)
        self._denied = _Globs(deny)
        self._approvals = [(_Globs([glob]), glob.casefold(), approval) for glob, approval in approvals]
        self._sandbox = sandbox

    def is_allowed(self, tool: ToolSpec) -> bool:
        """Say whether the tool exists for this run.

        Contract: policy:lists:deny-wins, policy:lists:globs, policy:sandbox:gate
        """
        if self._denied.match(tool) or not self._allowed.match(tool):
            return False
        return not self._sandbox.enabled or self._passes_sandbox(tool)

    def approval_for(self, tool: ToolSpec) -> Approval:
        """Return what a call of the tool needs.

        An entry that spells the tool's id or name exactly decides. Otherwise the strictest of the
        tool's own approval and of every glob that matches does.

        Contract: policy:approvals:strictest, policy:approvals:exact
        """
        own_names = {tool.id.casefold(), tool.name.casefold()}
        exact = [approval for _, text, approval in self._approvals if text in own_names]
        if exact:
            return max(exact, key=_STRICTNESS.__getitem__)
        matching = [approval for globs, _, approval in self._approvals if globs.match(tool)]
        return max([tool.approval, *matching], key=_STRICTNESS.__getitem__)

    def _passes_sandbox(self, tool: ToolSpec) -> bool:
        denied, allowed = self._sandbox_globs
        if denied.match(tool):
            return False
        by_default = self._sandbox.allow is None and tool.source != "mcp"
        return by_default or allowed.match(tool)

    @cached_property
    def _sandbox_globs(self) -> tuple["_Globs", "_Globs"]:
        return _Globs(self._sandbox.deny), _Globs((*(self._sandbox.allow or ()), *self._sandbox.also_allow))


class _Globs:
    """Some globs as one pattern; `bundle-mcp` stands for every MCP tool."""

    def __init__(self, globs: Iterable[str]) -> None:
        folded = [glob.casefold() for glob in globs]
        self._all_mcp = _ALL_MCP in folded
        self._pattern = re.compile("|".join(map(fnmatch.translate, folded))) if folded else None

    def match(self, tool: ToolSpec) -> bool:
        if self._all_mcp and tool.source == "mcp":
            return True
        pattern = self._pattern
        return pattern is not None and bool(pattern.match(tool.id.casefold()) or pattern.match(tool.name.casefold()))
