"""From imported exchanges to the records of a tape. Knows times and order; redaction is given.

Where a source tells no times, each exchange follows the one before it at the same moment, as many as there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import ForeignFormatError, read_at
from tapeproxy.tapes.records import Chunks, End, Headers, Json, Note, Record, Request, Response

NOTE = "imported"
_LAST = (1 << 63) - 1
"""The last time of a record, in ns."""


class Redacting(Protocol):
    """What is asked of redaction."""

    def url(self, url: bytes) -> bytes: ...
    def message(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]: ...


class _Timed(NamedTuple):
    t: int
    exchange: int
    step: int
    record: Record


def begin_of(exchanges: Iterable[Foreign]) -> int | None:
    """When the first was asked, in ns since 1970; None where no exchange says."""
    return min((one.start for one in exchanges if one.start is not None), default=None)


def records_of(
    exchanges: Sequence[Foreign], redactor: Redacting, tell: Callable[[int], object] = lambda _: None
) -> list[Record]:
    """The records of these exchanges, in the order of time, behind the head. Raises ForeignFormatError.

    `tell` is called with the octets of each exchange that is done (`octets_of`).
    """
    begin = begin_of(exchanges) or 0
    timed: list[_Timed] = []
    now = 0
    for number, one in enumerate(exchanges):
        start = now if one.start is None else one.start - begin
        with read_at(one.place):
            steps = list(_steps(one, start, redactor))
        now = max(now, steps[-1].t)
        if now > _LAST:
            raise ForeignFormatError("the times up to here are more than a tape can hold", place=one.place)
        tell(octets_of(one))
        timed += (_Timed(record.t, number, step, record) for step, record in enumerate(steps))
    timed.sort(key=lambda one: (one.t, one.exchange, one.step))
    places = {one.exchange: 1 + place for place, one in enumerate(timed) if one.step == 0}
    return [_placed(one.record, places[one.exchange]) for one in timed]


def octets_of(one: Foreign) -> int:
    """The bytes of an exchange's bodies, at least 1: how much work it is."""
    return 1 + len(one.request_body) + len(one.body)


def absences(exchanges: Iterable[Foreign]) -> Json:
    """What the source does not tell, and of how many exchanges."""
    return dict(sorted(Counter(what for one in exchanges for what in one.absent).items()))


def _steps(one: Foreign, start: int, redactor: Redacting) -> Iterator[Request | Response | Chunks | End | Note]:
    headers, body = redactor.message(one.request_headers, one.request_body)
    yield Request(
        t=start,
        method=one.method,
        url=redactor.url(one.url),
        http=one.http,
        alpn="h2" if one.h2 else one.alpn,
        inside=one.inside,
        headers=headers,
        body=body,
    )
    came = start + (one.waited or 0)
    last = max((start + dt for dt, _ in one.pieces if dt is not None), default=came)
    ended = max(start + (one.took or 0), came, last)
    if one.status:
        given, whole = redactor.message(one.headers, b"".join(data for _, data in one.pieces))
        response = Response(
            t=came,
            of=0,
            status=one.status,
            reason=one.reason or b"",
            http=one.answer_http,
            headers=given,
            framing=one.framing,
            informational=one.informational,
        )
        yield response
        yield from _chunks(one, whole, start, came)
    for note in one.notes:
        yield Note(t=ended, what=NOTE, text=f"{one.place}: {note}")
    yield End(t=ended, of=0, how=one.how, error=one.error, trailers=one.trailers)


def _chunks(one: Foreign, whole: bytes, start: int, came: int) -> Iterator[Chunks]:
    """The pieces; as one where redaction has changed how long they are."""
    same = len(whole) == sum(len(data) for _, data in one.pieces)
    at = 0
    for dt, data in one.pieces if same else ((None, whole),) if whole else ():
        came = came if dt is None else max(start + dt, came)  # in their order, whatever a file says
        yield Chunks(t=came, of=0, parts=((None if dt is None else 0, whole[at : at + len(data)]),))
        at += len(data)


def _placed(record: Record, of: int) -> Record:
    from dataclasses import replace

    return replace(record, of=of) if isinstance(record, Response | Chunks | End) else record
