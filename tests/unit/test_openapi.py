"""OpenAPI documents: which operations become tools, their schemas, and what is really sent."""

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.composition import open_toolbox
from codemode.core.errors import InvalidConfig, NestedToolFailed
from codemode.core.tables import Where
from codemode.core.types import Json
from codemode.executor import Executor
from codemode.extensions import OpenApiEntry
from codemode.manifest import load_manifest
from codemode.openapi import Operations, load_openapi
from codemode.openapi_schemas import BadReference, Schemas, follow
from tests.requirements import requirement
from tests.support.cells import FIXTURES
from tests.support.petstore import Petstore, serving
from tests.support.tools import make_context

PETSTORE = FIXTURES / "manifests" / "plugins" / "petstore.json"
WHERE = Where("codemode.toml", "openapi[0]")
OK = {"responses": {"200": {"description": "OK"}}}


def document(paths: dict[str, Json], **more: Json) -> dict[str, Json]:
    return {"openapi": "3.1.0", "servers": [{"url": "https://pets.test/v1/"}], "paths": paths} | more


def operation(**fields: Json) -> dict[str, Json]:
    return OK | {"operationId": "op"} | fields


def parameter(name: str, kind: str = "query", **fields: Json) -> dict[str, Json]:
    return {"name": name, "in": kind, "schema": {"type": "string"}} | fields


def body(media_type: str, schema: Json = True, **fields: Json) -> dict[str, Json]:
    return {"content": {media_type: {"schema": schema}}} | fields


def read(folder: Path, made: Any, name: str = "doc.json", **entry: Any) -> Operations:
    path = folder / name
    path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    given = {"spec": path, "owner": "pets", "server": None, "headers": {}, "where": WHERE} | entry
    return load_openapi(OpenApiEntry(**given))


def only(folder: Path, made: dict[str, Json], **entry: Any) -> Any:
    """Return the one tool of a document in which nothing is wrong."""
    found = read(folder, made, **entry)
    assert found.notes == ()
    (tool,) = found.tools
    return tool


def complaint(folder: Path, made: Any, name: str = "doc.json", **entry: Any) -> str:
    with pytest.raises(InvalidConfig) as caught:
        read(folder, made, name, **entry)
    return caught.value.message.replace(str(folder), "<folder>")


# ---- documents ----


@requirement("openapi:document:read", "openapi:operation:schema", "openapi:operation:isolated")
def test_the_pet_stores_operations_become_tools():
    """The fixture's document: a photo, which is no JSON, is the one that is left out."""
    found = load_openapi(OpenApiEntry(PETSTORE, "petstore", None, {}, WHERE))
    tools = {tool.name: tool for tool in found.tools}

    assert [tool.id for tool in found.tools] == [
        "client:petstore:listPets",
        "client:petstore:createPet",
        "client:petstore:get_pets_petId",
        "client:petstore:deletePet",
    ]
    assert found.notes == (
        "petstore.json, left out: PUT /pets/{petId}/photo: its body is image/png; JSON and forms are supported",
    )
    assert tools["listPets"].description == "List pets."
    assert tools["listPets"].label == "GET /pets"
    assert str(tools["listPets"].where) == "openapi[0].listPets in codemode.toml"
    assert tools["listPets"].executor.url == "https://eu.petstore.example/v1/pets"
    assert tools["listPets"].parameters == {
        "type": "object",
        "properties": {
            "tag": {"type": "array", "items": {"type": "string"}},
            "limit": {"description": "How many at most.", "type": "integer", "minimum": 1},
            "X-Request-Id": {"type": "string"},
        },
        "additionalProperties": False,
    }
    assert tools["createPet"].parameters == {
        "type": "object",
        "properties": {"body": {"$ref": "#/$defs/Pet"}},
        "additionalProperties": False,
        "required": ["body"],
        "$defs": {
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "id": {"type": "string", "readOnly": True},
                    "name": {"type": "string"},
                    "age": {"type": ["integer", "null"], "minimum": 0},
                    "parents": {"type": "array", "items": {"$ref": "#/$defs/Pet"}},
                },
            }
        },
    }
    assert tools["deletePet"].parameters["required"] == ["petId"]


