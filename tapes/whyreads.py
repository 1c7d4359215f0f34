"""Chance and the clock as sources of words: ids and times in a text that are what a lane drew, or read.

What was drawn is not on a tape, but the seed is: it is drawn again and compared. Only what can't be alike by chance
counts: uuids, tokens of eight bytes or more, times with a date. Pure.
"""

import re
from base64 import urlsafe_b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from tapeproxy.tapes.chance import chance_streams
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.records import Clock
from tapeproxy.tapes.whysources import Leaf, Told

_UUID: Final = re.compile(r"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F-])")
_HEX: Final = re.compile(
    r"(?<![0-9a-zA-Z])(?:[0-9a-f]{2}){8,64}(?![0-9a-zA-Z])|(?<![0-9a-zA-Z])(?:[0-9A-F]{2}){8,64}(?![0-9a-zA-Z])"
)
_TOKEN: Final = re.compile(r"(?<![\w+/=-])(?=[\w-]*\d)(?=[\w-]*[A-Z])[A-Za-z0-9_-]{16,90}(?![\w+/-])")
_DATED: Final = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?(?![\d:])")
_EPOCH: Final = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}|\d{6}|\d{9}))?(?![\d.]*\d)")
_MOST: Final = 300
"""Ids, and times, of one question."""
_BYTES: Final = 1 << 20
"""Bytes of chance that are made again, of all lanes."""
_A_LANE: Final = 1 << 14
_SECOND: Final = 1_000_000_000
_QUARTER: Final = 900 * _SECOND
_TICK: Final = 100
"""Nanoseconds by which a lane's clock goes on with each read."""


class _Stated(NamedTuple):
    """A time in a text: from `ns` since 1970 on, for `step` ns; `zoned`: it is known in which zone."""

    text: str
    ns: int
    step: int
    zoned: bool


class Reads:
    """What a tape says of the chance and the clock of its lanes."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def told(self, texts: Iterable[str]) -> Iterator[Told]:
        """The ids and times in the texts that are of this run, each as a text of its own."""
        texts = list(dict.fromkeys(texts))
        ids, times = dict[str, None](), dict[_Stated, None]()
        for text in texts:
            if len(ids) < _MOST:
                ids |= dict.fromkeys(match[0] for form in (_UUID, _HEX, _TOKEN) for match in form.finditer(text))
            if len(times) < _MOST:
                times |= dict.fromkeys(_stated(text))
        for one in list(ids)[:_MOST]:
            yield from self._drawn(one)
        for time in list(times)[:_MOST]:
            yield from self._read(time)

    def _drawn(self, text: str) -> Iterator[Told]:
        for lane, stream in self._streams:
            for size, at in _places(text, stream):
                name = "uuid" if size == 16 and "-" in text else f"{size} bytes"
                yield Told("chance", Leaf((), name, text), lane=lane, n=at, what="chance", name=name)
                return

    def _read(self, time: _Stated) -> Iterator[Told]:
        """The last read of each lane in that time, the latest first."""
        if self._start is None:
            return
        found = list[tuple[Clock, bool]]()
        for clocks, ends in self._clocks:
            shifts = (
                (0,) if time.zoned or time.step > _SECOND // 1000 else range(-48 * _QUARTER, 57 * _QUARTER, _QUARTER)
            )
            for shift in shifts:
                low = time.ns - shift - self._start
                at = bisect_left(ends, low)  # the first that had not ended before
                last = bisect_right(clocks, low + time.step - 1, key=lambda clock: clock.ns) - 1
                if at <= last:
                    found.append((clocks[last], time.step >= _SECOND))
                    break
        for clock, vague in sorted(found, key=lambda one: -one[0].ns):
            leaf, name = Leaf((), "clock", time.text), "second" if vague else ""
            yield Told("clock", leaf, lane=clock.lane, n=clock.n, what="clock", name=name, at=clock.ns)

    @cached_property
    def _streams(self) -> list[tuple[str, bytes]]:
        lanes = {lane.id for lane in self._tape.lanes}
        lanes |= {exchange.request.lane for exchange in outlines(self._tape.exchanges) if exchange.request.lane}
        size = min(_A_LANE, max(_BYTES // max(1, len(lanes)), 168))
        return [(lane, stream) for lane in sorted(lanes) for stream in chance_streams(self._tape.head, lane, size)]

    @cached_property
    def _start(self) -> int | None:
        """When the tape began, in ns since 1970."""
        stated = next(_stated(self._tape.head.started_at), None)
        return None if stated is None else stated.ns

    @cached_property
    def _clocks(self) -> list[tuple[list[Clock], list[int]]]:
        """The jumps of each lane's clock, and up to when the reads after each can have gone on."""
        lanes: dict[str, list[Clock]] = {}
        for clock in self._tape.clocks:
            lanes.setdefault(clock.lane, []).append(clock)
        reads = {end.lane: end.reads for end in self._tape.lane_ends}
        for exchange in outlines(self._tape.exchanges):
            request = exchange.request
            if request.lane and request.reads is not None:
                reads[request.lane] = max(reads.get(request.lane, 0), request.reads)
        out = list[tuple[list[Clock], list[int]]]()
        for lane, some in lanes.items():
            some.sort(key=lambda clock: clock.n)
            # A clock that was set back (in a fork) can't be searched: what is out of order is left out.
            kept = [
                one for one, before in zip(some, [None, *some], strict=False) if before is None or before.ns <= one.ns
            ]
            nexts = [*(one.n for one in kept[1:]), max(reads.get(lane, 0), kept[-1].n + 1)]
            out.append((kept, [one.ns + _TICK * (after - one.n - 1) for one, after in zip(kept, nexts, strict=True)]))
        return out


