"""`--version`: which codemode, and which engine, parsers and libraries it stands on."""

import json
import platform
from pathlib import Path

import codemode
from codemode.cli.terminal import Terminal

_LIBRARIES = ("wasmtime", "mcp", "typer", "rich")
_GUEST_PACKAGES = ("quickjs-wasi", "acorn", "sucrase")


def show_versions(terminal: Terminal) -> None:
    """Print name and version, one a line."""
    for name, version in versions().items():
        terminal.write(f"{name} {version}")


def versions() -> dict[str, str]:
    """Return the versions of everything that a bug report should name."""
    found = {"codemode": codemode.__version__, "python": f"{platform.python_version()} ({platform.platform()})"}
    return found | _engine_versions() | {name: _library_version(name) for name in _LIBRARIES}


def _engine_versions() -> dict[str, str]:
    """Return what the build hook fetched, as the package's own `package.json` names it."""
    path = Path(codemode.__file__).parent / "sandbox" / "guest" / "package.json"
    try:
        dependencies = json.loads(path.read_text(encoding="utf-8"))["dependencies"]
    except (OSError, ValueError, KeyError):
        dependencies = {}
    return {name: dependencies.get(name, "missing: reinstall codemode") for name in _GUEST_PACKAGES}


def _library_version(name: str) -> str:
    from importlib import metadata  # 15 ms, only for whoever asks

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing: reinstall codemode"
