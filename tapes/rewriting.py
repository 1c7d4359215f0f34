"""The bytes of a tape that is written anew, whole, from its records. Pure: knows the order of things, not files."""

from collections.abc import Iterable, Sequence

from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import Head, Record, Seal
from tapeproxy.tapes.trace import TraceHasher

_FLUSH_EVERY = 16


def encoded(records: Sequence[Record], seal: Seal | None) -> Iterable[bytes]:
    """The bytes of a tape file, head first; sealed if there was a `seal`, whose trace is made anew."""
    head = records[0]
    assert isinstance(head, Head)
    encoder = TapeEncoder(head)
    trace = TraceHasher()
    traceable = True
    for index, record in enumerate(records):
        if index:
            encoder.add(record)
        try:
            trace.feed(index, record)
        except ValueError:  # a URL that is not absolute: the original has no trace that can be checked either
            traceable = False
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
