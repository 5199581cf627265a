"""The file of variables that VS Code and Cursor let a server's definition name: `envFile`.

A line is `NAME=value`, with or without `export`; a value may be quoted, and what follows ` #` outside
of quotes is a comment. Nothing in it is expanded, and everything in it is secret.
"""

import re
from pathlib import Path

from codemode.core.files import readable
from codemode.core.tables import Where

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*?)\s*\Z")
_QUOTED = re.compile(r"""(["'])((?:\\.|(?!\1).)*)\1\s*(?:#.*)?\Z""")
_COMMENT = re.compile(r"(?:^|\s)#.*\Z")
_ESCAPE = re.compile(r'\\([nrt"\\])')
_MEANT = {"n": "\n", "r": "\r", "t": "\t"}


def load_env_file(file: Path, where: Where) -> dict[str, str]:
    """Return the variables of a file; of two lines with one name the last counts.

    Raises:
        InvalidConfig: It cannot be read, or a line of it is no `NAME=value`; the line is not shown.

    Contract: mcp:config:env-file
    """
    try:
        text = readable(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        where.fail(f"{file} cannot be read: {why}; correct the path, or leave envFile out.")
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            match = _LINE.match(line)
            if match is None:
                where.fail(f"line {number} of {file} is no NAME=value.")
            variables[match[1]] = _value(match[2])
    return variables


def _value(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted is None:
        return _COMMENT.sub("", text)
    if quoted[1] == "'":
        return quoted[2]
    return _ESCAPE.sub(lambda match: _MEANT.get(match[1], match[1]), quoted[2])
