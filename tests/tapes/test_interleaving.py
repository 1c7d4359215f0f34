"""Who has to wait for whom, so that siblings take turns as on the tape."""

from dataclasses import replace
from typing import NamedTuple

import pytest
from served import MS, exchange, tape_of

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.interleaving import Interleaving, Wait
from tapeproxy.tapes.records import Done, Headers, How

NOT, BRIEFLY, LONG = Wait.NOT, Wait.BRIEFLY, Wait.LONG
STREAM = ((b"content-type", b"text/event-stream"),)
JSON = ((b"content-type", b"application/json"),)


class Asked(NamedTuple):
    """A row of a tape: times in ms, `end` None for an answer that was cut off with the tape."""

    lane: str
    at: int
    end: int | None
    sleeps: int = 0
    how: How = "complete"
    headers: Headers = JSON
    begin: int | None = None
    inside: bool = False


class Ended(NamedTuple):
    """A task that completed, in ms, and how often it had slept."""

    lane: str
    at: int
    sleeps: int = 0


class Run:
    """A tape of these rows, and a replay of it: exchanges are named by their number, from 0."""

    def __init__(self, *rows: Asked | Ended) -> None:
        asked = [row for row in rows if isinstance(row, Asked)]
        self.exchanges = tape_of([_exchange(row) for row in asked]).exchanges
        dones = [
            Done(t=row.at * MS, lane=row.lane, parent="m", sleeps=row.sleeps) for row in rows if isinstance(row, Ended)
        ]
        self.order = Interleaving(dones, self.exchanges)

    def ask(self, *numbers: int) -> None:
        for number in numbers:
            self.order.asked(self.exchanges[number].request.lane or "")

    def deliver(self, *numbers: int) -> None:
        for number in numbers:
            self.order.delivered(self.exchanges[number])

    def wait(self, number: int) -> Wait:
        return self.order.wait(self.exchanges[number])


def _exchange(row: Asked) -> Exchange:
    found = exchange(headers=row.headers, how=row.how, inside=row.inside)
    found.request = replace(found.request, lane=row.lane or None, t=row.at * MS, sleeps=row.sleeps)
    assert found.response is not None
    assert found.end is not None
    end = row.end if row.end is not None else row.at
    found.response = replace(found.response, t=(row.begin if row.begin is not None else end) * MS)
    found.end = None if row.end is None else replace(found.end, t=end * MS)
    return found


def workers(kind: str = "a") -> Run:
    """Two workers at a queue: the first one's first answer comes last."""
    one, two = f"m/{kind}0", f"m/{kind}1"
    return Run(Asked(one, 0, 100), Asked(two, 1, 20), Asked(two, 21, 40), Asked(one, 101, 120))


@pytest.mark.parametrize("kind", ["a", "t", "w", "c"])
def test_a_worker_gets_its_answer_after_what_others_asked_before(kind: str) -> None:
    run = workers(kind)
    run.ask(0)
    assert run.wait(0) is LONG, "the second worker has not asked"
    run.ask(1)
    assert run.wait(1) is NOT
    assert run.wait(0) is LONG, "the second worker's answer came before"
    run.deliver(1)
    assert run.wait(0) is LONG, "the second worker has asked again by then"
    run.ask(2)
    assert (run.wait(2), run.wait(0)) == (NOT, LONG)
    run.deliver(2)
    assert run.wait(0) is NOT


def test_who_went_on_after_an_answer_that_came_at_the_same_time_is_waited_for_briefly() -> None:
    run = Run(Asked("m/a0", 0, 20), Asked("m/a1", 1, 30), Asked("m/a0", 35, 60), Asked("m/a1", 36, 50))
    run.ask(0, 1)
    run.deliver(0)
    assert run.wait(1) is BRIEFLY
    run.ask(2)
    assert run.wait(1) is NOT


@pytest.mark.parametrize(
    ("mover", "receiver"),
    [
        pytest.param(Asked("m/a0", 37, 60), Asked("m/a1", 36, 50), id="after the receiver"),
        pytest.param(Asked("m/a0", 90, 95), Asked("m/a1", 99, 100), id="long after"),
        pytest.param(Asked("m/a0", 35, 60, sleeps=1), Asked("m/a1", 36, 50), id="after a sleep"),
    ],
)
def test_who_went_on_later_is_not_waited_for(mover: Asked, receiver: Asked) -> None:
    run = Run(Asked("m/a0", 0, 20), Asked("m/a1", 1, 30), *sorted((mover, receiver), key=lambda row: row.at))
    run.ask(0, 1)
    run.deliver(0)
    assert run.wait(1) is NOT


