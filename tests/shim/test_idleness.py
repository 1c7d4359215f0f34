"""Who is at work: a pool's worker that was told to end is, although it waits nowhere and its queue is empty."""

from pathlib import Path

from shimruns import everywhere, run

# A worker's states, held still: tracing stops it right where it has taken the word to end, and where it waits for it.
WORKER = """
import queue, sys, threading, time
from concurrent.futures import ThreadPoolExecutor, thread
from _tapeproxy import idleness

taken, go_on = threading.Event(), threading.Event()

def trace(frame, event, arg):
    if frame.f_code is thread._worker.__code__ and event == "line" and frame.f_locals.get("work_item", 0) is None:
        sys.settrace(None)
        taken.set()
        go_on.wait()
    return trace

def verdict(worker):
    frame = sys._current_frames()[worker.ident]
    while frame.f_code is not thread._worker.__code__:
        frame = frame.f_back
    return idleness._in_pool(frame)

threading.settrace(trace)
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
threading.settrace(None)
(worker,) = pool._threads
while verdict(worker) is None:  # it is on its way back to the queue
    time.sleep(0)
print(verdict(worker))
pool.shutdown(wait=False)
taken.wait()
print(verdict(worker), pool._work_queue.empty())
go_on.set()
worker.join()
"""


@everywhere
def test_a_worker_that_was_told_to_end_is_at_work(python: Path, sidecar: Path) -> None:
    assert run(WORKER, python=python, sidecar=sidecar).stdout.split() == ["1", "None", "True"]