@requirement("openapi:document:refused")
@pytest.mark.parametrize(
    ("made", "name", "expected"),
    [
        ("openapi: 3.0.0", "doc.yaml", "openapi[0].spec in codemode.toml: doc.yaml is YAML, and only JSON is read;"),
        ("openapi: 3.0.0", "doc.yml", "doc.yml is YAML"),
        ("{", "doc.json", "<folder>/doc.json:1:2: not JSON"),
        ("[]", "doc.json", "doc.json is no OpenAPI document; only OpenAPI 3 is read."),
        ({"swagger": "2.0"}, "doc.json", 'doc.json is Swagger "2.0"; only OpenAPI 3 is read: convert it'),
        ({"openapi": "4.0.0"}, "doc.json", 'doc.json is openapi "4.0.0"; only OpenAPI 3 is read.'),
        ({"openapi": 3.1}, "doc.json", "doc.json is openapi 3.1; only"),
        ({"openapi": "3.1.0"}, "doc.json", "doc.json has no paths."),
        ({"openapi": "3.1.0", "paths": []}, "doc.json", "doc.json has no paths."),
        (document({}, servers=[]), "doc.json", 'names no server with a whole URL; add server = "https://…".'),
        (document({}, servers=[{"url": "/v1"}]), "doc.json", "names no server with a whole URL"),
        (document({}, servers=[{"url": "ftp://x"}]), "doc.json", "names no server with a whole URL"),
        (document({}, servers=["https://x"]), "doc.json", "names no server with a whole URL"),
    ],
)
def test_a_document_that_cannot_be_used_is_an_error_of_the_manifest(tmp_path, made, name, expected):
    assert expected in complaint(tmp_path, made, name)


@requirement("openapi:document:refused")
@requirement("manifest:load:halves")
def test_halves_of_characters_in_a_document_are_marked(tmp_path):
    """What a cell is told of its tools could not be sent otherwise."""
    tool = only(tmp_path, document({"/a": {"get": operation(summary="half \ud800 a pair")}}))

    assert tool.description == "half \ufffd a pair"


def test_a_document_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InvalidConfig, match=r"openapi\[0\]\.spec in codemode\.toml: cannot read .*gone\.json"):
        load_openapi(OpenApiEntry(tmp_path / "gone.json", "pets", None, {}, WHERE))


@requirement("openapi:document:refused")
def test_a_server_in_the_manifest_is_a_url_and_a_document_a_file(tmp_path):
    manifest = tmp_path / "codemode.toml"
    manifest.write_text('[[openapi]]\nspec = "a.json"\nowner = "a"\nserver = "pets.test"\n', encoding="utf-8")

    with pytest.raises(InvalidConfig, match=r'openapi\[0\]\.server in .*: found "pets\.test"; allowed is a URL'):
        load_manifest(manifest)

    manifest.write_text('[[openapi]]\nspec = "https://pets.test/a.json"\nowner = "a"\n', encoding="utf-8")
    with pytest.raises(InvalidConfig, match=r"allowed is a file: download the document"):
        load_manifest(manifest)


# ---- operations ----


