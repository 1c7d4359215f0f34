"""A traced replay tells of every read: what it gave, to whom, and at which line of the user's."""

from pathlib import Path
from typing import Any

import pytest
from shimruns import Line, Run, everywhere, run

TRACED = {"TAPEPROXY_TRACE": "1"}
READS = """
import json, time, datetime, random, secrets, uuid, os, tempfile, socket, logging
zone = datetime.timezone(datetime.timedelta(hours=2))
def here():
    return time.time()
out = {
    "time.time": here(),
    "time.time_ns": time.time_ns(),
    "time.monotonic": time.monotonic(),
    "time.perf_counter_ns": time.perf_counter_ns(),
    "time.strftime": time.strftime("%Y-%m-%d"),
    "datetime.datetime.now": datetime.datetime.now(zone).isoformat(),
    "datetime.date.today": datetime.date.today().isoformat(),
    "random.randint": random.randint(1, 10**6),
    "random.random": random.random(),
    "random.choices": random.choices("abc", k=3),
    "random.Random.uniform": random.Random().uniform(0, 9),
    "secrets.token_hex": secrets.token_hex(8),
    "secrets.choice": secrets.choice("abcdef"),
    "os.urandom": os.urandom(6).hex(),
    "uuid.uuid4": uuid.uuid4().hex,
    "uuid.uuid1": uuid.uuid1().hex,
    "os.getpid": os.getpid(),
    "os.environ['SHELL_OF_MINE']": os.environ["SHELL_OF_MINE"],
    "socket.gethostname": socket.gethostname(),
    "os.getcwd": os.getcwd(),
}
shuffled = [1, 2, 3, 4]
random.shuffle(shuffled)
out["random.shuffle"] = shuffled
print(json.dumps(out))
"""


def reads(done: Run) -> list[tuple[Line, Line]]:
    """Each read line with its site line."""
    sites = {line["id"]: line for line in done.of("site")}
    return [(line, sites[line["site"]]) for line in done.of("read")]


def mine(done: Run) -> dict[str, Line]:
    """The reads that the program's own lines made, by function."""
    return {site["what"]: read for read, site in reads(done) if site["where"] and not site["via"]}


@everywhere
def test_every_read_is_told_with_its_value(python: Path, tmp_path: Path) -> None:
    done = run(READS, mode="replay", python=python, sidecar=tmp_path / "s", extra={**TRACED, "SHELL_OF_MINE": "fish"})
    found = mine(done)
    for what, value in done.json.items():
        told = found[what]["value"]
        assert told == (list(map(str, value)) if isinstance(value, list) else str(value)), what
    assert done.of("note") == [line for line in done.of("note") if line["what"] == "clock-past-end"]


@everywhere
def test_a_traced_replay_is_the_replay(python: Path, tmp_path: Path) -> None:
    code = READS.replace('    "os.getpid": os.getpid(),\n', "")
    extra = {"SHELL_OF_MINE": "fish"}
    recorded = run(code, python=python, sidecar=tmp_path / "r", extra=extra)
    replayed = run(code, mode="replay", python=python, sidecar=tmp_path / "s", reads=recorded.lines, extra=extra)
    traced = run(
        code, mode="replay", python=python, sidecar=tmp_path / "t", reads=recorded.lines, extra={**extra, **TRACED}
    )
    assert recorded.json == replayed.json == traced.json
    assert [line["reads"] for line in traced.of("end")] == [line["reads"] for line in recorded.of("end")]
    assert not replayed.of("read")


def test_no_recording_is_traced(tmp_path: Path) -> None:
    done = run("import time; time.time()", python=_python(), sidecar=tmp_path / "s", extra=TRACED)
    assert not done.of("read")
    code = "import sys; print('_tapeproxy.callsites' in sys.modules)"
    assert run(code, mode="replay", python=_python(), sidecar=tmp_path / "s").stdout == "False\n"
    assert run(code, mode="replay", python=_python(), sidecar=tmp_path / "s", extra=TRACED).stdout == "True\n"


WHERE = """
import json, logging, time, threading, queue
def inner():
    return time.time()
def outer():
    return inner()
outer()
logging.getLogger().handle(logging.LogRecord("n", 10, "p", 1, "m", (), None))
thread = threading.Thread(target=outer)
thread.start(); thread.join()
"""


