"""The same run gets the same choices; a nondeterministic one never does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.testing.chance import EPOCH, Chance, Dice


def chance(seed: int, *, varied: bool = False) -> Chance:
    return Chance(random.Random(seed), EPOCH, varied)


def drawn(dice: Dice, requests: list[bytes]) -> list[tuple[str, int]]:
    return [(rolled.alnum(12), rolled.now) for rolled in map(dice.roll, requests)]


def test_deterministic_choices_follow_the_request_not_the_order() -> None:
    forth, back = drawn(Dice(), [b"a", b"b"]), drawn(Dice(), [b"b", b"a"])
    assert forth == back[::-1]


def test_the_second_of_two_equal_requests_is_told_apart() -> None:
    first, second = drawn(Dice(), [b"a", b"a"])
    assert first != second
    assert [first, second] == drawn(Dice(), [b"a", b"a"])


def test_the_seed_makes_the_choices() -> None:
    assert drawn(Dice(1), [b"a"]) != drawn(Dice(2), [b"a"])


@pytest.mark.parametrize(("seed", "repeats"), [(7, True), (None, False)])
def test_nondeterministic_choices_are_fresh_each_time(seed: int | None, repeats: bool) -> None:
    here, there = (drawn(Dice(seed, nondeterministic=True), [b"a", b"a", b"a"]) for _ in range(2))
    assert len(set(here)) == 3
    assert (here == there) is repeats


@given(st.text(), st.integers())
def test_pieces_of_a_text_make_the_text(text: str, seed: int) -> None:
    for split in (chance(seed).split_text, chance(seed).split_json):
        pieces = list(split(text))
        assert "".join(pieces) == text
        assert all(pieces)


@given(st.lists(st.binary(min_size=2)), st.integers(), st.booleans())
def test_frames_carry_every_byte_of_the_events(events: list[bytes], seed: int, varied: bool) -> None:
    frames = list(chance(seed, varied=varied).frames(events))
    assert b"".join(frames) == b"".join(events)
    assert all(frames)
    assert varied or frames == events


def test_varied_framing_merges_and_splits() -> None:
    events = [b"data: %d\n\n" % n for n in range(200)]
    frames = list(chance(0, varied=True).frames(events))
    assert any(frame not in events and frame.endswith(b"\n\n") for frame in frames)  # two in one
    assert any(not frame.endswith(b"\n\n") for frame in frames)  # one in two


def test_gaps_are_uneven_and_within_bounds() -> None:
    one = chance(0)
    gaps = [one.gap(2, 10) for _ in range(100)]
    assert 0.002 <= min(gaps) < 0.003
    assert 0.008 < max(gaps) <= 0.010


def test_wordings() -> None:
    assert {chance(seed).pick("abc") for seed in range(20)} == {"a"}
    assert {chance(seed, varied=True).pick("abc") for seed in range(20)} == {"a", "b", "c"}
