"""Whether anything else in this process is at work, or runs for it. Looks at threads and children; waits for nothing.

A thread is idle if it waits in one of a few functions for something that only another thread can give it. The library
functions below are known by file and name, because their frames are all that can be seen of another thread.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import perf_counter_ns as _monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any


class Others:
    """What else there is."""

    NONE = "none"
    IDLE = "idle"  # other threads, all waiting
    CHILDREN = "children"  # nothing at work in here, but children run
    BUSY = "busy"


_OURS = os.path.dirname(__file__) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_LOCKS = _OURS + "lock"  # lockorder, lockrecord, lockreplay
_LOOK_AGAIN = 10_000_000  # ns that a look at the children holds

strangers: Callable[[int, FrameType], bool] | None = None
"""In somebody else's interpreter: whether a thread has nothing to do with the run, by its number and frame."""
queued: set[Any] = set()
"""The items of thread pools that no worker has begun."""
_children = (0, False)  # when they were looked at, and whether one ran


def is_of_the_stdlib(file: str) -> bool:
    return file.startswith((_STDLIB, "<frozen ")) and not is_installed(file)


def is_installed(file: str) -> bool:
    """Whether a source file belongs to an installed library."""
    return any(part in file for part in _INSTALLED)


def others(waits: Mapping[int, tuple[float, Callable[[], bool] | None]]) -> str:
    """What the process does besides the calling thread.

    `waits`: the threads whose waits have a known end, and whether they were woken; None: their frames will say.
    """
    mine = get_ident()
    if getattr(sys.modules.get("threading"), "_limbo", None):  # a thread that was started has no frame yet
        return Others.BUSY
    frames = sys._current_frames()
    for thread, frame in frames.items():
        if thread == mine or (strangers is not None and strangers(thread, frame)):
            continue
        wait = waits.get(thread)
        if _is_at_work(thread, frame, wait) if wait is None or wait[1] is None else wait[1]():
            return Others.BUSY
    if child_runs():
        return Others.CHILDREN
    return Others.IDLE if len(frames) > 1 else Others.NONE


def _is_at_work(thread: int, frame: FrameType, wait: object) -> bool:
    while frame.f_code.co_filename.startswith(_LOCKS) and frame.f_back is not None:
        frame = frame.f_back  # our acquire stands between
    check = _WAITING.get((_tail(frame.f_code.co_filename), frame.f_code.co_name))
    kind = check(frame) if check is not None else None
    if kind == _TIMED and wait is None:  # it may end before any other wait does, unless it is of no concern
        return not is_housekeeping(thread, frame)
    return kind is None


def _tail(file: str) -> str:
    return "/".join(file.rsplit("/", 2)[-2:])


def is_housekeeping(thread: int, frame: FrameType | None) -> bool:
    """Whether this is a daemon thread, and no line of the user's leads to its wait: telemetry, pools, progress bars."""
    known = getattr(sys.modules.get("threading"), "_active", {}).get(thread)
    if known is None or not known.daemon:
        return False
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith(_OURS) or is_of_the_stdlib(file) or is_installed(file)):
            return False
        frame = frame.f_back
    return True


# How a thread waits: for another thread alone, or for a while. None: it does not, or was woken already.
_ENDLESS, _TIMED = 1, 2


def _on_condition(frame: FrameType) -> int | None:
    """Condition.wait, and so events, queues, semaphores, futures; who is woken is taken off the list of waiters."""
    names = frame.f_locals
    waiter = names.get("waiter")
    if waiter is None or not waiter.locked() or waiter not in names["self"]._waiters:
        return None
    return _ENDLESS if names["timeout"] is None else _TIMED


def _on_end_lock(frame: FrameType) -> int | None:
    """Thread.join before 3.13: the lock is released when the thread ends."""
    names = frame.f_locals
    lock = names.get("lock")
    if lock is None or not lock.locked():
        return None
    return _ENDLESS if names.get("timeout", -1) == -1 else _TIMED


def _on_end(frame: FrameType) -> int | None:
    """Thread.join from 3.13 on."""
    names = frame.f_locals
    if not names["self"].is_alive():
        return None
    return _ENDLESS if names["timeout"] is None else _TIMED


def _at_exit(frame: FrameType) -> int | None:
    """The main thread at interpreter exit, waiting for the others; from 3.13 on there is no lock to see."""
    lock = frame.f_locals.get("lock")
    return _ENDLESS if lock is None or lock.locked() else None


def _in_pool(frame: FrameType) -> int | None:
    """A worker of a ThreadPoolExecutor, between two items; from 3.13 on one on its way to a worker is in no queue."""
    names = frame.f_locals
    # While it waits the name is not bound. None is the word to end, which it has taken, or is about to once the
    # executor is shut down or gone.
    if "work_item" in names or _is_queued():
        return None
    executor = names.get("executor_reference", _nobody)()
    if executor is None or executor._shutdown:
        return None
    return _ENDLESS if names["work_queue"].empty() else None


def _nobody() -> None:
    pass


def _is_queued() -> bool:
    for item in list(queued):
        if item.future._state == "PENDING":
            return True
        queued.discard(item)  # cancelled
    return False


def _for_others(_frame: FrameType) -> int:
    """A thread of ours that looks after a connection from the tape."""
    return _ENDLESS


def _in_trio_pool(frame: FrameType) -> int | None:
    worker = frame.f_locals["self"]
    return _ENDLESS if worker._worker_lock.locked() and worker._job is None else None


def _on_clients(frame: FrameType) -> int | None:
    """socketserver's serve_forever, which looks up from its selector twice a second."""
    caller = frame.f_back
    return _TIMED if caller is not None and caller.f_code.co_name == "serve_forever" else None


_LIBRARY = _STDLIB.rsplit("/", 2)[-2]  # "python3.12"
_WAITING = {
    (_LIBRARY + "/threading.py", "wait"): _on_condition,
    (_LIBRARY + "/threading.py", "_wait_for_tstate_lock"): _on_end_lock,
    (_LIBRARY + "/threading.py", "join"): _on_end,
    (_LIBRARY + "/threading.py", "_shutdown"): _at_exit,
    (_LIBRARY + "/selectors.py", "select"): _on_clients,
    ("futures/thread.py", "_worker"): _in_pool,
    ("_core/_thread_cache.py", "_work"): _in_trio_pool,
    ("_tapeproxy/servedsockets.py", "_wait"): _for_others,
}


def child_runs() -> bool:
    """Whether a child process runs that isn't one of multiprocessing's own helpers."""
    global _children
    looked, found = _children
    if _monotonic() - looked > _LOOK_AGAIN:
        found = _look_for_children()
        _children = (_monotonic(), found)
    return found


def _look_for_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except AttributeError:  # macOS before 3.13
        return "subprocess" in sys.modules or "multiprocessing" in sys.modules
    try:
        return any(_is_child(pid) for pid in os.listdir("/proc") if pid.isdigit())
    except OSError:
        return True


def _is_child(pid: str) -> bool:
    try:
        with open("/proc/" + pid + "/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):  # gone
        return False
    return int(parent) == os.getpid() and state not in (b"Z", b"X") and int(pid) not in _helpers()


def _helpers() -> list[int | None]:
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    return [getattr(tracker, "_pid", None), getattr(server, "_forkserver_pid", None)]
