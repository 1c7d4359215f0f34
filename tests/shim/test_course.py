"""A lane's readings on the tape, followed by loops that go another number of rounds."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shimruns import INJECT

MS = 1_000_000
START = 10**18


class Walk:
    """Plays a program against a course: `r` reads, `s` sleeps for a millisecond, `q` makes a request."""

    def __init__(self, course: Any) -> None:
        self.course = course
        self.reads = self.requests = self.sleeps = 0
        self.time: int | None = None
        self.rest: int | None = None
        self.made: list[int] = []

    def play(self, program: str) -> list[int]:
        """The values of its reads."""
        values = []
        for step in program:
            if step == "s":
                self.sleeps += 1
                self.rest = (self.rest or 0) + MS
            elif step == "q":
                made, self.reads = self.course.request(self.requests, self.reads, self.sleeps > 0)
                self.made.append(made)
                self.requests += 1
                self.sleeps, self.rest = 0, None
            else:
                place, value = self.course.read(self.reads, self.time, self.rest, self.sleeps > 0, self.requests)
                self.reads = place + 1 if place >= 0 else self.reads
                self.time, self.rest = value, None
                values.append(value)
        return values


def taped(make: Callable[..., Any], program: str) -> tuple[Any, list[int]]:
    """The course that a recording of the program leaves, and the values that its reads had."""
    now, reads, slept = START, 0, False
    jumps: list[tuple[int, int]] = []
    marks, asked, values = [], [], []
    for step in program:
        if step == "s":
            now, slept = now + MS, True
        elif step == "q":
            now += 50 * MS
            asked.append(reads)
            slept = False
        else:
            now += 100
            if not jumps or slept or (asked and asked[-1] == reads):
                jumps.append((reads, now))
            if slept:
                marks.append(reads)
            slept = False
            values.append(now)
            reads += 1
    return make(jumps, marks, asked, reads), values


def poll(rounds: int) -> str:
    """A deadline, a loop that looks at the clock, and a request with the time in it; then one without a loop."""
    return "rr" + "sr" * rounds + "rrq" + "rrq"


@pytest.mark.parametrize("was", range(5))
@pytest.mark.parametrize("now", [0, 1, 2, 3, 4, 9, 40])
def test_what_is_read_after_a_loop_is_as_on_the_tape(was: int, now: int, inject: Callable[[str], Any]) -> None:
    course, values = taped(inject("course").Course, poll(was) + poll(2))
    walk = Walk(course)
    again = walk.play(poll(now) + poll(2))
    after, rest = 2 + now, 2 + was
    assert again[after:] == values[rest:]
    assert again == sorted(set(again)), "time stood, or went back"
    assert walk.made[0] == after + 2, "the position is what was really read"


@pytest.mark.parametrize(("was", "now"), [(was, was + more) for was in range(4) for more in (0, 1, 2, 40)])
def test_the_time_in_a_request_right_after_a_loop(was: int, now: int, inject: Callable[[str], Any]) -> None:
    """`while child.poll() is None and time.monotonic() < end: sleep(...)` reads nothing before it ends."""

    def loop(rounds: int) -> str:
        return "r" + "rs" * rounds + "rq" + "rrq"

    course, values = taped(inject("course").Course, loop(was))
    assert Walk(course).play(loop(now))[1 + now :] == values[1 + was :]


def test_a_loop_whose_end_never_comes_gets_to_its_deadline(inject: Callable[[str], Any]) -> None:
    course, _ = taped(inject("course").Course, poll(2))
    values = Walk(course).play("rr" + "sr" * 1000)
    assert values[-1] - values[0] > 900 * MS
    course, _ = taped(inject("course").Course, poll(2))
    values = Walk(course).play("rrsr" + "r" * 20_000)
    assert values[-1] - values[0] > 10_000 * MS, "one that only reads, too"


def test_a_tape_without_marks_is_followed_read_by_read(inject: Callable[[str], Any]) -> None:
    course = inject("course").Course([(0, START), (3, START + 5 * MS)], [], [], 9)
    assert Walk(course).play("rsrrr") == [START, START + MS + 100, START + MS + 200, START + 5 * MS]


@given(st.text("rsq", max_size=40), st.text("rsq", max_size=60))
def test_whatever_the_two_do_time_goes_on(was: str, now: str) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("course_of_the_shim", INJECT / "_tapeproxy" / "course.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    course, values = taped(module.Course, "r" + was)
    assert Walk(course).play("r" + was) == values
    course, values = taped(module.Course, "r" + was)
    again = Walk(course).play("r" + now)
    assert all(one <= other for one, other in itertools.pairwise(again))