@requirement("openapi:operation:isolated", "openapi:references:local")
@pytest.mark.parametrize(
    ("path", "described", "expected"),
    [
        ("/a", {"parameters": [parameter("a", "cookie", required=True)]}, "the cookie parameter a has a form"),
        ("/a", {"parameters": [{"name": "a", "in": "query", "content": {}}]}, "the query parameter a has a form"),
        ("/a", {"parameters": [parameter("a", "body")]}, "the body parameter a has a form"),
        ("/a", {"parameters": [parameter("a", style="matrix")]}, "the style matrix of the query parameter a is not"),
        ("/a", {"parameters": [parameter("a", "header", style="form")]}, "the style form of the header parameter a"),
        ("/a", {"parameters": ["a"]}, '"a" stands where a parameter should'),
        ("/a", {"parameters": 3}, "3 stands where a parameter should"),
        ("/a", {"parameters": [{"in": "query"}]}, "stands where a parameter should"),
        ("/a", {"parameters": [{"$ref": "#/nowhere"}]}, 'the reference "#/nowhere" leads nowhere'),
        ("/a", {"parameters": [{"$ref": "other.json#/a"}]}, 'the reference "other.json#/a" leads out of the document'),
        ("/a", {"parameters": [{"$ref": 7}]}, "the reference 7 leads out of the document"),
        ("/a", {"parameters": [{"$ref": "#/components/x"}]}, 'the reference "#/components/x" goes in a circle'),
        (
            "/a",
            {"parameters": [parameter("a", schema={"type": "int"})]},
            "its input is no JSON Schema: /properties/a/type must be one of",
        ),
        ("/a", {"parameters": [parameter("a", schema="text")]}, '"text" stands where a schema should'),
        ("/a", {"parameters": [parameter("a", schema={"items": 3})]}, "3 stands where a schema should"),
        ("/a", {"requestBody": body("text/csv", required=True)}, "its body is text/csv; JSON and forms are supported"),
        ("/a", {"requestBody": {"required": True, "content": {}}}, "its body is of no type;"),
        ("/a", {"requestBody": {}}, "its body has no content"),
        ("/a", {"requestBody": 3}, "its body has no content"),
        ("/a/{id}", {}, "its path names {id}, which is no parameter of it"),
        ("/a/{id}", {"parameters": [parameter("id")]}, "its path names {id}, which is no parameter of it"),
        ("a", {}, "it is no operation"),
    ],
)
def test_an_operation_that_cannot_be_a_tool_is_reported_and_its_neighbour_stays(tmp_path, path, described, expected):
    made = document(
        {path: {"post": operation(**described)}, "/good": {"get": operation(operationId="good")}},
        components={"x": {"$ref": "#/components/x"}},
    )
    found = read(tmp_path, made)

    assert [tool.name for tool in found.tools] == ["good"]
    (note,) = found.notes
    assert note.startswith(f"doc.json, left out: POST {path}: ")
    assert expected in note


@requirement("openapi:operation:isolated")
def test_what_is_no_operation_at_all_is_no_tool(tmp_path):
    """Extensions and texts beside operations, a path that leads nowhere, an operation that is a text."""
    made = document(
        {
            "/a": {"get": operation(), "summary": "A.", "x-y": {}, "trace": {}},
            "x-extension": 3,
            "/b": {"$ref": "#/nowhere"},
            "/c": {"get": "text"},
            "/d": None,
        }
    )
    found = read(tmp_path, made)

    assert [tool.name for tool in found.tools] == ["op"]
    assert found.notes == (
        'doc.json, left out: /b: the reference "#/nowhere" leads nowhere',
        "doc.json, left out: GET /c: it is no operation",
    )


@requirement("openapi:operation:isolated")
def test_a_body_that_need_not_be_given_is_done_without(tmp_path):
    tool = only(tmp_path, document({"/a": {"post": operation(requestBody=body("image/png"))}}))

    assert tool.parameters["properties"] == {}


def places(value: Json, at: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every part of a JSON value."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in members:
        yield from places(part, (*at, key))


def replaced(value: Json, at: tuple, by: Json) -> Json:
    if not at:
        return by
    changed = copy.copy(value)
    changed[at[0]] = replaced(value[at[0]], at[1:], by)
    return changed


DOCUMENT = json.loads(PETSTORE.read_text(encoding="utf-8"))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.just({"$ref": "#/paths"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["$ref", "type", "in", "x"]), inner),
    max_leaves=5,
)


@requirement("openapi:operation:isolated", "openapi:document:refused")
@settings(max_examples=200, deadline=None)
@given(at=st.sampled_from(list(places(DOCUMENT))), by=ANYTHING)
def test_whatever_stands_in_a_document_it_is_read_or_refused(tmp_path, at, by):
    """Any part of a good document may be anything; each tool that comes of it has a schema."""
    try:
        found = read(tmp_path, replaced(DOCUMENT, at, by))
    except InvalidConfig:
        return

    assert all(tool.parameters["type"] == "object" for tool in found.tools)


