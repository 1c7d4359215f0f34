"""--threads in one process: what threads race for comes out the same, and locks are what they were to the agent."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from shimruns import Line, Run, everywhere, run

HEAD = """
import asyncio, functools, os, queue, random, signal, sys, threading, time
import concurrent.futures as pools
sys.setswitchinterval(1e-6)
def at_once(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
out = []
lock = threading.Lock()
"""


def record(code: str, python: Path, sidecar: Path) -> Run:
    return run(HEAD + code, python=python, sidecar=sidecar, extra={"TAPEPROXY_THREADS": "1"})


def replay(code: str, lines: Iterable[Line], python: Path, sidecar: Path, **options: Any) -> Run:
    """Replay with the edges and clocks among these lines."""
    lines = list(lines)
    edges = ({name: value for name, value in line.items() if name != "k"} for line in lines if line["k"] == "edge")
    taped = sidecar.parent / "edges.jsonl"
    taped.write_text("".join(json.dumps(edge) + "\n" for edge in edges))
    more = {"TAPEPROXY_THREADS": str(taped)}
    return run(HEAD + code, mode="replay", python=python, sidecar=sidecar, reads=lines, extra=more, **options)


def drifts(ran: Run) -> list[Line]:
    return [line for line in ran.of("note") if line["what"] == "lock-order"]


RACES = {
    "a list and a generator under a lock": """
shared, together = random.Random(1), threading.Barrier(3)
def work(n):
    together.wait()
    for _ in range(100):
        with lock: out.append((n, shared.random()))
at_once(*[functools.partial(work, n) for n in range(3)])
""",
    "tries and timeouts": """
together = threading.Barrier(3)
def work(n):
    together.wait()
    for _ in range(60):
        if lock.acquire(False):
            sum(range(500)); lock.release(); out.append((n, "got"))
        else: out.append((n, "no"))
        if lock.acquire(timeout=1e-5):
            sum(range(900)); out.append((n, "in time")); lock.release()
at_once(*[functools.partial(work, n) for n in range(3)])
out.sort(key=lambda entry: entry[0])
""",
    "a queue": """
tasks = queue.Queue(2)
def put(n):
    for k in range(50): tasks.put((n, k))
def get(n):
    for _ in range(50):
        task = tasks.get()
        with lock: out.append((n, task))
at_once(*[functools.partial(work, n) for n in range(2) for work in (put, get)])
""",
    "a priority queue that is polled": """
tasks = queue.PriorityQueue()
def get():
    while True:
        try: task = tasks.get(timeout=0.03)
        except queue.Empty: out.append("empty"); continue
        out.append(task)
        if task == 99: return
def put():
    for k in (3, 1, 2): time.sleep(0.05); tasks.put(k)
    tasks.put(99)
at_once(put, get)
""",
    "who is notified": """
ready, waiting = threading.Condition(), []
def work(n):
    with ready:
        waiting.append(n); ready.wait(); out.append(n)
def notify():
    while True:
        with ready:
            if len(out) == 4: return
            ready.notify()
        time.sleep(0.001)
at_once(*[functools.partial(work, n) for n in range(4)], notify)
out.append(waiting)
""",
    "semaphores and events": """
start, two = threading.Event(), threading.BoundedSemaphore(2)
def work(n):
    start.wait()
    for _ in range(20):
        with two:
            with lock: out.append(n)
at_once(start.set, *[functools.partial(work, n) for n in range(4)])
""",
    "a lock that is held twice": """
again, together = threading.RLock(), threading.Barrier(3)
ready = threading.Condition(again)
def work(n):
    together.wait()
    for _ in range(60):
        with again:
            with again: out.append(n)
            ready.wait(1e-6)
at_once(*[functools.partial(work, n) for n in range(3)])
""",
    "work items, as they are completed": """
def item(n):
    sum(range(200 * (n % 5)))
    with lock: out.append(n)
    return -n
with pools.ThreadPoolExecutor(4) as pool:
    items = [pool.submit(item, n) for n in range(40)]
    out += [future.result() for future in pools.as_completed(items)]
""",
    "log records": """
import logging.handlers
class Listed(logging.Handler):
    def emit(self, record):
        with lock: out.append(record.getMessage())
records = queue.Queue()
log = logging.getLogger("agent"); log.setLevel("INFO")
log.addHandler(Listed()); log.addHandler(logging.handlers.QueueHandler(records))
def work(n):
    for k in range(30): log.info("%s %s", n, k)
at_once(*[functools.partial(work, n) for n in range(3)])
out += [records.get().getMessage() for _ in range(90)]
""",
    "threads that a task waits for": """
def work(n):
    for _ in range(20):
        with lock: out.append(n)
async def main():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*[loop.run_in_executor(pool, work, n) for n in range(4)])
with pools.ThreadPoolExecutor(4) as pool: asyncio.run(main())
""",
}
"""Programs that leave in `out` what chance would have it, were it not for the tape."""
FORK = """
import warnings; warnings.simplefilter("ignore", DeprecationWarning)
def work(n):
    for _ in range(40):
        with lock: out.append(n)
