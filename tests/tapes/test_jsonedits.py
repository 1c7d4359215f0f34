"""A JSON text with one thing changed: as if read, changed and written, and every other byte as it was."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeproxy.tapes.jsonedits import Change, Operation, UnfitError, edit_json
from tapeproxy.tapes.jsonpaths import JsonPath, Step, parse_path
from tapeproxy.tapes.jsonspans import read_spans

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, keys: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [keys, *(place for key, item in items for place in places(item, (*keys, key)))]


@settings(max_examples=120, deadline=None)
@given(value=VALUES, new=VALUES, indent=st.sampled_from([None, 2]), data=st.data())
def test_as_if_read_changed_and_written(value: Any, new: Any, indent: int | None, data: st.DataObject) -> None:
    keys = data.draw(st.sampled_from(places({"r": value})[1:]))
    operation: Operation = data.draw(st.sampled_from(["set", "append", "delete"]))
    text = json.dumps({"r": value}, indent=indent, ensure_ascii=data.draw(st.booleans())).encode()
    expected = {"r": copy.deepcopy(value)}
    parent: Any = expected
    for key in keys[:-1]:
        parent = parent[key]
    if operation == "append":
        old = parent[keys[-1]]
        if isinstance(old, list):
            old.append(new)
        elif isinstance(old, str) and isinstance(new, str):
            parent[keys[-1]] = old + new
        else:
            operation = "set"
    if operation == "set":
        parent[keys[-1]] = new
    elif operation == "delete":
        del parent[keys[-1]]
    out = edit_json(text, JsonPath(tuple(map(Step, keys))), Change(operation, new))
    assert json.loads(out) == expected


@settings(max_examples=100, deadline=None)
@given(value=VALUES)
def test_every_value_stands_where_the_tree_says(value: Any) -> None:
    text = json.dumps(value, indent=1).encode()
    root = read_spans(text)
    assert root is not None
    stack = [(root, value)]
    while stack:
        node, one = stack.pop()
        assert json.loads(text[node.start : node.end]) == one
        items = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        stack += list(zip([item.node for item in node.items], items, strict=True))


@pytest.mark.parametrize(
    ("text", "path", "change", "out"),
    [
        ("[1, 2]", "$", Change("append", 3), "[1, 2,3]"),
        ("[1, 2]", "$", Change("prepend", 3), "[3,1, 2]"),
        ("[]", "$", Change("prepend", 3), "[3]"),
        ("[ ]", "$", Change("append", 3), "[ 3]"),
        ("1", "$", Change("set", {"a": "é"}), '{"a":"é"}'),
        ('{"a": 1, "a": 2}', "$.a", Change("set", 3), '{"a": 1, "a": 3}'),
        ('{"a": 1, "b": 0, "a": 2}', "$.a", Change("delete"), '{"b": 0}'),
        ('{"a": {"a": 1}}', "$..a", Change("set", 2), '{"a": 2}'),
        ('{"a": {"a": 1}, "b": {"a": [{"a": 2}]}}', "$..a", Change("delete"), '{"b": {}}'),
        ("[1, 2, 3, 4]", "$[*]", Change("delete"), "[]"),
        ('{"n": 123456789012345678901234, "a": 1}', "$.a", Change("set", 2), '{"n": 123456789012345678901234, "a": 2}'),
        (' {"a": "{\\"b\\": [1]}"} ', "$.a.b", Change("append", "x"), ' {"a": "{\\"b\\": [1,\\"x\\"]}"} '),
        ('{"a": "{\\"b\\": [1]}"}', "$.a", Change("set", "x"), '{"a": "x"}'),
    ],
)
def test_a_change(text: str, path: str, change: Change, out: str) -> None:
    assert edit_json(text.encode(), parse_path(path), change).decode() == out


@pytest.mark.parametrize("text", ["", "{", "nope", '{"a": 1}{}', "[" * 300 + "]" * 300, '{"a": "\\ud800"}'])
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(UnfitError, match="not JSON"):
        edit_json(text.encode(), parse_path("$.a"), Change("set", 1))


def test_what_json_cannot_hold() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for value, said in ((deep, "too deeply"), ("\ud800", "not UTF-8")):
        with pytest.raises(UnfitError, match=said):
            edit_json(b"{}", parse_path("$.a"), Change("set", value))
