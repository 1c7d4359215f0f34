"""What a fork decides about each request: served by a ticket, sent out, or refused. No wire."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from served import KEY, exchange, tape_of

from tapeproxy.proxy.decisions import Asked, Held
from tapeproxy.proxy.forkjudge import ForkJudge
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.tapes.answers import Answer
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.forkplan import ForkPlan, anew, fork_at, kept
from tapeproxy.tapes.forkverdict import TICKET_HEADER
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.updateplan import update_of
from tapeproxy.tapes.violations import Drift, Violation

URL = "https://api.example.com/"


class Straight:
    """One lane after the other: each exchange before all later ones of its lane."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def order(self) -> Sequence[int]:
        return range(1, len(self._tape.exchanges) + 1)

    def future(self, number: int) -> frozenset[int]:
        lane = self._tape.exchanges[number - 1].request.lane
        return frozenset(o.number for o in self._tape.exchanges if o.number > number and o.request.lane == lane)

    def reached(self, number: int) -> Mapping[str, tuple[int, int]]:
        raise AssertionError(f"there are no edges after {number}")


def parent(*lanes: tuple[str, int, int]) -> Tape:
    """One exchange for each (lane, n, reads), of a path of its own."""
    exchanges = []
    for lane, n, reads in lanes:
        one = exchange(f"{URL}{lane}/{n}", b"ok")
        one.request = replace(one.request, lane=lane, n=n, reads=reads)
        exchanges.append(one)
    return tape_of(exchanges)


class Bench:
    """A judge of a fork of this tape, and what it was told."""

    def __init__(self, tape: Tape, plan: ForkPlan, **options: Any) -> None:
        self.noticed: list[Violation | Drift] = []
        self.drained = 0
        owns = options.pop("owns_port", lambda _port: False)
        self.replayer = Replayer(
            kept(tape, plan), Redactor(KEY), owns, self.noticed.append, fork=plan, anew=anew(tape, plan)
        )
        self.judge = ForkJudge(tape, plan, self.replayer, self._drain, **options)

    def _drain(self) -> None:
        self.drained += 1

    def ask(self, lane: str | None, n: int = 0, reads: int = 0, **fields: Any) -> str | None:
        """Ask what the tape's request of this place asks; returns the source."""
        given: dict[str, Any] = {"url": f"{URL}{lane}/{n}".encode(), "body": b""} | fields
        request = Request(t=0, method=b"GET", **given)
        tag = None if lane is None else LaneTag(lane, n, reads)
        self.verdict = self.judge.judge(request, tag, 0)
        return self.verdict.source

    def redeem(self, ticket: int | None = None) -> object:
        number = self.verdict.ticket if ticket is None else ticket
        return self.judge.redeem(Asked(b"GET", b"http://tape/", ((TICKET_HEADER, b"%d" % (number or 0)),), b""))


TWO = (("m", 0, 1), ("m", 1, 2), ("m", 2, 3), ("m/t0", 0, 1))


def changed(tape: Tape, number: int) -> dict[int, Exchange]:
    return {number: tape.exchanges[number - 1]}


def bench(number: int = 2, *, mutate: bool = True, **options: Any) -> Bench:
    tape = parent(*TWO)
    plan_options = {name: options.pop(name) for name in ("rerun", "outgoing") if name in options}
    plan = fork_at(tape, Straight(tape), number, changed(tape, number) if mutate else {}, **plan_options)
    return Bench(tape, plan, **options)


def test_the_past_and_the_concurrent_are_reused_the_change_is_mutated_and_the_future_live() -> None:
    run = bench()
    assert [run.ask("m", 0, 1), run.ask("m/t0", 0, 1)] == ["reused", "reused"]
    assert run.ask("m", 1, 2) == "mutated"
    assert isinstance(run.redeem(), Answer | Held)
    assert run.ask("m", 2, 3) == "live"
    assert run.verdict.ticket is None
    assert (run.judge.reused, run.judge.mutated, dict(run.judge.live_of)) == (2, 1, {"m": 1})
    assert (run.noticed, run.drained) == ([], 4)


def test_a_request_that_the_tape_has_again_in_the_future_is_asked_anew_all_the_same() -> None:
    run = bench()
    for n in (0, 1):
        run.ask("m", n, n + 1)
    assert run.ask("m", 2, 3, url=f"{URL}m/t0/0".encode()) == "live"


