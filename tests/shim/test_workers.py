"""Processes of multiprocessing and their work: lanes travel with the items, whichever worker takes one."""

from pathlib import Path

import pytest
from shimruns import VERSIONS, everywhere, run

PROGRAM = """
import concurrent.futures, json, multiprocessing, os, random, sys, threading, time, uuid
from _tapeproxy.lanes import current
def draw(x=None):
    time.sleep(open("/dev/urandom", "rb").read(1)[0] / 256 * 0.01)
    return [current().id, x, random.random(), str(uuid.uuid4())]
def put(queue): queue.put(draw("process"))
def fail(x): raise ValueError(x)
def main(kind):
    context, out = multiprocessing.get_context(kind), {}
    queue = context.SimpleQueue()
    for _ in range(2):
        process = context.Process(target=put, args=(queue,)); process.start()
        out.setdefault("processes", []).append(queue.get()); process.join()
    with context.Pool(2) as pool:
        out["apply"] = pool.apply(draw, ("apply",))
        out["async"] = [r.get() for r in [pool.apply_async(draw, (i,)) for i in range(4)]]
        out["map"] = pool.map(draw, range(5), chunksize=2)
        out["imap"] = list(pool.imap(draw, range(4)))
        out["starmap"] = pool.starmap(draw, [(1,), (2,)])
        try: pool.map(fail, [7])
        except ValueError as error: out["error"] = str(error)
        try: list(pool.imap(draw, (1 / i for i in (1, 0))))
        except ZeroDivisionError as error: out["input"] = str(error)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        out["submit"] = [f.result() for f in [pool.submit(draw, i) for i in range(4)]]
        out["executor map"] = list(pool.map(draw, range(4)))
    process = context.Process(target=put, args=(queue,)); process.start(); out["last"] = queue.get(); process.join()
    out["main"] = draw()
    print(json.dumps(out))
if __name__ == "__main__": main(sys.argv[1])
"""


# Spawned workers take their time to start: those on the oldest, our own and the newest.
KINDS = [("fork", version) for version in VERSIONS]
KINDS += [(kind, version) for kind in ("spawn", "forkserver") for version in ("3.9", "3.12", VERSIONS[-2])]
KEPT = [("fork", "3.9"), ("fork", VERSIONS[-2]), ("spawn", "3.12"), ("forkserver", "3.12"), ("spawn", "3.9")]


@pytest.mark.parametrize(
    ("kind", "python"),
    [pytest.param(*one, marks=() if one in KEPT else pytest.mark.soak) for one in KINDS],
    indirect=["python"],
)
def test_items_are_the_same_whoever_does_them(kind: str, python: Path, sidecar: Path, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    code = f"import sys; sys.argv = [{str(script)!r}, {kind!r}]; sys.path.insert(0, {str(tmp_path)!r})\n" + (
        "import program; program.main(sys.argv[1])" if kind != "fork" else code
    )
    recorded = run(code, python=python, sidecar=sidecar)
    assert recorded.returncode == 0, recorded.stderr
    replayed = run(code, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    out = recorded.json
    assert out == replayed.json
    letter = "f" if kind == "fork" else "s"
    assert [drawn[0] for drawn in out["processes"]] == [f"m/{letter}0", f"m/{letter}1"]
    assert out["last"][0] == f"m/{letter}2"  # what the pools started took no number
    assert out["apply"][0] == "m/w0"
    assert [drawn[0] for drawn in out["async"]] == ["m/w1", "m/w2", "m/w3", "m/w4"]
    assert [drawn[0] for drawn in out["map"]] == ["m/w5/w0", "m/w5/w0", "m/w5/w1", "m/w5/w1", "m/w5/w2"]
    assert [drawn[0] for drawn in out["imap"]] == [f"m/w6/w{i}" for i in range(4)]
    assert out["error"] == "7"
    assert out["input"] == "division by zero"
    values = [drawn[3] for name, group in out.items() if isinstance(group[0], list) for drawn in group]
    assert len(values) == len(set(values))
    assert not [note for note in recorded.of("note") if note["what"] != "lost"]


@everywhere
def test_a_thread_pool_of_multiprocessing(python: Path, sidecar: Path) -> None:
    code = """
import json, multiprocessing.pool
from _tapeproxy.lanes import current
with multiprocessing.pool.ThreadPool(2) as pool:
    print(json.dumps([pool.apply(lambda: current().id), pool.map(lambda _: current().id, range(2), chunksize=1)]))
"""
    assert run(code, python=python, sidecar=sidecar).json == ["m/w0", ["m/w1/w0", "m/w1/w1"]]


@everywhere
def test_the_services_have_names_of_their_own(python: Path, sidecar: Path) -> None:
    """Whoever needs them first starts them, which must not move that lane's numbers."""
    code = """
import multiprocessing, subprocess, sys
from multiprocessing import resource_tracker
resource_tracker.ensure_running()
multiprocessing.get_context("forkserver").Process(target=int).start()
subprocess.run([sys.executable, "-c", ""])
"""
    ran = run(code, python=python, sidecar=sidecar)
    assert {line["lane"] for line in ran.of("hello")} >= {"m", "m/tracker0", "m/server0", "m/s0", "m/p0"}


@everywhere
def test_what_an_item_starts_is_its_own(python: Path, sidecar: Path) -> None:
    """Not the pool's: only workers are soft."""
    code = """
import concurrent.futures, multiprocessing, os, subprocess, sys, threading
COMMAND = [sys.executable, "-c", ""]
def item():
    subprocess.run(COMMAND)
    if os.fork() == 0: os._exit(0)
    os.wait()
    process = multiprocessing.get_context("fork").Process(target=int); process.start(); process.join()
    thread = threading.Thread(target=subprocess.run, args=(COMMAND,)); thread.start(); thread.join()
with concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(item).result()
with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
    pool.submit(item).result()
"""
    ran = run(code, python=python, sidecar=sidecar)
    assert ran.returncode == 0, ran.stderr
    strict = {line["lane"] for line in ran.of("hello") if not line["lane"].startswith("?")}
    assert strict == {"m"} | {f"m/w{item}/{kind}" for item in (0, 1) for kind in ("p0", "f0", "f1", "t0/p0")}
    assert len([line for line in ran.of("hello") if line["lane"].startswith("?")]) == 1