@requirement("openapi:operation:schema")
def test_names_that_meet_get_their_kind_in_front(tmp_path):
    """The body keeps its name, then the first parameter."""
    parameters = [parameter("id", "path"), parameter("id"), parameter("body"), parameter("id", "header")]
    tool = only(
        tmp_path,
        document({"/a/{id}": {"post": operation(parameters=parameters, requestBody=body("application/json"))}}),
    )

    assert list(tool.parameters["properties"]) == ["body", "id", "query_id", "query_body", "header_id"]
    assert tool.parameters["required"] == ["id"]
    assert tool.executor.url == "https://pets.test/v1/a/{id}"


@requirement("openapi:operation:schema")
def test_a_parameter_of_the_operation_stands_for_that_of_its_path(tmp_path):
    item = {
        "parameters": [parameter("n", description="Of all."), parameter("all")],
        "get": operation(parameters=[parameter("n", required=True, schema={"type": "integer"})]),
    }
    tool = only(tmp_path, document({"/a": item}))

    assert tool.parameters["properties"] == {"n": {"type": "integer"}, "all": {"type": "string"}}
    assert tool.parameters["required"] == ["n"]


@requirement("openapi:operation:schema")
def test_a_name_that_is_made_of_two_meets_no_third(tmp_path):
    parameters = [parameter("path_id"), parameter("id"), parameter("id", "path")]
    tool = only(tmp_path, document({"/a/{id}": {"get": operation(parameters=parameters)}}))

    assert list(tool.parameters["properties"]) == ["path_id", "id", "path_path_id"]
    assert tool.executor.url == "https://pets.test/v1/a/{path_path_id}"


@requirement("openapi:operation:names")
def test_no_two_operations_have_one_name(tmp_path):
    odd = operation(operationId="two\nlines")
    found = read(
        tmp_path,
        document(
            {
                "/a": {"get": operation(operationId="get_b")},
                "/b": {"get": operation(operationId="get_b"), "post": operation(operationId=None)},
                "/b/": {"post": operation(operationId="")},
                "/odd": {"get": odd},
            }
        ),
    )

    assert [(tool.name, tool.label) for tool in found.tools] == [
        ("get_b", "GET /a"),
        ("get_b_2", "GET /b"),
        ("post_b", "POST /b"),
        ("post_b_2", "POST /b/"),
        ("get_odd", "GET /odd"),
    ]
    assert found.notes == ("doc.json, GET /b is get_b_2: its operationId get_b is that of another",)


@requirement("openapi:operation:schema", "openapi:operation:headers")
def test_what_others_see_to_is_no_parameter(tmp_path):
    """Optional cookies, headers that are not the caller's, and what the manifest's headers say already."""
    names = ("Accept", "content-type", "Authorization", "Host", "Content-Length", "x-api-key", "X-Trace")
    parameters = [*(parameter(name, "header", required=True) for name in names), parameter("c", "cookie")]
    tool = only(
        tmp_path,
        document({"/a": {"get": operation(parameters=parameters, requestBody=body("application/json"))}}),
        headers={"X-Api-Key": "${KEY}"},
    )

    assert list(tool.parameters["properties"]) == ["X-Trace"]
    assert tool.executor.headers == {"Accept": "application/json", "X-Api-Key": "${KEY}"}


@requirement("openapi:operation:schema")
@pytest.mark.parametrize(
    ("described", "name", "description"),
    [
        ({"operationId": None}, "get_a_b_c", "GET /a-b/{c}"),
        ({"operationId": " pets/list ", "summary": "Pets."}, "pets/list", "Pets."),
        ({"summary": " S. ", "description": "D."}, "op", "S.\nD."),
        ({"summary": 3, "description": "D."}, "op", "D."),
    ],
)
def test_a_tool_is_named_and_described_by_its_operation(tmp_path, described, name, description):
    item = {"get": operation(**described), "parameters": [parameter("c", "path")]}
    tool = only(tmp_path, document({"/a-b/{c}": item}))

    assert (tool.name, tool.description) == (name, description)


