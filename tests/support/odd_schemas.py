"""Schemas as servers send them, odd ones too, each with an input that its author would call good."""

from typing import Any

from codemode.core.types import Json


def _of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _tower(levels: int) -> Any:
    tower: Any = {"type": "string"}
    for _ in range(levels):
        tower = {"type": "object", "properties": {"x": tower}}
    return tower


_LINK = {
    "type": "object",
    "properties": {"value": {"type": "number"}, "next": {"anyOf": [{"$ref": "#/$defs/link"}, {"type": "null"}]}},
    "required": ["value"],
}
_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
ODD: list[tuple[str, Json, dict[str, Json]]] = [
    ("empty", {}, {"a": 1}),
    ("properties null", {"type": "object", "properties": None}, {"a": 1}),
    ("required without properties", {"type": "object", "required": ["a", "b-c"]}, {"a": 1, "b-c": None}),
    ("required of draft 3", _of(a={"type": "string", "required": True}), {"a": "x"}),
    ("required twice", {**_of(a={"type": "string"}), "required": ["a", "a"]}, {"a": "x"}),
    ("required null", {**_of(a={"type": "string"}), "required": None}, {"a": "x"}),
    ("exclusive bounds of draft 4", _of(a={"type": "number", "minimum": 0, "exclusiveMinimum": True}), {"a": 1}),
    (
        "draft 4 by name",
        {"$schema": _DRAFT_4, "id": "urn:x", **_of(a={"type": "number", "minimum": 0, "exclusiveMinimum": True})},
        {"a": 1},
    ),
    (
        "tuple of draft 7",
        _of(a={"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": False}),
        {"a": ["x", 1]},
    ),
    (
        "tuple of 2020",
        _of(a={"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": {"type": "boolean"}}),
        {"a": ["x", 1, True, False]},
    ),
    ("a dialect that is none", {"$schema": 7, **_of(a={"type": "number"})}, {"a": 1}),
    ("a dialect nobody knows", {"$schema": "https://nowhere.test/x", **_of(a={"type": "number"})}, {"a": 1}),
    ("type any", _of(a={"type": "any"}), {"a": 1}),
    ("capital type", _of(a={"type": "String"}), {"a": "x"}),
    ("type list", _of(a={"type": ["string", "null", "array"], "items": {"type": "number"}}), {"a": [1]}),
    ("nullable", _of(a={"type": "string", "nullable": True}), {"a": None}),
    ("nullable enum", _of(a={"type": "string", "enum": ["x"], "nullable": True}), {"a": None}),
    (
        "nullable ref",
        {**_of(a={"$ref": "#/$defs/s", "nullable": True}), "$defs": {"s": {"type": "string"}}},
        {"a": None},
    ),
    (
        "ref with sibling",
        {
            **_of(a={"$ref": "#/$defs/s", "description": "d", "default": "x"}),
            "$defs": {"s": {"type": "string"}},
            "required": ["a"],
        },
        {},
    ),
    (
        "ref with properties",
        {
            **_of(a={"$ref": "#/$defs/s", "properties": {"y": {"type": "number"}}}),
            "$defs": {"s": _of(x={"type": "string"})},
        },
        {"a": {"x": "1", "y": 2}},
    ),
    (
        "default in ref",
        {
            **_of(a={"$ref": "#/$defs/s"}),
            "$defs": {"s": {**_of(x={"type": "string", "default": "d"}), "required": ["x"]}},
        },
        {"a": {}},
    ),
    (
        "default in item",
        {**_of(a={"type": "array", "items": {**_of(x={"type": "string", "default": "d"}), "required": ["x"]}})},
        {"a": [{}, {"x": "1"}]},
    ),
    (
        "default in allOf",
        {"type": "object", "allOf": [{**_of(x={"type": "string", "default": "d"}), "required": ["x"]}]},
        {},
    ),
    ("default null required", {**_of(x={"type": ["string", "null"], "default": None}), "required": ["x"]}, {}),
    ("default of wrong kind", _of(x={"type": "string", "default": {"a": [float("nan")]}}), {"x": "y"}),
    (
        "linked list",
        {**_of(head={"$ref": "#/$defs/link"}), "$defs": {"link": _LINK}},
        {"head": {"value": 1, "next": {"value": 2, "next": None}}},
    ),
    (
        "cycle of refs",
        {**_of(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {},
    ),
    ("ref to root", _of(child={"$ref": "#"}, name={"type": "string"}), {"name": "a", "child": {"name": "b"}}),
    ("remote ref unused", _of(a={"$ref": "https://x.test/s.json"}, b={"type": "number"}), {"b": 1}),
    ("anchor", {**_of(a={"$ref": "#here"}), "$defs": {"x": {"$anchor": "here", "type": "number"}}}, {"a": 1}),
    (
        "dynamic",
        {**_of(a={"$dynamicRef": "#here"}), "$defs": {"x": {"$dynamicAnchor": "here", "type": "number"}}},
        {"a": 1},
    ),
    (
        "id and relative ref",
        {"$id": "https://x.test/s", **_of(a={"$ref": "s#/$defs/n"}), "$defs": {"n": {"type": "number"}}},
        {"a": 1},
    ),
    ("not", _of(a={"not": {"type": "string"}}), {"a": 1}),
    (
        "if then else",
        {
            **_of(kind={"enum": ["a", "b"]}, x={"type": "number"}),
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"required": ["x"]},
            "else": {"required": ["kind"]},
        },
        {"kind": "a", "x": 1},
    ),
    (
        "dependencies",
        {
            **_of(a={"type": "number"}, b={"type": "number"}),
            "dependentRequired": {"a": ["b"]},
            "dependentSchemas": {"a": {"required": ["b"]}},
        },
        {"a": 1, "b": 2},
    ),
    (
        "patternProperties",
        {
            "type": "object",
            "patternProperties": {"^x-": {"type": "number"}},
            "additionalProperties": {"type": "string"},
        },
        {"x-a": 1, "b": "c"},
    ),
    (
        "pattern beside properties",
        {**_of(a={"type": "string"}), "patternProperties": {"^n": {"type": "number"}}, "additionalProperties": False},
        {"a": "x", "n1": 2},
    ),
    (
        "propertyNames",
        {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "number"}},
        {"abc": 1},
    ),
    ("unevaluated", {**_of(a={"type": "number"}), "unevaluatedProperties": False}, {"a": 1}),
    ("pattern of JavaScript", _of(a={"type": "string", "pattern": "^\\p{L}(?<rest>.*)$"}), {"a": "x"}),
    ("format unknown", _of(a={"type": "string", "format": "phone-of-mars"}), {"a": "x"}),
    ("boolean schemas", _of(a=True, b=False), {"a": 1}),
    (
        "oneOf objects",
        {
            "type": "object",
            "oneOf": [
                {**_of(kind={"const": "a"}, x={"type": "number"}), "required": ["kind", "x"]},
                {**_of(kind={"const": "b"}, y={"type": "string"}), "required": ["kind", "y"]},
            ],
        },
        {"kind": "b", "y": "s"},
    ),
    (
        "anyOf required",
        {**_of(a={"type": "string"}, b={"type": "string"}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"b": "x"},
    ),
    (
        "allOf intersect",
        {
            "allOf": [_of(a={"type": "string"}), {"$ref": "#/$defs/m"}],
            "$defs": {"m": {**_of(b={"type": "number"}), "required": ["b"]}},
        },
        {"a": "x", "b": 1},
    ),
    ("allOf required", {**_of(a={"type": "string"}), "allOf": [{"required": ["a"]}]}, {"a": "x"}),
    (
        "odd enum",
        _of(
            a={
                "enum": [
                    "",
                    "*/",
                    "\u2028",
                    'a"b\\',
                    "`${x}`",
                    "\ud83d\ude00",
                    "\n",
                    -0.0,
                    1e21,
                    1.5e-7,
                    10**30,
                    None,
                    True,
                    [1],
                    {"a": 2},
                ]
            }
        ),
        {"a": "*/"},
    ),
    ("numbers of enum", _of(a={"enum": [-1, 0, 1.5, -0.0, 1e21, 5e-324]}), {"a": -1}),
    ("empty enum", _of(a={"enum": []}), {}),
    ("huge enum", _of(a={"enum": [f"v{n}" for n in range(3000)]}), {"a": "v2999"}),
    ("const object", _of(a={"const": {"b": [1]}}), {"a": {"b": [1]}}),
    (
        "names to quote",
        _of(
            **{
                "a-b": {"type": "string"},
                "": {},
                "1": {},
                "new": {},
                'a"b': {},
                "\u2028": {},
                "__proto__": {},
                "constructor": {},
                "é": {},
                "\\u0041": {},
                "a\nb": {},
                "*/": {},
            }
        ),
        {"a-b": "x", "": 1, "1": 2, "new": 3},
    ),
    (
        "comments",
        {
            "description": 7,
            **_of(
                a={
                    "type": "string",
                    "description": "ends */ here // and /* there \\*/ \u2028 \u2029 \u0000 @param x {@link y} */",
                },
                b={"description": ["x"], "title": 7},
            ),
        },
        {"a": "x"},
    ),
    ("deep", _tower(40), {"x": {"x": {}}}),
    (
        "array of unions",
        _of(
            a={
                "type": "array",
                "items": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": ["number", "null"]}}]},
            }
        ),
        {"a": ["x", [1, None]]},
    ),
    (
        "array without items",
        _of(
            a={"type": "array"},
            b={"type": "array", "items": {}},
            c={"type": "array", "items": True},
            d={"type": "array", "items": False},
        ),
        {"a": [1], "b": ["x"], "c": [None], "d": []},
    ),
    ("closed and empty", {"type": "object", "properties": {}, "additionalProperties": False}, {}),
    (
        "a property called required",
        {
            **_of(
                required={"type": "array", "items": {"type": "string"}},
                properties=_of(a={"type": "number"}),
                type={"enum": ["object"]},
            ),
            "required": ["required", "type"],
        },
        {"required": ["x"], "type": "object", "properties": {"a": 1}},
    ),
    ("a property called default", _of(default={"type": "string", "default": "default"}), {}),
    ("allOf of nothing", {"type": "object", "allOf": [{}, True]}, {"a": 1}),
    ("not in properties", _of(a={"anyOf": [{"type": "string"}, {"not": {}}]}), {"a": "x"}),
    ("integer as float", _of(a={"type": "integer", "minimum": 1.0, "multipleOf": 1.0}), {"a": 2}),
]
