"""Time in a replay: each lane's clock as the tape has it. Patches nothing.

Between the tape's jumps a read gives the lane's previous value plus 100 ns, as it did while recording. A lane that
reads on past its recorded end is told the real time that passes from there on, so that a loop waiting for a deadline
comes to its end; it is reported once.
"""

from __future__ import annotations

from time import time_ns as _wall

from . import channel, lanes, settings, timeline
from .course import TICK, Course
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

# A lane whose end is not on the tape was killed. It had at most so many reads after its last jump, or real time would
# have run further ahead than a recording lets it.
_UNENDED = 20_000

_get = LANE.get
_tape = None  # type: _Tape | None
_latest = 0  # the latest instant that any lane of this process has jumped to
source = None  # type: Callable[[str], Iterable[dict[str, Any]]] | None
"""In somebody else's interpreter: gives the lines of a lane, in place of the file."""


class _Tape:
    """What the tape says of the clocks: per lane its jumps, where it slept and asked, and its number of reads."""

    __slots__ = ("asked", "ends", "first", "jumps", "marks")

    def __init__(self) -> None:
        self.jumps = {}  # type: dict[str, list[tuple[int, int]]]
        self.marks = {}  # type: dict[str, set[int]]
        self.asked = {}  # type: dict[str, list[int]]
        self.ends = {}  # type: dict[str, int]
        self.first = 0  # an instant from the start of the recording; 0: there is none

    def read(self, lane: str) -> None:
        """Look up a lane, and those below it that are not known yet."""
        found = {}  # type: dict[str, list[tuple[int, int]]]
        for line in lines_of(settings.READS, lane) if source is None else source(lane):
            if "ns" in line:
                found.setdefault(line["lane"], []).append((line["n"], line["ns"]))
                if line.get("slept"):
                    self.marks.setdefault(line["lane"], set()).add(line["n"])
                if not self.first:
                    self.first = line["ns"]
            elif "asked" in line:
                self.asked[line["lane"]] = line["asked"]
            elif "reads" in line:
                self.ends[line["lane"]] = line["reads"]
        for name, jumps in found.items():
            # The file's first line is read in any case, and may be of a lane that is not asked for.
            if name == lane or name.startswith(lane + "/"):
                self.jumps.setdefault(name, sorted(jumps))


class _Free:
    """The state of a lane past its end: its time is the process's timeline plus `offset`."""

    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def now(self) -> int:
        return timeline.now() + self.offset


def begin(lines: Callable[[str], Iterable[dict[str, Any]]] | None, state: Any = (None, 0)) -> Any:
    """Begin another run in the same interpreter, or go on with one: what was in force, to go on with that again."""
    global source, _tape, _latest
    before = source, (_tape, _latest)
    source = lines
    _tape, _latest = state
    return before


def read() -> int:
    """Read the current lane's clock: ns since the epoch."""
    lane = _get(None) or current()
    number = lane.reads
    lane.reads = number + 1
    if number == lane.next_jump or lane.time is None:
        return turn(lane, number)
    lane.time = value = lane.time + TICK
    return value


read_fine = read


def seconds(_: object) -> float:
    """time.time()."""
    return read() / 1e9


def rest(lane: Any, seconds: Any) -> None:
    """The lane has slept, or is about to: it finds its place on the tape again at its next read."""
    if not seconds:  # it only lets others run, as libraries do at every turn
        return
    if not lane.sleeps:
        lane.awake = lane.reads + (lane.jumps.strayed if isinstance(lane.jumps, Course) else 0)
    lane.sleeps += 1
    lane.rest = lane.rest or 0
    lane.next_jump = lane.reads


def advance(lane: Any, ns: int) -> None:
    """The lane's clock moves on by a sleep that was not slept."""
    if lane.rest is not None:
        lane.rest += ns


def ask(lane: Any) -> int:
    """The lane makes a request: how many reads it has made. Here it finds its place on the tape again."""
    lane.rest = None
    made: int = lane.reads
    if isinstance(lane.jumps, Course):
        made, lane.reads = lane.jumps.request(lane.requests, lane.reads, lane.sleeps > 0)
        lane.next_jump = lane.jumps.stop
    return made


def instant() -> int:
    """The current lane's time in ns, without reading its clock."""
    lane = _get(None) or current()
    return _start() if lane.time is None else lane.time + (lane.rest or 0)


