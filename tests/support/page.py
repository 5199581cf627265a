"""A manifest with a tool of every source, as the page's plan and lists want it."""

import json
import sys
from pathlib import Path
from typing import Any

from codemode.core.types import CodeModeResult, Completed, Failed, Waiting
from tests.support.mcp import SERVERS

PLUGIN = "tests.support.page_plugin"
DIRECT = ["choose_file", "exec", "close_ticket", "list_tickets", "purge", "send_message"]  # those of the manifest
_HEAD = """
[tools]
{tools}

[tools.codeMode]
{switch}

[core]
tools = ["exec"]
roots = ["."]

[[tool]]
name = "send_message"
description = "Send a message to a channel."
source = "openclaw"
parameters = {{ type = "object", properties = {{ text = {{ type = "string" }} }}, required = ["text"] }}
value = {{ sent = true }}

[[tool]]
name = "choose_file"
description = "Let the person choose a file."
value = "report.pdf"

[[tool]]
name = "forbidden"
description = "Denied by policy."
value = "never"

[[plugin]]
module = "{plugin}"
id = "desk"

[mcp.servers.{server}]
command = {command}
args = {arguments}
"""


def write_manifest(folder: Path, name: str = "codemode.toml", more: str = "", **parts: Any) -> Path:
    """Write a manifest and return its path.

    Args:
        folder: Where; a file of the same name is replaced.
        name: The file.
        more: TOML to add.
        **parts: `switch` and `tools` are lines of their tables, `server` is (name, command, *arguments).
    """
    server, command, *arguments = parts.get("server", ("shelf", sys.executable, str(SERVERS / "shelf.py")))
    text = _HEAD.format(
        tools=parts.get("tools", 'deny = ["client:app:forbidden"]'),
        switch=parts.get("switch", "enabled = true"),
        plugin=PLUGIN,
        server=server,
        command=json.dumps(command),
        arguments=json.dumps(arguments),
    )
    path = folder / name
    path.write_text(text + more, encoding="utf-8")
    return path


def value_of(result: CodeModeResult) -> Any:
    """Return the value of a cell that completed."""
    assert isinstance(result, Completed), result
    return result.value


def failed(result: CodeModeResult) -> Failed:
    """Return a result that must be a failed one."""
    assert isinstance(result, Failed), result
    return result


def waiting(result: CodeModeResult) -> Waiting:
    """Return a result that must be a waiting one."""
    assert isinstance(result, Waiting), result
    return result
