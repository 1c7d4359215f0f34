"""Lanes: one for each sequential flow of control, with an id that is the same in every run.

Knows who is running now. An id is the parent's id, the kind and the child's number of that kind in the parent:
`m/t0/a2` is the third task of the first thread of the main lane. Ids that start with `?` are soft: nothing promises
that another run gives the same flow the same one. Other parts keep their per-lane state in a lane's slots.

Kinds: t thread, w work item, a task, y task that only waits, p process, f fork, s spawned process, c copied context,
i import (numbered by module), n connecting, x another process that was handed the same lane, o what a fork left behind.
Soft ones only: e a pool's worker, g greenlet.

Long, and one module: a lane and who is in it are asked for at every read, and each further module costs every start.
"""

from __future__ import annotations

import _thread
import os
import sys
from _weakref import ref
from contextvars import ContextVar
from itertools import count

from . import channel, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The header that carries an id takes 200 characters of it, and recursion makes long ones.
_LONGEST = 120
# Processes that may be handed the same lane, by a shell for instance, before one gives up and calls itself soft.
_MOST_CLAIMS = 10_000


class Lane:
    """One flow of control. `id` says which; `kids` counts children by kind; most other slots are other parts' state."""

    __slots__ = (
        "__weakref__",
        "ahead",  # clock, fork: reads made, less their number on the tape
        "awake",  # clock: reads before the first sleep since the last request
        "counter",  # randomness: numbers of the blocks to come
        "cut",  # clock, fork: where the lane leaves the tape; None: not looked up yet
        "draw",  # randomness: the generator's random()
        "end",  # clock, replay: reads at the recorded end
        "hashed",  # threads: number of the next future that is hashed
        "id",
        "jumps",  # clock, replay: the lane's course on the tape
        "key",  # randomness: what the blocks are made of
        "kids",
        "kind",
        "known",  # edges: of each lane met, what is known of it
        "link",  # edges: the last meeting
        "live",  # clock, fork: whether the lane has left the tape
        "met",  # edges: number of the next meeting
        "name",
        "names",  # tempfiles: number of the next name
        "next_jump",  # clock, replay: number of the read that jumps next
        "origin",  # edges: what it knew when it was made
        "parent",  # id of the lane that made this one; None for the root
        "pool",  # randomness: reads from the current block
        "reads",  # clock: number of the next read
        "requests",  # attribution: number of the next request
        "rest",  # clock: ns slept since the last read; None: not at all
        "rng",  # randomness: the generator behind the functions of `random`
        "seeded",  # randomness: the explicit seed in force, inherited
        "sleeps",  # clock: sleeps since the last request
        "stamps",  # identifiers: the last of each version
        "time",  # clock: last value in ns, or None
        "told",  # whether the lane line is written
        "watched",  # completion: whether the end of its task will be told
        "written",  # reads in the last end line; -1: none
    )

    def __init__(self, id: str, parent: str | None = None, kind: str = "", name: str = "") -> None:
        self.id = id
        self.parent = parent
        self.kind = kind
        self.name = name
        self.kids: dict[str, int] = {}
        self.met = 0
        self.link: Any = None
        self.known: Any = None
        self.origin: Any = None
        self.reads = self.ahead = 0
        self.cut: Any = None
        self.live = False
        self.requests = 0
        self.sleeps = 0
        self.awake = 0
        self.rest: int | None = None
        self.time: int | None = None
        self.jumps: Any = None
        self.next_jump: Any = -1
        self.end: Any = None
        self.rng: Any = None
        self.draw: Any = None
        self.key: Any = None
        self.counter = count()
        self.pool: Any = None
        self.seeded: bytes | None = None
        self.stamps: dict[str, Any] | None = None
        self.names = 0
        self.hashed = 0
        self.told = False
        self.watched = False
        self.written = -1
        _live[id] = ref(self)

    def child(self, kind: str, name: str = "") -> Lane:
        """Make the next child of this kind."""
        number = self.kids.get(kind, 0)
        self.kids[kind] = number + 1
        id = f"{self.id}/{kind}{number}"
        lane = Lane(id if len(id) <= _LONGEST else _hash(id), self.id, kind, name)
        lane.seeded = self.seeded
        lane.origin = self.place()
        return lane

    def place(self) -> Any:
        """What this lane knows: all that came before in (lane, requests, meetings, last meeting). None: nothing.

        Where it has nothing of its own, that is what it knew when it was made.
        """
        return (self.id, self.requests, self.met, self.link) if self.requests or self.met else self.origin

    def tell(self) -> None:
        """Write the lane line, once. Most lanes read nothing and ask nothing: those never need one."""
        if not self.told:
            self.told = True
            told = {"id": self.id, "parent": self.parent, "kind": self.kind, "name": self.name}
            if self.origin is not None and settings.EDGES:
                told["from"] = self.origin[:3]
            channel.emit("lane", **told)

    def close(self) -> None:
        """Write how many reads the lane has made: it has ended, or its process is about to."""
        if (self.reads or self.requests) and self.written != self.reads:
            self.written = self.reads
            self.tell()
            channel.emit("end", lane=self.id, reads=self.reads + self.ahead)

    def __del__(self) -> None:
        try:
            # Those that a fork brought along are not in the list, and not this process's to end.
            if _live.pop(self.id, None) is not None:
                self.close()
        except Exception:  # noqa: S110  # the interpreter is being taken apart, and all was closed before that
            pass

    def __repr__(self) -> str:
        return f"<lane {self.id}>"


