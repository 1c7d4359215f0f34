import json
import random
import time
from dataclasses import replace

import agentruns
import difftapes
import pytest
from difftapes import Ask, get, run, say
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head, Note, Value
from tapeproxy.tapes.tapediff import Compared, TapeDiff, diff_tapes, only_lane, relation

LANES = st.sampled_from(["m", "m/t0", "m/t1"])
ASKS = st.lists(
    st.one_of(
        st.builds(get, LANES, st.sampled_from("abc"), st.sampled_from("xy")),
        st.builds(say, LANES, st.sampled_from(["One?", "Two?"]), answer=st.sampled_from(["Yes.", "No."])),
    ),
    max_size=8,
)


def events(diff: TapeDiff) -> list[tuple[str, int | None, int | None, tuple[str, ...]]]:
    return [(one.kind, one.ours, one.theirs, one.changes) for one in diff.events()]


def apart(diff: TapeDiff) -> list[tuple[str, int | None, int | None]]:
    return [(one.kind, one.ours, one.theirs) for one in diff.diverged()]


def numbers(event: Compared | None) -> tuple[int | None, int | None] | None:
    return None if event is None else (event.ours, event.theirs)


BASE = (get("m", "a"), say("m", "Where?"), say("m", "When?"), get("m", "b"))


@pytest.mark.parametrize(
    ("theirs", "expected", "branch"),
    [
        (BASE, [], None),
        ((get("m", "a", "other"), *BASE[1:]), [("changed", 1, 1)], (1, 1)),
        ((BASE[0], say("m", "Where to?"), *BASE[2:]), [("changed", 2, 2)], (2, 2)),
        ((*BASE[:3],), [("missing", 4, None)], (4, None)),
        ((*BASE, get("m", "c")), [("extra", None, 5)], (None, 5)),
        ((BASE[0], get("m", "new"), *BASE[1:]), [("extra", None, 2)], (None, 2)),
        ((BASE[0], BASE[2], BASE[3]), [("missing", 2, None)], (2, None)),
        ((BASE[0], *BASE[2:], say("m", "Where?", answer="No.")), [("changed", 2, 4)], (2, 4)),
        ((*BASE[1:], BASE[0]), [("moved", 1, 4)], (1, 4)),
        ((*BASE[:3], get("m/t0", "b")), [("moved", 4, 4)], (4, 4)),
        ((), [("missing", number, None) for number in range(1, 5)], (1, None)),
    ],
)
def test_one_lane(
    theirs: tuple[Ask, ...], expected: list[tuple[str, int, int]], branch: tuple[int | None, int | None] | None
) -> None:
    diff = diff_tapes(run(*BASE), run(*theirs))
    assert apart(diff) == expected
    assert numbers(diff.branch) == branch
    assert diff.same is not expected or not expected
    counts = diff.counts()
    assert counts["missing"] + counts["same"] + counts["moved"] + counts["changed"] == len(BASE)
    assert counts["extra"] + counts["same"] + counts["moved"] + counts["changed"] == len(theirs)


def test_a_changed_prompt_is_changed_in_every_turn_and_not_gone_and_come() -> None:
    def turns(system: str) -> list[Ask]:
        return [say("m", system, *(f"question {n}" for n in range(at))) for at in range(1, 6)]

    diff = diff_tapes(run(*turns("Be kind and answer.")), run(*turns("Be strict and answer.")))
    assert apart(diff) == [("changed", at, at) for at in range(1, 6)]
    found = diff.details(diff.diverged()[0])
    assert [(one.kind, one.text) for one in found.context] == [("changed", "Be [-kind-]{+strict+} and answer.")]


