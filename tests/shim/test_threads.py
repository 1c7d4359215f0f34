"""Lanes of threads and work items: by who started or submitted them, never by timing."""

from pathlib import Path

from shimruns import everywhere, in_fresh_lanes, run

HEAD = """
import _thread, asyncio, concurrent.futures, contextvars, json, os, sys, threading, time
from _tapeproxy.lanes import current
def me(): return current().id
out = []
def note(): out.append(me())
"""


CASES = [
    ("for _ in range(2): t = threading.Thread(target=note); t.start(); t.join()\nnote()", "m/t0 m/t1 m"),
    ("ts = [threading.Thread(target=note) for _ in range(2)]\nfor t in ts[::-1]: t.start(); t.join()", "m/t0 m/t1"),
    ("t = threading.Timer(0, note); t.start(); t.join()", "m/t0"),
    (
        "class T(threading.Thread):\n    def start(self): super().start()\n    def run(self): note()\n"
        "t = T(); t.start(); t.join()",
        "m/t0",
    ),
    (
        "def outer(): t = threading.Thread(target=note); t.start(); t.join(); note()\n"
        "t = threading.Thread(target=outer); t.start(); t.join()",
        "m/t0/t0 m/t0",
    ),
    ("t = threading.Thread(target=lambda: contextvars.Context().run(note)); t.start(); t.join()", "m/t0"),
    (
        "done = threading.Event()\ndef raw(a, b=1): note(); out.append(str(a + b)); done.set()\n"
        "_thread.start_new_thread(raw, (1,), {'b': 2}); done.wait()",
        "m/t0 3",
    ),
    (
        "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n"
        "    out += [f.result() for f in [pool.submit(me) for _ in range(3)]]\n"
        "    out += list(pool.map(lambda _: me(), 'ab'))",
        "m/w0 m/w1 m/w2 m/w3 m/w4",
    ),
    (
        # The pool's own threads, however many, take no number from the agent's.
        "with concurrent.futures.ThreadPoolExecutor(9) as pool: list(pool.map(time.sleep, [0.01] * 9))\n"
        "t = threading.Thread(target=note); t.start(); t.join()",
        "m/t0",
    ),
    (
        "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
        "    start = threading.Event(); first = pool.submit(start.wait); second = pool.submit(me)\n"
        "    second.add_done_callback(lambda _: note()); start.set()\n"
        "    out.append(second.result())",
        "m/w1 m/w1",
    ),
    (
        "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
        "    out.append(pool.submit(contextvars.copy_context().run, me).result())",
        "m/c0",
    ),
    (
        "def item():\n    t = threading.Thread(target=note); t.start(); t.join()\n"
        "with concurrent.futures.ThreadPoolExecutor(2) as pool: pool.submit(item).result()",
        "m/w0/t0",
    ),
]  # fmt: skip


@everywhere
def test_lanes(python: Path, sidecar: Path) -> None:
    ran = in_fresh_lanes(HEAD, [code for code, _ in CASES], python=python, sidecar=sidecar)
    assert dict(ran.json) == {code: ids.split() for code, ids in CASES}
    assert not ran.of("note")


@everywhere
def test_a_pools_initializer_is_soft(python: Path, sidecar: Path) -> None:
    code = "with concurrent.futures.ThreadPoolExecutor(1, initializer=note) as pool: pool.submit(note).result()"
    worker, item = run(HEAD + code + "\nprint(*out)", python=python, sidecar=sidecar).stdout.split()
    assert worker.startswith("?m/e")
    assert item == "m/w0"


@everywhere
def test_errors_are_as_ever(python: Path, sidecar: Path) -> None:
    code = """
import _thread, concurrent.futures, threading, traceback
def fails(call):
    try: call()
    except Exception as error: return f"{type(error).__name__}: {error}"
t = threading.Thread(target=int); t.start(); t.join()
pool = concurrent.futures.ThreadPoolExecutor(1); pool.shutdown()
print([fails(call) for call in (
    t.start, lambda: _thread.start_new_thread(1, ()), lambda: _thread.start_new_thread(int, []),
    lambda: _thread.start_new_thread(int, (), []), lambda: pool.submit(int), lambda: threading.Thread(target=int, x=1),
)])
t = threading.Thread(target=lambda: 1 / 0, name="failing"); t.start(); t.join()
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("bare", "record"))
    assert bare.stdout == ours.stdout
    assert bare.stderr.splitlines()[-1] == ours.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


@everywhere
def test_threads_look_as_ever(python: Path, sidecar: Path) -> None:
    code = """
import concurrent.futures, contextvars, inspect, json, pickle, threading, _thread
print(json.dumps([str(inspect.signature(f)) for f in (
    threading.Thread.start, threading.Thread.__init__, concurrent.futures.ThreadPoolExecutor.submit)]
    + [f.__module__ for f in (threading.Thread.start, contextvars.copy_context, _thread.start_new_thread)]
    + [f.__qualname__ for f in (threading.Thread.start, contextvars.copy_context, _thread.start_new_thread)]))
for f in (threading.Thread.start, contextvars.copy_context, _thread.start_new_thread):
    assert pickle.loads(pickle.dumps(f)) == f
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("bare", "record"))
    assert ours.stderr == ""
    assert [text.replace("_contextvars", "contextvars") for text in bare.json] == ours.json


@everywhere
def test_a_failed_item_is_freed_as_ever(python: Path, sidecar: Path) -> None:
    """Without the collector: its exception holds frames, and those must not hold the item."""
    code = """
import concurrent.futures, gc, weakref
class Failure(Exception): pass
def fail(): raise Failure
gc.collect(); gc.disable()
pool = concurrent.futures.ThreadPoolExecutor(1)
future = pool.submit(fail); error = weakref.ref(future.exception()); pool.shutdown()
del future, pool
print(error())
"""
    assert run(code, mode="bare", python=python, sidecar=sidecar).stdout == "None\n"
    for edges in "01":
        extra = {"TAPEPROXY_EDGES": edges}
        assert run(code, python=python, sidecar=sidecar, extra=extra).stdout == "None\n"
