"""The clock of a fork: the tape's up to a lane's cut, then real; and all of it told anew, so that it replays."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shimruns import Line, Run, everywhere, run

HOUR = 3600 * 10**9
HEAD = """
import json, random, sys, threading, time, uuid
from _tapeproxy import attribution, clock, lanes
out = []
def pause(seconds): clock.REAL.sleep(seconds)
def read(times=1): out.extend(time.time_ns() for _ in range(times))
def ask(): out.append(attribution.tag())
"""
TAIL = "\nprint(json.dumps(out))"
STEPS = "read(3); pause(.01); read(2); ask(); pause(.01); read(2); ask(); pause(.01); read(2)"


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    return tmp_path / "sidecar"


def record(code: str, python: Path, sidecar: Path) -> Run:
    return run(HEAD + code + TAIL, python=python, sidecar=sidecar)


def fork(code: str, python: Path, sidecar: Path, parent: Run, *lines: Line, **extra: str) -> Run:
    """A fork of what was recorded; `lines` say where lanes leave the tape."""
    path = sidecar.parent / "fork"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    more = {"TAPEPROXY_FORK": str(path), "TAPEPROXY_GUARD": "none", **extra}
    done = run(HEAD + code + TAIL, mode="fork", python=python, sidecar=sidecar, reads=parent.lines, extra=more)
    assert done.returncode == 0, done.stderr
    return done


def replay(code: str, python: Path, sidecar: Path, parent: Run, **extra: str) -> Run:
    return run(HEAD + code + TAIL, mode="replay", python=python, sidecar=sidecar, reads=parent.lines, extra=extra)


def an_hour_before(done: Run) -> Run:
    """As if it had been made then: what goes on from its clock does not come into the present."""
    lines = [{**line, "ns": line["ns"] - HOUR} if line["k"] == "clock" else line for line in done.lines]
    said = [value - HOUR if isinstance(value, int) else value for value in done.json]
    return replace(done, stdout=json.dumps(said), lines=lines)


def cut(requests: int, reads: int = 0, meetings: int = 0, lane: str = "m") -> Line:
    return {"lane": lane, "requests": requests, "reads": reads, "meetings": meetings}


def clocks(done: Run) -> list[tuple[str, int, int]]:
    return [(line["lane"], line["n"], line["ns"]) for line in done.of("clock")]


@everywhere
def test_a_lane_has_the_tape_s_clock_to_its_cut_and_real_time_behind_it(python: Path, sidecar: Path) -> None:
    was = record(STEPS, python, sidecar)
    before = time.time_ns()
    now = fork(STEPS, python, sidecar, was, cut(1, 5))
    assert now.json[:6] == was.json[:6]  # five reads and the first request
    assert now.json[6] > before
    assert [value for value in now.json if isinstance(value, str)] == ["m#0@5", "m#1@7"]
    assert replay(STEPS, python, sidecar, now).json == now.json


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
def test_a_lane_outside_of_the_future_tells_the_tape_s_clock_anew(python: Path, sidecar: Path) -> None:
    was = record(STEPS, python, sidecar)
    now = fork(STEPS, python, sidecar, was, cut(0, lane="m/t9"))
    assert now.json == was.json
    assert clocks(now) == clocks(was)
    assert now.of("end") == was.of("end")


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
@pytest.mark.parametrize(
    ("where", "live_from"),
    [
        (cut(0, 0), 0),
        (cut(1, 7), 8),  # two reads behind the first request
        (cut(2, 0), 9),
        (cut(1, 0, -1), 6),
        (cut(1, 99, -1), 8),  # at its next request at the latest
        (cut(1, 99), 8),
        (cut(3, 0), 11),
    ],
)
def test_where_a_lane_leaves_the_tape(python: Path, sidecar: Path, where: Line, live_from: int) -> None:
    was = record(STEPS, python, sidecar)
    now = fork(STEPS, python, sidecar, was, where)
    same = [a == b for a, b in zip(was.json, now.json, strict=True)]
    reads = [at for at, value in enumerate(was.json) if isinstance(value, int)]
    assert [at for at in reads if not same[at]] == [at for at in reads if at >= live_from]


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
def test_a_lane_leaves_the_tape_where_it_has_met_others(python: Path, sidecar: Path) -> None:
    steps = "ask(); read(2); lanes.current().met += 1; pause(.01); read(2); lanes.current().met += 1; read(2)"
    was = record(steps, python, sidecar)
    for met, same in ((1, 3), (2, 5)):
        now = fork(steps, python, sidecar, was, cut(1, 0, met))
        assert now.json[:same] == was.json[:same]
        assert all(a != b for a, b in zip(was.json[same:], now.json[same:], strict=True))


@pytest.mark.parametrize("python", ("3.9", "3.12"), indirect=True)
def test_new_lanes_go_by_those_above_them(python: Path, sidecar: Path) -> None:
    steps = """
read(); ask()
for name in "ab":
    thread = threading.Thread(target=read, name=name); thread.start(); thread.join()
