"""Where does it begin to fail? A binary search that asks for probes and is told verdicts. Pure: it runs nothing.

Places are numbered 0 to n: at 0 all is well, at n it fails, and somewhere in between it turns (*monotony*: once bad,
bad up to n). A probe may be repeated for the sake of failures that show only now and then; these are *one-sided*: what
is good never fails, so one failure decides, and only a bad place can be taken for a good one: where it fails in a share
p of runs, with probability (1 - p) ** repeats. A place that can't be tested (*skip*) is passed over for another one.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

type Verdict = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True)
class Probe:
    """Try `place`, for the `attempt`-th time. `left`: how many places may be the first bad one, as far as is known."""

    place: int
    attempt: int
    left: int


@dataclass(frozen=True, slots=True)
class Found:
    """It turns after `good`, at `bad`; places in between could not be tested. `probed`: how many places were tried."""

    good: int
    bad: int
    probed: int


@dataclass(frozen=True, slots=True)
class Unsound:
    """There is nothing to search for: the end `place` is not what it has to be, but `verdict`."""

    place: int
    verdict: Verdict


type Search = Generator[Probe, Verdict, Found | Unsound]


def search_turn(places: int, *, repeats: int = 1, ends: Literal["first", "if-needed"] = "first") -> Search:
    """Search for the first bad one of the places 1 to `places`; takes at most ceil(log2(places)) + 2 of them in turn.

    `ends`: probe them before anything else, the bad one first; or only where the answer would stand on one of them that
    nobody looked at, which saves a probe or two where somebody vouches for them. Untestable places cost probes of their
    own. Raises ValueError without places.
    """
    if places < 1:
        raise ValueError("there is nothing between good and bad")
    good, bad = 0, places
    known: dict[int, Verdict] = {}
    if ends == "first":
        for end, wanted in ((bad, "bad"), (good, "good")):
            known[end] = yield from _probe(end, repeats, places)
            if known[end] != wanted:
                return Unsound(end, known[end])
    skips = 0
    while middle := _between(good, bad, known, skips):
        known[middle] = verdict = yield from _probe(middle, repeats, bad - good)
        if verdict == "skip":
            skips += 1
            continue
        skips = 0
        good, bad = (middle, bad) if verdict == "good" else (good, middle)
    for end, wanted in ((bad, "bad"), (good, "good")):
        if end not in known:
            known[end] = yield from _probe(end, repeats, bad - good)
            if known[end] != wanted:
                return Unsound(end, known[end])
    return Found(good, bad, len(known))


def _probe(place: int, repeats: int, left: int) -> Generator[Probe, Verdict, Verdict]:
    for attempt in range(1, repeats + 1):
        verdict = yield Probe(place, attempt, left)
        if verdict != "good":
            return verdict
    return "good"


def _between(good: int, bad: int, known: dict[int, Verdict], skips: int) -> int:
    """The place to look at next: the middle one, and after each skip one further away; 0: there is none left.

    What can't be built stands in rows, so the neighbour of what could not be tested is a bad choice.
    """
    left = [place for place in range(good + 1, bad) if place not in known]
    return left[int(len(left) * _spread(skips))] if left else 0


def _spread(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, … (van der Corput): far from all before."""
    number, at, scale = number + 1, 0.0, 0.5
    while number:
        number, bit = divmod(number, 2)
        at += scale * bit
        scale /= 2
    return at
