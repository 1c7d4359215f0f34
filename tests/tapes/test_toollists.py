"""Lists of tools: as each provider has them, and the line that tells how two differ."""

import json
from typing import Any

import pytest

from tapeproxy.tapes.toollists import offered, tool_changes

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"tools": [{"type": "function", "function": {"name": "search", "parameters": SCHEMA}}]}, ["search"]),
        ({"tools": [{"type": "function", "name": "search"}, {"type": "web_search"}]}, ["search", "web_search"]),
        ({"tools": [{"name": "search", "input_schema": SCHEMA}]}, ["search"]),
        ({"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]}, ["a", "b"]),
        ({"tools": [{"function_declarations": [{"name": "a"}]}, {"googleSearch": {}}]}, ["a", "googleSearch"]),
        ({"toolConfig": {"tools": [{"toolSpec": {"name": "a"}}]}}, ["a"]),
        ({"tools": "none"}, []),
        ({"tools": [{}, 3]}, []),
        ([{"tools": []}], []),
        ({"messages": []}, []),
    ],
)
def test_what_a_model_is_offered(body: Any, names: list[str]) -> None:
    assert list(offered((), json.dumps(body).encode())) == names


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": SCHEMA} | more


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([tool("a"), tool("fetch")], [tool("a"), tool("search")], "+ search, - fetch"),
        ([tool("x")], [tool("x", input_schema={})], "changed schema of x"),
        ([tool("x", description="one")], [tool("x", description="two")], "changed description of x"),
        ([tool("x", description="1")], [tool("x", input_schema={})], "changed schema and description of x"),
        ([tool("a"), tool("b")], [tool("b"), tool("a")], "another order"),
        ([tool("a")], [tool("a")], ""),
        ([], [], ""),
    ],
)
def test_changes(before: list[dict[str, Any]], after: list[dict[str, Any]], said: str) -> None:
    lists = [{one["name"]: one for one in side} for side in (before, after)]
    assert tool_changes(*lists) == (f"the tool list changed: {said}" if said else "")
