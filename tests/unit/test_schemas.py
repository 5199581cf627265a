"""JSON Schema without a library agrees with the library."""

import json
import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.core.acceptor import compile_acceptor
from codemode.core.limits import MAX_JSON_DEPTH
from codemode.core.schemas import find_schema_fault
from codemode.validation import compile_check
from tests.requirements import requirement

TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, -0.0, 1.5]), st.text("ab", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)
JUNK = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from(["a", "type"]), SCALARS, max_size=2)
)
TYPE_NAMES = st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
NAME_LISTS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True)
COUNTS = st.integers(0, 3) | st.just(2.0)


def keywords(inner):
    return {
        "type": TYPE_NAMES,
        "required": NAME_LISTS,
        "enum": st.lists(VALUES, max_size=4),
        "const": VALUES,
        "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b$", "["]), inner, max_size=2),
        "additionalProperties": inner,
        "items": inner,
        "prefixItems": st.lists(inner, max_size=2),
        "anyOf": st.lists(inner, max_size=2),
        "allOf": st.lists(inner, max_size=2),
        "not": inner,
        "minimum": st.integers(-2, 2) | st.just(0.5),
        "maximum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "uniqueItems": st.booleans(),
        "oneOf": st.lists(inner, max_size=2),
        "multipleOf": st.sampled_from([0, 1, 0.5, -1]),
        "pattern": st.sampled_from(["a", "^b", "("]),
        "dependentRequired": st.dictionaries(st.sampled_from(["a"]), NAME_LISTS, max_size=1),
        "$anchor": st.sampled_from(["a", "1", "a-b", "a b"]),
        "$id": st.sampled_from(["https://x/y", "a#b", "a#"]),
        "title": st.just("t"),
        "default": VALUES,
        "x-vendor": JUNK,
    }


def schemas(spoil: bool):
    def build(inner):
        known = keywords(inner)
        options = {key: (JUNK | value if spoil else value) for key, value in known.items()}
        return st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True).flatmap(
            lambda names: st.fixed_dictionaries({name: options[name] for name in names})
        )

    return st.recursive(st.booleans() | st.just({}), build, max_leaves=6)


def is_schema(schema) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


@requirement("manifest:schema:agrees")
@settings(max_examples=400, deadline=None)
@given(schemas(spoil=True))
def test_the_table_of_rules_agrees_with_the_meta_schema(schema):
    assert (find_schema_fault(schema) is None) == is_schema(schema)


@requirement("executor:schema:fast-path-agrees")
@settings(max_examples=600, deadline=None)
@given(schemas(spoil=False).filter(is_schema), st.lists(VALUES, min_size=1, max_size=6))
def test_what_the_quick_check_accepts_is_valid(schema, values):
    accepts = compile_acceptor(schema)
    validator = jsonschema.Draft202012Validator(schema)

    for value in values:
        if accepts is not None and accepts(value):
            assert validator.is_valid(value)


@requirement("executor:schema:fast-path-agrees")
@settings(max_examples=300, deadline=None)
@given(schemas(spoil=False).filter(is_schema), VALUES)
def test_the_whole_check_agrees_with_the_library(schema, value):
    if isinstance(schema, dict):
        assert (compile_check(schema)(value) is None) == jsonschema.Draft202012Validator(schema).is_valid(value)


COMMON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 5, "description": "d", "format": "uuid"},
        "count": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "state": {"enum": ["open", None, 1]},
        "kind": {"const": "a"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["boolean", "null"]},
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["id"],
    "additionalProperties": False,
}
FULL = {
    "id": "é😀",
    "count": 2.0,
    "share": 0.5,
    "state": None,
    "kind": "a",
    "tags": ["x", "y"],
    "note": None,
    "either": True,
    "extra": {"k": 1},
}


