"""Which taped request was meant? Also the property that the edited one is found, and named by its edited path."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from served import exchange, tape_of

from tapeproxy.tapes.explain import Explanation, explain
from tapeproxy.tapes.matching import Ask, Index, Miss

URL = b"https://api.example.com/v1/chat"
JSON = ((b"content-type", b"application/json"),)

LEAVES = st.none() | st.booleans() | st.integers(-999, 999) | st.text("abcdefgh ", max_size=20)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner),
)
BODIES = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), VALUES, min_size=1, max_size=5)


def explained(bodies: list[Any], asked: Any, *, give: tuple[int, ...] = ()) -> Explanation:
    tape = tape_of([exchange(URL.decode(), b"ok", method=b"POST", body=json.dumps(body).encode()) for body in bodies])
    index = Index(tape.exchanges)
    for number in give:
        index.take(ask_of(bodies[number]))
    miss = index.take(ask_of(asked))
    assert isinstance(miss, Miss)
    return explain(miss, index)


def ask_of(body: Any) -> Ask:
    return Ask(b"POST", URL, JSON, json.dumps(body).encode())


def leaf_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict) and value:
        return [found for name, item in value.items() for found in leaf_paths(item, (*path, name))]
    if isinstance(value, list) and value:
        return [found for at, item in enumerate(value) for found in leaf_paths(item, (*path, at))]
    return [path]


def written(path: tuple[Any, ...]) -> str:
    return "body $" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


@settings(max_examples=25)
@given(st.lists(BODIES, min_size=1, max_size=5), st.data())
def test_the_edited_request_is_the_nearest_and_its_edited_path_is_named(bodies: list[Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(bodies) - 1))
    path = data.draw(st.sampled_from(leaf_paths(bodies[at])))
    edited = copy.deepcopy(bodies[at])
    parent = edited
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = "an edit that nobody else made"
    found = explained(bodies, edited)
    assert found.nearest is not None
    nearest = bodies[found.nearest - 1]
    # Another body may happen to be as near as the one that was edited, but no nearer.
    if nearest == bodies[at]:
        assert [difference.where for difference in found.differences] == [written(path)]
    else:
        assume(any(body != bodies[at] for body in bodies))
        assert found.score >= explained([bodies[at]], edited).score


@pytest.mark.parametrize("key", ["model", "system", "tool", "deep"])
def test_in_a_long_conversation_the_edited_turn_is_named(key: str) -> None:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefgh", k=6)) for _ in range(200)]

    def turn(role: str) -> dict[str, Any]:
        return {"role": role, "content": " ".join(chance.choices(words, k=40))}

    bodies = []
    for _ in range(30):
        messages = [turn("system")]
        for _ in range(10):
            messages += [turn("user"), turn("assistant")]
            bodies.append({"model": "m", "messages": list(messages), "tools": [{"name": "t", "schema": {"type": "o"}}]})
    edited = copy.deepcopy(bodies[137])
    where = {
        "model": ("body $.model", lambda: edited.update(model="n")),
        "system": ("body $.messages[0].content", lambda: edited["messages"][0].update(content="x")),
        "tool": ("body $.tools[0].name", lambda: edited["tools"][0].update(name="u")),
        "deep": ("body $.tools[0].schema.type", lambda: edited["tools"][0]["schema"].update(type="p")),
    }
    place, edit = where[key]
    edit()
    found = explained(bodies, edited)
    assert found.nearest == 138
    assert [difference.where for difference in found.differences] == [place]


def test_an_answer_that_waits_is_named_before_one_that_was_given() -> None:
    bodies = [{"q": "tide at noon", "n": 1}, {"q": "tide at noon", "n": 2}]
    assert explained(bodies, {"q": "tide at noon", "n": 3}, give=(0,)).nearest == 2
    found = explained(bodies, {"q": "tide at noon", "n": 3}, give=(0, 1))
    assert (found.nearest_used, found.left) == (True, 0)
    assert "given out already" in found.why


def test_a_given_answer_is_named_when_nothing_else_comes_near() -> None:
    bodies = [{"q": "tide at noon in Dover", "n": 1}, {"other": ["thing"], "x": {"y": None}}]
    assert explained(bodies, {"q": "tide at noon in Dover", "n": 2}, give=(0,)).nearest == 1


def test_an_insertion_is_told_as_one() -> None:
    turns = [{"role": "user", "content": f"turn {n} of a long talk"} for n in range(6)]
    found = explained([{"messages": turns}], {"messages": [*turns[:2], {"role": "user", "content": "new"}, *turns[2:]]})
    assert [(d.where, d.taped) for d in found.differences] == [("body $.messages[2]", None)]


def test_the_context_of_a_call_is_told_as_messages() -> None:
    turns = [{"role": "user", "content": f"turn {n}"} for n in range(3)]
    chat = b"https://api.openai.com/v1/chat/completions"
    taped = exchange(chat.decode(), b"ok", method=b"POST", body=json.dumps({"messages": turns}).encode())
    index = Index(tape_of([taped]).exchanges)
    miss = index.take(Ask(b"POST", chat, JSON, json.dumps({"messages": turns[1:]}).encode()))
    assert isinstance(miss, Miss)
    found = explain(miss, index)
    assert [(change.kind, change.taped) for change in found.context] == [("dropped", 0)]
    text = "\n".join(found.lines(8))
    assert "dropped message 0 (user): turn 0" in text
    assert "1 answer waits still: exchange 1" in text


def test_an_empty_tape_has_nothing_near() -> None:
    found = explained([], {"q": 1})
    assert (found.nearest, found.left, found.to_json()) == (None, 0, {"waiting": [], "left": 0})


@pytest.mark.parametrize("size", [3, 40, 5000])
def test_among_many_the_nearest_is_found_to_the_byte(size: int) -> None:
    """A roughly measured likeness would hold all of these for equally near."""
    taped = [{"a": "p" * size, "n": f"{n:03}"} for n in range(400)]
    for edited in (0, 7, 250, 399):
        told = explained(taped, {**taped[edited], "n": f"{edited:03}!"})
        assert told.nearest == edited + 1
        assert [difference.where for difference in told.differences] == ["body $.n"]


@pytest.mark.parametrize("what", ["changed", "one more", "others"])
def test_a_conversation_of_thousands_of_messages_is_explained_in_little_time(what: str) -> None:
    """It took for ever once; the suite's own time limit is what this would run into."""
    turns = [{"role": "user", "content": f"turn {n} in /home/a of a long talk"} for n in range(20_000)]
    asked = {
        "changed": [turn | {"content": turn["content"].replace("/home/a", "/home/b")} for turn in turns],
        "one more": [*turns[:7000], {"role": "user", "content": "new"}, *turns[7000:]],
        "others": [{"role": "user", "content": f"something else {n}"} for n in range(19_000)],
    }[what]
    found = explained([{"messages": turns}], {"messages": asked})
    assert found.nearest == 1
    if what == "one more":
        assert [(d.where, d.taped) for d in found.differences] == [("body $.messages[7000]", None)]
