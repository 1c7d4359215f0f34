"""The functions of `time`: other values in every run without the shim, the same in record and replay with it."""

import gzip
import json
import statistics
import sys
from pathlib import Path

import pytest
from shimruns import ORIGIN, Line, Run, everywhere, run

ends = pytest.mark.parametrize("python", ("3.9", "3.13"), indirect=True)
"""For what does not depend on the interpreter: two of them are enough."""

READS = {
    "time": "time.time()",
    "time_ns": "time.time_ns()",
    "monotonic": "time.monotonic()",
    "monotonic_ns": "time.monotonic_ns()",
    "perf_counter": "time.perf_counter()",
    "perf_counter_ns": "time.perf_counter_ns()",
    "process_time": "time.process_time()",
    "process_time_ns": "time.process_time_ns()",
    "thread_time": "time.thread_time()",
    "thread_time_ns": "time.thread_time_ns()",
    "clock_gettime": "time.clock_gettime(time.CLOCK_REALTIME)",
    "clock_gettime_ns": "time.clock_gettime_ns(time.CLOCK_MONOTONIC)",
    "localtime": "list(time.localtime())",
    "localtime(None)": "list(time.localtime(None))",
    "gmtime": "list(time.gmtime())",
    "ctime": "time.ctime()",
    "asctime": "time.asctime()",
    "strftime": "time.strftime('%c')",
    "a log record": "logging.LogRecord('a', 20, 'x', 1, 'm', (), None).created",
    "logging's local time": "logging.Formatter('%(asctime)s').format(record)",
    "logging's UTC": "utc.format(record)",
    "mail date": "email.utils.formatdate(usegmt=True)",
    "mail localtime": "str(email.utils.localtime())",
    "message id": "email.utils.make_msgid(domain='x').split('.')[0]",
}
SLOW = {"localtime", "localtime(None)", "gmtime", "ctime", "asctime", "strftime", "mail date", "logging's UTC"}
PROGRAM = """
import email.utils, json, logging, time
utc = logging.Formatter("%(asctime)s")
utc.converter = time.gmtime
class Gmt(logging.Formatter): converter = time.gmtime
record = logging.LogRecord("a", 20, "x", 1, "m", (), None)
assert Gmt("%(asctime)s").format(record) == utc.format(record)
print(json.dumps({"""
PROGRAM += "".join(f"{name!r}: {read},\n" for name, read in READS.items()) + "}))"


