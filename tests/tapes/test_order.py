"""Who has to wait for whom, and what is told of another order."""

from dataclasses import replace

import pytest
from served import exchange, tape_of

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.order import CompletionOrder, Disorder
from tapeproxy.tapes.records import Done


def made(*lanes: str) -> list[Exchange]:
    """One exchange of each lane, in this order."""
    found = [exchange() for _ in lanes]
    for one, lane in zip(found, lanes, strict=True):
        one.request = replace(one.request, lane=lane)
    return [*tape_of(found).exchanges]


def completed(*steps: tuple[str, int]) -> list[tuple[Done, int]]:
    return [(Done(t=0, lane=lane, parent="m"), before) for lane, before in steps]


def test_an_answer_waits_for_those_who_were_first() -> None:
    a, b, c = made("m/a0", "m/a1", "m/a2")
    order = CompletionOrder(completed(("m/a1", 3), ("m/a2", 3), ("m/a0", 3)), [a, b, c])
    assert [order.must_wait(one) for one in (a, b, c)] == [True, False, True]
    order.done("m/a1", "m")
    assert [order.must_wait(one) for one in (a, c)] == [True, False]
    order.done("m/a2", "m")
    assert not order.must_wait(a)


def test_only_the_last_answer_of_a_task_lets_it_complete() -> None:
    first, other, last = made("m/a0", "m/a1", "m/a0")
    order = CompletionOrder(completed(("m/a1", 3), ("m/a0", 3)), [first, other, last])
    assert [order.must_wait(one) for one in (first, last)] == [False, True]


def test_an_answer_waits_for_what_its_parent_asked_before() -> None:
    a, b, parents = made("m/a0", "m/a1", "m")
    order = CompletionOrder(completed(("m/a0", 2), ("m/a1", 3)), [a, b, parents])
    order.done("m/a0", "m")
    assert order.must_wait(b)
    order.asked("m")
    assert not order.must_wait(b)


def test_who_waits_in_vain_gives_up_for_all_siblings() -> None:
    a, b, c = made("m/a0", "m/a1", "m/a2")
    order = CompletionOrder(completed(("m/a1", 3), ("m/a2", 3), ("m/a0", 3)), [a, b, c])
    order.give_up(a)
    assert order.given_up == ["m"]
    assert not any(order.must_wait(one) for one in (a, b, c))


def test_a_tape_without_the_order_and_a_request_without_a_lane_wait_for_nobody() -> None:
    (a,) = made("m/a0")
    assert not CompletionOrder([], [a]).must_wait(a)
    assert not CompletionOrder(completed(("m/a1", 0)), [exchange()]).must_wait(exchange())


@pytest.mark.parametrize(
    ("taped", "now", "told"),
    [
        ("012", "012", None),
        ("0123", "0213", ("12", "21")),
        ("012", "201", ("012", "201")),
        ("012", "02", None),
        ("02", "0 1 2", None),
        ("012", "", None),
        ("", "10", None),
    ],
)
def test_another_order(taped: str, now: str, told: tuple[str, str] | None) -> None:
    order = CompletionOrder(completed(*((lane, 0) for lane in taped)))
    for lane in now.replace(" ", ""):
        order.done(lane, "m")
    expected = [] if told is None else [Disorder("m", tuple(told[0]), tuple(told[1]))]
    assert list(order.disorders()) == expected


def test_what_a_task_asks_in_a_thread_is_its_own() -> None:
    a, b, threads = made("m/a0/c0", "m/a1", "m/a0/w1/c0")
    order = CompletionOrder(completed(("m/a1", 3), ("m/a0", 3)), [a, b, threads])
    assert [order.must_wait(one) for one in (a, b, threads)] == [False, False, True]
    order.done("m/a1", "m")
    assert not order.must_wait(threads)