def test_lanes_with_other_ids_are_found_by_what_they_ask() -> None:
    ours = run(get("m", "a"), get("m/t0", "b"), get("m/t0", "c"), names={"m/t0": "worker"})
    theirs = run(get("m", "a"), get("m/t0", "log"), get("m/t1", "b"), get("m/t1", "c2"), names={"m/t1": "worker"})
    diff = diff_tapes(ours, theirs)
    worker = next(lane for lane in diff.lanes if lane.lane.name == "worker")
    assert (worker.lane.ours, worker.lane.theirs) == ("m/t0", "m/t1")
    assert diff.counts() == {"same": 2, "moved": 0, "changed": 1, "missing": 0, "extra": 1}


def test_lanes_and_no_lanes_are_compared_by_identity() -> None:
    ours = run(get("m/t0", "a"), get("m/t1", "b"), say("m", "One?"))
    theirs = run(say(None, "One?"), get(None, "b"), get(None, "a", "other"))
    assert apart(diff_tapes(ours, theirs)) == [("changed", 1, 3)]


def test_without_lanes_the_same_answer_is_the_same_event() -> None:
    ours = run(get(None, "a", "x"), get(None, "a", "y"))
    assert diff_tapes(ours, run(get(None, "a", "y"), get(None, "a", "x"))).same


def test_the_branch_point_is_the_first_by_cause_and_not_on_the_tape() -> None:
    """On the tape, the late turn of one lane comes before the early one of another."""
    ours = [get("m/t0", "a1"), get("m/t0", "a2"), get("m/t0", "a3"), get("m/t1", "b1")]
    theirs = [*ours[:2], get("m/t0", "a3", "other"), get("m/t1", "b1", "other")]
    diff = diff_tapes(run(*ours), run(*theirs))
    assert apart(diff) == [("changed", 3, 3), ("changed", 4, 4)]
    assert numbers(diff.branch) == (4, 4)


def test_how_the_runs_ended_counts() -> None:
    diff = diff_tapes(run(*BASE), run(*BASE, code=3))
    assert (diff.same, apart(diff)) == (False, [])
    assert [(one.where, one.taped, one.asked) for one in diff.outcome] == [("exit", "code 0", "code 3")]


def test_what_the_runs_concluded_counts() -> None:
    def concluding(state: str | None) -> Tape:
        content = None if state is None else state.encode()
        final = Value(t=1, lane="m", n=0, what="final", name="", content=content)
        return difftapes.read([*difftapes.records(BASE), final])

    def outcome(ours: str | None, theirs: str | None) -> list[tuple[str, str | None, str | None]]:
        found = diff_tapes(concluding(ours), concluding(theirs)).outcome
        return [(one.where, one.taped, one.asked) for one in found]

    assert outcome('{"sum": 4}', '{"sum":4}') == outcome(None, None) == []
    assert outcome('{"sum": 4}', '{"sum": 5}') == [("final state $.sum", "4", "5")]
    assert outcome("null", None) == [("final state", "(told)", "(none)")]


def test_one_lane_of_a_diff() -> None:
    ours = run(get("m", "a"), get("m/t0", "b"), names={"m/t0": "worker"})
    diff = diff_tapes(ours, run(get("m", "x"), get("m/t0", "b"), names={"m/t0": "worker"}, code=1))
    assert only_lane(diff, "worker").same
    assert only_lane(diff, "m/t0").same
    assert numbers(only_lane(diff, "m").branch) == (1, 1)
    with pytest.raises(KeyError):
        only_lane(diff, "nobody")


def test_the_working_directory_of_another_machine_is_no_difference() -> None:
    def on(cwd: str) -> Tape:
        made = difftapes.records([say("m", f"Read {cwd}/notes.txt please")])
        return difftapes.read([*made, Note(t=0, what="machine", data={"cwd": [cwd]})])

    assert diff_tapes(on("/home/ada/work"), on("/srv/build/7")).same


