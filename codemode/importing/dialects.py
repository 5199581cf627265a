"""How other clients write a variable, and how the same is written in a manifest.

    ${env:NAME}  {env:NAME}  $env:NAME     Cursor, VS Code, Windsurf; OpenCode; mcporter
    ${input:id}                            VS Code asks for it: a variable named after the id
    env://NAME  keyring://id               toolplane; from a keyring: a variable named after the id
    $NAME                                  Gemini CLI
    ${workspaceFolder}                     the folder of the project that the file belongs to

`${NAME}` and `${NAME:-default}` mean the same everywhere; `$$` is one dollar in a manifest only.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from codemode.core.types import Json

_FILE = re.compile(r"\{file:[^}]*\}")
_ENV_BRACES = re.compile(r"(?<!\$)\{env:([A-Za-z_]\w*)\}")
_ENV_WHOLE = re.compile(r"(?:\$env:|env://)([A-Za-z_]\w*)\Z")
_KEYRING = re.compile(r"keyring://([\w.-]+)")
_BARE = re.compile(r"(?<!\$)\$([A-Za-z_]\w*)")
_PREFIXED = re.compile(r"\$\{(\w+):(?!-)([^}:]+)\}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH_SEPARATOR = re.compile(r"\$\{(?:pathSeparator|/)\}")


class Dialect(NamedTuple):
    """What one file's texts may mean.

    workspace: What `${workspaceFolder}` stands for; None where it is the manifest's own folder.
    project: The name of that folder.
    has_bare: Whether `$NAME` is a variable.
    defaults: Of the inputs that are asked for.
    """

    workspace: str | None
    project: str
    has_bare: bool = False
    defaults: Mapping[str, str] = {}


def dialect_of(file: Path, folder: Path, manifest_folder: Path, defaults: Mapping[str, str]) -> Dialect:
    """Return how a file's texts are to be read; `folder` is its project's, the manifest's is beside it."""
    workspace = None if folder.resolve() == manifest_folder.resolve() else str(folder)
    is_gemini = ".gemini" in file.parts or file.name == "gemini-extension.json"
    return Dialect(workspace, folder.name, is_gemini, defaults)


def variable_name(text: str) -> str:
    """Return a text as the name of an environment variable: `github-token` and `githubToken` are `GITHUB_TOKEN`."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", _HUMP.sub("_", text)).strip("_").upper()
    return f"_{name}" if name[:1].isdigit() else name or "VALUE"


def translate(value: Json, dialect: Dialect) -> Json:
    """Return a definition with every text as a manifest would have it.

    Raises:
        ValueError: It reads a file for a value, which a manifest cannot.

    Contract: importing:variables:dialects
    """
    return _map_texts(value, lambda text: _translate_text(text, dialect))


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _map_texts(item, change) for key, item in value.items()}
    return value


def _translate_text(text: str, dialect: Dialect) -> str:
    if match := _FILE.search(text):
        raise ValueError(f"{match[0]} reads a file, which a manifest cannot; put the value into a variable")
    text = text.replace("$$", "$$$$")  # two dollars elsewhere, one in a manifest
    text = _ENV_WHOLE.sub(r"${\1}", _ENV_BRACES.sub(r"${\1}", text))
    text = _KEYRING.sub(lambda match: f"${{{variable_name(match[1])}}}", text)
    if dialect.has_bare:
        text = _BARE.sub(r"${\1}", text)
    text = _PATH_SEPARATOR.sub(lambda _: os.sep, text).replace("${workspaceFolderBasename}", dialect.project)
    if dialect.workspace is not None:
        text = text.replace("${workspaceFolder}", dialect.workspace)
    return _PREFIXED.sub(lambda match: _prefixed(match[1], match[2], dialect), text)


def _prefixed(prefix: str, name: str, dialect: Dialect) -> str:
    """Return the variable for `${prefix:name}`; what is neither `env` nor `input` keeps its prefix in the name."""
    if prefix == "env":
        return f"${{{name}}}"
    default = dialect.defaults.get(name, "") if prefix == "input" else ""
    variable = variable_name(name if prefix == "input" else f"{prefix}_{name}")
    return f"${{{variable}:-{default}}}" if default else f"${{{variable}}}"
