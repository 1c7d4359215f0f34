"""Modules that wait by the real clock: every listed one that is here has it, and waits as long as it should."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from shimruns import everywhere, run

CHECK = """
import importlib, json, sys
clock, noise = sys.modules["_tapeproxy.clock"], sys.modules["_tapeproxy.noise"]
ours = {id(ours) for ours, _ in clock.pairs()} | {id(sys.modules["time"])}
real = {id(real) for _, real in clock.pairs()} | {id(clock.REAL)}
found = {}
for name in noise.MODULES:
    if name.split(".")[0] not in sys.argv[1:] or name in ("asyncio.windows_events", "subprocess.windows"): continue
    try: module = importlib.import_module(name)
    except ImportError: continue
    holders = [module, *(v for v in vars(module).values() if isinstance(v, type) and v.__module__ == name)]
    values = [getattr(v, "__func__", v) for holder in holders for v in vars(holder).values()]
    assert not any(id(v) in ours for v in values), name
    found[name] = sum(id(v) in real for v in values)
print(json.dumps(found))
"""
STDLIB = ("asyncio", "concurrent", "multiprocessing", "queue", "socketserver", "subprocess", "telnetlib", "threading")


@everywhere
def test_the_standard_library(python: Path, sidecar: Path) -> None:
    found = run(CHECK, *STDLIB, python=python, sidecar=sidecar).json
    assert len(found) >= 11
    assert all(found.values()), found  # else it takes no time, and has no place on the list


@pytest.mark.parametrize("package", ["aiohttp", "httpcore", "httpcore2", "urllib3"])
def test_libraries(package: str, sidecar: Path) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = run(CHECK, package, python=sys.executable, sidecar=sidecar).json
    assert found
    assert all(found.values()), found


WAITS = """
import asyncio, json, queue, subprocess, sys, threading, time
real = threading._time
def took(wait):
    start = real()
    try: wait()
    except (queue.Empty, subprocess.TimeoutExpired): pass
    return real() - start
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
lock = threading.Lock()
lock.acquire()
print(json.dumps({
    "event": took(lambda: threading.Event().wait(0.2)),
    "lock": took(lambda: lock.acquire(timeout=0.2)),
    "queue": took(lambda: queue.Queue().get(timeout=0.2)),
    "child": took(lambda: child.wait(timeout=0.2)),
}))
child.kill()
child.wait()
"""


@everywhere
def test_locks_wait_really_in_a_replay(python: Path, sidecar: Path) -> None:
    reads = [{"k": "clock", "lane": "m", "n": 0, "ns": 10**18}, {"k": "end", "lane": "m", "reads": 10**9}]
    waited = run(WAITS, mode="replay", python=python, sidecar=sidecar, reads=reads)
    assert all(0.19 < seconds < 10 for seconds in waited.json.values()), waited.json
    assert json.dumps(waited.json)


@everywhere
def test_waiting_takes_no_reads(python: Path, sidecar: Path) -> None:
    code = """if True:
        import asyncio, concurrent.futures, queue, subprocess, sys, threading, time
        reads = sys.modules["_tapeproxy.lanes"].current().reads  # logging takes its start's time
        asyncio.run(asyncio.sleep(0.01))
        threading.Event().wait(0.01)
        subprocess.run([sys.executable, "-I", "-c", ""], timeout=60, capture_output=True)
        with concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(len, "").result(timeout=60)
        print(sys.modules["_tapeproxy.lanes"].current().reads - reads)"""
    assert run(code, python=python, sidecar=sidecar).json == 0