class Retired(Lane):
    """A lane whose run is over, in an interpreter that lives on. False, so that whoever has it asks for another."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __del__(self) -> None:
        pass


LANE: ContextVar[Lane] = ContextVar("tapeproxy_lane")
"""The lane of the code that runs now. Hot paths read it as `LANE.get(None) or current()`."""

system_urandom = os.urandom
"""The system's own entropy: for what belongs to the whole machine, never for what the agent sees."""
_live: dict[str, ref[Lane]] = {}
HERE = _thread._local()
"""By thread: its own `lane`, and how many modules it is `importing`, one within the other (of those watched)."""
_numbers = count()  # of soft lanes
_before_close: list[Callable[[], object]] = []
between: set[str] = set()
"""Modules whose frames stand between a call and what we have put in its place; the shim alone has none."""
_root = Lane("?")  # until install()


def root() -> Lane:
    """The main lane of this process."""
    return _root


def current() -> Lane:
    """The lane of the code that runs now; never fails. A thread that nobody announced gets a soft lane."""
    lane = LANE.get(None)
    if not lane:
        # An empty context, a greenlet, or a thread that C code started.
        lane = soft("g") if _in_greenlet() else getattr(HERE, "lane", None)
        if not lane:
            lane = HERE.lane = soft("t")
        LANE.set(lane)
    return lane


def _in_greenlet() -> bool:
    """Whether a greenlet runs that isn't its thread's main one: each has a context of its own, empty at first."""
    greenlet: Any = sys.modules.get("greenlet")
    return greenlet is not None and greenlet.getcurrent().parent is not None


def soft(kind: str, name: str = "") -> Lane:
    """A lane for a flow whose number depends on timing: a pool's workers, a thread of C code."""
    return Lane(f"?{_root.id.lstrip('?')}/{kind}{next(_numbers)}", _root.id, kind, name)


def enter_thread(lane: Lane) -> None:
    """Make `lane` the one of this thread, also for code that it runs in an empty context."""
    HERE.lane = lane
    LANE.set(lane)


def become(id: str, parent: str | None = None, kind: str = "", name: str = "") -> Lane:
    """Make a new lane the main one of this process, in the thread that calls: at start, after a fork, in a spawn."""
    global _root
    _root = Lane(id, parent, kind, name)
    enter_thread(_root)
    return _root