@everywhere
def test_every_function(python: Path, sidecar: Path) -> None:
    bare = [run(PROGRAM, mode="bare", python=python, sidecar=sidecar).json for _ in range(2)]
    recorded = run(PROGRAM, python=python, sidecar=sidecar)
    replayed = run(PROGRAM, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert replayed.json == recorded.json
    assert not replayed.of("note")
    for name in READS.keys() - SLOW:
        assert bare[0][name] != bare[1][name], name  # or the test could not fail
        assert recorded.json[name] != bare[1][name], name


def replay(code: str, *args: str, python: Path, sidecar: Path, recorded: Run, **more: str) -> Run:
    return run(code, *args, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines, extra=more)


@ends
def test_what_the_clocks_count_from(python: Path, sidecar: Path) -> None:
    code = """if True:
        import json, time
        wall, mono, fine = time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()
        print(json.dumps([wall, mono, fine, time.time(), time.monotonic(), time.perf_counter()]))"""
    wall, mono, fine, *seconds = run(code, python=python, sidecar=sidecar).json
    # They are read one after the other, and a busy machine may do something else in between.
    assert abs(wall - mono - ORIGIN) < 10**10
    assert abs(wall - fine - ORIGIN) < 10**10
    assert all(abs(ns / 1e9 - s) < 10 for ns, s in zip((wall, mono, fine), seconds, strict=True))


LOOKS = """
import copy, inspect, json, pickle, time
from multiprocessing.reduction import ForkingPickler
names = [name for name in dir(time) if callable(getattr(time, name)) and not isinstance(getattr(time, name), type)]
for name in names:
    function = getattr(time, name)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(function, protocol)) == function, name
    assert pickle.loads(ForkingPickler.dumps(function)) == function, name
    assert copy.copy(function) == copy.deepcopy(function) == function, name
    assert (function.__module__, function.__name__, function.__qualname__) == ("time", name, name)
    assert function.__doc__ and repr(time) in repr(function) or "built-in" in repr(function), name
    assert function.__self__.sleep == time.sleep
class Holder:
    clock = time.time  # a function of Python's would be called with the instance
    converter = time.localtime
assert Holder().clock() <= time.time() and Holder().converter(0).tm_year == 1970
def outcome(call):
    try: return repr(call())
    except Exception as error: return type(error).__name__
print(json.dumps([names, [outcome(call) for call in (
    lambda: time.time(1), lambda: time.clock_gettime(-1), lambda: time.clock_gettime("x"), lambda: time.gmtime(86400),
    lambda: time.gmtime("x"), lambda: time.asctime(None), lambda: time.strftime("%Y", time.gmtime(0)),
    lambda: time.strftime(), lambda: time.strftime("%Y", None), lambda: time.ctime(0), lambda: time.localtime(1e30))]]))
"""


@everywhere
def test_looks_and_errors(python: Path, sidecar: Path) -> None:
    bare = run(LOOKS, mode="bare", python=python, sidecar=sidecar)
    for mode in ("record", "replay"):
        assert run(LOOKS, mode=mode, python=python, sidecar=sidecar).json == bare.json


TASKS = """
import asyncio, hashlib, json
from time import time_ns
values, order = [[], [], []], []
async def task(number):
    for _ in range(7_000):
        value = time_ns()
        values[number].append(value)
        order.append(value)
        await asyncio.sleep(0)
async def main(): await asyncio.gather(*map(task, range(3)))
asyncio.run(main())
back = sum(b < a for a, b in zip(order, order[1:]))
print(json.dumps([len(order), back, [hashlib.md5(repr(v).encode()).hexdigest() for v in values]]))
"""
THREADS = """
import hashlib, json, sys, threading
from time import time_ns, perf_counter_ns, monotonic_ns
sys.setswitchinterval(1e-5)
values, highest, back = [[], [], [], []], [0], []
def work(number):
    for n in range(5_000):
        before = highest[0]
        value = time_ns()
        values[number].append(value)
        if value < before: back.append(before - value)
        if value > highest[0]: highest[0] = value
        if n % 3 == number % 3: values[number].append(perf_counter_ns() - monotonic_ns())
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([sum(map(len, values)), len(back), [hashlib.md5(repr(v).encode()).hexdigest() for v in values]]))
"""


ACROSS = """
import asyncio, hashlib, json
from datetime import datetime, timedelta, timezone
from time import monotonic, monotonic_ns, perf_counter, perf_counter_ns, time, time_ns
start = datetime(1970, 1, 1, tzinfo=timezone.utc)
def now(): return (datetime.now(timezone.utc) - start) // timedelta(microseconds=1)
wall = [lambda: time_ns() // 1000, now, lambda: round(time() * 1e6 - 0.5)]  # each in whole microseconds
steady = [monotonic_ns, lambda: round(monotonic() * 1e9)]
fine = [perf_counter_ns, lambda: round(perf_counter() * 1e9)]
values, order = [[], [], []], [[], [], []]
async def task(number):
    for n in range(7_000):
        kind = n % 3
        clocks = (wall, steady, fine)[kind]
        value = clocks[(n // 3 + number) % len(clocks)]()
        values[number].append(value)
        order[kind].append(value)
        await asyncio.sleep(0)
async def main(): await asyncio.gather(*map(task, range(3)))
asyncio.run(main())
slack = (1, 16, 16)  # what a float may be off by; a step is 100 ns
back = sum(b < a - slack[kind] for kind in range(3) for a, b in zip(order[kind], order[kind][1:]))
print(json.dumps([sum(map(len, order)), back, [hashlib.md5(repr(v).encode()).hexdigest() for v in values]]))
"""


@everywhere
@pytest.mark.parametrize("code", [TASKS, THREADS], ids=["tasks in turn", "racing threads"])
def test_time_never_goes_back(code: str, python: Path, sidecar: Path) -> None:
    check_that_time_never_goes_back(code, python, sidecar)


@ends
def test_time_never_goes_back_whichever_clocks_are_read(python: Path, sidecar: Path) -> None:
    check_that_time_never_goes_back(ACROSS, python, sidecar)


def check_that_time_never_goes_back(code: str, python: Path, sidecar: Path) -> None:
    recorded = run(code, python=python, sidecar=sidecar)
    reads, back, values = recorded.json
    assert reads >= 20_000
    assert back == 0
    replayed = replay(code, python=python, sidecar=sidecar, recorded=recorded)
    assert replayed.json[2] == values
    assert not replayed.of("note")


LOOP = "import sys, time\nfor _ in range(1_000_000): time.{}()\nprint(time.time_ns(), time.perf_counter())"


@ends
@pytest.mark.parametrize("function", ["time", pytest.param("perf_counter", marks=pytest.mark.soak)])
def test_a_million_reads(function: str, python: Path, sidecar: Path) -> None:
    recorded = run(LOOP.format(function), python=python, sidecar=sidecar)
    assert len(recorded.of("clock")) >= 2
    assert sum(len(gzip.compress(path.read_bytes(), 1)) for path in sidecar.iterdir()) <= 50_000  # as on a tape
    assert replay(LOOP.format(function), python=python, sidecar=sidecar, recorded=recorded).stdout == recorded.stdout


STOPWATCH = """
import json, threading, time
real = threading._time  # what locks wait by stays real
def work(seconds):
    end = real() + seconds
    while real() < end: pass
def measure(seconds):
    start = time.perf_counter()
    work(seconds)
    return time.perf_counter() - start
print(json.dumps([[measure(us / 1e6) * 1e6 for _ in range(50)] for us in (5, 50, 500)]))
"""


@ends
def test_stopwatches_still_work(python: Path, sidecar: Path) -> None:
    recorded = run(STOPWATCH, python=python, sidecar=sidecar)
    for us, measured in zip((5, 50, 500), recorded.json, strict=True):
        assert us * 0.98 <= statistics.median(measured) <= us + 30
    assert replay(STOPWATCH, python=python, sidecar=sidecar, recorded=recorded).json == recorded.json


MORE = """
import json, sys, time
values = [time.time() for _ in range(5)]
if len(sys.argv) > 1:
    end = time.time() + 0.2
    while time.time() < end: pass
    end = time.time() + 60
    while time.time() < end: time.sleep(1)
    values += [time.monotonic() + 1e9, time.time()]
print(json.dumps(values))
"""


@ends
@pytest.mark.parametrize(("strict", "grade"), [("", "soft"), ("1", "violation")])
def test_past_the_end_of_the_lane(strict: str, grade: str, python: Path, sidecar: Path) -> None:
    recorded = run(MORE, python=python, sidecar=sidecar)
    replayed = replay(MORE, "more", python=python, sidecar=sidecar, recorded=recorded, TAPEPROXY_STRICT=strict)
    assert replayed.json[:5] == recorded.json
    assert replayed.json == sorted(replayed.json)
    assert 60.2 <= replayed.json[-1] - recorded.json[-1] < 90
    (note,) = replayed.of("note")
    assert note["what"] == "clock-past-end"
    where = note["data"].pop("where")
    assert where.startswith("<string>:")
    assert note["data"] == {"lane": "m", "reads": 6, "taped": 5, "grade": grade}


NEW_LANE = """
import json, sys, threading, time
values = [time.time()]
if len(sys.argv) > 1:
    thread = threading.Thread(target=lambda: values.extend([time.time(), time.time()]))
    thread.start()
    thread.join()
print(json.dumps(values))
"""


@ends
def test_a_lane_that_is_not_on_the_tape(python: Path, sidecar: Path) -> None:
    recorded = run(NEW_LANE, python=python, sidecar=sidecar)
    replayed = replay(NEW_LANE, "more", python=python, sidecar=sidecar, recorded=recorded)
    first, second, third = replayed.json
    assert first == recorded.json[0]
    assert first <= second < third < first + 10
    assert [note["data"]["taped"] for note in replayed.of("note")] == [0]


CUT_OFF = """
import asyncio, json, sys, time
values = []
async def background():
    for _ in range(int(sys.argv[1])): await asyncio.sleep(0)
    values.append(time.time())
    await asyncio.sleep(60)
async def main():
    task = asyncio.create_task(background())
    for _ in range(3): await asyncio.sleep(0)
asyncio.run(main())
print(json.dumps(values))
"""


@ends
def test_a_task_that_the_end_cut_off_may_get_further(python: Path, sidecar: Path) -> None:
    recorded = run(CUT_OFF, "9", python=python, sidecar=sidecar)
    assert recorded.json == []
    replayed = replay(CUT_OFF, "0", python=python, sidecar=sidecar, recorded=recorded, TAPEPROXY_STRICT="1")
    assert len(replayed.json) == 1
    assert [note["data"]["grade"] for note in replayed.of("note")] == ["soft"]
    threads = replay(NEW_LANE, "more", python=python, sidecar=sidecar, recorded=recorded, TAPEPROXY_STRICT="1")
    assert {note["data"]["grade"] for note in threads.of("note")} == {"violation"}


@ends
def test_a_killed_process_replays(python: Path, sidecar: Path) -> None:
    code = """if True:
        import json, os, signal, time
        print(json.dumps([time.time() for _ in range(500)] + [time.sleep(0.01), time.time(), time.time()]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)"""
    recorded = run(code, python=python, sidecar=sidecar)
    assert recorded.returncode == -9
    assert not recorded.of("end")
    replayed = replay(code, python=python, sidecar=sidecar, recorded=recorded)
    assert replayed.json == recorded.json
    assert not replayed.of("note")


@ends
def test_a_tape_without_clocks_leaves_time_running(python: Path, sidecar: Path) -> None:
    code = "import json, time\nprint(json.dumps([time.time(), time.sleep(100), time.time()]))"
    before, _, after = run(code, mode="replay", python=python, sidecar=sidecar, extra={"TAPEPROXY_READS": ""}).json
    assert 100 <= after - before < 110


CORRUPT: list[tuple[str, list[Line]]] = [
    ("jumps back in time", [{"k": "clock", "lane": "m", "n": n, "ns": 10**18 - n} for n in range(3)]),
    ("does not start at 0", [{"k": "clock", "lane": "m", "n": 2, "ns": 10**18}]),
    ("ends before its jumps", [{"k": "clock", "lane": "m", "n": n, "ns": 10**18 + n} for n in (0, 9)]),
]


@pytest.mark.parametrize("lines", [lines for _, lines in CORRUPT], ids=[name for name, _ in CORRUPT])
@ends
def test_a_strange_tape_never_hangs_nor_goes_back(lines: list[Line], python: Path, sidecar: Path) -> None:
    code = "import json, time\nprint(json.dumps([time.time_ns() for _ in range(20)]))"
    reads = [*lines, {"k": "end", "lane": "m", "reads": 1}]
    values = run(code, mode="replay", python=python, sidecar=sidecar, reads=reads).json
    assert values == sorted(set(values))


FAMILY = """
import json, os, subprocess, sys, time
start = time.time()
child = "import time; print(time.time(), time.monotonic(), [time.time_ns() for _ in range(50)])"
children = [subprocess.check_output([sys.executable, "-c", child], text=True) for _ in range(2)]
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, repr([time.time(), time.time() - start]).encode())
    os._exit(0)
forked = os.read(read, 1000).decode()
os.wait()
print(json.dumps([start, children, forked, time.time()]))
"""


@everywhere
def test_child_processes_have_clocks_of_their_own(python: Path, sidecar: Path) -> None:
    recorded = run(FAMILY, python=python, sidecar=sidecar)
    assert recorded.json[1][0] != recorded.json[1][1]
    replayed = replay(FAMILY, python=python, sidecar=sidecar, recorded=recorded)
    assert replayed.json == recorded.json
    assert not replayed.of("note")


UNINSTALL = """
import datetime, sys, time
from time import time as kept
kept_now = datetime.datetime.now
clock, datetimes = sys.modules["_tapeproxy.clock"], sys.modules["_tapeproxy.datetimes"]
def builtin(function): return type(function).__name__ == "builtin_function_or_method"
assert not builtin(time.time) and not builtin(datetime.datetime.now)
reads = sys.modules["_tapeproxy.lanes"].current().reads
for _ in range(2):
    clock.uninstall()
    datetimes.uninstall()
    assert builtin(time.time) and builtin(time.strftime) and builtin(datetime.datetime.now)
    kept(), kept_now(), time.time(), datetime.date.today()
    assert sys.modules["_tapeproxy.lanes"].current().reads == reads
    clock.install()
    datetimes.reinstall()
    assert not builtin(time.time) and time.time == kept
    kept(), kept_now(), time.time(), datetime.date.today()
    reads += 4
    assert sys.modules["_tapeproxy.lanes"].current().reads == reads
"""


@everywhere
def test_uninstall(python: Path, sidecar: Path) -> None:
    for mode in ("record", "replay"):
        done = run(UNINSTALL, mode=mode, python=python, sidecar=sidecar)
        assert done.returncode == 0, done.stderr


STEPS = """
import json, sys, time
live = sys.modules["_tapeproxy.livetime"]
wall, step = live._wall, 0
live._wall = lambda: wall() + step
values = []
for step in (0, 3600 * 10**9, 3500 * 10**9, 0):
    time.sleep(0.01)
    values.append(time.time_ns())
print(json.dumps(values))
"""


@ends
def test_a_wall_clock_that_is_set(python: Path, sidecar: Path) -> None:
    """Forward, as after a laptop's sleep: followed, or signatures would be refused. Back: time goes on from there."""
    recorded = run(STEPS, python=python, sidecar=sidecar)
    first, forward, back, far_back = recorded.json
    assert 3600 <= (forward - first) / 1e9 < 3602
    assert 0.01 <= (back - forward) / 1e9 < 2
    assert 0.01 <= (far_back - back) / 1e9 < 2


BARS = """
import datetime, json, threading, time
real = threading._time
def cost(function):
    best = 1.0
    for _ in range(30):
        start = real()
        for _ in range(10_000): function()
        best = min(best, real() - start)
    return best / 10_000 * 1e9
print(json.dumps([cost(lambda: None), cost(time.time), cost(datetime.datetime.now)]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("python", ["3.12"], indirect=True)
def test_what_a_read_costs(python: Path, sidecar: Path) -> None:
    _, read, now = run(BARS, python=python, sidecar=sidecar).json
    assert read <= 250
    assert now <= 1300


def test_lines_are_as_the_tape_wants_them(sidecar: Path) -> None:
    recorded = run("import time\ntime.time(); time.sleep(0.002); time.time()", python=sys.executable, sidecar=sidecar)
    for line in recorded.of("clock"):
        slept = {"slept": True} if line["n"] == 1 else {}
        assert line == {"k": "clock", "lane": "m", "n": line["n"], "ns": line["ns"]} | slept
        assert json.loads(json.dumps(line)) == line
    assert recorded.of("end") == [{"k": "end", "lane": "m", "reads": 2}]