def test_tasks_complete_in_their_order() -> None:
    run = Run(Asked("m/a0", 0, 90), Asked("m/a1", 1, 20), Asked("m/a2", 2, 30), *(Ended("m/a1", 21), Ended("m/a2", 31)))
    run.ask(0, 1, 2)
    assert [run.wait(number) for number in (0, 1, 2)] == [LONG, NOT, LONG]
    run.deliver(1)
    assert run.wait(2) is LONG
    run.order.done("m/a1")
    assert (run.wait(0), run.wait(2)) == (LONG, NOT)
    run.deliver(2)
    assert run.wait(0) is LONG
    run.order.done("m/a2")
    assert run.wait(0) is NOT


def test_who_slept_before_it_completed_is_not_waited_for() -> None:
    run = Run(Asked("m/a0", 0, 90), Asked("m/a1", 1, 20), Ended("m/a1", 50, sleeps=1))
    run.ask(0, 1)
    run.deliver(1)
    assert run.wait(0) is NOT


def test_of_answers_that_came_at_once_the_one_that_was_read_first_is_first() -> None:
    run = Run(Asked("m/a0", 0, 20), Asked("m/a1", 1, 22), Asked("m/a1", 23, 40), Asked("m/a0", 24, 50))
    run.ask(0, 1)
    assert (run.wait(0), run.wait(1)) == (LONG, NOT)


def test_an_answer_waits_for_what_its_parent_had_asked() -> None:
    run = Run(Asked("m/a0", 0, 20), Asked("m/a1", 1, 50), Asked("m", 25, 30))
    run.ask(0, 1)
    run.deliver(0)
    assert run.wait(1) is LONG
    run.ask(2)
    assert run.wait(1) is NOT


def test_what_a_task_asks_in_a_thread_is_its_own() -> None:
    run = Run(Asked("m/a0/c0", 0, 50), Asked("m/a1", 1, 20), Asked("m/a1/w0/c0", 21, 30))
    run.ask(0, 1)
    run.deliver(1)
    assert run.wait(0) is LONG
    run.ask(2)
    run.deliver(2)
    assert run.wait(0) is NOT


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Asked("m/a1", 10, 20, sleeps=1), id="slept"),
        pytest.param(Asked("m/t1", 10, 20), id="another kind"),
        pytest.param(Asked("m/p1/a1", 10, 20), id="another process"),
        pytest.param(Asked("", 10, 20), id="no lane"),
        pytest.param(Asked("m/a1", 10, 20, inside=True), id="inside"),
        pytest.param(Asked("m/a1", 60, 70), id="later"),
    ],
)
def test_who_is_not_waited_for(other: Asked) -> None:
    run = Run(*sorted((Asked("m/a0", 0, 50), other), key=lambda row: row.at))
    run.ask(0)
    assert run.wait(0) is NOT


@pytest.mark.parametrize("own", [Asked("m/a0", 0, 50, how="client-gone"), Asked("m/a0", 0, None), Asked("", 0, 50)])
def test_what_never_waits(own: Asked) -> None:
    run = Run(own, Asked("m/a1", 10, 20))
    run.ask(0)
    assert run.wait(0) is NOT


def test_a_stream_does_not_wait_for_what_may_depend_on_its_beginning() -> None:
    run = Run(Asked("m/a0", 0, 50, headers=STREAM, begin=5), Asked("m/a1", 10, 20))
    run.ask(0)
    assert run.wait(0) is NOT
    run.ask(1)
    assert run.wait(0) is LONG, "it was answered before the stream ended"


def test_a_client_that_waits_for_its_own_timeout_is_not_waited_for() -> None:
    run = Run(Asked("m/a0", 0, 50), Asked("m/a1", 1, 30, how="client-gone"), Asked("m/a1", 31, 40))
    run.ask(0, 1)
    assert run.wait(0) is NOT


def test_who_waits_in_vain_waits_no_more_for_those() -> None:
    run = workers()
    run.ask(0)
    assert run.order.give_up(run.exchanges[0]) == {"m"}
    assert run.wait(0) is NOT


def test_short_waits_in_vain_come_to_an_end() -> None:
    run = Run(Asked("m/a0", 0, 20), Asked("m/a1", 1, 30), Asked("m/a0", 35, 60), Asked("m/a1", 36, 50))
    run.ask(0, 1)
    run.deliver(0)
    for _ in range(4):
        assert run.wait(1) is BRIEFLY
        assert run.order.give_up(run.exchanges[1]) == set()
    assert run.wait(1) is NOT