def race(): at_once(*[functools.partial(work, n) for n in range(2)])
race()
child = os.fork()
if child: os.waitpid(child, 0)
race()
print(out, flush=True)
if not child: os._exit(0)
"""


ALL = "\n".join(f"{code}\nprint({name!r}, out)\nout.clear()" for name, code in RACES.items())


@everywhere
def test_a_race_has_the_same_end_in_every_replay(python: Path, sidecar: Path) -> None:
    recorded = record(ALL + FORK, python, sidecar)
    assert (recorded.returncode, recorded.stderr) == (0, "")
    for _ in range(5):
        replayed = replay(ALL + FORK, recorded.lines, python, sidecar)
        assert (replayed.stdout, replayed.stderr) == (recorded.stdout, ""), drifts(replayed)
        assert not drifts(replayed)


@pytest.mark.parametrize("python", ["3.12"], indirect=True)
def test_the_races_are_real(python: Path, sidecar: Path) -> None:
    runs = {run(HEAD + ALL, mode="bare", python=python, sidecar=sidecar).stdout for _ in range(2)}
    runs.add(replay(ALL, [], python, sidecar).stdout)  # of a tape that knows no order
    assert len(runs) == 3


LOOKS = """
import pickle, weakref, copy, inspect, _thread
def error(fn, *args, **kwargs):
    try: return fn(*args, **kwargs)
    except BaseException as e: return type(e).__name__, str(e)
def bare(text): return text.partition(" at 0x")[0].partition("owner=")[0]
for make in (threading.Lock, threading.RLock):
    l = make()
    print(type(l), isinstance(l, _thread.LockType), isinstance(l, _thread.RLock), bare(repr(l)), l.__class__)
    print(error(pickle.dumps, l), error(copy.copy, l), error(lambda: setattr(l, "x", 1)))
    print(sorted(dir(l)), type(l).acquire.__name__, type(l).__enter__.__qualname__, type(l).acquire.__doc__)
    print(error(l.release), error(l.acquire, False, 1), error(l.acquire, True, -2), error(l.acquire, timeout=1e300))
    print(error(l.acquire, True, "y"), error(l.acquire, 1, 2, 3)[0])
    print(l.acquire(), error(l.acquire, False), error(l.acquire, timeout=0.001), bare(repr(l)))
    l._at_fork_reinit()
    with l as entered: print(entered, getattr(l, "_is_owned", l.locked if hasattr(l, "locked") else None)())
    gone = weakref.ref(l); del l; print(gone())
again = threading.RLock()
again.acquire(); again.acquire()
saved = again._release_save(); print(again._is_owned(), saved[0]); again._acquire_restore(saved)
again.release(); again.release(); print(error(again.release))
c = threading.Condition(); print(error(c.notify), error(c.wait))
with c: print(c.wait(0.001), c.wait_for(lambda: False, 0.001), c.wait_for(lambda: True))
e = threading.Event(); print(e.wait(0.001), e.is_set(), error(queue.Queue().get, False) [0], error(queue.Queue().get, timeout=0.001)[0])
made = threading.Lock
class Holder: make = threading.Lock
print(Holder().make().locked(), isinstance(threading.Lock(), made) if isinstance(made, type) else type(threading.Lock()))
print(error(type, "Sub", (made,), {})[0] if isinstance(made, type) else "", repr(made) if isinstance(made, type) else "")
class Sub(type(threading.RLock())): pass
with Sub() as s: print(s)
print(threading.Barrier(1).wait(), threading.BoundedSemaphore(1).acquire(False))
def closing():
    with lock: print("closed")
import atexit; atexit.register(closing)
class Late:
    def __del__(self, lock=threading.Lock()): lock.acquire(); lock.release()