@requirement("openapi:operation:request")
def test_the_nearest_server_counts_but_for_that_of_the_manifest(tmp_path):
    own, shared = [{"url": "https://own.test"}], [{"url": "https://shared.test/"}]
    made = document(
        {
            "/a": {"get": operation(operationId="a", servers=own), "servers": shared},
            "/b": {"get": operation(operationId="b"), "servers": shared},
            "/c": {"get": operation(operationId="c", servers=[{"url": "/relative"}])},
        }
    )

    def urls(**entry: Any) -> list[str]:
        return [tool.executor.url for tool in read(tmp_path, made, **entry).tools]

    assert urls() == ["https://own.test/a", "https://shared.test/b", "https://pets.test/v1/c"]
    assert urls(server="${URL}/") == ["${URL}/a", "${URL}/b", "${URL}/c"]


@requirement("openapi:operation:request")
@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"place": {"default": "eu"}, "port": {"default": 8443}}, "https://eu.pets.test:8443/a"),
        ({"place": {"enum": ["eu"]}}, "https://{place}.pets.test:{port}/a"),
        ({"place": "eu"}, "https://{place}.pets.test:{port}/a"),
        (["place"], "https://{place}.pets.test:{port}/a"),
    ],
)
def test_variables_of_a_server_have_their_defaults(tmp_path, variables, url):
    servers = [{"url": "https://{place}.pets.test:{port}", "variables": variables}]

    assert only(tmp_path, document({"/a": {"get": operation()}}, servers=servers)).executor.url == url


@requirement("openapi:document:inert")
def test_nothing_in_a_document_stands_for_a_variable(tmp_path):
    """A document from elsewhere must not send away what is in the environment."""
    servers = [{"url": "https://pets.test/${HOME}"}]
    tool = only(
        tmp_path, document({"/a/${PATH}": {"get": operation(parameters=[parameter("PATH", "path")])}}, servers=servers)
    )

    assert tool.executor.url == "https://pets.test/$${HOME}/a/$${PATH}"


# ---- schemas ----


def convert(schema: Json, version: str = "3.0.3", **components: Json) -> tuple[Json, dict[str, Json]]:
    schemas = Schemas({"openapi": version, "components": {"schemas": components}})
    references: list[str] = []
    return schemas.convert(schema, references), schemas.gather(references)


@requirement("openapi:schemas:old-words")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a"], "nullable": True}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": True}, {"exclusiveMaximum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"example": 1, "xml": {}, "discriminator": {}, "title": "T"}, {"title": "T"}),
        ({"pattern": r"^\p{L}+$"}, {}),
        ({"pattern": "^a$"}, {"pattern": "^a$"}),
        ({"not": {"items": {"nullable": True, "type": "string"}}}, {"not": {"items": {"type": ["string", "null"]}}}),
        ({"oneOf": [{"type": "string", "nullable": True}]}, {"oneOf": [{"type": ["string", "null"]}]}),
        (True, True),
    ],
)
def test_what_version_3_0_says_its_own_way_is_said_as_json_schema(old, new):
    before = copy.deepcopy(old)

    assert convert(old) == (new, {})
    assert old == before


@requirement("openapi:schemas:old-words")
def test_what_version_3_1_says_is_json_schema_already():
    schema = {"type": ["string", "null"], "minimum": 1, "exclusiveMinimum": 0}

    assert convert(schema, "3.1.0")[0] == schema


@requirement("openapi:schemas:references")
def test_references_are_gathered_once_and_may_go_in_circles():
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#/components/schemas/Tree"}, "x": {"$ref": "#/components/schemas/a~1b"}},
    }
    schema, definitions = convert(
        {"items": {"$ref": "#/components/schemas/Tree", "description": "A tree.", "type": "ignored"}},
        Tree=tree, **{"a/b": {"type": "string"}},
    )  # fmt: skip

    assert schema == {"items": {"$ref": "#/$defs/Tree", "description": "A tree."}}
    assert definitions == {
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "x": {"$ref": "#/$defs/a_1b"}}},
        "a_1b": {"type": "string"},
    }