def turn(lane: Any, number: int) -> int:
    """Make a read that does not simply tick: the lane's first, a jump, the one at the end, or one past it."""
    global _latest
    if lane.jumps is None:
        _begin(lane)
    elif number == lane.end and lane.rest is None:
        _go_free(lane)
    if isinstance(lane.jumps, _Free):
        value = lane.jumps.now()
        if lane.time is not None and value < lane.time + TICK:
            value = lane.time + TICK
        lane.next_jump = number + 1
    else:
        course: Course = lane.jumps
        place, value = course.read(number, lane.time, lane.rest, lane.sleeps > 0, lane.requests)
        lane.reads = place + 1 if place >= 0 else number
        lane.next_jump = course.stop
    lane.rest = None
    lane.time = value
    if value > _latest:
        _latest = value
    return value


def _begin(lane: Lane) -> None:
    """Find the lane on the tape, at its first read."""
    tape = _load()
    if lane.id not in tape.jumps:
        # A work item that came from another process brings its lane along, which is not below this process's own.
        tape.read(lane.id)
    jumps = tape.jumps.get(lane.id)
    if jumps and jumps[0][0] == 0:
        last = jumps[-1][0]
        lane.end = max(tape.ends.get(lane.id, last + _UNENDED), last + 1)
        marks = sorted(tape.marks.get(lane.id, ()))
        lane.jumps = Course(jumps, marks, tape.asked.get(lane.id, ()), lane.end, lane.requests)
    else:
        lane.end = 0
        _go_free(lane)


def _go_free(lane: Lane) -> None:
    base = _start() if lane.time is None else lane.time
    lane.jumps = _Free(base + TICK - timeline.now())
    if settings.READS or source is not None:
        from .callers import calling_line

        channel.emit(
            "note",
            what="clock-past-end",
            text=f"lane {lane.id} reads the clock more often than on the tape ({lane.end} times)",
            data={
                "lane": lane.id,
                "reads": lane.reads,
                "taped": lane.end,
                "grade": _grade(lane),
                "where": calling_line()[0],
            },
        )


def _grade(lane: Lane) -> str:
    """Foreign threads get their lanes' names by chance, and who polls may read more: neither is proof of anything.

    Nor is a task that never read the clock on the tape: a background task that the end of the loop cut off there
    before its first read may get further here. One that is new, and does something, is seen by what it does.
    """
    by_chance = lane.id.startswith("?") or (lane.kind == "a" and lane.end == 0)
    return "violation" if settings.STRICT and not by_chance and not lane.sleeps else "soft"


def _start() -> int:
    """Where a lane that has no time of its own starts from: the latest instant that this process knows of."""
    return _latest or _load().first or _wall()


def knows(lane: str) -> bool:
    """Whether a lane of this process read its clock on the tape."""
    tape = _load()
    if lane not in tape.jumps:
        tape.read(lane)
    return lane in tape.jumps or lane in tape.ends


def _load() -> _Tape:
    """The tape's clocks, read at the process's first clock read."""
    global _tape
    if _tape is None:
        tape = _Tape()
        tape.read(lanes.root().id)
        _tape = tape
    return _tape


def lines_in(path: str) -> Iterator[dict[str, Any]]:
    """All lines of a file."""
    if path:
        scan = scanner()
        with open(path, encoding="utf-8") as file:
            for text in file:
                yield scan(text, 0)[0]


def lines_of(path: str, lane: str) -> Iterator[dict[str, Any]]:
    """The file's lines on this lane and those below it, and the first line in any case.

    Uses json's scanner without json, whose import costs more than all else here.
    """
    if not path:
        return
    scan = scanner()
    itself, below = f'"{lane}"', f"{lane}/"
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file):
            if number == 0 or itself in text or below in text:
                yield scan(text, 0)[0]


def scanner() -> Any:
    """What reads JSON from a text at a place: (value, end)."""
    try:
        from _json import make_scanner

        plain: Any = _Plain
        return make_scanner(plain)
    except (ImportError, AttributeError):  # no accelerator, or one that wants to know more
        from json import JSONDecoder

        decoder: Any = JSONDecoder()
        return decoder.scan_once


class _Plain:
    """What the scanner wants to know of a decoder: nothing special."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