"""
    more = steps + "thread = threading.Thread(target=lambda: (ask(), read())); thread.start(); thread.join()\n"
    was = an_hour_before(record(steps, python, sidecar))
    begun = time.time_ns()
    now = fork(more, python, sidecar, was, cut(9, 9))
    assert now.json[: len(was.json)] == was.json
    assert now.json[-1] > begun
    outside = fork(more, python, sidecar, was, cut(0, lane="m/t0"))
    assert outside.json[-1] < begun


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
def test_sleeps_are_skipped_until_a_lane_is_live(python: Path, sidecar: Path) -> None:
    steps = "time.sleep(1.2); read(); ask(); time.sleep(.3); read()"
    was = record(steps, python, sidecar)
    timed = "begun = clock.REAL.perf_counter()\ndef lap(): out.append(clock.REAL.perf_counter() - begun)\n"
    timed += "time.sleep(1.2); lap(); read(); ask(); time.sleep(.3); lap(); read()"
    now = fork(timed, python, sidecar, was, cut(1, 0))
    assert now.json[0] < 1.15
    assert now.json[3] - now.json[0] >= 0.3
    assert now.json[1:3] == was.json[:2]


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
def test_who_polls_longer_than_on_the_tape_is_told_with_the_reads_that_it_made(python: Path, sidecar: Path) -> None:
    def polling(rounds: int) -> str:
        return f"for _ in range({rounds}): read(); time.sleep(.02)\nask(); read(2); ask(); pause(.01); read()"

    was = record(polling(2), python, sidecar)
    now = fork(polling(5), python, sidecar, was, cut(2, 0))
    assert [value.split("~")[0] for value in now.json if isinstance(value, str)] == ["m#0@5", "m#1@7"]
    assert now.json[6:8] == was.json[3:5]
    assert now.of("end")[-1]["reads"] == 8
    assert replay(polling(5), python, sidecar, now).json == now.json


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
@pytest.mark.parametrize(
    ("jump", "least"),
    [
        ({"clock": HOUR, "absolute": False}, HOUR),
        ({"clock": 0, "absolute": False}, 0),
        ({"clock": 4 * 10**18, "absolute": True}, None),
    ],
)
def test_the_clock_of_what_is_live_can_be_set(
    python: Path, sidecar: Path, jump: Mapping[str, Any], least: int | None
) -> None:
    was = record(STEPS, python, sidecar)
    pause = "import os\n"
    now = fork(pause + STEPS, python, sidecar, was, cut(1, 5), dict(jump))
    wanted = was.json[4] + least if least is not None else 4 * 10**18
    assert wanted <= now.json[6] < wanted + 60 * 10**9
    assert now.json[6:8] == sorted(now.json[6:8])
    assert replay(STEPS, python, sidecar, now).json == now.json


@pytest.mark.parametrize("python", ("3.9", "3.12"), indirect=True)
def test_a_lane_s_new_seed_counts_from_a_request_on(python: Path, sidecar: Path) -> None:
    steps = "for n in range(3): out.extend([random.random(), str(uuid.uuid4())]); ask()"
    was = record(steps, python, sidecar)
    seeds = f"{'ab' * 32} 2 m\n{'cd' * 32} 0 m/t0"
    now = fork(steps, python, sidecar, was, cut(9, 9), TAPEPROXY_SEEDS=seeds)
    assert now.json[:6] == was.json[:6]
    assert now.json[6] != was.json[6]
    assert now.json[7] != was.json[7]
    assert replay(steps, python, sidecar, was, TAPEPROXY_SEEDS=seeds).json == now.json
    other = fork(steps, python, sidecar, was, cut(9, 9), TAPEPROXY_SEEDS=f"{'ac' * 32} 2 m")
    assert other.json[6] not in (now.json[6], was.json[6])


# --- updates: where lanes leave the tape is told while they run ----------------------------------------------------

LEAVE = """
def leave(lane, request):
    with open(__import__("os").environ["TAPEPROXY_FORK"], "a") as file:
        file.write(json.dumps({"left": lane, "request": request}) + "\\n")
"""
STAY = "def leave(lane, request): pass\n"


def update(code: str, python: Path, sidecar: Path, parent: Run) -> Run:
    """An update of what was recorded: the program itself says, for the wire, where lanes leave."""
    return fork(LEAVE + code, python, sidecar, parent, {"update": True}, TAPEPROXY_EDGES="1")


@everywhere
def test_a_lane_of_an_update_has_real_time_from_the_answer_on_that_is_not_the_tape_s(
    python: Path, sidecar: Path
) -> None:
    steps = "read(2); ask(); read(); ask(); leave('m', 1); pause(.01); read(2); ask()"
    was = record(STAY + steps, python, sidecar)
    begun = time.time_ns()
    now = update(steps, python, sidecar, was)
    assert now.json[:5] == was.json[:5]
    assert min(now.json[5:7]) > begun
    assert [(line["lane"], line["request"]) for line in now.of("left")] == []
    assert replay(STAY + steps, python, sidecar, now).json == now.json


@pytest.mark.parametrize("python", ("3.9", "3.12"), indirect=True)
def test_who_comes_to_know_of_the_change_has_left_too_and_nobody_else(python: Path, sidecar: Path) -> None:
    steps = """
def worker(number):
    ask()
    if not number:
        leave(lanes.current().id, 0)
    read()
    if not number:
        below = threading.Thread(target=lambda: (ask(), read())); below.start(); below.join()
ask()
threads = [threading.Thread(target=worker, args=(number,)) for number in (1, 0)]
for thread in threads:
    thread.start(); thread.join(); read(); ask()
"""
    was = record(STAY + steps, python, sidecar)
    begun = time.time_ns()
    now = update(steps, python, sidecar, was)
    reads = [value for value in now.json if isinstance(value, int)]
    assert [value > begun for value in reads] == [False, False, True, True, True]
    left = [(line["lane"], line["request"]) for line in now.of("left")]
    assert sorted(left) == [("m", 1), ("m/t1/t0", -1)]
    assert replay(STAY + steps, python, sidecar, now).json == now.json


@pytest.mark.parametrize("python", ("3.12",), indirect=True)
def test_an_update_of_what_has_not_changed_tells_the_tape_s_clock_anew(python: Path, sidecar: Path) -> None:
    was = record(STEPS, python, sidecar)
    now = update(STEPS, python, sidecar, was)
    assert now.json == was.json
    assert clocks(now) == clocks(was)
    assert now.of("end") == was.of("end")
