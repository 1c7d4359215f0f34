"""Each answer is given out once, in the order of the tape, and nothing is guessed."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.matching import Ask, Hit, Index, Miss
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.records import End, Request, Response
from tapeproxy.tapes.rules import Rules, parse_rule

JSON = ((b"content-type", b"application/json"),)


def taped(*requests: tuple[bytes, bytes], inside: bool = False) -> list[Exchange]:
    """Exchanges for (path, JSON body) pairs."""
    return [
        Exchange(
            number,
            number,
            Request(t=number, method=b"POST", url=b"https://h" + path, headers=JSON, body=body, inside=inside),
            Response(t=number, of=number, status=200),
        )
        for number, (path, body) in enumerate(requests, 1)
    ]


def ask(path: bytes, body: bytes = b"{}") -> Ask:
    return Ask(b"POST", b"https://h" + path, JSON, body)


def numbers(index: Index, *asks: Ask) -> list[int | str]:
    """The numbers of the exchanges given out; 'miss N' where N of that identity were used up."""
    results = (index.take(one) for one in asks)
    return [r.exchange.number if isinstance(r, Hit) else f"miss {r.used}" for r in results]


def test_a_counter_gives_its_answers_in_order_and_then_misses() -> None:
    index = Index(taped((b"/n", b"{}"), (b"/n", b"{}"), (b"/n", b"{}")))
    assert numbers(index, *[ask(b"/n")] * 5) == [1, 2, 3, "miss 3", "miss 3"]


def test_three_urls_twice_each_interleaved() -> None:
    index = Index(taped(*[(path, b"{}") for path in (b"/a", b"/b", b"/c", b"/b", b"/a", b"/c")]))
    asked = [ask(path) for path in (b"/c", b"/a", b"/a", b"/b", b"/c", b"/b")]
    assert numbers(index, *asked) == [3, 1, 5, 2, 6, 4]
    assert [*index.unused()] == []


def test_what_was_never_taped_is_a_miss_that_says_so() -> None:
    index = Index(taped((b"/a", b'{"x":1}')))
    assert numbers(index, ask(b"/b"), ask(b"/a", b'{"x":2}'), ask(b"/a", b'{"x":1}')) == ["miss 0", "miss 0", 1]


def test_a_request_that_is_equal_byte_for_byte_does_not_overtake_an_equal_one() -> None:
    index = Index(taped((b"/a", b'{"x":1,"y":2}'), (b"/a", b'{"y":2,"x":1}')))
    assert numbers(index, ask(b"/a", b'{"y":2,"x":1}'), ask(b"/a", b'{"y":2,"x":1}')) == [1, 2]


def test_history_and_model_tell_calls_apart() -> None:
    rounds = [b'{"m":"a","h":[1]}', b'{"m":"a","h":[1,2]}', b'{"m":"b","h":[1]}']
    index = Index(taped(*[(b"/chat", body) for body in rounds]))
    assert numbers(index, *[ask(b"/chat", body) for body in (rounds[2], rounds[1], rounds[0])]) == [3, 2, 1]


def test_inside_traffic_is_apart_from_the_world() -> None:
    index = Index(taped((b"/a", b"{}"), inside=True))
    assert isinstance(index.take(ask(b"/a")), Miss)
    inside = Ask(b"POST", b"https://127.0.0.1:9/a", JSON, b"{}", inside=True)
    assert index.knows(inside)
    assert isinstance(index.take(inside), Hit)
    assert index.knows(inside)


def test_an_exchange_whose_outcome_is_unknown_is_never_an_answer() -> None:
    (cut,) = taped((b"/a", b"{}"))
    cut.response = None
    assert numbers(Index([cut]), ask(b"/a")) == ["miss 0"]
    cut.end = End(t=9, of=1, how="connect-error")
    assert numbers(Index([cut]), ask(b"/a")) == [1]


@given(
    st.lists(st.tuples(st.sampled_from([b"/a", b"/b"]), st.integers(0, 2), st.booleans()), max_size=12), st.randoms()
)
def test_any_order_of_asking_gives_each_identity_its_answers_in_order(
    calls: list[tuple[bytes, int, bool]], random: Random
) -> None:
    bodies = [b'{"x":%d,"y":0}' % x if swap else b'{"y":0,"x":%d}' % x for _, x, swap in calls]
    index = Index(taped(*[(path, body) for (path, _, _), body in zip(calls, bodies, strict=True)]))
    order = list(range(len(calls)))
    random.shuffle(order)
    given_out: dict[tuple[bytes, int], list[int]] = {}
    for at in order:
        path, x, swap = calls[at]
        hit = index.take(ask(path, b'{"y":0,"x":%d}' % x if swap else b'{"x":%d,"y":0}' % x))
        assert isinstance(hit, Hit)
        given_out.setdefault((path, x), []).append(hit.exchange.number)
    for (path, x), taken in given_out.items():
        expected = [n for n, (p, v, _) in enumerate(calls, 1) if (p, v) == (path, x)]
        assert taken == expected


@pytest.mark.parametrize("url", [b"", b"/relative"])
def test_a_url_that_is_not_absolute_is_refused(url: bytes) -> None:
    with pytest.raises(ValueError, match="absolute"):
        Index([]).take(Ask(b"GET", url, (), b""))


# --- lanes ---------------------------------------------------------------------------------------------------------


def laned(*lanes: str | None) -> list[Exchange]:
    """Equal requests, each from its lane."""
    exchanges = taped(*[(b"/a", b"{}")] * len(lanes))
    for exchange, lane in zip(exchanges, lanes, strict=True):
        exchange.request = replace(exchange.request, lane=lane)
    return exchanges


def of(lane: str | None, body: bytes = b"{}") -> Ask:
    return ask(b"/a", body)._replace(lane=lane)


def test_each_lane_has_its_own_answers_whoever_asks_first() -> None:
    index = Index(laned("m/t0", "m/t1", "m/t0", "m/t1"))
    assert numbers(index, of("m/t1"), of("m/t1"), of("m/t0"), of("m/t0")) == [2, 4, 1, 3]


def test_an_answer_of_another_lane_is_not_given_out_but_named() -> None:
    index = Index(laned("m/t0", "m/t1"))
    assert numbers(index, of("m/t0")) == [1]
    miss = index.take(of("m/t0"))
    assert isinstance(miss, Miss)
    assert (miss.used, miss.elsewhere) == (1, "m/t1")
    assert numbers(Index(laned("m/t0", "m/t1"), by_lane=False), of("m/t0"), of("m/t0")) == [1, 2]


@pytest.mark.parametrize("lane", [None, "?p7", "m/t9"])
def test_who_has_no_lane_on_the_tape_may_have_any_answer_in_order(lane: str | None) -> None:
    index = Index(laned("m/t0", "m/t1", None))
    assert numbers(index, *[of(lane)] * 4) == [1, 2, 3, "miss 3"]


def test_a_lane_may_have_what_came_without_a_lane() -> None:
    index = Index(laned(None, "m/t0", "m/t1"))
    assert numbers(index, of("m/t0"), of("m/t0"), of("m/t0")) == [1, 2, "miss 2"]


def test_lanes_hold_where_only_the_identity_is_the_same() -> None:
    exchanges = taped((b"/a", b'{"x":1,"y":2}'), (b"/a", b'{"x":1,"y":2}'))
    for exchange, lane in zip(exchanges, ("m/t0", "m/t1"), strict=True):
        exchange.request = replace(exchange.request, lane=lane)
    index = Index(exchanges)
    assert numbers(index, of("m/t1", b'{ "y":2, "x":1 }'), of("m/t0", b'{ "y":2, "x":1 }')) == [2, 1]


# --- rules ---------------------------------------------------------------------------------------------------------


def reading(*rules: tuple[str, str]) -> Reading:
    return Reading(rules=Rules(tuple(parse_rule(*rule) for rule in rules)))


IGNORED = reading(("ignore-json", "h/a: $.n"), ("ignore-query", "ts"))


def loosely(path: bytes, body: bytes) -> Ask:
    return ask(path, body)._replace(reading=IGNORED)


def test_what_differs_in_an_ignored_value_only_is_answered_in_turn() -> None:
    index = Index(
        taped((b"/a", b'{"n":9,"x":1}'), (b"/a", b'{"n":10,"x":1}'), (b"/a", b'{"n":11,"x":2}')), reading=IGNORED
    )
    asked = [loosely(b"/a", b'{"n":%d,"x":%d}' % pair) for pair in ((10, 1), (11, 1), (12, 1), (9, 2))]
    # The first is the second of the tape byte for byte, but the n-th one gets the n-th answer.
    assert numbers(index, *asked) == [1, 2, "miss 2", 3]


def test_a_rule_does_not_reach_past_its_place() -> None:
    index = Index(taped((b"/a", b'{"n":1}'), (b"/b", b'{"n":1}'), (b"/b?ts=1", b"{}")), reading=IGNORED)
    asked = [loosely(b"/b", b'{"n":2}'), loosely(b"/a?ts=5", b'{"n":2}'), loosely(b"/b?ts=22", b"{}")]
    assert numbers(index, *asked) == ["miss 0", 1, 3]


def test_a_rewritten_path_is_the_same_place() -> None:
    version = reading(("rewrite-url", r"/v\d+/=/v/"))
    index = Index(taped((b"/v1/a", b"{}"), (b"/v22/a", b"{}")), reading=version)
    asked = [ask(path)._replace(reading=version) for path in (b"/v22/a", b"/v333/a")]
    assert numbers(index, *asked) == [1, 2]


def test_a_header_that_a_rule_adds_tells_requests_apart_byte_for_byte_too() -> None:
    beta = reading(("match-header", "X-Beta"))
    exchanges = taped((b"/a", b"{}"), (b"/a", b"{}"))
    for exchange, value in zip(exchanges, (b"1", b"2"), strict=True):
        exchange.request = replace(exchange.request, headers=(*JSON, (b"X-Beta", value)))
    index = Index(exchanges, reading=beta)
    asked = [ask(b"/a")._replace(headers=(*JSON, (b"x-beta", value)), reading=beta) for value in (b"2", b"3", b"1")]
    assert numbers(index, *asked) == [2, "miss 0", 1]


def test_a_taped_url_that_is_not_absolute_is_named_with_its_exchange() -> None:
    exchanges = taped((b"/a", b"{}"), (b"/b", b"{}"))
    exchanges[1].request = replace(exchanges[1].request, url=b"/b")
    with pytest.raises(ValueError, match=r"exchange 2: not an absolute URL: '/b'"):
        Index(exchanges)


LANES = st.sampled_from([None, "m", "m/t0"])
# Of one value in two ways to write it, of another of the same length, and of one that is longer.
BODIES = st.sampled_from([b'{"x":1,"y":2}', b'{"y":2,"x":1}', b'{"x":1,"y":3}', b'{"x":1,"y":22}'])
TAPED = st.lists(st.tuples(st.sampled_from([b"/a", b"/b"]), BODIES, LANES), max_size=10)


def in_lanes(requests: list[tuple[bytes, bytes, str | None]]) -> list[Exchange]:
    exchanges = taped(*((path, body) for path, body, _ in requests))
    for exchange, (_, _, lane) in zip(exchanges, requests, strict=True):
        exchange.request = replace(exchange.request, lane=lane)
    return exchanges


@pytest.mark.parametrize("by_lane", [True, False])
@given(tape=TAPED, asked=TAPED, pace=st.integers(0, 3))
def test_what_is_certain_early_is_what_the_whole_tape_gives(
    tape: list[tuple[bytes, bytes, str | None]], asked: list[tuple[bytes, bytes, str | None]], pace: int, by_lane: bool
) -> None:
    exchanges = in_lanes(tape)
    whole = Index(exchanges, by_lane=by_lane)
    early = Index(exchanges, by_lane=by_lane, until=0)
    known = 0
    for path, body, lane in asked:
        one = ask(path, body)._replace(lane=lane)
        known = min(known + pace, len(exchanges))
        early.extend(known)
        while known < len(exchanges) and not early.is_certain(one):
            known += 1
            early.extend(known)
        given, wanted = early.take(one), whole.take(one)
        assert type(given) is type(wanted)
        if isinstance(given, Hit) and isinstance(wanted, Hit):
            assert given.exchange.number == wanted.exchange.number


def test_what_is_certain_early() -> None:
    requests: list[tuple[bytes, bytes, str | None]] = [
        (b"/a", b'{"x":1,"y":2}', "m"),
        (b"/a", b'{"y":2,"x":1}', "m"),
        (b"/b", b"{}", "m/t0"),
    ]
    index = Index(in_lanes(requests), until=2)
    first, second = (ask(path, body)._replace(lane=lane) for path, body, lane in requests[:2])
    assert index.is_certain(first)
    assert not index.is_certain(second), "another one of its length, and perhaps its meaning, comes before it"
    assert not index.is_certain(first._replace(lane="m/t0")), "its lane may still come"
    assert not index.is_certain(ask(b"/b")._replace(lane="m")), "it may still come"
    index.take(first)
    assert index.is_certain(second)