@requirement("openapi:schemas:references")
def test_two_definitions_of_one_name_stay_apart():
    made = {"openapi": "3.1.0", "a": {"X": {"type": "string"}}, "b": {"X": {"type": "integer"}}}
    schemas = Schemas(made)
    references: list[str] = []
    schema = schemas.convert({"anyOf": [{"$ref": "#/a/X"}, {"$ref": "#/b/X"}, {"$ref": "#/a/X"}]}, references)

    assert schema == {"anyOf": [{"$ref": "#/$defs/X"}, {"$ref": "#/$defs/X_1"}, {"$ref": "#/$defs/X"}]}
    assert schemas.gather(references) == {"X": {"type": "string"}, "X_1": {"type": "integer"}}


@requirement("openapi:schemas:references")
def test_a_long_chain_of_references_is_no_deep_schema():
    chain = {f"S{at}": {"items": {"$ref": f"#/components/schemas/S{at + 1}"}} for at in range(90)}
    _, definitions = convert({"$ref": "#/components/schemas/S0"}, **chain, S90={"items": {"items": {"items": True}}})

    assert len(definitions) == 91
    assert definitions["S89"] == {"items": {"$ref": "#/$defs/S90"}}


@requirement("openapi:schemas:bounded")
def test_of_a_great_many_schemas_the_nearest_are_kept_and_the_others_may_be_anything(monkeypatch):
    monkeypatch.setattr("codemode.openapi_schemas.MAX_OPENAPI_DEFINITIONS", 2)
    far = {"properties": {"a": {"$ref": "#/components/schemas/Far"}, "b": {"$ref": "#/components/schemas/Near"}}}
    schema, definitions = convert(
        {"items": {"$ref": "#/components/schemas/Near"}},
        Near=far,
        Far={"items": {"$ref": "#/components/schemas/Lost"}},
        Lost={"type": "string"},
    )

    assert schema == {"items": {"$ref": "#/$defs/Near"}}
    assert definitions["Far"] == {"items": {"$ref": "#/$defs/Lost"}}
    assert definitions["Lost"] == {}


@requirement("openapi:schemas:references")
def test_a_schema_that_many_refer_to_is_converted_once(tmp_path):
    pet = {"type": "object", "properties": {"mate": {"$ref": "#/components/schemas/Pet"}}}
    content = body("application/json", {"$ref": "#/components/schemas/Pet"})
    paths = {f"/{name}": {"post": operation(operationId=name, requestBody=content)} for name in "ab"}
    first, second = read(tmp_path, document(paths, components={"schemas": {"Pet": pet}})).tools

    assert first.parameters["$defs"]["Pet"] is second.parameters["$defs"]["Pet"]


@requirement("openapi:operation:isolated")
def test_a_schema_that_is_none_takes_away_only_the_operations_that_refer_to_it(tmp_path):
    broken = body("application/json", {"$ref": "#/components/schemas/Broken"})
    paths = {
        "/a": {"post": operation(operationId="a", requestBody=broken)},
        "/b": {"post": operation(operationId="b", requestBody=broken)},
        "/c": {"post": operation(operationId="c")},
    }
    found = read(tmp_path, document(paths, components={"schemas": {"Broken": {"properties": {"x": {"type": "int"}}}}}))

    assert [tool.name for tool in found.tools] == ["c"]
    said = "what #/components/schemas/Broken leads to is no JSON Schema: /properties/x/type must be one of"
    assert all(said in note for note in found.notes)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"type": "string", "examples": {"a": {"value": "b"}}}, {"type": "string"}),
        ({"type": "string", "examples": ["a"]}, {"type": "string", "examples": ["a"]}),
    ],
)
def test_what_is_often_written_wrongly_and_means_nothing_is_passed_over(written, read_as):
    assert convert(written)[0] == read_as


@requirement("manifest:schema:large-bounds")
def test_a_bound_of_64_bits_stays_a_number(tmp_path):
    bounds = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1, "default": 2**53}
    tool = only(tmp_path, document({"/a": {"get": operation(parameters=[parameter("n", schema=bounds)])}}))

    assert tool.parameters["properties"]["n"] == bounds | {"minimum": -(2.0**63), "maximum": 2.0**63}


