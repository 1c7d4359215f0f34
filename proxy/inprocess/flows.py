"""Who is within a context: the flow that opened it and all that it starts. Everybody else sees what is real.

What a context has started may outlive it: a thread that sends what a library has gathered. Its requests are nobody's
then, neither the network's nor those of the context that is open meanwhile.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tapeproxy.shim.inject._tapeproxy.lanes import HERE, LANE, Lane, retire

if TYPE_CHECKING:
    from tapeproxy.proxy.inprocess.routes import Route

OUTSIDE = retire(Lane("?outside"))
"""The lane of our own work, and of modules that are being imported: they are nobody's."""
_MAIN = ""
_WORKER = "e"
"""Kinds of lanes that go on in good faith: of who opened the context, and of a pool's thread, which others use, too."""
_get: Any = LANE.get


class Gone(NamedTuple):
    """The context that a flow has outlived. `route`: that of a replay; None where it was a recording."""

    route: "Route | None"
    whose: str


_gone: WeakKeyDictionary[Lane, Gone] = WeakKeyDictionary()
_threads: WeakKeyDictionary[Thread, Gone] = WeakKeyDictionary()
"""Of those that they have started, which have no lane: that of a loop that looks up a name, for instance."""


def inside() -> bool:
    """Whether the code that runs now has a lane of an open context."""
    lane = _get(None)
    if lane:
        return True
    return lane is not OUTSIDE and bool(getattr(HERE, "lane", None))


def remember(lanes: Iterable[Lane], gone: Gone) -> None:
    """These flows outlive their context."""
    _gone.update((lane, gone) for lane in lanes if lane.kind not in (_MAIN, _WORKER))


def outlived() -> Gone | None:
    """The context that started the code that runs now, where that is over."""
    lane = _get(None)
    if lane or getattr(HERE, "lane", None):
        return None
    if lane is not None:
        return _gone.get(_item_lane() if lane.kind == _WORKER else lane)
    return _threads.get(current_thread()) if _threads else None


def _item_lane() -> Lane:
    """The lane of the work item that a pool's thread is at: who took it up too late did not enter it."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_globals.get("__name__") == "concurrent.futures.thread":
            lane = getattr(frame.f_locals.get("self"), "_tapeproxy_lane", None)
            return lane if isinstance(lane, Lane) else OUTSIDE
        frame = frame.f_back
    return OUTSIDE


def begins(thread: object) -> None:
    """A thread is about to be started from here."""
    if isinstance(thread, Thread) and (gone := outlived()) is not None:
        _threads[thread] = gone


@contextmanager
def outside() -> Iterator[None]:
    """What is done here belongs to nobody."""
    token = LANE.set(OUTSIDE)
    try:
        yield
    finally:
        LANE.reset(token)
