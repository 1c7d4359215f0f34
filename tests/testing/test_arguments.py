"""Made-up values satisfy their schema, and say something about the question where they can."""

import json
from typing import Any

import pytest

from tapeproxy.testing.arguments import Hints, find_field, invent_arguments, invent_json

LIMA = Hints(user="What is the weather in Lima today?")
FOUND = Hints(user="Why tides?", tool_result='{"results": [{"slug": "tides", "rank": 4}, {"slug": "tape"}]}')
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "schema", "hints", "value"),
    [
        ("city", TEXT, LIMA, "Lima"),
        ("city", TEXT, Hints(user="rain?"), "Paris"),
        ("location", TEXT, Hints(user="from New York please"), "New York"),
        ("query", TEXT, LIMA, LIMA.user),
        ("q", TEXT, LIMA, LIMA.user),
        ("slug", TEXT, FOUND, "tides"),
        ("rank", TEXT, FOUND, "rank"),  # a number is no string
        ("due_date", TEXT, LIMA, "2026-01-01"),
        ("when", {"type": "string", "format": "date-time"}, LIMA, "2026-01-01T12:00:00Z"),
        ("code", {"type": "string", "minLength": 6}, LIMA, "codexx"),
        ("question", {"type": "string", "maxLength": 4}, LIMA, "What"),
        ("unit", {"enum": ["C", "F"]}, LIMA, "C"),
        ("unit", {"const": "K"}, LIMA, "K"),
        ("n", {"type": "integer", "default": 9}, LIMA, 9),
        ("n", {"type": "integer"}, LIMA, 3),
        ("n", {"type": "integer", "minimum": 10, "maximum": 20}, LIMA, 10),
        ("n", {"type": "integer", "exclusiveMinimum": 10}, LIMA, 11),
        ("n", {"type": "integer", "maximum": 2}, LIMA, 2),
        ("n", {"type": "number", "exclusiveMaximum": 1}, LIMA, 0),
        ("ok", {"type": "boolean"}, LIMA, True),
        ("nothing", {"type": "null"}, LIMA, None),
        ("city", {"type": ["string", "null"]}, LIMA, "Lima"),
        ("city", {"anyOf": [TEXT, {"type": "null"}]}, LIMA, "Lima"),
        ("cities", {"type": "array", "items": TEXT, "minItems": 2}, LIMA, ["Lima", "Lima"]),
        ("place", {"$ref": "#/$defs/Place"}, LIMA, {"city": "Lima"}),
        ("anything", {}, LIMA, "anything"),
    ],
)
def test_one_field(name: str, schema: dict[str, Any], hints: Hints, value: object) -> None:
    place = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}
    root = {"type": "object", "properties": {name: schema}, "required": [name], "$defs": {"Place": place}}
    assert invent_arguments(root, hints) == {name: value}


def test_optional_fields_are_left_out_unless_all_are() -> None:
    fields = {"a": TEXT, "b": TEXT}
    assert invent_arguments({"properties": fields, "required": ["b"]}, LIMA) == {"b": "b"}
    assert invent_arguments({"properties": fields}, LIMA) == {"a": "a"}
    assert invent_arguments({"type": "object"}, LIMA) == {}
    assert invent_arguments({}, LIMA) == {}


@pytest.mark.parametrize(
    "inner",
    [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"type": "array", "items": {"$ref": "#"}}],
    ids=["endless", "optional", "list"],
)
def test_a_recursive_schema_ends(inner: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"child": inner}, "required": ["child"]}
    text = invent_json(schema, LIMA)
    assert len(text) < 1000
    assert "child" in json.loads(text)


def test_a_reference_to_itself_ends() -> None:
    assert invent_json({"$ref": "#"}, LIMA) == '"something"'


def test_find_field() -> None:
    assert find_field(FOUND.tool_result, "rank") == 4
    assert find_field(FOUND.tool_result, "none") is None
    assert find_field("not JSON", "rank") is None