def _places(text: str, stream: bytes) -> Iterator[tuple[int, int]]:
    """How many bytes a text writes, and where they are in a stream."""
    plain = text.replace("-", "") if _UUID.fullmatch(text) else text
    if re.fullmatch(r"[0-9a-fA-F]+", plain) and len(plain) % 2 == 0:
        data = bytes.fromhex(plain)
        if len(data) == 16:
            at = stream.find(data[:6])
            # Of a uuid's bytes two have its version and variant in them.
            rest = stream[at : at + 16]
            if at >= 0 and len(rest) == 16 and _as_uuid(rest) == _as_uuid(data) and data in (rest, _as_uuid(data)):
                yield 16, at
                return
    elif len(plain) % 4 == 1:  # base64 has no such length
        return
    else:
        data = urlsafe_b64decode(plain + "=" * (-len(plain) % 4))
    if len(data) >= 8 and (at := stream.find(data)) >= 0:
        yield len(data), at


def _as_uuid(data: bytes) -> bytes:
    return data[:6] + bytes([data[6] & 0x0F | 0x40, data[7], data[8] & 0x3F | 0x80]) + data[9:]


def _stated(text: str) -> Iterator[_Stated]:
    """The times in a text."""
    for match in _DATED.finditer(text):
        moment, fraction, zone = match.groups()
        try:
            parsed = datetime.fromisoformat(moment)
        except ValueError:
            continue
        seconds = (parsed - datetime(1970, 1, 1)) // timedelta(seconds=1)
        offset = 0
        if zone and zone != "Z":
            offset = (int(zone[1:3]) * 60 + int(zone[-2:])) * 60 * (-1 if zone[0] == "-" else 1)
        digits = fraction or ""
        ns = (seconds - offset) * _SECOND + int(digits.ljust(9, "0"))
        yield _Stated(match[0], ns, 10 ** (9 - len(digits)), bool(zone))
    for match in _EPOCH.finditer(text):
        seconds, digits = int(match[1]), match[2] or match[3] or ""
        ns, step = seconds * _SECOND + int(digits.ljust(9, "0")), 10 ** (9 - len(digits))
        # A float of seconds since 1970 is right to about 240 ns.
        slack = 300 if match[2] else 0
        yield _Stated(match[0], ns - slack, step + 2 * slack, True)
