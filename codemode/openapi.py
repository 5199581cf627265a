"""OpenAPI documents as tools: each operation becomes an HTTP tool with a JSON Schema of its input.

Reads OpenAPI 3 as JSON, from disk. Path, query and header parameters are properties of the input
by their names, the body is the property `body`. What comes out are the same definitions as those of
`[[tool]]` with `http`, so `tools` sends them as any other request. An operation that cannot be
understood is left out and reported; its neighbours stay.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from codemode.core.files import read_json
from codemode.core.names import UniqueNames, build_tool_id, safe_name
from codemode.core.tables import shown
from codemode.core.types import Json
from codemode.definitions import HttpTemplate, Place, PlaceKind, ToolEntry
from codemode.extensions import OpenApiEntry
from codemode.openapi_schemas import BadReference, Schemas, follow

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_WITHOUT_BODY = frozenset({"get", "head"})
_BODY = "body"
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_SET_BY_US = frozenset(
    {
        "accept", "authorization", "content-type",  # no parameters, says the specification
        "connection", "content-length", "host", "transfer-encoding",  # would break the request
    }
)  # fmt: skip
_STYLES: dict[str, dict[str, str | None]] = {
    "path": {"simple": ","},
    "header": {"simple": ","},
    "query": {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "deepObject": None},
}  # where → style, the default first → what the items of a list are joined by
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Operations(NamedTuple):
    """The tools of one document, and why others of its operations are none."""

    tools: tuple[ToolEntry, ...]
    notes: tuple[str, ...]


class _Unsupported(ValueError):
    """An operation that cannot become a tool; the message says why."""


class _Operation(NamedTuple):
    """One operation as the document has it; `shared` is what its path says for all of its operations."""

    method: str
    path: str
    spec: Mapping[str, Json]
    shared: Mapping[str, Json]

    @property
    def own_name(self) -> str | None:
        """The `operationId`, if it can name a tool."""
        given = self.spec.get("operationId") if isinstance(self.spec, Mapping) else None
        name = given.strip() if isinstance(given, str) else ""
        return name if name.isprintable() and name else None

    @property
    def path_name(self) -> str:
        """Method and path, as `get_pets_petId`."""
        words = [safe_name(step.strip("{}")) for step in self.path.split("/") if step]
        return "_".join([self.method, *words])

    @property
    def label(self) -> str:
        """Method and path, as `GET /pets/{petId}`."""
        return f"{self.method.upper()} {self.path}"

    @property
    def description(self) -> str:
        """Summary and description, where there are any."""
        texts = [self.spec.get(key) for key in ("summary", "description")]
        said = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
        return "\n".join(said) or self.label


class _Input:
    """The input of one tool as it is put together: its schema, and where each property goes."""

    def __init__(self, schemas: Schemas) -> None:
        self.places: dict[str, Place] = {}
        self._schemas = schemas
        self._references: list[str] = []
        self._properties: dict[str, Json] = {}
        self._required: list[str] = []

    def add(self, place: Place, described: Mapping[str, Json], *, required: bool) -> None:
        """Add a property for what `described` has a `schema` of; `query_id` where the name is taken."""
        schema = self._schemas.convert(described.get("schema", True), self._references)
        if isinstance(schema, dict) and isinstance(described.get("description"), str):
            schema = {"description": described["description"]} | schema
        name = place.name
        while name in self.places:
            name = f"{place.kind}_{name}"
        self._properties[name], self.places[name] = schema, place
        if required:
            self._required.append(name)

    def schema(self) -> dict[str, Json]:
        """Return the schema of the whole input.

        Raises:
            BadReference: It is none.
        """
        schema: dict[str, Json] = {"type": "object", "properties": self._properties, "additionalProperties": False}
        required = {"required": self._required} if self._required else {}
        checked: dict[str, Json] = self._schemas.check(schema | required, self._references, "its input")
        definitions = self._schemas.gather(self._references)
        return checked | ({"$defs": definitions} if definitions else {})


def load_openapi(entry: OpenApiEntry) -> Operations:
    """Read a document and turn its operations into tools, `client:<owner>:<name>`.

    Raises:
        InvalidConfig: It cannot be read, is no OpenAPI 3 in JSON, or there is no server to ask.

    Contract: openapi:document:read, openapi:document:refused, openapi:operation:isolated,
        openapi:document:hostile
    """
    document = _read_document(entry)
    reader = _Reader(document, entry)
    operations, lost = _operations(document)
    tools: list[ToolEntry] = []
    notes = [f"left out: {each}" for each in lost]
    for operation, name in zip(operations, _names(operations), strict=True):
        try:
            tools.append(reader.build(operation, name))
        except (_Unsupported, BadReference) as error:
            notes.append(f"left out: {operation.label}: {error}")
            continue
        if operation.own_name not in (None, name):
            notes.append(f"{operation.label} is {name}: its operationId {operation.own_name} is that of another")
    return Operations(tuple(tools), tuple(f"{entry.spec.name}, {note}" for note in notes))


def _names(operations: Sequence[_Operation]) -> list[str]:
    """Return a name for each operation: its operationId, else or if that is taken its method and path; none twice.

    Contract: openapi:operation:names
    """
    names: dict[str, None] = {}
    unique = UniqueNames((operation.own_name or "" for operation in operations), "_")
    for operation in operations:
        name = operation.own_name
        if name is None or name in names:
            name = unique.take(operation.path_name)
        names[name] = None
    return list(names)


class _Reader:
    """Turns operations of one document into tools."""

    def __init__(self, document: Mapping[str, Json], entry: OpenApiEntry) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self._entry = entry
        self._set_by_us = _SET_BY_US | {name.lower() for name in entry.headers}
        self._server = entry.server or _server_of(document)
        if self._server is None:
            entry.where.fail(f'{entry.spec.name} names no server with a whole URL; add server = "https://…".')

    def build(self, operation: _Operation, name: str) -> ToolEntry:
        """Return the tool of an operation.

        Raises:
            _Unsupported: Its parameters or its body have a form that no tool has.
            BadReference: Something that it refers to is not there, or a schema is none.

        Contract: openapi:operation:schema, openapi:operation:request
        """
        if not isinstance(operation.spec, Mapping) or not operation.path.startswith("/"):
            raise _Unsupported("it is no operation")
        given = _Input(self._schemas)
        media_type = self._add_body(operation, given)
        for parameter in self._parameters(operation):
            _add_parameter(parameter, given)
        own_type = {} if media_type in ("", _FORM, _JSON) else {"Content-Type": media_type}
        template = HttpTemplate(
            method=operation.method.upper(),
            url=self._server_for(operation).rstrip("/") + _fill_path(operation.path, given.places),
            headers={"Accept": _JSON} | own_type | self._entry.headers,
            body="form" if media_type == _FORM else "json",
            places=given.places,
        )
        return ToolEntry(
            id=build_tool_id("client", self._entry.owner, name),
            name=name,
            description=operation.description,
            source="client",
            owner=self._entry.owner,
            parameters=given.schema(),
            executor=template,
            label=operation.label,
            approval="never",
            timeout_ms=None,
            where=self._entry.where.at(name),
        )

    def _add_body(self, operation: _Operation, given: _Input) -> str:
        """Add the property `body` if there is one, and return its media type."""
        body = follow(self._document, operation.spec.get("requestBody"))
        if body is None or operation.method in _WITHOUT_BODY:
            return ""
        content = body.get("content") if isinstance(body, Mapping) else None
        if not isinstance(content, Mapping):
            raise _Unsupported("its body has no content")
        required = body.get("required") is True
        offered = {media_type.partition(";")[0].strip().lower(): media for media_type, media in content.items()}
        kinds = [kind for kind in offered if kind in (_FORM, _JSON, "*/*") or kind.endswith(("+json", "/json"))]
        if kinds:
            kind = _JSON if _JSON in kinds else kinds[0]
            described = offered[kind] if isinstance(offered[kind], Mapping) else {}
            if kind == _FORM:
                described = {"schema": {"type": "object", "allOf": [described.get("schema", True)]}}
            given.add(Place("body", _BODY), described, required=required)
            return _JSON if "*" in kind else kind
        if required:
            raise _Unsupported(f"its body is {' or '.join(content) or 'of no type'}; JSON and forms are supported")
        return ""

    def _parameters(self, operation: _Operation) -> list[Mapping[str, Json]]:
        """Return the parameters that a caller gives; those of the operation stand for those of its path."""
        found: dict[tuple[str, str], Mapping[str, Json]] = {}
        for listed in (operation.shared.get("parameters", []), operation.spec.get("parameters", [])):
            for each in listed if isinstance(listed, list) else [listed]:
                parameter = follow(self._document, each)
                if not isinstance(parameter, Mapping) or not isinstance(parameter.get("name"), str):
                    raise _Unsupported(f"{shown(each)} stands where a parameter should")
                found[str(parameter.get("in")), parameter["name"]] = parameter
        return [parameter for (kind, name), parameter in found.items() if self._is_asked(kind, name, parameter)]

    def _is_asked(self, kind: str, name: str, parameter: Mapping[str, Json]) -> bool:
        if kind == "cookie":
            return parameter.get("required") is True
        return kind != "header" or name.lower() not in self._set_by_us

    def _server_for(self, operation: _Operation) -> str:
        own = None if self._entry.server else _server_of(operation.spec) or _server_of(operation.shared)
        return own or self._server or ""


def _add_parameter(parameter: Mapping[str, Json], given: _Input) -> None:
    name, kind = parameter["name"], str(parameter.get("in"))
    styles = _STYLES.get(kind)
    if styles is None or "schema" not in parameter:
        raise _Unsupported(f"the {kind} parameter {name} has a form that is not supported")
    style = str(parameter.get("style", next(iter(styles))))
    if style not in styles:
        raise _Unsupported(f"the style {style} of the {kind} parameter {name} is not supported")
    explodes = kind == "query" and parameter.get("explode", style == "form") is True
    joint = None if explodes else styles[style]
    place = Place(cast("PlaceKind", kind), name, joint, keyed=style == "deepObject")
    given.add(place, parameter, required=kind == "path" or parameter.get("required") is True)


def _read_document(entry: OpenApiEntry) -> Mapping[str, Json]:
    where = entry.where.at("spec")
    if entry.spec.suffix.lower() in (".yaml", ".yml"):
        where.fail(f"{entry.spec.name} is YAML, and only JSON is read; convert it, for example with yq -o json.")
    document = read_json(entry.spec, where)
    version = document.get("openapi") if isinstance(document, dict) else None
    if not isinstance(version, str) or not version.startswith("3."):
        if isinstance(document, dict) and "swagger" in document:
            found = f"Swagger {shown(document['swagger'])}"
            where.fail(f"{entry.spec.name} is {found}; only OpenAPI 3 is read: convert it, as swagger2openapi does.")
        found = "no OpenAPI document" if version is None else f"openapi {shown(version)}"
        where.fail(f"{entry.spec.name} is {found}; only OpenAPI 3 is read.")
    if not isinstance(document.get("paths"), dict):
        where.fail(f"{entry.spec.name} has no paths.")
    checked: Mapping[str, Json] = document
    return checked


def _operations(document: Mapping[str, Json]) -> tuple[list[_Operation], list[str]]:
    """Return all operations, and which paths lead nowhere."""
    found: list[_Operation] = []
    lost: list[str] = []
    for path, item in document["paths"].items():
        try:
            shared = follow(document, item)
        except BadReference as error:
            lost.append(f"{path}: {error}")
            continue
        if isinstance(shared, Mapping):
            found += (_Operation(method, path, shared[method], shared) for method in _METHODS if method in shared)
    return found, lost


def _server_of(described: Mapping[str, Json]) -> str | None:
    """Return the first server with its variables' defaults, or None where it is no whole URL."""
    servers = described.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    if not isinstance(first, Mapping) or not isinstance(first.get("url"), str):
        return None
    variables = first.get("variables")
    known = variables if isinstance(variables, Mapping) else {}
    defaults = {
        name: str(each["default"]) for name, each in known.items() if isinstance(each, dict) and "default" in each
    }
    url = _PLACEHOLDER.sub(lambda match: defaults.get(match[1], match[0]), first["url"])
    return _literal(url) if url.lower().startswith(("http://", "https://")) else None


def _fill_path(path: str, places: Mapping[str, Place]) -> str:
    """Return the path with the tool's own names in its placeholders."""
    own_names = {place.name: name for name, place in places.items() if place.kind == "path"}

    def own_name(match: re.Match[str]) -> str:
        if match[1] not in own_names:
            raise _Unsupported(f"its path names {match[0]}, which is no parameter of it")
        return f"{{{own_names[match[1]]}}}"

    return _literal(_PLACEHOLDER.sub(own_name, path))


def _literal(text: str) -> str:
    """Return a text of the document so that nothing in it stands for a variable of the environment."""
    return text.replace("$", "$$")