@everywhere
def test_the_line_is_the_user_s_and_libraries_are_named(python: Path, tmp_path: Path) -> None:
    done = run(WHERE, mode="replay", python=python, sidecar=tmp_path / "s", extra=TRACED)
    clocks = [(site["where"], site["via"], read["lane"]) for read, site in reads(done) if site["what"].startswith("ti")]
    outer = ["<string>:4 in inner", "<string>:6 in outer"]
    assert ([*outer, "<string>:7 in <module>"], [], "m") in clocks
    assert (outer, [], "m/t0") in clocks
    assert (["<string>:8 in <module>"], ["logging"], "m") in clocks


KEPT = """
import logging, pickle, random, time, uuid, json, datetime, copy
class Keeps:
    clock = time.time
class Mine(random.Random):
    def random(self): return 0.5
pickle.dumps([time.time, random.random, uuid.uuid4, datetime.datetime.now])
copy.deepcopy(time.time)
assert isinstance(Keeps().clock(), float)
assert Mine(3).randint(1, 9) and random.Random(5).random() == random.Random(5).random()
assert type(datetime.datetime.now()) is datetime.datetime
class Later(datetime.datetime): pass
assert type(Later.now()) is Later
logging.getLogger().addHandler(logging.StreamHandler())
print(random.Random(7).randint(1, 10**9), random.Random(7).sample(range(100), 3))
"""


@everywhere
def test_what_is_watched_can_be_kept_pickled_and_inherited(python: Path, tmp_path: Path) -> None:
    bare = run(KEPT, mode="bare", python=python, sidecar=tmp_path / "b")
    done = run(KEPT, mode="replay", python=python, sidecar=tmp_path / "s", extra=TRACED)
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr


BUSY = """
import sys, time
callsites = sys.modules["_tapeproxy.callsites"]
callsites.{limit} = {most}
for number in range(5000):
    time.time()
{end}
"""


@pytest.mark.parametrize(
    ("limit", "most", "told"), [("MOST_OF_A_SITE", 10, 10), ("MOST_READS", 20, 20), ("MOST_BYTES", 1380, 10)]
)
@pytest.mark.parametrize("end", ["", "import os; os._exit(0)"])
def test_a_busy_place_is_only_counted(limit: str, most: int, told: int, end: str, tmp_path: Path) -> None:
    code = BUSY.format(limit=limit, most=most, end=end)
    done = run(code, mode="replay", python=_python(), sidecar=tmp_path / "s", extra=TRACED)
    lines = [read for read, site in reads(done) if site["what"] == "time.time"]
    assert sum(line["count"] for line in lines) == 5000
    assert sum(line["clock"] for line in lines) == 5000
    assert abs(sum(line["count"] == 1 for line in lines) - told) <= 3
    assert len(lines) < told + 10
    assert [line["ns"] for line in lines] == sorted(line["ns"] for line in lines)


REQUESTS = """
import sys, time, _tapeproxy.lanes as lanes
for number in range(3):
    for _ in range(number + 1): time.time()
    lanes.current().requests += 1
"""


def test_reads_say_how_many_requests_came_before(tmp_path: Path) -> None:
    done = run(REQUESTS, mode="replay", python=_python(), sidecar=tmp_path / "s", extra=TRACED)
    numbers = [read["n"] for read, site in reads(done) if site["what"] == "time.time"]
    assert numbers == [0, 1, 1, 2, 2, 2]


def test_a_forked_child_tells_its_own(tmp_path: Path) -> None:
    code = "import os, time, random\npid = os.fork()\nrandom.randint(1, 9)\nif pid: os.waitpid(pid, 0)\n"
    done = run(code, mode="replay", python=_python(), sidecar=tmp_path / "s", extra=TRACED)
    found = {(read["lane"], site["where"][0]) for read, site in reads(done) if site["what"] == "random.randint"}
    assert found == {("m", "<string>:3 in <module>"), ("m/f0", "<string>:3 in <module>")}


def _python() -> Any:
    import sys

    return sys.executable
