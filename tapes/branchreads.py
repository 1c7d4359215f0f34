"""What two runs had read from clock, chance, environment and files before they parted, as far as tapes tell. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import Value
from tapeproxy.tapes.values import TapedValues, differences, with_contents

type Kind = Literal["clock", "chance", "env", "value"]

_STEP = 100
"""Nanoseconds that a lane's clock goes on with each read."""
_LISTED = 50


@dataclass(frozen=True, slots=True)
class ReadDifference:
    """Something that was read differently. `what`: in a few words; `where`: the line that read it, if it is known.

    `ours` and `theirs` are excerpts; None: it was not read, or is not on the tape.
    """

    kind: Kind
    what: str
    ours: str | None
    theirs: str | None
    where: str = ""


def reads_apart(
    ours: Tape, theirs: Tape, one: Exchange | None, other: Exchange | None, lanes: Mapping[str, str]
) -> Iterator[ReadDifference]:
    """What was read otherwise before the exchange `one` of `ours`, which `other` of `theirs` stands for.

    Where one of them is None, all that its tape holds counts. `lanes`: which lane stands for which.
    """
    yield from _clock(ours, theirs, one, other)
    if ours.head.seed != theirs.head.seed:
        yield ReadDifference("chance", "the seed of all random numbers", _seed(ours), _seed(theirs))
    yield from _env(ours, theirs)
    yield from islice(_values(ours, theirs, one, other, lanes), _LISTED)


def _clock(ours: Tape, theirs: Tape, one: Exchange | None, other: Exchange | None) -> Iterator[ReadDifference]:
    if one is None or other is None:
        return
    reads = one.request.reads, other.request.reads
    if None not in reads and reads[0] != reads[1]:
        yield ReadDifference("clock", "how often the lane had read the clock", str(reads[0]), str(reads[1]))
    times = _time(ours, one), _time(theirs, other)
    if None not in times and times[0] != times[1]:
        yield ReadDifference("clock", "what it had read last", *times)


def _time(tape: Tape, exchange: Exchange) -> str | None:
    """The last time that the exchange's lane had read before it, as a time of day in UTC."""
    reads, lane = exchange.request.reads, exchange.request.lane
    if not reads or lane is None:
        return None
    jumps = [jump for jump in tape.clocks if jump.lane == lane and jump.n < reads]
    if not jumps:
        return None
    last = max(jumps, key=lambda jump: jump.n)
    ns = last.ns + _STEP * (reads - 1 - last.n)
    try:
        started = datetime.fromisoformat(tape.head.started_at)
        return (started + timedelta(microseconds=ns // 1000)).isoformat(sep=" ", timespec="microseconds")
    except (ValueError, OverflowError):
        return None


def _seed(tape: Tape) -> str | None:
    return None if tape.head.seed is None else f"{tape.head.seed[:12]}…"


def _env(ours: Tape, theirs: Tape) -> Iterator[ReadDifference]:
    """Variables that only one run read or found, or whose values differ; those of two seeds can't be compared."""
    known = [{env.name: env.digest for env in tape.envs} for tape in (ours, theirs)]
    comparable = ours.head.seed == theirs.head.seed
    for name in sorted(known[0].keys() | known[1].keys()):
        was, now = (_env_words(side, name, comparable=comparable) for side in known)
        if was != now:
            yield ReadDifference("env", name, was, now)


def _env_words(side: Mapping[str, str | None], name: str, *, comparable: bool) -> str | None:
    if name not in side:
        return None
    digest = side[name]
    return "(not set)" if digest is None else f"a value with the digest {digest[:12]}" if comparable else "(set)"


def _values(
    ours: Tape, theirs: Tape, one: Exchange | None, other: Exchange | None, lanes: Mapping[str, str]
) -> Iterator[ReadDifference]:
    back = {b: a for a, b in lanes.items()}
    before = TapedValues(_read_before(ours, one))
    seen: set[tuple[str, int]] = set()
    comparable = ours.head.seed == theirs.head.seed
    for value in _read_before(theirs, other):
        now = replace(value, lane=back.get(value.lane, value.lane))
        taped = before.take(now)
        if taped is None:
            if value.what not in ("pipe", "received", "sent", "change"):
                yield ReadDifference("value", f"{value.what} {value.name}", None, _outcome(value), value.where)
            continue
        seen.add((taped.lane, taped.n))
        if comparable or None not in (taped.content, now.content) or taped.length != now.length:
            yield from (_found(value, difference) for difference in differences(taped, now))
    for value in before.values:
        if (value.lane, value.n) not in seen and value.what not in ("pipe", "received", "sent", "change"):
            yield ReadDifference("value", f"{value.what} {value.name}", _outcome(value), None, value.where)


def _read_before(tape: Tape, exchange: Exchange | None) -> list[Value]:
    values = with_contents(tape.values)
    return [value for index, value in values if exchange is None or index < exchange.index]


def _found(value: Value, difference: Difference) -> ReadDifference:
    what = f"{value.what} {value.name}, {difference.where}"
    return ReadDifference("value", what, difference.taped, difference.asked, value.where)


def _outcome(value: Value) -> str:
    return value.error or ("read" if value.length is None else f"{value.length} bytes")
