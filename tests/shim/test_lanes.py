"""Lane ids: the same in every run, never shared by two flows, soft where nothing can be promised."""

import subprocess
from pathlib import Path

import pytest
from shimruns import environment, everywhere, read_sidecar, run, with_packages

HEAD = "import sys, os, json\nfrom _tapeproxy import lanes\nfrom _tapeproxy.lanes import LANE, current\n"


@everywhere
@pytest.mark.parametrize(
    ("code", "ids"),
    [
        ("print(current().id, LANE.get().id, lanes.root().id)", "m m m"),
        ("print(*(current().child(kind).id for kind in 'ttat'))", "m/t0 m/t1 m/a0 m/t2"),
        ("print(current().child('t').child('a').child('a').id)", "m/t0/a0/a0"),
        ("import contextvars; print(contextvars.Context().run(lambda: current().id))", "m"),
        ("print(lanes.run_in(current().child('w'), lambda: current().id), current().id)", "m/w0 m"),
        ("print(lanes.soft('e').id, lanes.soft('e').id)", "?m/e0 ?m/e1"),
        ("def walk():\n    yield current().id\n    yield current().id\nw = walk(); "
         "print(next(w), lanes.run_in(current().child('w'), next, w))", "m m/w0"),
    ],
    ids=["root", "children", "below", "empty context", "run_in", "soft", "generator"],
)  # fmt: skip
def test_ids(code: str, ids: str, python: Path, sidecar: Path) -> None:
    ran = run(HEAD + code, python=python, sidecar=sidecar)
    assert ran.stdout.split() == ids.split(), ran.stderr


@everywhere
def test_ids_stay_short(python: Path, sidecar: Path) -> None:
    """The header holds 200 characters: recursion must not outgrow it, nor two lanes become one."""
    code = """
lane, seen = current(), set()
for _ in range(500):
    other, lane = lane.child("a"), lane.child("a")
    seen |= {other.id, lane.id}
print(len(seen), max(map(len, seen)))
"""
    count, longest = run(HEAD + code, python=python, sidecar=sidecar).stdout.split()
    assert int(count) == 1000
    assert int(longest) <= 120


@everywhere
def test_a_thread_that_nobody_announced_is_soft(python: Path, sidecar: Path) -> None:
    code = """
import ctypes, ctypes.util
seen = []
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def enter(_): seen.extend([current().id, current().id])
thread = ctypes.c_ulong()
libc = ctypes.CDLL(None)
libc.pthread_create(ctypes.byref(thread), None, enter, None); libc.pthread_join(thread, None)
print(*seen)
"""
    ran = run(HEAD + code, python=python, sidecar=sidecar)
    first, second = ran.stdout.split()
    assert first.startswith("?m/")
    assert first.split("/")[0] == second.split("/")[0]


@everywhere
def test_a_lane_tells_of_itself_when_it_matters(python: Path, sidecar: Path) -> None:
    code = """
def read(lane, reads): lane.reads = reads
kept, gone, idle = current().child("t", "kept"), current().child("a", "gone"), current().child("a", "idle")
read(kept, 3); read(gone, 2)
del gone, idle
kept.tell(); kept.tell()
print(len([line for line in open(__import__("_tapeproxy.channel").channel.path())]))
"""
    ran = run(HEAD + code, python=python, sidecar=sidecar)
    known = [line for line in ran.lines if line["k"] in ("lane", "end") and line.get("id") != "m" != line.get("lane")]
    assert known == [
        {"k": "lane", "id": "m/a0", "parent": "m", "kind": "a", "name": "gone"},
        {"k": "end", "lane": "m/a0", "reads": 2},
        {"k": "lane", "id": "m/t0", "parent": "m", "kind": "t", "name": "kept"},
        {"k": "end", "lane": "m/t0", "reads": 3},
    ]