def test_a_schema_without_an_end_is_refused():
    schema: dict = {}
    for _ in range(150):
        schema = {"items": schema}

    with pytest.raises(BadReference, match="nested deeper than 100 levels"):
        convert(schema)


@requirement("openapi:references:local")
def test_a_reference_leads_through_objects_and_lists():
    made = {"a": [{"x/y": 1}, {"$ref": "#/a/0"}]}

    assert follow(made, {"$ref": "#/a/1"}) == {"x/y": 1}
    assert follow(made, {"$ref": "#/a/0/x~1y"}) == 1
    assert follow({"/{id}": 2}, {"$ref": "#/~1%7Bid%7D"}) == 2
    for nowhere in ("#/a/2", "#/a/x", "#/a/0/x~1y/z"):
        with pytest.raises(BadReference, match="leads nowhere"):
            follow(made, {"$ref": nowhere})


# ---- requests ----

Call = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[Petstore]:
    with serving() as server:
        yield server


@pytest_asyncio.fixture
async def call(server: Petstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Call]:
    """Call an operation through a manifest and the executor, and return what came back and what was asked."""
    monkeypatch.setenv("PETS_URL", server.url)
    monkeypatch.setenv("PETS_TOKEN", "very-secret-token")

    async def send(path: str, given: Json, method: str = "get", **fields: Json) -> Any:
        (tmp_path / "pets.json").write_text(json.dumps(document({path: {method: operation(**fields)}})))
        manifest = tmp_path / "codemode.toml"
        manifest.write_text(
            '[[openapi]]\nspec = "pets.json"\nowner = "pets"\nserver = "${PETS_URL}"\n'
            'headers = { Authorization = "Bearer ${PETS_TOKEN}" }\n',
            encoding="utf-8",
        )
        async with open_toolbox(manifest) as box:
            (tool,) = box.catalog.tools
            outcome = await Executor(box.redactor, box.policy).call(tool, given, make_context())
            masked = box.redactor.text("it was very-secret-token")
        return json.loads(outcome.text), server.asked[-1], masked

    yield send


@requirement("openapi:operation:request", "openapi:operation:headers")
async def test_a_call_is_sent_as_the_document_says(call):
    parameters = [parameter("id", "path"), parameter("tag", schema={"type": "array"}), parameter("X-Trace", "header")]
    given = {"id": "a/b c", "tag": ["x", "y & z"], "X-Trace": "t-1", "body": {"name": "Rex", "n": [1]}}
    answer, asked, masked = await call(
        "/pets/{id}", given, "put", parameters=parameters, requestBody=body("application/json; charset=utf-8")
    )

    assert (asked.method, asked.path) == ("PUT", "/v1/pets/a%2Fb%20c")
    assert asked.query == [("tag", "x"), ("tag", "y & z")]
    assert (asked.headers["x-trace"], asked.headers["authorization"]) == ("t-1", "Bearer very-secret-token")
    assert (asked.headers["content-type"], asked.headers["accept"]) == ("application/json", "application/json")
    assert answer == {"path": "/v1/pets/a%2Fb%20c", "sent": {"name": "Rex", "n": [1]}}
    assert "very-secret-token" not in masked


@requirement("openapi:operation:request")
@pytest.mark.parametrize(
    ("fields", "value", "query"),
    [
        ({}, "a", [("q", "a")]),
        ({}, 1.5, [("q", "1.5")]),
        ({}, True, [("q", "true")]),
        ({}, None, []),
        ({}, ["a", 1], [("q", "a"), ("q", "1")]),
        ({}, {"a": 1, "b": "x"}, [("a", "1"), ("b", "x")]),
        ({"explode": False}, ["a", "b"], [("q", "a,b")]),
        ({"explode": False}, {"a": 1, "b": 2}, [("q", "a,1,b,2")]),
        ({"style": "spaceDelimited"}, ["a", "b"], [("q", "a b")]),
        ({"style": "pipeDelimited"}, ["a", "b"], [("q", "a|b")]),
        ({"style": "pipeDelimited", "explode": True}, ["a", "b"], [("q", "a"), ("q", "b")]),
        ({"style": "deepObject", "explode": True}, {"a": 1, "b": "x"}, [("q[a]", "1"), ("q[b]", "x")]),
    ],
)
async def test_a_query_is_written_in_its_style(call, fields, value, query):
    _, asked, _ = await call("/pets", {"q": value}, parameters=[parameter("q", **{"schema": True} | fields)])

    assert asked.query == query


