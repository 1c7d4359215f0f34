"""Where two replays of a tape went apart. Pure.

Threads and tasks race, so steps are compared lane by lane, in the order of each lane. Requests without a lane have no
order that a tape would promise: those are compared by the exchange that answered them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Literal

from tapeproxy.tapes.course import Course, Step
from tapeproxy.tapes.differences import Difference, differences
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.wording import excerpts

_MOST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step at which two courses differ: what differs, in a sentence, and the places.

    `kind`: `request`, or `position` for the same request at another place in its lane. In `differences`, `taped` is
    the one course's and `asked` the other's.
    """

    kind: Literal["request", "position"]
    what: str
    differences: tuple[Difference, ...] = ()


def parting(one: Course, other: Course) -> Parting | None:
    """Where `other` first goes another way than `one`; None when every lane took the same steps."""
    if one == other:
        return None
    ours, theirs = _lanes(one), _lanes(other)
    found = [_in_lane(ours.get(lane, []), theirs.get(lane, [])) for lane in {**ours, **theirs}]
    return min((place for place in found if place is not None), key=lambda place: place[0], default=(0, None))[1]


def _lanes(course: Course) -> dict[str | None, list[tuple[int, Step]]]:
    """The steps of each lane, each with its place in the whole course."""
    lanes: defaultdict[str | None, list[tuple[int, Step]]] = defaultdict(list)
    for at, step in enumerate(course):
        lanes[step.lane].append((at, step))
    if None in lanes:
        lanes[None].sort(key=lambda place: (place[1].exchange is None, place[1].exchange or 0, place[1].ask.url))
    return lanes


def _in_lane(one: Sequence[tuple[int, Step]], other: Sequence[tuple[int, Step]]) -> tuple[int, Parting] | None:
    for number, (was, now) in enumerate(zip_longest(one, other), 1):
        if was is None or now is None or was[1] != now[1]:
            places = [place for place, _ in filter(None, (was, now))]
            return min(places), _compare(number, was and was[1], now and now[1])
    return None


def _compare(number: int, was: Step | None, now: Step | None) -> Parting:
    step = was or now
    assert step is not None
    where = f"request {number} of lane {step.lane}" if step.lane is not None else f"request {number} without a lane"
    if was is None or now is None:
        return Parting("request", f"{where} was made in one of the two only", (_whole(was, now),))
    if (was.exchange, was.ask[:4]) == (now.exchange, now.ask[:4]):
        what = f"{where}, exchange {now.exchange}, was made at another position"
        return Parting("position", what, tuple(_positions(was, now)))
    found = tuple(islice(_requests(was, now), _MOST_DIFFERENCES))
    if was.exchange == now.exchange and now.exchange is not None:
        return Parting("request", f"{where}, exchange {now.exchange}, was sent otherwise", found)
    return Parting("request", f"{where} is another one", (_whole(was, now), *found))


def _whole(was: Step | None, now: Step | None) -> Difference:
    return Difference("request", None if was is None else _line(was), None if now is None else _line(now))


def _line(step: Step) -> str:
    answered = "unanswered" if step.exchange is None else f"exchange {step.exchange}"
    return f"{summary_line(step.ask)} ({answered})"


def _positions(was: Step, now: Step) -> Iterator[Difference]:
    ours, theirs = was.tag, now.tag
    if ours is None or theirs is None:
        return
    for what, a, b in (("number in its lane", ours.n, theirs.n), ("clock reads before it", ours.reads, theirs.reads)):
        if a != b:
            yield Difference(what, str(a), str(b))


def _requests(was: Step, now: Step) -> Iterator[Difference]:
    """Where two requests differ: what they mean first, then the headers, then bytes that mean the same."""
    meant = list(differences(was.ask.identity(), now.ask.identity()))
    yield from meant
    yield from _headers(was.ask.headers, now.ask.headers)
    if not meant and was.ask.url != now.ask.url:
        yield Difference("URL, as written", *excerpts(_text(was.ask.url), _text(now.ask.url)))
    if not meant and was.ask.body != now.ask.body:
        yield Difference("body, as written", *excerpts(_text(was.ask.body), _text(now.ask.body)))


def _headers(was: Headers, now: Headers) -> Iterator[Difference]:
    names = dict.fromkeys(name.lower() for name, _ in (*was, *now))
    for name in names:
        a, b = _values(was, name), _values(now, name)
        if a != b:
            yield Difference(f"header {_text(name)}", *excerpts(a, b))
    if sorted(was) == sorted(now) and was != now:
        yield Difference("order of headers", *excerpts(_names(was), _names(now)))


def _values(headers: Headers, name: bytes) -> str | None:
    found = [value for other, value in headers if other.lower() == name]
    return _text(b", ".join(found)) if found else None


def _names(headers: Iterable[tuple[bytes, bytes]]) -> str:
    return ", ".join(_text(name) for name, _ in headers)


def _text(data: bytes) -> str:
    return data.decode("latin-1")