late = Late(); late.me = late
"""  # noqa: E501


@everywhere
def test_locks_look_and_fail_as_ever(python: Path, sidecar: Path) -> None:
    bare = run(HEAD + LOOKS, mode="bare", python=python, sidecar=sidecar)
    recorded = record(LOOKS, python, sidecar)
    assert bare.returncode == 0, bare.stderr
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    replayed = replay(LOOKS, recorded.lines, python, sidecar)
    assert (replayed.stdout, replayed.stderr) == (bare.stdout, bare.stderr)
    assert not drifts(replayed)


@everywhere
def test_without_the_option_nothing_is_there(python: Path, sidecar: Path) -> None:
    code = "import threading; print(any('lock' in name for name in sys.modules if name.startswith('_tapeproxy.lockr')))"
    ran = run(HEAD + code + "; print(threading.Lock.__module__, type(lock).acquire)", python=python, sidecar=sidecar)
    assert ran.stdout.splitlines()[0] == "False"
    assert "_thread <method 'acquire' of '_thread.lock' objects>" in ran.stdout


TWO = """
def work(n):
    with lock: out.append(n)
    print("done", n)
"""


def edge(lane: str, n: int, what: str = "acquired") -> Line:
    return {"k": "edge", "what": what, "on": "m#__main__:0", "lane": lane, "n": n}


@everywhere
def test_the_tape_says_who_comes_first(python: Path, sidecar: Path) -> None:
    code = TWO + "at_once(lambda: work(0), lambda: work(1))\nprint(out)"
    for first, second in ("01", "10"):
        ran = replay(code, [edge(f"m/t{first}", 0), edge(f"m/t{second}", 1)], python, sidecar)
        assert ran.stdout.splitlines()[-1] == f"[{first}, {second}]"
        assert not drifts(ran)


@everywhere
@pytest.mark.parametrize(
    ("why", "code", "lines"),
    [
        ("m/t0 has ended", "at_once(lambda: None, lambda: work(1))", [edge("m/t0", 0), edge("m/t1", 1)]),
        ("nobody in the process can go on", "work(1)", [edge("m/t7", 0)]),
        ("nobody in the process can go on", "time.sleep(3); work(1)", [edge("m/t7", 0)]),
        ("m got it on the tape", "with lock: out.append(lock.acquire(timeout=0.01))\nwork(1)", []),
        ("m was refused it on the tape", "work(1)", [edge("m", 0, "refused")]),
        (
            "nobody in the process can go on",
            # Who waits first holds what the other one needs to come to its turn.
            "import _thread; outer = _thread.allocate_lock()\n"
            "def one():\n  with outer: work(0)\n"
            "def two():\n  while not outer.locked(): pass\n  with outer: work(1)\n"
            "at_once(one, two)",
            [edge("m/t1", 0), edge("m/t0", 1)],
        ),
        (
            "m/t0 has not come",
            # Somebody waits where nobody can see that it is in vain.
            "from _tapeproxy import lockreplay; lockreplay._QUIET = 0.1\n"
            "quiet, end = os.pipe()\n"
            "def late(): os.read(quiet, 1)\n"
            "def soon(): work(1); os.write(end, b' ')\n"
            "at_once(late, soon)",
            [edge("m/t0", 0)],
        ),
        (
            "m/t0 has not come",
            "from _tapeproxy import lockreplay; lockreplay._QUIET, lockreplay._BUSY = 0.1, 0.5\n"
            "def late():\n  while not out: pass\n"
            "at_once(late, lambda: work(1))",
            [edge("m/t0", 0)],
        ),
        (
            "m/t0 has ended",
            "async def main(): work(1)\nat_once(lambda: None); asyncio.run(main())",
            [edge("m/t0", 0)],
        ),
        (
            "nobody in the process can go on",
            "signal.signal(signal.SIGALRM, lambda *_: work(1)); signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
            "while not out: signal.pause()",
            [edge("m/t0", 0)],
        ),
        (
            "nobody in the process can go on",
            "child = os.fork()\nif not child: work(1); sys.stdout.flush(); os._exit(0)\nos.waitpid(child, 0)",
            [{**edge("m/f0/t0", 0), "on": "m/f0<m#__main__:0"}],
        ),
    ],
)
def test_a_turn_that_cannot_come_is_one_drift(
    why: str, code: str, lines: list[Line], python: Path, sidecar: Path
) -> None:
    ran = replay(TWO + code, lines, python, sidecar, timeout=20)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "done 1" in ran.stdout
    (drift,) = drifts(ran)
    assert why in drift["text"], "what took waiting is given as another reason"
    assert "the lock made at <string>:10 " in drift["text"]


@everywhere
def test_a_daemon_that_waits_keeps_nobody_from_the_end(python: Path, sidecar: Path) -> None:
    code = TWO + "threading.Thread(target=work, args=(0,), daemon=True).start()\nprint('end')"
    ran = replay(code, [edge("m/t7", 0)], python, sidecar, timeout=20)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "end" in ran.stdout


@everywhere
def test_a_deadlock_is_reported_and_ends(python: Path, sidecar: Path) -> None:
    code = """
