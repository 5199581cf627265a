"""Where the programs that we stand beside are found: an environment of their own, never ours."""

import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".bench" / "peers"
PACKAGES = ("quickjs-rs==0.2.6",)
HELLO = "import quickjs_rs; runtime = quickjs_rs.Runtime(); print(runtime.new_context().eval('1+1'))"


def find_python() -> Path | None:
    """Return the Python that can import the peers, or None when they are not installed."""
    named = os.environ.get("CODEMODE_BENCH_PEERS")
    folder = Path(named) if named else FOLDER
    python = folder / "bin" / "python"
    return python if python.exists() and _imports(python) else None


def install() -> Path:
    """Make the peers' environment and return its Python; a no-op where it is complete."""
    python = FOLDER / "bin" / "python"
    if not (python.exists() and _imports(python)):
        venv.create(FOLDER, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def why_missing() -> str:
    """Say how to get the peers."""
    return f"quickjs-rs is not installed; {Path(sys.executable).name} -m bench --install-peers installs it"


def _imports(python: Path) -> bool:
    return subprocess.run([python, "-c", "import quickjs_rs"], capture_output=True, check=False).returncode == 0
