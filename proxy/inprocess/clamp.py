"""Clock and chance of this interpreter, within a context: taped, or the tape's. Knows the order of things.

One context is in force at a time; those within it come first, and one beside it, of somebody else's, is refused.
"""

import os
import random
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.clampparts import ClampParts
from tapeproxy.proxy.inprocess.flows import Gone, inside, remember
from tapeproxy.shim.inject._tapeproxy import (
    channel,
    clock,
    identifiers,
    idleness,
    lanes,
    livetime,
    randomness,
    settings,
    skippedtime,
    tapedtime,
)
from tapeproxy.tapes.errors import UsageError

type Event = dict[str, Any]

ROOT = "m"
"""The lane of the flow that opens a context."""
_MAIN = threading.main_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampSettings:
    """`mode`: `skip` only cuts sleeps short, for a tape without clock and seed. `seed`: 64 hex digits.

    `origin_ns`: where monotonic clocks begin, in ns since 1970. `take` gets what the shim tells. `reads`: of a lane,
    in a replay: its lines as in docs/SHIM.md.
    """

    mode: Literal["record", "replay", "skip"]
    seed: str
    origin_ns: int
    take: Callable[[Event], object]
    reads: Callable[[str], Iterable[Event]] | None = None


class Clamp:
    """One context's. `enter` and `leave` may be called again and again."""

    _lock = threading.RLock()
    _stack: ClassVar[list["Clamp"]] = []
    _parts: ClampParts | None = None

    def __init__(self, wanted: ClampSettings) -> None:
        self._wanted = wanted
        self._flows = lanes.Flows()
        self._taped: Any = (None, 0)
        self._chance: Any = None
        self._numpy: Any = None
        self._node: Any = None
        self._thread = 0
        self._lane: Any = None
        self._outer: Any = None

    @classmethod
    def parts(cls) -> ClampParts:
        """The shim's parts in this interpreter."""
        with cls._lock:
            if cls._parts is None:
                cls._parts = ClampParts()
            return cls._parts

    @classmethod
    def is_open(cls) -> bool:
        """Whether a context is."""
        return bool(cls._stack)

    @classmethod
    def imported(cls, name: str, module: Any) -> None:
        """A module was imported in a context."""
        with cls._lock:
            if cls._stack and cls._parts is not None:
                cls._parts.patch(name, module)

    def enter(self, root: str = ROOT) -> None:
        """Begin, in the flow that calls, which gets the lane `root`. Raises UsageError beside another context."""
        parts = self.parts()
        with self._lock:
            if self._stack and not inside():
                raise UsageError(
                    "this interpreter's clock is another tape's already",
                    fix="open one context within the other, or one after the other",
                )
            if self._stack:
                self._stack[-1]._pause()
            else:
                idleness.strangers = _is_strange
            self._put_on(parts, self._stack[-1] if self._stack else None)
            self._stack.append(self)
            if self._wanted.mode == "record":
                livetime.begin()
            self._begin()
            lane = self._flows.enter(root)
            if not self._skips:
                self._take_chance(lane)
            self._thread = threading.get_ident()
            self._outer = lanes.LANE.get(None)
            self._lane = getattr(lanes.HERE, "lane", None)
            lanes.LANE.set(lane)
            if not _loop_runs():  # else other tasks of this thread would be taken for ours
                lanes.HERE.lane = lane

    def leave(self, gone: Gone) -> None:
        """End it: all is as it was, or as the context around it has it. From any thread. `gone`: what goes on."""
        with self._lock:
            if self not in self._stack:
                return
            remember(self._flows.leave(), gone)
            if not self._skips:
                self._give_chance_back()
            if threading.get_ident() == self._thread:
                lanes.HERE.lane = self._lane
                if self._outer:
                    lanes.LANE.set(self._outer)
            was_top = self._stack[-1] is self
            self._stack.remove(self)
            if not self._stack:
                assert self._parts is not None
                self._parts.take_off()
                channel.sink = None
                tapedtime.begin(None)
            elif was_top:
                assert self._parts is not None
                self._stack[-1]._put_on(self._parts, self)
                self._stack[-1]._begin()

    @property
    def _skips(self) -> bool:
        return self._wanted.mode == "skip"

    def _put_on(self, parts: ClampParts, before: "Clamp | None") -> None:
        """Put the parts in place that this context needs, where another one was in force."""
        if before is not None and before._skips == self._skips:
            return
        if before is not None:
            parts.take_off()
        parts.put_on(only_time=self._skips)

    def _begin(self) -> None:
        """Have the shim work for this context."""
        wanted = self._wanted
        settings.MODE, settings.RECORD, settings.REPLAY = wanted.mode, wanted.mode == "record", wanted.mode == "replay"
        settings.STRICT, settings.SKIP = True, self._skips
        settings.SEED, settings.ORIGIN = bytes.fromhex(wanted.seed), wanted.origin_ns
        channel.sink = wanted.take
        tapedtime.begin(wanted.reads, self._taped)
        if self._skips:
            skippedtime.begin()
        clock.use(skippedtime if self._skips else tapedtime if settings.REPLAY else livetime)

    def _pause(self) -> None:
        _, self._taped = tapedtime.begin(None)

    def _take_chance(self, lane: lanes.Lane) -> None:
        # Those who are outside draw from the module's own generator, so the lane has another one. Who has kept one of
        # that one's methods gets numbers that are the same each time, too.
        self._chance = random._inst.getstate()
        key = int.from_bytes(randomness.lane_key(lane, b"random"), "big")
        random._inst.seed(key)
        randomness.adopt(lane, random.Random(key))
        numpy = sys.modules.get("numpy.random.mtrand")
        if numpy is not None:
            self._numpy = numpy._rand.get_state()
            randomness._seed_numpy(numpy)
        uuid: Any = sys.modules.get("uuid")
        if uuid is not None:
            self._node = uuid._node
            uuid._node = identifiers.node()

    def _give_chance_back(self) -> None:
        random._inst.setstate(self._chance)
        numpy = sys.modules.get("numpy.random.mtrand")
        if numpy is not None and self._numpy is not None:
            numpy._rand.set_state(self._numpy)
        uuid: Any = sys.modules.get("uuid")
        if uuid is not None:
            uuid._node = self._node


def enter(clamp: Clamp | None, root: str, undo: Callable[[], object]) -> None:
    """Enter a clamp, if there is one; what was begun before is undone where that fails. Raises UsageError."""
    if clamp is not None:
        try:
            clamp.enter(root)
        except BaseException:
            undo()
            raise


def is_shimmed() -> bool:
    """Whether this interpreter is part of a run of its own, whose clock and chance are its tape's."""
    return "_tapeproxy" in sys.modules and bool(os.environ.get("TAPEPROXY_MODE"))


def _loop_runs() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return True
    trio = sys.modules.get("trio._core._run")
    return trio is not None and getattr(trio.GLOBAL_RUN_CONTEXT, "runner", None) is not None


def _is_strange(thread: int, frame: Any) -> bool:
    """Whether a thread has nothing to do with a test: our own, and the one by which a worker of xdist hears."""
    return Background.is_thread(thread) or frame.f_code.co_filename.endswith("execnet/gateway_base.py")
