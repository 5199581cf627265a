"""What a run stands on: versions, the cache of compiled engines, the store."""

import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from codemode.cli.checks.check import Check
from codemode.cli.versions import versions
from codemode.core.errors import CodeModeError
from codemode.core.folders import cache_dir
from codemode.render.words import counted, size
from codemode.store.audit import StoreFacts, audit_store
from codemode.store.place import state_dir
from codemode.store.sqlite import FILE_NAME

_PIN = re.compile(r"([\w.-]+)\s*==\s*([\w.]+)")
_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600


def check_versions() -> Iterator[Check]:
    """Yield what codemode is built on, and each part that is missing or of another version than it needs.

    Contract: doctor:versions:named
    """
    found = versions()
    yield Check("versions", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))
    for name, version in found.items():
        if version.startswith("missing"):
            yield Check("versions", "failed", f"{name} is missing", "Reinstall codemode with its dependencies.")
    for name, wanted in _pinned().items():
        if found.get(name, wanted) != wanted:
            says = f"{name} is {found[name]}; this codemode was made for {wanted} and knows its insides"
            yield Check("versions", "failed", says, f"Install {name}=={wanted}.")


def _pinned() -> dict[str, str]:
    """Return the dependencies that must have one exact version."""
    from importlib import metadata  # 15 ms, only for whoever asks

    try:
        wanted = metadata.requires("codemode") or []
    except metadata.PackageNotFoundError:  # it runs from a checkout
        return {}
    return {found[1]: found[2] for found in map(_PIN.match, wanted) if found}


def check_cache(files: Sequence[tuple[str, int, str]]) -> Iterator[Check]:
    """Yield whether compiled engines can be kept, and what is wrong with those that are.

    Args:
        files: `(file, bytes, state)` of each, as a probe saw them.

    Contract: doctor:cache:verified
    """
    folder = cache_dir()
    slow = "each start compiles the engine, which takes half a second"
    if not folder:
        yield Check("cache", "warning", f"there is no folder for it: {slow}", "Set HOME, or CODEMODE_CACHE_DIR.")
        return
    reason = _why_not_writable(Path(folder))
    if reason:
        yield Check("cache", "warning", f"{folder} {reason}: {slow}", "Make it yours, or set CODEMODE_CACHE_DIR.")
    states = Counter(state for _, _, state in files)
    verified = states.pop("verified", 0)
    if verified:
        held = size(sum(count for _, count, state in files if state == "verified"))
        yield Check("cache", "ok", f"{folder}, {counted(verified, 'file')} verified, {held}")
    for state, number in states.items():
        says = f"{counted(number, 'file')} in {folder} {'is' if number == 1 else 'are'} {state}, and never loaded"
        yield Check("cache", "warning", says, "Remove the folder; what is needed is made anew.")


def _why_not_writable(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            status = folder.stat()
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        return "belongs to another user"
    return "can be written by others" if stat.S_IMODE(status.st_mode) & 0o022 else ""


def check_store() -> Check:
    """Return whether runs can be kept, who can read them, and how many there are.

    Contract: doctor:store:facts
    """
    try:
        facts = audit_store(state_dir() / FILE_NAME)
    except CodeModeError as error:
        return Check("store", "failed", error.message, "Set CODEMODE_STATE_DIR to a folder that is yours.")
    runs = ", ".join(f"{state} {count:,}" for state, count in facts.runs.items()) or "no runs yet"
    says = f"{facts.path}, schema {facts.schema}, {facts.journal} journal, {size(facts.bytes)}: {runs}"
    if facts.fault:
        fix = "Move the file away; a new one is made."
        return Check("store", "failed", f"{facts.path} is damaged: {facts.fault}", fix)
    loose = _loose_modes(facts)
    return Check("store", "warning", f"{says}. {loose[0]}", loose[1]) if loose else Check("store", "ok", says)


def _loose_modes(facts: StoreFacts) -> tuple[str, str] | None:
    """Return what others may do with a store, and how to forbid it."""
    for path, mode, wanted in (
        (facts.path.parent, facts.folder_mode, _PRIVATE_FOLDER),
        (facts.path, facts.file_mode, _PRIVATE_FILE),
    ):
        if mode & ~wanted:
            return f"Others can get at {path} (mode {mode:o})", f"chmod {wanted:o} {path}"
    return None