other, both = threading.Lock(), threading.Barrier(2)
def work(first, second):
    with first:
        both.wait()
        with second: print("never")
threads = [threading.Thread(target=work, args=pair) for pair in ((lock, other), (other, lock))]
for thread in threads: thread.start()
if len(sys.argv) > 1: threads[0].join(0.2); os.kill(os.getpid(), signal.SIGKILL)
print("waiting", flush=True)
"""
    recorded = run(HEAD + code, "kill", python=python, sidecar=sidecar, extra={"TAPEPROXY_THREADS": "1"})
    assert len(recorded.of("edge")) >= 2, "SIGKILL loses nothing"
    ran = replay(code, recorded.lines, python, sidecar, timeout=30)
    assert (ran.returncode, ran.stdout) == (4, "waiting\n")
    text = drifts(ran)[-1]["text"]
    assert text.startswith("deadlock: nobody can go on")
    assert text.count("<string>:16 in work") == 2


@everywhere
def test_waits_that_timed_out_cost_nothing(python: Path, sidecar: Path) -> None:
    """The recording gives a queue and an event 1.2 s; the replay knows that nothing came."""
    code = """
from _tapeproxy.clock import REAL
began, really = time.monotonic(), REAL.perf_counter()
for _ in range(2):
    try: queue.Queue().get(timeout=0.4)
    except queue.Empty: out.append("empty")
out.append(threading.Event().wait(0.4))
print(out, time.monotonic() - began)
print(REAL.perf_counter() - really, file=sys.stderr)
"""
    recorded = record(code, python, sidecar)
    replayed = replay(code, recorded.lines, python, sidecar)
    assert float(replayed.stderr) < 1.1 < 1.2 <= float(recorded.stderr)
    assert replayed.stdout == recorded.stdout
    assert not drifts(replayed)


@everywhere
def test_only_a_change_of_hands_is_taped(python: Path, sidecar: Path) -> None:
    code = """
def work():
    for _ in range(1000):
        with lock: pass
work(); at_once(work); work()
"""
    recorded = record(code, python, sidecar)
    mine = [line for line in recorded.of("edge") if line["on"] == "m#__main__:0"]
    assert [(line["what"], line["lane"], line["n"]) for line in mine] == [
        ("acquired", "m/t0", 1000),
        ("acquired", "m", 2000),
    ]


@everywhere
def test_locks_of_the_library_s_own_are_left_alone(python: Path, sidecar: Path) -> None:
    code = """
import tempfile, logging, subprocess
at_once(lambda: tempfile.gettempdir(), lambda: logging.getLogger("a").info("x"), lambda: subprocess.run(["true"]))
from _tapeproxy.lockorder import watched
print(*sorted(w.id for w in watched.values()))
"""
    assert record(code, python, sidecar).stdout.split() == ["m#__main__:0", "m#logging:0"]


@everywhere
def test_of_a_library_those_made_after_its_import_are_watched(python: Path, sidecar: Path) -> None:
    """What it makes at its import it has for caches, and who comes first to an import is chance."""
    module = (
        "import threading\nlock = threading.Lock()\nclass Made:\n  def __init__(self): self.lock = threading.Lock()\n"
    )
    for folder, name in (("site-packages", "library"), ("src", "own")):
        (sidecar.parent / folder).mkdir()
        (sidecar.parent / folder / f"{name}.py").write_text(module)
    code = f"""
sys.path += [{str(sidecar.parent / "src")!r}, {str(sidecar.parent / "site-packages")!r}]
import own, library
made = own.Made(), library.Made()
from _tapeproxy.lockorder import watched
print(*sorted(w.id for w in watched.values()))
"""
    found = record(code, python, sidecar).stdout.split()
    assert [name for name in found if "logging" not in name] == ["m#__main__:0", "m#library:0", "m#own:0", "m#own:1"]
