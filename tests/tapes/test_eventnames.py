"""Which exchange is meant, and what is said where none is."""

import pytest
from editsamples import answered

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.eventnames import find_event, find_lane
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import Head, Lane, Request


def exchange(number: int, lane: str | None, n: int | None) -> Exchange:
    request = Request(t=0, method=b"GET", url=b"http://x.example/", lane=lane, n=n)
    return Exchange(number, number, request, answered().response)


TAPE = Tape(
    Head(),
    [exchange(1, "m", 0), exchange(2, "m/t0", 0), exchange(3, "m", 1), exchange(4, "m/t1", 0)],
    lanes=[Lane(t=0, id=one, name=name) for one, name in (("m", None), ("m/t0", "worker_a"), ("m/t1", "twin"))]
    + [Lane(t=0, id="m/t2", name="twin")],
)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), (3, 3), ("last", 4), ("m#1", 3), ("m/t0#0", 2), ("worker_a#0", 2)]
)
def test_an_exchange_by_its_name(text: str | int, number: int) -> None:
    assert find_event(TAPE, text) == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "there is no exchange 0 on the tape: it has 1 to 4"),
        ("5", "it has 1 to 4"),
        ("first", "'first' names no exchange"),
        ("m#2", "lane m made no request 2: it made 2, from 0 on"),
        ("m/t2#0", "it made none"),
        ("worker_b#0", "did you mean worker_a?"),
        ("zzz#0", "there are m, m/t0, m/t1, m/t2"),
        ("twin#0", "2 lanes are called 'twin': m/t1, m/t2"),
    ],
)
def test_an_exchange_that_is_not_there(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_event(TAPE, text)
    assert said in str(caught.value)


def test_an_empty_tape() -> None:
    with pytest.raises(UsageError, match="no exchange on the tape"):
        find_event(Tape(Head()), "1")
    with pytest.raises(UsageError, match="the tape has no lanes"):
        find_lane(Tape(Head()), "m")
