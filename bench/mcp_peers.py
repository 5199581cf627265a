"""Other clients of MCP servers: MCP Inspector's CLI, mcporter, fastmcp; each where it was installed."""

import json
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".bench" / "mcp"
_NODE = FOLDER / "node" / "node_modules" / ".bin" / "mcp-inspector"
_PYTHON = FOLDER / "python" / "bin" / "fastmcp"
_NPM_PACKAGES = ("@modelcontextprotocol/inspector@2.12.0", "mcporter@0.12.3")
_PYTHON_PACKAGES = ("fastmcp==4.2.3",)


def install() -> dict[str, str]:
    """Install the clients that are missing, in folders of their own; return why some could not be, by name."""
    failures = {}
    for name, binary, setup in (("npm clients", _NODE, _install_node), ("fastmcp", _PYTHON, _install_python)):
        try:
            if not binary.exists():
                setup()
        except (OSError, subprocess.CalledProcessError) as error:
            failures[name] = f"{name} could not be installed: {error}"
    return failures


def _install_node() -> None:
    folder = FOLDER / "node"
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", *_NPM_PACKAGES]
    subprocess.run(command, check=True, capture_output=True)


def _install_python() -> None:
    venv.create(FOLDER / "python", with_pip=True, clear=True)
    python = FOLDER / "python" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *_PYTHON_PACKAGES], check=True, capture_output=True)


def help_commands() -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield each client that has a help of its own with the command that shows it; None where it is not installed."""
    for name, binary in (("mcporter --help", _NODE.parent / "mcporter"), ("fastmcp --help", _PYTHON)):
        yield name, (str(binary), "--help") if binary.exists() else None


def list_commands(folder: Path, server: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield each client with the command that lists the tools of a server; None where it is not installed.

    Args:
        folder: Where a client's own configuration can be written.
        server: The command of a stdio server.
    """
    config = folder / "mcporter.json"
    config.write_text(json.dumps({"mcpServers": {"everything": {"command": server[0], "args": server[1:]}}}), "utf-8")
    commands = {
        "MCP Inspector CLI": (str(_NODE), "--cli", *server, "--method", "tools/list"),
        "mcporter": (str(_NODE.parent / "mcporter"), "--config", str(config), "list", "everything", "--json"),
        "fastmcp list": (str(_PYTHON), "list", "--command", " ".join(server), "--json"),
    }
    for name, command in commands.items():
        yield name, command if Path(command[0]).exists() else None