@everywhere
@pytest.mark.parametrize(
    "leave", ["pass", "sys.exit(3)", "os._exit(3)", "os.execv(sys.executable, ['python', '-c', ''])"]
)
def test_ends_are_written_however_a_process_goes(leave: str, python: Path, sidecar: Path) -> None:
    ran = run(HEAD + "current().reads = 41\n" + leave, python=python, sidecar=sidecar)
    assert {"k": "end", "lane": "m", "reads": 41} in ran.lines, ran.stderr


@everywhere
def test_a_lane_of_a_finished_thread_has_ended(python: Path, sidecar: Path) -> None:
    code = """
import threading
def work(): current().reads = 5
thread = threading.Thread(target=work, name="worker"); thread.start(); thread.join()
os.kill(os.getpid(), 9)
"""
    ran = run(HEAD + code, python=python, sidecar=sidecar)
    assert {"k": "end", "lane": "m/t0", "reads": 5} in ran.lines
    assert {"k": "lane", "id": "m/t0", "parent": "m", "kind": "t", "name": "worker"} in ran.lines


@everywhere
def test_a_fork_is_a_lane_of_its_own(python: Path, sidecar: Path) -> None:
    """Also in what it returns to: a context that was entered before the fork still holds the parent's lane."""
    code = """
import contextvars
read, write = os.pipe()
def fork():
    if os.fork() == 0: return [current().id]
def inner():
    seen = fork()
    return seen and seen + [current().id]
lane = current().child("a"); lane.reads = 7
seen = contextvars.copy_context().run(inner)
if seen:
    os.write(write, " ".join(seen + [current().id, str(current().reads), str(lane.reads)]).encode()); os._exit(0)
os.wait(); print(os.read(read, 1000).decode())
"""
    ran = run(HEAD + code, python=python, sidecar=sidecar)
    inside, after, outside, reads, inherited = ran.stdout.split()
    assert inside == after == "m/c0/f0"
    assert outside == "m/c0/f0/o:m"
    assert (reads, inherited) == ("0", "0")
    ends = [(line["lane"], line["reads"]) for line in ran.of("end") if line["lane"] == "m/a0"]
    assert ends == [("m/a0", 7)]  # the parent's, once; the child has no say in it


@everywhere
def test_a_lane_is_handed_out_once(python: Path, sidecar: Path) -> None:
    """A shell gives one environment to all it runs: with one lane, two programs would draw the same uuids."""
    script = f"{python} -c 'import uuid; print(uuid.uuid4())'\n" * 3
    drawn = []
    for _ in range(2):
        for old in sidecar.iterdir():
            old.unlink()
        done = subprocess.run(["sh", "-c", script], env=environment(sidecar=sidecar), capture_output=True, text=True)
        drawn.append(done.stdout.split())
        assert sorted(line["lane"] for line in read_sidecar(sidecar) if line["k"] == "hello") == ["m", "m/x1", "m/x2"]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 3


@everywhere
def test_a_process_without_a_lane_is_soft(python: Path, sidecar: Path) -> None:
    code = "import uuid; print(uuid.uuid4())"
    runs = [run(code, python=python, sidecar=sidecar, extra={"TAPEPROXY_LANE": ""}) for _ in range(2)]
    assert runs[0].stdout != runs[1].stdout
    assert [ran.of("hello")[0]["lane"] for ran in runs] == [f"?p{ran.of('hello')[0]['pid']}" for ran in runs]


def test_greenlets_do_not_share_a_lane(sidecar: Path) -> None:
    code = """
import gevent
def show(): return current().id, (gevent.sleep(0), current().id)[1]
jobs = [gevent.spawn(show) for _ in range(2)]
gevent.joinall(jobs)
print(*[id for job in jobs for id in job.value], current().id)
"""
    ran = run(HEAD + code, python=with_packages("gevent"), sidecar=sidecar)
    first, again, second, also, main = ran.stdout.split()
    assert first == again != second == also
    assert first.startswith("?m/g")
    assert main == "m"
