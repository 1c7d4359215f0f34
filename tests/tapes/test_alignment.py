import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.alignment import anchor, numbered, rising

KEYS = st.lists(st.sampled_from("abc"), max_size=12)


def longest(pairs: list[tuple[int, int]]) -> int:
    """The length of the longest run whose second members rise, by trying all."""
    best = [1] * len(pairs)
    for at, (_, b) in enumerate(pairs):
        best[at] = 1 + max((best[before] for before in range(at) if pairs[before][1] < b), default=0)
    return max(best, default=0)


@given(st.permutations(range(9)))
def test_the_longest_rising_run_is_found(seconds: list[int]) -> None:
    pairs = list(enumerate(seconds))
    found = rising(pairs)
    assert len(found) == longest(pairs)
    assert found == sorted(found) and sorted(b for _, b in found) == [b for _, b in found]
    assert set(found) <= set(pairs)


def test_keys_are_numbered() -> None:
    assert list(numbered("abab")) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("ours", "theirs", "pairs", "moved", "gaps"),
    [
        ("", "", 0, 0, []),
        ("abc", "abc", 3, 0, []),
        ("abc", "axc", 2, 0, [([1], [1])]),
        ("abc", "ac", 2, 0, [([1], [])]),
        ("ac", "abc", 2, 0, [([], [1])]),
        ("ab", "ba", 2, 1, []),
        ("aab", "ab", 2, 0, [([1], [])]),
        ("xabc", "yabcz", 3, 0, [([0], [0]), ([], [4])]),
    ],
)
def test_what_is_the_same_is_an_anchor(
    ours: str, theirs: str, pairs: int, moved: int, gaps: list[tuple[list[int], list[int]]]
) -> None:
    found = anchor(ours, theirs)
    assert (len(found.pairs), len(found.moved), found.gaps) == (pairs, moved, gaps)


@given(KEYS, KEYS)
def test_each_position_is_in_one_pair_or_one_gap(ours: list[str], theirs: list[str]) -> None:
    found = anchor(ours, theirs)
    assert all(ours[a] == theirs[b] for a, b in found.pairs)
    left = [a for a, _ in found.pairs] + [a for gap, _ in found.gaps for a in gap]
    right = [b for _, b in found.pairs] + [b for _, gap in found.gaps for b in gap]
    assert sorted(left) == list(range(len(ours)))
    assert sorted(right) == list(range(len(theirs)))