def test_with_changed_an_answer_of_the_future_is_reused_where_it_is_asked_for() -> None:
    run = bench(rerun="changed")
    for n in (0, 1):
        run.ask("m", n, n + 1)
    assert run.ask("m", 2, 99) == "reused"  # and positions of the future are nobody's business
    assert run.ask("m", 3, 4) == "live"
    assert run.noticed == []


def test_nothing_goes_out_before_the_change_was_given() -> None:
    run = bench()
    assert run.ask("m/t7", 0) == "refused"
    assert isinstance(run.redeem(), Violation)
    for n in (0, 1):
        run.ask("m", n, n + 1)
    assert run.ask("m/t8", 0) == "live"


@pytest.mark.parametrize(("lane", "n"), [("m/t0", 3), ("m/t0/a0", 0)])
def test_a_lane_outside_of_the_future_is_refused_what_the_tape_does_not_have(lane: str, n: int) -> None:
    run = bench()
    for at in (0, 1):
        run.ask("m", at, at + 1)
    assert run.ask(lane, n) == "refused"
    (found,) = run.noticed
    assert isinstance(found, Violation)
    assert run.redeem() is found
    assert run.judge.live_of.total() == 0


def test_a_ticket_is_good_once_and_a_wrong_one_is_a_violation() -> None:
    run = bench()
    run.ask("m", 0, 1)
    first = run.verdict.ticket
    run.ask("m/t0", 0, 1)
    assert isinstance(run.redeem(first), Answer | Held)
    assert run.noticed == []
    for ticket in (first, 77):
        assert isinstance(run.redeem(ticket), Violation)
    assert [found.kind for found in run.noticed if isinstance(found, Violation)] == ["internal", "internal"]


def test_edits_of_a_request_are_those_of_all_and_those_of_its_place_on_the_tape() -> None:
    def add(name: bytes) -> Any:
        return lambda request: replace(request, headers=(*request.headers, (name, b"1")))

    run = bench(outgoing={0: add(b"all"), 3: add(b"third")})
    for n in (0, 1):
        run.ask("m", n, n + 1)
    names = {}
    for n in (2, 3):
        assert run.ask("m", n, n + 1) == "live"
        assert run.verdict.edit is not None
        sent = run.verdict.edit(Request(t=0, method=b"GET", url=b"https://x/"))
        names[n] = [name for name, _ in sent.headers]
    assert names == {2: [b"all", b"third"], 3: [b"all"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": ((b"authorization", b"Bearer sk-placeholder-1"),)},
        {"body": b'{"key":"sk-placeholder-1"}'},
        {"url": b"https://api.example.com/?key=sk-placeholder-1"},
    ],
)
def test_a_placeholder_is_not_sent(fields: dict[str, Any]) -> None:
    run = bench(0, mutate=False, placeholders=["sk-placeholder-1"])
    assert run.ask("m", 0, 1) == "live"
    assert run.ask("m", 1, 2, **fields) == "refused"
    (found,) = run.noticed
    assert isinstance(found, Violation)
    assert found.kind == "placeholder"
    assert run.judge.live_of.total() == 1


def test_a_server_of_the_run_answers_itself() -> None:
    run = bench(owns_port=lambda port: port == 8123)
    assert run.ask("m", 0, 1, url=b"http://127.0.0.1:8123/") is None
    assert (run.verdict.ticket, run.noticed) == (None, [])
    assert run.ask("m", 0, 1, url=b"http://127.0.0.1:8124/") == "refused"


def test_a_lane_that_polled_longer_counts_on_and_its_tape_does_not() -> None:
    tape = parent(("m", 0, 2), ("m", 1, 4), ("m", 2, 6))
    tape.exchanges[0].request = replace(tape.exchanges[0].request, sleeps=1, awake=1)
    tape.head = replace(tape.head, rules={"clock": 2})
    run = Bench(tape, fork_at(tape, Straight(tape), 3, changed(tape, 3)))
    tag = LaneTag("m", 0, 9, 3, 1)
    request = Request(t=0, method=b"GET", url=f"{URL}m/0".encode(), body=b"")
    assert run.judge.judge(request, tag, 0).source == "reused"
    assert run.ask("m", 1, 11) == "reused"  # two reads after the last, as on the tape
    assert run.replayer.drifts == []


