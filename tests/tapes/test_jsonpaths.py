"""JSON paths: what they name, how they are written, and what is refused."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.jsonpaths import JsonPath, Step, parse_path

VALUE = {"id": 1, "a": {"id": 2, "b c": [3, {"id": 4}]}, "list": [{"id": 5, "x": 6}, {"x": 7}, 8], "…": 9}
CASES: list[tuple[str, Any]] = [
    ("$.id", {**VALUE, "id": None}),
    ("$.a.id", {**VALUE, "a": {"b c": [3, {"id": 4}]}}),
    ("$['a']['b c'][1].id", {**VALUE, "a": {"id": 2, "b c": [3, {}]}}),
    ('$.a["b c"][0]', {**VALUE, "a": {"id": 2, "b c": [{"id": 4}]}}),
    ("$.list[*].id", {**VALUE, "list": [{"x": 6}, {"x": 7}, 8]}),
    ("$.list[*]", {**VALUE, "list": []}),
    ("$.list.*.x", {**VALUE, "list": [{"id": 5}, {}, 8]}),
    ("$['…']", {**VALUE, "…": None}),
    ("$..id", {"a": {"b c": [3, {}]}, "list": [{"x": 6}, {"x": 7}, 8], "…": 9}),
    ("$.a..id", {**VALUE, "a": {"b c": [3, {}]}}),
    ("$.*", {}),
    ("$..*", {}),
]


def pruned(value: dict[str, Any]) -> dict[str, Any]:
    """A row's way of saying that a member of the top is gone: None."""
    return {name: item for name, item in value.items() if item is not None}


@pytest.mark.parametrize(("path", "left"), CASES)
def test_what_a_path_names_is_taken_out(path: str, left: Any) -> None:
    assert parse_path(path).remove(copy.deepcopy(VALUE)) == (pruned(left), True)


@pytest.mark.parametrize("path", ["$.no", "$.id.id", "$.list[9]", "$.list.id", "$['a b']", "$.a[0]", "$..no"])
def test_a_path_that_names_nothing_takes_nothing_and_says_so(path: str) -> None:
    assert parse_path(path).remove(copy.deepcopy(VALUE)) == (VALUE, False)


def test_the_whole_document() -> None:
    assert parse_path("$").remove({"a": 1}) == (None, True)


WRONG = ["", "id", ".id", "$id", "$.", "$..", "$[", "$[-1]", "$[1:2]", "$[?(@.a)]", "$.a b", "$['a", "$['\\q']", "$ "]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_path_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_path(text)


steps = st.builds(
    Step,
    st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 10**8)),
    st.booleans(),
).filter(lambda step: not (step.deep and isinstance(step.name, int)))


@given(st.lists(steps).map(tuple))
def test_a_path_is_read_as_it_was_written(made: tuple[Step, ...]) -> None:
    assert parse_path(str(JsonPath(made))) == JsonPath(made)


def test_very_deep_documents_are_no_harm() -> None:
    value: Any = {"id": 1}
    for _ in range(5000):
        value = [value]
    assert parse_path("$..id").remove(value) == (value, False)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [{"a": [1, {"b": 2}], "b": {"b": 3}}]),
        ("$.a[1].b", [2]),
        ("$.a[*]", [1, {"b": 2}]),
        ("$..b", [{"b": 3}, 2, 3]),
        ("$.*.b", [3]),
        ("$.a.b", []),
        ("$.a[7]", []),
    ],
)
def test_find(path: str, found: list[object]) -> None:
    assert parse_path(path).find({"a": [1, {"b": 2}], "b": {"b": 3}}) == found