def test_the_quick_check_knows_the_schemas_that_tools_have():
    accepts = compile_acceptor(COMMON)

    assert accepts is not None
    assert accepts({"id": "a"})
    assert accepts(FULL)


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": "abcdef"},
        {"id": None},
        {"count": -1},
        {"count": 10},
        {"count": 1.5},
        {"count": True},
        {"share": 0},
        {"share": 1},
        {"state": "shut"},
        {"state": True},
        {"kind": "b"},
        {"tags": []},
        {"tags": ["x", "y", "z"]},
        {"tags": [1]},
        {"note": 1},
        {"either": 0},
        {"extra": {"k": "v"}},
        {"other": 1},
    ],
)
def test_each_common_rule_refuses(change):
    assert not compile_acceptor(COMMON)(FULL | change)
    assert compile_check(COMMON)(FULL | change) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{}]},
        {"$ref": "#/$defs/a"},
        {"items": [{}]},
        {"enum": [[1]]},
        {"properties": {"a": {"pattern": "x"}}},
        {"additionalProperties": {"not": {}}},
        {"anyOf": [{"if": {}}]},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        False,
    ],
)
def test_the_quick_check_leaves_what_it_does_not_know(schema):
    assert compile_acceptor(schema) is None


@requirement("executor:schema:path-and-rule")
@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        (COMMON, {}, "input: 'id' is a required property (rule: required)"),
        (COMMON, {"id": 7}, "input.id: 7 is not of type 'string' (rule: type)"),
        (COMMON, {"id": "a", "tags": ["a", 2]}, "input.tags[1]: 2 is not of type 'string' (rule: type)"),
        (COMMON, [], "input: [] is not of type 'object' (rule: type)"),
        ({"pattern": "^a$"}, "b", "input: 'b' does not match '^a$' (rule: pattern)"),
        ({"$ref": "#/$defs/none"}, {}, "the tool's schema has a reference that leads nowhere: "),
    ],
)
def test_a_rejection_names_path_and_rule(schema, value, fault):
    assert (compile_check(schema)(value) or "").startswith(fault)


def _of(**a):
    return {"type": "object", "properties": {"a": a}}


@requirement("executor:schema:other-dialects")
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (_of(minimum=0, exclusiveMinimum=True), {"a": 1}, {"a": 0}),  # draft 4
        (_of(items=[{"type": "string"}], additionalItems=False), {"a": ["x"]}, {"a": [1]}),  # draft 7
        ({"$schema": "http://json-schema.org/draft-04/schema#", **_of(maximum=0, exclusiveMaximum=True)}, {}, {"a": 0}),
        ({"$schema": "https://nowhere.test/x", **_of(type="string")}, {"a": "x"}, {"a": 1}),
        ({"$schema": 7, **_of(type="string")}, {"a": "x"}, {"a": 1}),
        (_of(type="string", required=True), {"a": "x"}, {"a": 1}),
        ({**_of(type="string"), "required": None}, {}, {"a": 1}),
        ({**_of(type="string"), "required": ["a", 7]}, {"a": "x"}, {}),
        (_of(type="string", pattern=r"^\p{L}(?<rest>.*)$"), {"a": "1"}, {"a": 1}),
        (_of(type="string", title=7, description=["x"]), {"a": "x"}, {"a": 1}),
        (_of(type="any", minimum=3), {"a": 3}, {"a": 2}),
        ({"required": ["b"], "properties": ["a"], "additionalProperties": False}, {"a": 1, "b": 2}, {}),
        (_of(type="string", nullable=True), {"a": None}, {"a": 1}),
        (_of(enum=["x"], nullable=True), {"a": None}, {"a": "y"}),
        ({**_of(**{"$ref": "#/$defs/s"}, nullable=True), "$defs": {"s": {"type": "string"}}}, {"a": None}, {"a": 1}),
    ],
)
def test_a_rule_of_another_dialect_is_understood_or_passed_over_and_the_others_hold(schema, good, bad):
    """A server's tool is not lost for one of its patterns; the server checks what we cannot."""
    before = json.dumps(schema)
    check = compile_check(schema)

    assert check(good) is None
    assert "(rule: " in (check(bad) or "")
    assert json.dumps(schema) == before


@requirement("executor:schema:other-dialects")
@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMaximum": True}],
)
def test_a_schema_that_says_nothing_readable_forbids_nothing(schema):
    assert compile_check(schema)({"a": 1}) is None