@requirement("openapi:operation:request")
async def test_lists_in_paths_and_headers_are_joined_by_commas(call):
    parameters = [parameter("ids", "path", schema=True), parameter("X-Tags", "header", schema=True)]
    _, asked, _ = await call("/pets/{ids}/all", {"ids": [1, 2], "X-Tags": ["a", "b"]}, parameters=parameters)

    assert (asked.path, asked.headers["x-tags"]) == ("/v1/pets/1%2C2/all", "a,b")


@requirement("openapi:operation:request")
async def test_of_several_media_types_plain_json_is_sent(call):
    offered = {"content": {"application/x-www-form-urlencoded": {}, "text/json": {}, "application/json": {}}}
    _, asked, _ = await call("/pets", {"body": [1]}, "post", requestBody=offered)

    assert (asked.headers["content-type"], asked.body) == ("application/json", "[1]")


@requirement("openapi:operation:request")
async def test_a_parameter_of_the_path_is_filled_in_whatever_its_property_is_called(call):
    parameters = [parameter("id"), parameter("id", "path")]
    _, asked, _ = await call("/pets/{id}/all", {"id": "of the query", "path_id": "p"}, parameters=parameters)

    assert (asked.path, asked.query) == ("/v1/pets/p/all", [("id", "of the query")])


@requirement("openapi:operation:request")
@pytest.mark.parametrize(
    ("media_type", "given", "content_type", "sent"),
    [
        ("application/merge-patch+json", {"a": None}, "application/merge-patch+json", '{"a": null}'),
        ("*/*", [1, "é"], "application/json", '[1, "é"]'),
        ("application/*+json", [1], "application/json", "[1]"),
        ("text/json; charset=utf-8", [1], "text/json", "[1]"),
        (
            "application/x-www-form-urlencoded",
            {"a": "x y", "b": [1, 2]},
            "application/x-www-form-urlencoded",
            "a=x+y&b=1&b=2",
        ),
    ],
)
async def test_a_body_is_written_in_its_media_type(call, media_type, given, content_type, sent):
    _, asked, _ = await call("/pets", {"body": given}, "patch", requestBody=body(media_type, required=True))

    assert (asked.headers["content-type"], asked.body) == (content_type, sent)


@requirement("openapi:operation:request")
async def test_nothing_is_sent_where_nothing_is_given(call):
    """An optional body that is missing is no empty one, and no answer is null."""
    answer, asked, _ = await call("/pets", {}, "delete", requestBody=body("application/json"))

    assert (answer, asked.body, asked.query, "content-type" in asked.headers) == (None, "", [], False)


@requirement("openapi:operation:schema", "openapi:operation:request")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": "missing"}, 'GET [redacted]/pets/missing answered 404 Not Found: {"error": "no such pet"}'),
        ({}, "'id' is a required property"),
        ({"id": "a", "more": 1}, "'more' was unexpected"),
        ({"id": 3}, "3 is not of type 'string'"),
        ({"id": ".."}, '{id} of the URL\'s path would be "..", which leads elsewhere'),
    ],
)
async def test_what_does_not_fit_or_fails_rejects(call, given, expected):
    """The input is checked before anything is sent; a status of 400 or more is a rejection with an excerpt."""
    with pytest.raises(NestedToolFailed) as caught:
        await call("/pets/{id}", given, parameters=[parameter("id", "path")])

    assert expected in caught.value.message


async def test_a_form_is_an_object(call):
    with pytest.raises(NestedToolFailed, match=r"input\.body: \[1\] is not of type 'object'"):
        await call("/pets", {"body": [1]}, "post", requestBody=body("application/x-www-form-urlencoded"))
