"""Where two replays of a tape went apart."""

import pytest

from tapeproxy.tapes.course import Course, Step
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.partings import Parting, parting

JSON = ((b"Content-Type", b"application/json"),)


def step(exchange: int | None, tag: str = "", path: str = "/", body: bytes = b"", headers: object = JSON) -> Step:
    """A step; `tag` is like `m 0 3`: lane, number, reads."""
    words = tag.split()
    lane = LaneTag(words[0], int(words[1]), int(words[2])) if words else None
    url = f"https://api.test{path}".encode()
    return Step(exchange, lane, Ask(b"POST", url, headers, body, lane=lane and lane.lane))  # type: ignore[arg-type]  # a row's headers


A0, A1, B0 = step(1, "m/a 0 3"), step(2, "m/a 1 5"), step(3, "m/b 0 0")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((), ()),
        ((A0, A1, B0), (A0, A1, B0)),
        ((A0, A1, B0), (B0, A0, A1)),  # lanes race
        ((A0, A1, B0), (A0, B0, A1)),
        ((step(1), step(2)), (step(2), step(1))),  # nobody promised an order
    ],
)
def test_the_same(one: Course, other: Course) -> None:
    assert parting(one, other) is None
    assert parting(other, one) is None


def differences(found: Parting | None) -> list[tuple[str, str | None, str | None]]:
    assert found is not None
    return [(place.where, place.taped, place.asked) for place in found.differences]


SENT = "request 1 of lane m, exchange 1, was sent otherwise"


@pytest.mark.parametrize(
    ("was", "now", "what", "first"),
    [
        (
            step(1, "m 0 3", body=b'{"a":[1,2]}'),
            step(1, "m 0 3", body=b'{"a":[1,3]}'),
            SENT,
            ("body $.a[1]", "2", "3"),
        ),
        (
            step(1, "m 0 3", body=b'{"a":1,"b":2}'),
            step(1, "m 0 3", body=b'{"b":2,"a":1}'),
            SENT,
            ("body, as written", '{"a":1,"b":2}', '{"b":2,"a":1}'),
        ),
        (step(1, "m 0 3", "/?a=1&b=2"), step(1, "m 0 3", "/?b=2&a=1"), SENT, None),
        (
            step(1, "m 0 3", headers=((b"X-Id", b"1"),)),
            step(1, "m 0 3", headers=((b"x-id", b"2"),)),
            SENT,
            ("header x-id", "1", "2"),
        ),
        (step(1, "m 0 3", headers=((b"X-Id", b"1"),)), step(1, "m 0 3", headers=()), SENT, ("header x-id", "1", None)),
        (
            step(1, "m 0 3", headers=((b"A", b"1"), (b"B", b"1"))),
            step(1, "m 0 3", headers=((b"B", b"1"), (b"A", b"1"))),
            SENT,
            ("order of headers", "A, B", "B, A"),
        ),
        (
            step(1, "m 0 3"),
            step(2, "m 0 3"),
            "request 1 of lane m is another one",
            ("request", "POST https://api.test/ (exchange 1)", "POST https://api.test/ (exchange 2)"),
        ),
        (
            step(1, path="/x"),
            step(None, path="/x"),
            "request 1 without a lane is another one",
            ("request", "POST https://api.test/x (exchange 1)", "POST https://api.test/x (unanswered)"),
        ),
    ],
)
def test_another_request(was: Step, now: Step, what: str, first: tuple[str, str, str] | None) -> None:
    found = parting((was,), (now,))
    assert found is not None
    assert (found.kind, found.what) == ("request", what)
    assert first is None or differences(found)[0] == first
    assert found.differences


def test_another_position_of_the_same_request() -> None:
    found = parting((A0, B0), (step(1, "m/a 1 4"), B0))
    assert found is not None
    assert (found.kind, found.what) == ("position", "request 1 of lane m/a, exchange 1, was made at another position")
    assert differences(found) == [("number in its lane", "0", "1"), ("clock reads before it", "3", "4")]


@pytest.mark.parametrize(("one", "other", "side"), [((A0, A1), (A0,), 1), ((A0,), (A0, A1), 2)])
def test_a_request_that_only_one_of_them_made(one: Course, other: Course, side: int) -> None:
    found = parting(one, other)
    assert found is not None
    assert found.what == "request 2 of lane m/a was made in one of the two only"
    assert [place[side] for place in differences(found)] == ["POST https://api.test/ (exchange 2)"]


def test_of_several_lanes_the_one_that_differs_first_is_told() -> None:
    late, early = step(9, "m/a 1 5"), step(8, "m/b 0 0")
    found = parting((A0, B0, A1), (A0, early, late))
    assert found is not None
    assert found.what == "request 1 of lane m/b is another one"