def test_a_fork_is_told() -> None:
    parent = run(*BASE)
    assert parent.seal is not None
    head = replace(agentruns.HEAD, parent={"trace": parent.seal.trace, "name": "x"}, branch={"events": [2]})
    child = run(*BASE[:1], say("m", "Where?", answer="No."), *BASE[2:], head=head)
    assert relation(parent, child) == "B is a fork of A at exchange 2"
    assert relation(child, parent) == "A is a fork of B at exchange 2"
    assert child.seal is not None
    sibling = replace(child, seal=replace(child.seal, trace="cd" * 32))
    assert relation(sibling, sibling) == "both are forks of one tape"
    assert relation(parent, parent) == ""
    cut = replace(parent, seal=None, last="ef" * 32)  # interrupted: its fork names its last line
    of_cut = replace(child, head=replace(child.head, parent={"name": "a", "trace": None, "last": "ef" * 32}))
    assert relation(cut, of_cut) == "B is a fork of A at exchange 2"
    assert relation(replace(cut, last=""), of_cut) == ""


def test_rules_that_cannot_be_read() -> None:
    bad = run(*BASE, head=Head(started_at=agentruns.HEAD.started_at, rules={"matching": 99}))
    with pytest.raises(ValueError, match="99"):
        diff_tapes(run(*BASE), bad)


@given(ASKS)
def test_a_tape_does_not_differ_from_itself(asks: list[Ask]) -> None:
    diff = diff_tapes(run(*asks), run(*asks))
    assert diff.same
    assert diff.counts()["same"] == len(asks)


@given(ASKS, ASKS)
def test_each_exchange_is_in_one_event(ours: list[Ask], theirs: list[Ask]) -> None:
    diff = diff_tapes(run(*ours), run(*theirs))
    assert sorted(one.ours for one in diff.events() if one.ours is not None) == list(range(1, len(ours) + 1))
    assert sorted(one.theirs for one in diff.events() if one.theirs is not None) == list(range(1, len(theirs) + 1))


@given(ASKS, ASKS)
def test_it_is_symmetric_but_for_missing_and_extra(ours: list[Ask], theirs: list[Ask]) -> None:
    mirror = {"missing": "extra", "extra": "missing"}
    there = {(one.kind, one.ours, one.theirs, one.changes) for one in diff_tapes(run(*ours), run(*theirs)).events()}
    back = diff_tapes(run(*theirs), run(*ours)).events()
    assert {(mirror.get(one.kind, one.kind), one.theirs, one.ours, one.changes) for one in back} == there


@given(ASKS, st.randoms(use_true_random=False))
def test_how_lanes_interleaved_is_no_difference(asks: list[Ask], chance: random.Random) -> None:
    turns = [ask.lane for ask in asks]
    chance.shuffle(turns)
    waiting = {lane: iter([ask for ask in asks if ask.lane == lane]) for lane in turns}
    diff = diff_tapes(run(*asks), run(*(next(waiting[lane]) for lane in turns)))
    assert diff.same
    assert diff.counts()["same"] == len(asks)


def test_two_long_tapes_take_no_time_to_speak_of() -> None:
    """600 exchanges of which each was changed; docs/DIFF.md has what 5,000 take."""

    def long(system: str, answer: str) -> Tape:
        return run(*(say(f"m/t{at % 6}", system, f"question {at}", answer=f"{answer} {at}") for at in range(600)))

    ours, theirs = long("Be kind.", "yes"), long("Be strict.", "no")
    began = time.process_time()
    diff = diff_tapes(ours, theirs)
    assert diff.counts()["changed"] == 600
    assert time.process_time() - began < 3


def test_hostile_lanes_and_urls() -> None:
    asks = [
        Ask("\u202e\x1b[31m/../<b>", "https://x.test/\x00"),
        Ask("m/" * 300, "nonsense"),
        Ask("", "https://x.test/", json.dumps("\ud800").encode(), b"\xff" * 50),
    ]
    assert diff_tapes(run(*asks), run(*asks)).same
    assert not diff_tapes(run(*asks), run(asks[0])).same
