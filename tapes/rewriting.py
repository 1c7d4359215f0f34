"""The bytes of a tape that is written anew, whole, from its records. Pure: knows the order of things, not files."""

from collections.abc import Callable, Iterable
from itertools import chain

from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import Body, Chunks, Frame, Head, Record, Request, Seal, Value
from tapeproxy.tapes.trace import TraceHasher

_FLUSH_EVERY = 16


def octets_of(record: Record) -> int:
    """The bytes that a record holds of bodies, frames and values, at least 1: how much work it is."""
    match record:
        case Request():
            return 1 + _length(record.body)
        case Chunks():
            return 1 + sum(_length(data) for _, data in record.parts)
        case Frame():
            return 1 + len(record.data)
        case Value():
            return 1 + len(record.content or b"")
    return 1


def _length(body: Body) -> int:
    return len(body) if isinstance(body, bytes) else 0


def encoded(
    records: Iterable[Record], seal: Seal | None, tell: Callable[[int], object] = lambda _: None
) -> Iterable[bytes]:
    """The bytes of a tape file, head first; sealed if there was a `seal`, whose trace is made anew.

    `tell` is called with the octets of each record that is done, as `octets_of` counts them.
    """
    rest = iter(records)
    head = next(rest)
    assert isinstance(head, Head)
    encoder = TapeEncoder(head)
    trace = TraceHasher()
    traceable = True
    for index, record in enumerate(chain((head,), rest)):
        if index:
            encoder.add(record)
        try:
            trace.feed(index, record)
        except ValueError:  # a URL that is not absolute: the original has no trace that can be checked either
            traceable = False
        tell(octets_of(record))
        if index % _FLUSH_EVERY == 0:
            yield encoder.flush()
    if seal is None:
        yield encoder.flush()
    else:
        yield encoder.seal(
            t=seal.t,
            trace=trace.hexdigest() if traceable else seal.trace,
            outcome=seal.outcome,
            lanes=trace.lanes() if seal.lanes and traceable else {},
            messages=trace.messages(),
            uploads=trace.uploads(),
            extra=seal.extra,
        )
