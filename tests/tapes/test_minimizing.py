"""Delta debugging against sets that are known to matter, of every shape of tree."""

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.minimizing import Node, minimize

type Fails = Callable[[frozenset[int]], bool]


def run(roots: Sequence[Node[int]], fails: Fails) -> tuple[frozenset[int], int]:
    """What is left, and how many trials it took."""
    search, trials = minimize(roots), 0
    try:
        batch = next(search)
        while True:
            found = None
            for place, kept in enumerate(batch):
                trials += 1
                if fails(kept):
                    found = place
                    break
            batch = search.send(found)
    except StopIteration as stop:
        return stop.value, trials


def needing(*keys: int) -> Fails:
    return lambda kept: kept >= {*keys}


def tree(shape: Sequence[int], first: int = 0) -> tuple[Node[int], ...]:
    """`shape`: how many branches at each depth."""
    if len(shape) == 1:
        return tuple(Node(first + n) for n in range(shape[0]))
    below = 1
    for width in shape[1:]:
        below *= width
    return tuple(Node(-1, tree(shape[1:], first + n * below)) for n in range(shape[0]))


@pytest.mark.parametrize(("shape", "most"), [((500,), 80), ((50, 10), 60), ((25, 5, 4), 70), ((1, 1, 500), 80)])
def test_three_of_five_hundred(shape: Sequence[int], most: int) -> None:
    worst = 0
    for seed in range(20):
        matter = random.Random(seed).sample(range(500), 3)
        kept, trials = run(tree(shape), needing(*matter))
        assert kept == {*matter}
        worst = max(worst, trials)
    assert worst <= most


def test_one_leaf_alone_needs_no_trial() -> None:
    assert run((Node(7),), needing(7)) == ({7}, 0)
    assert run((Node(-1, (Node(-1, (Node(7),)),)),), needing(7)) == ({7}, 0)


def test_when_all_matter_all_stay() -> None:
    assert run(tree((4, 2)), needing(*range(8)))[0] == {*range(8)}


NODES = st.deferred(
    lambda: st.lists(st.one_of(st.none(), NODES), min_size=1, max_size=4)  # None: a leaf
)


def planted(shape: list[object] | None, count: list[int]) -> Node[int]:
    if shape is None:
        count[0] += 1
        return Node(count[0] - 1)
    return Node(-1, tuple(planted(one, count) for one in shape))  # type: ignore[arg-type]


@given(NODES, st.data())
def test_what_is_needed_is_what_is_left(shape: list[object], data: st.DataObject) -> None:
    count = [0]
    roots = [planted(one, count) for one in shape]  # type: ignore[arg-type]
    matter = data.draw(st.sets(st.integers(0, count[0] - 1), min_size=1))
    assert run(roots, needing(*matter))[0] == matter


@given(st.integers(1, 12), st.data())
def test_the_result_fails_and_is_minimal_whatever_the_failure_needs(size: int, data: st.DataObject) -> None:
    """Not only sets that grow: each of the kept sets fails or does not by a table."""
    table: dict[frozenset[int], bool] = {frozenset(): False, frozenset(range(size)): True}

    def fails(kept: frozenset[int]) -> bool:
        if kept not in table:
            table[kept] = data.draw(st.booleans())
        return table[kept]

    kept, _ = run([Node(n) for n in range(size)], fails)
    assert table[kept]
    assert not any(table.get(kept - {one}, True) for one in kept), "each one left out was tried, and did not fail"