def test_a_live_call_that_is_under_way_is_progress() -> None:
    run = bench(0, mutate=False)
    before = run.replayer.order.progress
    run.judge.look()
    assert run.replayer.order.progress == before
    run.ask("m", 0, 1)
    run.judge.look()
    assert run.replayer.order.progress == before + 1
    run.judge.ended(run.verdict)
    run.judge.look()
    assert run.replayer.order.progress == before + 1


def test_an_exchange_that_failed_on_the_tape_has_its_word_for_it() -> None:
    tape = parent(("m", 0, 1), ("m", 1, 2))
    end = tape.exchanges[0].end
    assert end is not None
    tape.exchanges[0].end = replace(end, how="connect-error", error="refused")
    run = Bench(tape, fork_at(tape, Straight(tape), 2))
    assert run.ask("m", 0, 1) == "reused"
    assert run.verdict.ending is not None
    assert (run.verdict.ending.how, run.verdict.ending.error) == ("connect-error", "refused")


# --- updates -------------------------------------------------------------------------------------------------------


def updating(tape: Tape, **options: Any) -> Bench:
    plan = update_of(tape, **options)
    bench = Bench(tape, plan)
    bench.judge.left = plan.leave
    return bench


def test_an_update_asks_what_is_not_on_the_tape_and_what_is_used_up() -> None:
    bench = updating(parent(*TWO))
    assert bench.ask("m", 0, reads=1) == "reused"
    assert bench.ask("m", 1, url=f"{URL}new".encode()) == "live"
    assert bench.verdict.instead == 2
    assert bench.ask("m", 2) == "reused"
    assert bench.ask("m", 3, url=f"{URL}m/2".encode()) == "live"
    assert bench.ask(None, url=f"{URL}m/1".encode()) == "reused"
    assert (bench.judge.reused, bench.judge.live_of) == (3, {"m": 2})
    assert bench.noticed == []


def test_behind_the_first_change_of_a_lane_all_is_asked_anew_where_that_is_wanted() -> None:
    bench = updating(parent(*TWO), rerun="future")
    assert bench.ask("m", 0) == "reused"
    assert bench.ask("m", 1, url=f"{URL}new".encode()) == "live"
    assert bench.ask("m", 2) == "live"
    assert bench.ask("m/t0", 0) == "reused"


def test_a_lane_has_the_answer_of_another_one_only_if_it_never_had_one_of_its_own() -> None:
    bench = updating(parent(("m", 0, 1), ("m/t0", 0, 1)))
    assert bench.ask("m", 0, url=f"{URL}m/t0/0".encode()) == "reused"
    assert bench.ask("m/t0", 0) == "live"
    same = parent(("m", 0, 1), ("m/t0", 0, 1))
    same.exchanges[1].request = replace(same.exchanges[1].request, url=f"{URL}m/0".encode())
    bench = updating(same)
    assert [bench.ask("m", 0), bench.ask("m", 1, url=f"{URL}m/0".encode())] == ["reused", "live"]
    assert bench.ask("m/t0", 0, url=f"{URL}m/0".encode()) == "reused"


def test_what_its_tape_was_refused_is_asked_anew_in_an_update_and_refused_again_in_a_fork() -> None:
    tape = parent(*TWO)
    tape.exchanges[0].request = replace(tape.exchanges[0].request, source="refused")
    assert updating(tape).ask("m", 0) == "live"
    run = Bench(tape, fork_at(tape, Straight(tape), 2, changed(tape, 2)))
    assert [run.ask("m", 0, 1), run.ask("m/t0", 0, 1)] == ["refused", "reused"]
    assert [found.kind for found in run.noticed if isinstance(found, Violation)] == ["refused"]


def test_in_an_offline_update_nothing_goes_out() -> None:
    bench = updating(parent(*TWO), offline=True)
    assert bench.ask("m", 0) == "reused"
    assert bench.ask("m", 1, url=f"{URL}new".encode()) == "refused"
    assert [found.kind for found in bench.noticed if isinstance(found, Violation)] == ["miss"]
    assert not bench.judge.live_of


def test_an_update_does_not_fail_because_a_lane_reads_its_clock_otherwise_behind_the_change() -> None:
    bench = updating(parent(*TWO))
    assert bench.ask("m", 0, reads=1) == "reused"
    assert bench.ask("m", 1, reads=9, url=f"{URL}new".encode()) == "live"
    assert bench.ask("m", 2, reads=99) == "reused"
    assert bench.noticed == []
    assert bench.ask("m/t0", 0, reads=5) == "reused"
    assert [type(found) for found in bench.noticed] == [Drift]