def become_fork(lane: Lane) -> None:
    """Make a new lane with this one's id the main one of a forked child.

    The other lanes are copies of the parent's. Contexts that the fork happened in may hold them still, when those
    return; so they start anew, under ids of this process.
    """
    inherited = [reference() for reference in _live.values()]
    _live.clear()
    become(lane.id, lane.parent, lane.kind, lane.name).origin = lane.origin
    for old in inherited:
        if old is not None and old is not lane:
            Lane.__init__(old, _short(f"{_root.id}/o:{old.id}"), _root.id, "o")


class Flows:
    """The lanes of one run, for an interpreter that has several of them, one after the other or within each other."""

    def __init__(self) -> None:
        self._outer = (_root, _live, _numbers)
        self._lanes: dict[str, ref[Lane]] = {}

    def enter(self, id: str) -> Lane:
        """Begin with a new main lane; whoever calls enters it."""
        global _root, _live, _numbers
        self._outer = (_root, _live, _numbers)
        self._lanes = _live = {}
        _numbers = count()
        _root = Lane(id)
        return _root

    def leave(self) -> list[Lane]:
        """Close all lanes, and have nobody go on in one of them; these are they, as far as somebody has them still."""
        global _root, _live, _numbers
        lanes = [lane for lane in [reference() for reference in list(self._lanes.values())] if lane is not None]
        for lane in lanes:
            lane.close()
        self._lanes.clear()
        for lane in lanes:
            retire(lane)
        _root, _live, _numbers = self._outer
        return lanes


def retire(lane: Lane) -> Lane:
    """Make the lane one of the past: no fast path may go on in it."""
    lane.__class__ = Retired
    lane.time = lane.draw = lane.pool = None
    return lane


def asker(depth: int) -> Any:
    """The frame that a replacement was called from, `depth` frames above the caller of this."""
    frame: Any = sys._getframe(depth + 1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in between:
        frame = frame.f_back
    return frame


def at_close(fn: Callable[[], object]) -> None:
    """Have `fn` called before the lanes are closed."""
    _before_close.append(fn)


def close_all() -> None:
    """Write the end of every live lane: the process is about to go."""
    for fn in _before_close:
        fn()
    for reference in list(_live.values()):
        lane = reference()
        if lane is not None:
            lane.close()


def run_in(lane: Lane, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `fn` with `lane` as the current one."""
    token = LANE.set(lane)
    try:
        return fn(*args, **kwargs)
    finally:
        LANE.reset(token)


def _short(id: str) -> str:
    return id if len(id) <= _LONGEST else _hash(id)


def _hash(id: str) -> str:
    """What stands for an id too long for the header."""
    from _blake2 import blake2b

    return "~" + blake2b(id.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def install() -> None:
    """Take the main lane's id from the environment: it is this process's alone, and no child may find it."""
    given = os.environ.pop("TAPEPROXY_LANE", "") or f"?p{os.getpid()}"
    number = _claim(given)
    if number is None:
        become(f"?p{os.getpid()}/{system_urandom(4).hex()}")
    elif number == 0:
        become(given, given.rpartition("/")[0] or None, "p" if "/" in given else "")
    else:
        become(_short(f"{given}/x{number}"), given, "x")


def _claim(id: str) -> int | None:
    """How many processes took this lane before us; None where it can't be told.

    A shell hands its whole environment to every program it runs. Two processes with one lane would draw the same
    uuids: so each leaves an empty file next to the sidecar files, and the first has the lane.
    """
    if not settings.SIDECAR:
        return 0
    from _blake2 import blake2b

    stem = os.path.join(settings.SIDECAR, "lane-" + blake2b(id.encode(), digest_size=8).hexdigest())
    for number in range(_MOST_CLAIMS):
        try:
            os.close(os.open(f"{stem}.{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return number
        except FileExistsError:
            continue
        except OSError:
            break
    return None
