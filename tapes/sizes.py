"""What takes the room on a tape: by kind of record, and the largest exchanges; keeps counts, no bodies. Pure.

Three sizes of the same thing: in the *file* (compressed), as *text* (lines of JSON), and the *bodies* as they were on
the wire. What a request shares with an earlier one stands on the tape as a reference: it is in its body, not its text.
"""

import heapq
from dataclasses import dataclass

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.records import Chunks, End, Frame, Request, Value


@dataclass(slots=True)
class Size:
    """Bytes. `file` is a share by place in the compressed stream; `referred` is the part of `bodies` not in `text`."""

    records: int = 0
    file: float = 0
    text: int = 0
    bodies: int = 0
    referred: int = 0

    def add(self, other: "Size") -> None:
        self.records += other.records
        self.file += other.file
        self.text += other.text
        self.bodies += other.bodies
        self.referred += other.referred


@dataclass(slots=True)
class ExchangeSize:
    """One exchange. `size` is that of all its records; `request` and `response` are bytes of the bodies as sent."""

    number: int
    method: bytes
    url: bytes
    size: Size
    request: int = 0
    response: int = 0


class Survey:
    """Feed it a tape's records; it counts them by kind, and keeps the `top` exchanges that take most of the file."""

    def __init__(self, top: int) -> None:
        self.kinds: dict[str, Size] = {}
        self._top = top
        self._open: dict[int, ExchangeSize] = {}
        self._largest: list[tuple[float, int, ExchangeSize]] = []
        self._requests = 0

    def feed(self, entry: Entry, file: float) -> None:
        """Take the next record, which takes about `file` bytes of the file."""
        size = _measure(entry, file)
        self.kinds.setdefault(entry.record.kind, Size()).add(size)
        self._attach(entry, size)

    def total(self) -> Size:
        """All records together."""
        total = Size()
        for size in self.kinds.values():
            total.add(size)
        return total

    def largest(self) -> list[ExchangeSize]:
        """The exchanges that take most, the largest first."""
        for exchange in self._open.values():
            self._rank(exchange)
        self._open.clear()
        return [exchange for *_, exchange in sorted(self._largest, key=lambda ranked: ranked[:2], reverse=True)]

    def _attach(self, entry: Entry, size: Size) -> None:
        record = entry.record
        if isinstance(record, Request):
            self._requests += 1
            self._open[entry.index] = ExchangeSize(self._requests, record.method, record.url, Size())
        of = entry.index if isinstance(record, Request) else getattr(record, "of", None)
        exchange = self._open.get(of) if isinstance(of, int) else None
        if exchange is None:
            return
        exchange.size.add(size)
        if isinstance(record, Request) or (isinstance(record, Chunks | Frame) and record.to == "server"):
            exchange.request += size.bodies
        else:
            exchange.response += size.bodies
        if isinstance(record, End):
            self._rank(self._open.pop(record.of))

    def _rank(self, exchange: ExchangeSize) -> None:
        if self._top:
            push = heapq.heappush if len(self._largest) < self._top else heapq.heappushpop
            push(self._largest, (exchange.size.file, -exchange.number, exchange))


def _measure(entry: Entry, file: float) -> Size:
    record = entry.record
    size = Size(1, file, entry.size)
    if isinstance(record, Request):
        size.bodies = len(record.body) if isinstance(record.body, bytes) else 0
        if entry.like is not None:
            size.referred = size.bodies - len(entry.like.mid)
    elif isinstance(record, Chunks):
        size.bodies = sum(len(data) for _, data in record.parts if isinstance(data, bytes))
    elif isinstance(record, Frame):
        size.bodies = len(record.data)
    elif isinstance(record, Value):
        size.bodies = len(record.content or b"")
    return size
