from collections.abc import Mapping

import pytest

from tapeproxy.tapes.lanepairs import LaneTree, pair_lanes
from tapeproxy.tapes.records import Lane


def tree(lanes: Mapping[str, str], names: Mapping[str, str] | None = None, what: str = "thread") -> LaneTree:
    """A tree of lanes, each with what it asked: a letter is a request."""
    keys = {lane: tuple(letter.encode() for letter in asked) for lane, asked in lanes.items() if asked}
    return LaneTree(keys, [Lane(t=0, id=lane, what=what, name=(names or {}).get(lane)) for lane in lanes])


def pairs(ours: LaneTree, theirs: LaneTree) -> dict[str, str]:
    return dict(pair_lanes(ours, theirs))


def test_the_same_lanes_are_each_other() -> None:
    lanes = {"m": "a", "m/t0": "b", "m/t1": "b", "m/t1/k0": "c"}
    assert pairs(tree(lanes), tree(lanes)) == {lane: lane for lane in lanes}


@pytest.mark.parametrize(
    ("ours", "theirs", "names", "expected"),
    [
        # Another thread came before them: what they ask tells them.
        ({"m/t0": "ab", "m/t1": "cd"}, {"m/t0": "x", "m/t1": "ab", "m/t2": "cd"}, {}, {"m/t0": "m/t1", "m/t1": "m/t2"}),
        # Also where some of that is another now.
        (
            {"m/t0": "abcd", "m/t1": "efgh"},
            {"m/t0": "x", "m/t1": "abcX", "m/t2": "efgX"},
            {},
            {"m/t0": "m/t1", "m/t1": "m/t2"},
        ),
        # Nothing in common: the names tell them.
        (
            {"m/t0": "ab", "m/t1": "cd"},
            {"m/t0": "CD", "m/t1": "AB"},
            ({"m/t0": "one", "m/t1": "two"}, {"m/t0": "two", "m/t1": "one"}),
            {"m/t0": "m/t1", "m/t1": "m/t0"},
        ),
        # Names that nobody gave say nothing, and then the ids count.
        (
            {"m/t0": "ab", "m/t1": "cd"},
            {"m/t0": "AB", "m/t1": "CD"},
            (
                {"m/t0": "Thread-1 (run)", "m/t1": "Thread-2 (run)"},
                {"m/t0": "Thread-2 (run)", "m/t1": "Thread-1 (run)"},
            ),
            {"m/t0": "m/t0", "m/t1": "m/t1"},
        ),
        # The first one went, and the last one has no partner.
        ({"m/t0": "a", "m/t1": "b"}, {"m/t0": "b"}, {}, {"m/t1": "m/t0"}),
        # Of one kind, in order.
        ({"m/t4": "a"}, {"m/t7": "b"}, {}, {"m/t4": "m/t7"}),
        ({"m/t10": "a", "m/t9": "b"}, {"m/t11": "A", "m/t12": "B"}, {}, {"m/t9": "m/t11", "m/t10": "m/t12"}),
    ],
)
def test_lanes_that_have_other_ids(
    ours: dict[str, str],
    theirs: dict[str, str],
    names: tuple[dict[str, str], dict[str, str]] | dict[str, str],
    expected: dict[str, str],
) -> None:
    first, second = names if isinstance(names, tuple) else ({}, {})
    found = pairs(tree(ours, first), tree(theirs, second))
    assert {a: b for a, b in found.items() if a != "m"} == expected
    assert found["m"] == "m"


def test_children_follow_their_parents() -> None:
    ours = {"m/t0": "", "m/t0/k0": "ab", "m/t1": "", "m/t1/k0": "cd"}
    theirs = {"m/t0": "x", "m/t1": "", "m/t1/k0": "ab", "m/t2": "", "m/t2/k0": "cd"}
    assert pairs(tree(ours), tree(theirs)) == {
        "m": "m",
        "m/t0": "m/t1",
        "m/t0/k0": "m/t1/k0",
        "m/t1": "m/t2",
        "m/t1/k0": "m/t2/k0",
    }


def test_many_siblings_that_all_changed_are_no_burden() -> None:
    ours = {f"m/t{at}": f"{at}-a" for at in range(3000)}
    theirs = {f"m/t{at}": f"{at}-B" for at in range(3000)}
    assert pairs(tree(ours), tree(theirs)) == {"m": "m"} | {lane: lane for lane in ours}


def test_strange_ids_are_taken_as_they_are() -> None:
    lanes = {"/": "a", "//x": "b", "\ud800/\x00": "c", "m" + "/t0" * 400: "d"}
    found = pairs(tree(lanes), tree(lanes))
    assert all(a == b for a, b in found.items()) and {*lanes} - {"/"} <= found.keys()
