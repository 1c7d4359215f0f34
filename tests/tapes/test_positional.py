"""The n-th request of a lane gets its n-th answer, whatever it asks; nothing else is relaxed."""

from dataclasses import replace

import pytest

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.matching import Ask, Hit, Miss
from tapeproxy.tapes.positional import PositionIndex
from tapeproxy.tapes.records import Request, Response


def taped(*requests: tuple[str | None, str, bool]) -> list[Exchange]:
    """Exchanges for (lane, URL, inside)."""
    return [
        Exchange(
            number,
            number,
            Request(t=number, method=b"POST", url=url.encode(), body=b"taped", lane=lane, inside=inside),
            Response(t=number, of=number, status=200),
        )
        for number, (lane, url, inside) in enumerate(requests, 1)
    ]


def ask(lane: str | None, url: str = "https://h/other", method: bytes = b"POST") -> Ask:
    return Ask(method, url.encode(), (), b"asked", lane=lane)


def given_out(index: PositionIndex, one: Ask) -> int | None:
    found = index.take(one)
    return found.exchange.number if isinstance(found, Hit) else None


def test_each_lane_gets_its_own_in_order() -> None:
    index = PositionIndex(taped(("a", "https://h/1", False), ("b", "https://h/2", False), ("a", "https://h/3", False)))
    assert index.look(ask("a")) == index.look(ask("a"))
    assert [given_out(index, ask(lane)) for lane in "abab"] == [1, 2, 3, None]
    assert [exchange.number for exchange in index.unused()] == []
    assert index.take_exact(ask("a")) is None
    assert given_out(index, ask("c")) is None, "another lane's answer is nobody else's"


@pytest.mark.parametrize(
    "other", [ask("a", method=b"GET"), ask("a", "https://other/1"), ask("a", "https://h:444/1"), ask(None)]
)
def test_another_way_gets_nothing(other: Ask) -> None:
    index = PositionIndex(taped(("a", "https://h/1", False)))
    assert index.take(other) == Miss(other, 0)
    assert given_out(index, ask("a", "http" + "s://h:443/else")) == 1


def test_what_goes_to_a_server_of_the_run_is_compared() -> None:
    url = "http://127.0.0.1:9/x"
    index = PositionIndex(taped(("a", url, True), ("a", "https://h/1", False)))
    inside = replace_inside(ask("a", url))
    assert isinstance(index.take(inside), Miss), "its body is another one"
    assert given_out(index, inside._replace(body=b"taped")) == 1
    assert given_out(index, ask("a")) == 2


def replace_inside(one: Ask) -> Ask:
    return one._replace(inside=True)


def test_a_url_that_is_none_is_named() -> None:
    bad = taped(("a", "https://h/1", False))
    bad[0].request = replace(bad[0].request, url=b"/1")
    with pytest.raises(ValueError, match="exchange 1"):
        PositionIndex(bad)
