"""What one run can reach: the session's catalog, and beside it the namespaces of that run alone.

A new run opens its namespaces once; what a later process needs to know of them is stored with the
run. A run that goes on keeps what it began with, under today's policy.
"""

import asyncio
import json
from typing import TYPE_CHECKING

from codemode.catalog import Catalog, build_catalog
from codemode.core.errors import TurnTimeout
from codemode.core.types import Json, RunContext
from codemode.policy import Policy
from codemode.store.port import Claimed

if TYPE_CHECKING:
    from codemode.namespaces import Namespaces  # 2 ms that a session without plugins never pays


class Reach:
    """Opens and reopens what the runs of one session can reach."""

    def __init__(self, catalog: Catalog, policy: Policy, namespaces: "Namespaces | None" = None) -> None:
        """Keep what all runs of the session share; without plugins there are no namespaces."""
        self.catalog = catalog
        self._policy = policy
        self._namespaces = namespaces
        self._kept: tuple[Catalog, Json] | None = None
        self._keeping = asyncio.Lock()  # whoever comes while they are opened gets the same

    async def open(self, context: RunContext, deadline: float, *, kept: bool = False) -> tuple[Catalog, Json]:
        """Return the catalog of a new run, and what is stored of its namespaces.

        Args:
            context: The run's.
            deadline: Of its `exec`, by the loop's clock.
            kept: The run's cells share one VM, as in the REPL: the first of them opens for all.

        Raises:
            InvalidConfig: A namespace could not be opened.
            TurnTimeout: Opening them took too long.

        Contract: namespaces:scope:once, namespaces:scope:deadline
        """
        if self._namespaces is None:
            return self.catalog, None
        is_over = False
        try:
            async with asyncio.timeout_at(deadline):
                seen = context._replace(aborted=lambda: is_over)
                return await (self._open_kept(seen) if kept else self._namespaces.open(self.catalog, seen))
        except BaseException as error:
            is_over = True
            if isinstance(error, TimeoutError):
                raise TurnTimeout("the deadline (timeoutMs) passed while a plugin's namespace was opened") from error
            raise

    async def _open_kept(self, context: RunContext) -> tuple[Catalog, Json]:
        async with self._keeping:
            if self._kept is None:
                assert self._namespaces is not None
                self._kept = await self._namespaces.open(self.catalog, context)
            return self._kept

    def reopen(self, claimed: Claimed, context: RunContext) -> Catalog:
        """Return what is still there of the tools and paths that a run began with, under today's policy.

        Contract: session:wait:keeps-catalog, namespaces:wait:same
        """
        catalog = self._tools_of(claimed)
        written = claimed.carry.get("namespaces")
        if self._namespaces is None or written is None:
            return catalog
        return self._namespaces.reopen(catalog, written, context)

    def _tools_of(self, claimed: Claimed) -> Catalog:
        if claimed.scope == self.catalog.scope_digest:
            return self.catalog
        known = {entry["id"] for entry in json.loads(json.loads(claimed.scope_text)["tools"])}
        tools = [tool for tool in self.catalog.tools if tool.source == "mcp" or tool.id in known]
        return build_catalog(tools, self._policy, claimed.run.limits).with_scope(self.catalog.scope)
