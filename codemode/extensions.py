"""`[[plugin]]` and `[[openapi]]` as checked values: what brings more tools than the manifest writes down.

Data in, nothing run: `plugins` imports what a `PluginEntry` names, `openapi` reads the document
of an `OpenApiEntry`.
"""

from pathlib import Path
from typing import NamedTuple

from codemode.core.tables import Field, Where, check_table, shown
from codemode.core.types import Json
from codemode.definitions import check_owner, exactly_one

_PLUGIN_FIELDS = {"module": Field("text"), "entryPoint": Field("text"), "id": Field("text")}
_OPENAPI_FIELDS = {
    "spec": Field("text", required=True),
    "owner": Field("text", required=True),
    "server": Field("text"),
    "headers": Field("named texts"),
}


class PluginEntry(NamedTuple):
    """One `[[plugin]]`: its id, and where its `register` is found."""

    id: str
    module: str | None
    entry_point: str | None
    where: Where


class OpenApiEntry(NamedTuple):
    """One `[[openapi]]`: a document on disk whose operations become tools of `owner`.

    `server` stands for the document's own servers; `headers` go with every request.
    """

    spec: Path
    owner: str
    server: str | None
    headers: dict[str, str]
    where: Where


def parse_plugin(table: Json, where: Where) -> PluginEntry:
    """Check one `[[plugin]]`; its id is `id`, else the module's or entry point's name.

    Raises:
        InvalidConfig: A wrong key, not exactly one of `module` and `entryPoint`, or a bad id.
    """
    fields = check_table(table, _PLUGIN_FIELDS, where)
    kind = exactly_one(fields, ("module", "entryPoint"), where)
    plugin_id: str = fields.get("id") or fields[kind]
    check_owner(plugin_id, where.at("id"))
    return PluginEntry(plugin_id, fields.get("module"), fields.get("entryPoint"), where)


def check_plugin_ids(entries: tuple[PluginEntry, ...]) -> tuple[PluginEntry, ...]:
    """Return the plugins if no two have the same id, for what they own is told apart by it.

    Raises:
        InvalidConfig: Two have.

    Contract: plugins:load:ids-unique
    """
    seen: dict[str, PluginEntry] = {}
    for entry in entries:
        first = seen.setdefault(entry.id, entry)
        if first is not entry:
            entry.where.fail(f'the id "{entry.id}" is already taken by {first.where.key}; give one of the two an id.')
    return entries


def parse_openapi(table: Json, where: Where, folder: Path) -> OpenApiEntry:
    """Check one `[[openapi]]`; the document itself is read when its tools are built.

    Raises:
        InvalidConfig: A wrong key or value.
    """
    fields = check_table(table, _OPENAPI_FIELDS, where)
    check_owner(fields["owner"], where.at("owner"))
    if fields["spec"].lower().startswith(("http://", "https://")):
        where.at("spec").fail(
            f"found {shown(fields['spec'])}; allowed is a file: download the document beside this one."
        )
    server = fields.get("server")
    if server is not None and not server.startswith(("http://", "https://", "${")):
        where.at("server").fail(f"found {shown(server)}; allowed is a URL that begins with http:// or https://.")
    return OpenApiEntry(folder / fields["spec"], fields["owner"], server, fields.get("headers", {}), where)
