"""The search for a turn, against every place it can be at, with places that can't be tested and failures that hide."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.bisecting import Found, Probe, Unsound, Verdict, search_turn


def run(places: int, verdict: Callable[[int], Verdict], **options: Any) -> tuple[Found | Unsound, list[Probe]]:
    """Drive a search by a function of the place."""
    search, probes = search_turn(places, **options), list[Probe]()
    try:
        probe = next(search)
        while True:
            probes.append(probe)
            probe = search.send(verdict(probe.place))
    except StopIteration as stop:
        return stop.value, probes


def turning(at: int) -> Callable[[int], Verdict]:
    return lambda place: "bad" if place >= at else "good"


def sometimes(at: int, chance: random.Random) -> Callable[[int], Verdict]:
    return lambda place: "bad" if place >= at and chance.random() < 0.7 else "good"


@pytest.mark.parametrize("places", [*range(1, 40), 64, 65, 100])
def test_every_turn_is_found_in_time(places: int) -> None:
    most = math.ceil(math.log2(places))
    for at in range(1, places + 1):
        found, probes = run(places, turning(at))
        assert found == Found(at - 1, at, len(probes))
        assert len(probes) <= most + 2
        found, probes = run(places, turning(at), ends="if-needed")
        assert found == Found(at - 1, at, len(probes))
        assert len(probes) <= most + (1 if places > 1 else 2)
        assert {at - 1, at} <= {probe.place for probe in probes}, "both sides of the turn were looked at"


def test_the_course_of_a_search() -> None:
    found, probes = run(8, turning(6))
    assert [probe.place for probe in probes] == [8, 0, 4, 6, 5]
    assert [probe.left for probe in probes] == [8, 8, 8, 4, 2]
    assert found == Found(5, 6, 5)


@pytest.mark.parametrize("ends", ["first", "if-needed"])
@pytest.mark.parametrize(
    ("verdict", "unsound"),
    [
        (lambda _: "good", Unsound(9, "good")),
        (lambda _: "bad", Unsound(0, "bad")),
        (lambda place: "skip" if place == 9 else "good", Unsound(9, "skip")),
        (lambda place: "skip" if place == 0 else "bad", Unsound(0, "skip")),
    ],
)
def test_ends_that_are_not_what_they_should_be(ends: str, verdict: Callable[[int], Verdict], unsound: Unsound) -> None:
    assert run(9, verdict, ends=ends)[0] == unsound


def test_nothing_to_search() -> None:
    with pytest.raises(ValueError, match="nothing between"):
        next(search_turn(0))


@given(st.integers(1, 60), st.data())
def test_what_cannot_be_tested_is_passed_over(places: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, places))
    untestable = data.draw(st.sets(st.integers(1, places - 1))) if places > 1 else set[int]()
    found, probes = run(places, lambda place: "skip" if place in untestable else turning(at)(place))
    assert isinstance(found, Found)
    assert found.good < at <= found.bad
    assert set(range(found.good + 1, found.bad)) <= untestable, "as near as can be told"
    assert len({probe.place for probe in probes}) == len(probes) == found.probed, "no place twice"


def test_a_row_that_cannot_be_built_is_left_quickly() -> None:
    """32 of 64 commits can't be built, around the middle."""
    _, probes = run(64, lambda place: "skip" if 16 < place < 48 else turning(50)(place))
    assert len(probes) <= 20, "half of what all of them would take"


def test_good_is_repeated_and_bad_is_not() -> None:
    _, probes = run(4, turning(3), repeats=3)
    assert [(probe.place, probe.attempt) for probe in probes] == [
        (4, 1),
        *((0, attempt) for attempt in (1, 2, 3)),
        *((2, attempt) for attempt in (1, 2, 3)),
        (3, 1),
    ]


def test_a_failure_that_shows_in_seven_of_ten_runs() -> None:
    """26 steps, five repeats: at least 18 of 20, and without repeats it is another matter."""

    def right(repeats: int) -> int:
        hits = 0
        for seed in range(20):
            chance = random.Random(seed)
            at = chance.randint(1, 26)
            found, _ = run(26, sometimes(at, chance), repeats=repeats)
            hits += isinstance(found, Found) and found.bad == at
        return hits

    assert right(5) >= 18
    assert right(1) < 18


@given(st.integers(2, 40), st.integers(1, 6), st.data())
def test_a_good_place_is_never_blamed(places: int, repeats: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, places))

    def verdict(place: int) -> Verdict:
        return "bad" if place >= at and (place == places or data.draw(st.booleans())) else "good"

    found, _ = run(places, verdict, repeats=repeats)
    assert isinstance(found, Found)
    assert found.bad >= at
