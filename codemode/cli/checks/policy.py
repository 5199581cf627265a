"""Whether each glob of the policy matches anything: a misspelt `deny` leaves a door open."""

from collections.abc import Iterator

from codemode.cli.checks.check import Check
from codemode.composition import Toolbox
from codemode.core.names import did_you_mean
from codemode.manifest import Manifest
from codemode.policy import Policy

_FIX = "Correct it, or remove it; codemode catalog lists the ids and names that there are."


def check_globs(box: Toolbox) -> Iterator[Check]:
    """Yield each glob that matches no tool, of those too that the policy hides; nothing where some are not known.

    Contract: doctor:policy:idle
    """
    servers = box.servers
    if servers is not None and servers.failures:
        return  # what a server does not list cannot be missed
    offered = (*box.defined, *(servers.tools if servers is not None else ()))
    for key, glob in _globs(box.manifest):
        if not any(map(Policy((glob,)).is_allowed, offered)):
            near = did_you_mean(glob, [word for tool in offered for word in (tool.id, tool.name)])
            yield Check("policy", "warning", f'{key}: "{glob}" matches no tool.{near}', _FIX)


def _globs(manifest: Manifest) -> Iterator[tuple[str, str]]:
    gate = manifest.sandbox
    lists = {
        "tools.allow": manifest.allow,
        "tools.deny": manifest.deny,
        "approvals": tuple(glob for glob, _ in manifest.approvals),
        "tools.sandbox.tools.allow": gate.allow or (),
        "tools.sandbox.tools.alsoAllow": gate.also_allow,
        "tools.sandbox.tools.deny": gate.deny,
    }
    yield from ((key, glob) for key, globs in lists.items() for glob in globs if glob not in ("*", "bundle-mcp"))