@requirement("executor:schema:other-dialects")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/x", "x": [1]},
        {"$ref": None, "minimum": 0, "exclusiveMinimum": True},
        {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": {"a": 1}},
        {"properties": {"a": {"$ref": "#/x"}}, "x": {"pattern": 7}},
        {"pattern": "a{99999999999999999999}"},
    ],
)
def test_nonsense_that_a_library_stumbles_over_is_a_rejection(schema):
    """A reference may lead to anything at all."""
    assert compile_check(schema)({"a": "x"}) == "the tool's schema, or what it refers to, is no JSON Schema"


def test_a_long_value_is_cut_in_the_rejection():
    fault = compile_check({"type": "integer"})("x" * 10_000)

    assert fault is not None
    assert len(fault) < 600


@requirement("executor:schema:no-download")
def test_a_reference_to_a_url_is_never_fetched():
    fault = compile_check({"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})({"a": 1})

    assert fault == (
        "the tool's schema has a reference that leads nowhere: Unresolvable: http://127.0.0.1:9/schema.json"
    )


@requirement("executor:schema:bounded")
@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string"}},
        {"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "null"}}]},
        {"oneOf": [{"items": {"type": "string"}}, {"items": {"type": "null"}}]},
        {"items": {"anyOf": [{"type": "string"}, {"not": {}}]}},
        {"uniqueItems": True},
    ],
)
def test_a_large_hostile_input_costs_one_look_at_each_value(schema):
    looks = CountingList([1, "a", None, [], {}] * 20_000)

    fault = compile_check({"$comment": "not for the quick check", "x-vendor": 1, **schema})(looks)

    assert fault is not None
    assert len(fault) < 700
    assert looks.count <= 4


class CountingList(list):
    """A list that counts how often somebody goes through it."""

    count = 0

    def __iter__(self):
        self.count += 1
        return super().__iter__()


@pytest.mark.parametrize(
    ("value", "unique"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([0, False], True),
        ([[1], [1]], False),
        ([[1], [True]], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        (["1", 1], True),
        ([None, "null"], True),
        (["[1]", [1]], True),
        ([], True),
    ],
)
def test_unique_means_what_json_schema_calls_equal(value, unique):
    schema = {"uniqueItems": True}

    assert (compile_check(schema)(value) is None) is unique
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is unique


def test_one_of_says_how_many_hold():
    fault = compile_check({"oneOf": [{"type": "integer"}, {"minimum": 1}]})(5)

    assert fault == "input: 5 is valid under 2 of the given schemas, and only one may hold (rule: oneOf)"


def test_a_recursive_schema_and_a_deep_value_end_in_a_rejection():
    tree = {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "type": ["array", "null"]}}}
    deep = None
    for _ in range(5000):
        deep = [deep]

    assert compile_check(tree)([[None]]) is None
    assert compile_check(tree)(deep) == "the value or the tool's schema is nested too deeply"


def test_a_schema_that_is_too_deep_is_a_fault():
    deep = {}
    for _ in range(MAX_JSON_DEPTH + 1):
        deep = {"items": deep}

    assert "is nested deeper than 100 levels" in (find_schema_fault(deep) or "")


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"$defs": {"a~/b": {}}, "$ref": "#/$defs/a~0~1b"}, None),
        ({"anyOf": [{}], "$ref": "#/anyOf/0"}, None),
        ({"anyOf": [{}], "$ref": "#/anyOf/1"}, "/$ref leads nowhere: #/anyOf/1"),
        ({"$ref": "#"}, None),
        ({"$ref": 5}, "/$ref must be a text"),
        ([], "the schema must be a table (or true or false)"),
        ({"dependentRequired": {"a": "b"}}, "/dependentRequired must be a table of text lists"),
        ({"properties": []}, "/properties must be a table of schemas"),
    ],
)
def test_references_and_shapes_are_looked_into(schema, fault):
    assert find_schema_fault(schema) == fault


@requirement("executor:schema:lean")
def test_a_valid_input_of_a_common_schema_imports_no_library():
    program = (
        "import sys; from codemode.validation import compile_check; from tests.unit.test_schemas import COMMON; "
        "mods = set(m for m in sys.modules if m.startswith('jsonschema')); [sys.modules.pop(m) for m in mods]; "
        "assert compile_check(COMMON)({'id': 'a'}) is None; print('jsonschema' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "False"
