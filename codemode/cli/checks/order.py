"""All checks, in the order in which one thing needs another."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from codemode.cli.checks.check import Check
from codemode.cli.checks.claims import check_claims
from codemode.cli.checks.ground import check_cache, check_store, check_versions
from codemode.cli.checks.lockdown import check_attempts, probe
from codemode.cli.checks.reach import check_catalog, check_manifest, check_tools
from codemode.core.errors import CodeModeError
from codemode.manifest import load_manifest
from codemode.mcp.shared import NOBODY, Onlooker


def check_all(manifest_path: Path | None, onlooker: Onlooker = NOBODY) -> Iterator[Check]:
    """Try everything; the onlooker hears which servers are being asked.

    Contract: cli:doctor:checks
    """
    yield from check_versions()
    yield from asyncio.run(check_claims())
    probed = probe()
    yield from check_attempts(probed)
    yield from check_cache(probed.cache)
    yield check_store()
    try:
        manifest = load_manifest(manifest_path)
    except CodeModeError as error:
        yield Check("manifest", "failed", error.message, "Correct the file; the place is named in the message.")
        return
    yield from check_manifest(manifest)
    yield from check_tools(manifest)
    yield from asyncio.run(check_catalog(manifest_path, onlooker))
