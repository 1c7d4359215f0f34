"""The tape of a minimized run: the original's records with the answers that were given out and the requests made then.

Pure: knows records and their numbers, not files. What the run did not ask for is left out.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.hints import CALLS, HINTS
from tapeproxy.tapes.largebodies import is_stand_in
from tapeproxy.tapes.records import Chunks, End, Exit, Frame, Head, Record, Request, Response, Seal, Value

_TOLD: Final = HINTS - {*CALLS}
_OF_CALLS: Final = frozenset({"args", "asked"})

type Hint = tuple[Value, tuple[str, int] | None]
"""A hint that a run gave, and of a call lane and number of the taped one that it got."""


def minimized_records(
    records: Iterable[Record],
    head: Head,
    served: Tape,
    steps: Iterable[Step],
    ended: Exit,
    hints: Sequence[Hint] = (),
) -> Iterator[Record]:
    """Yield the records of the tape that a run would have which was `served` this one, the original with other values.

    `records` are the original's, in order and with bodies resolved; `steps` what the run asked, `hints` what it told of
    itself, `ended` how it ended.
    """
    asked = {step.exchange: step for step in steps if step.exchange is not None}
    made = {place: value for value, place in hints if place is not None}
    kept = {exchange.index: exchange for exchange in served.exchanges if exchange.number in asked}
    reads = dict(served.values)
    inside: set[int] = set()
    large: set[int] = set()
    places: dict[int, int] = {}
    sent: dict[int, int] = {}
    place = 0
    for index, record in enumerate(records):
        out: Record | None = record
        match record:
            case Head():
                out = head
            case Request(inside=True):
                inside.add(index)
            case Request():
                out = _request(record, asked[kept[index].number]) if index in kept else None
                if index in kept and is_stand_in(asked[kept[index].number].ask.body):
                    large.add(index)
            case Response() | Frame() | End() if record.of not in inside:
                out = record if record.of in kept else None
            case Chunks() if record.of not in inside:
                out = _chunks(record, kept.get(record.of), sent, large=record.of in large)
            case Value():
                out = _value(reads[index], made)
            case Exit() | Seal():
                out = None
            case _:
                pass
        if out is None:
            continue
        if isinstance(out, Response | Frame | End | Chunks):
            out = dataclasses.replace(out, of=places[out.of])
        places[index] = place
        place += 1
        yield out
    yield from (dataclasses.replace(value, t=ended.t) for value, _ in hints if value.what in _TOLD)
    yield ended


def _value(read: Value, made: Mapping[tuple[str, int], Value]) -> Value | None:
    """A call with the arguments that it had in the run; None: there was no such call, or it is told anew."""
    if read.what in CALLS and (now := made.get((read.lane, read.n))) is not None:
        return dataclasses.replace(read, data=read.data | {k: v for k, v in now.data.items() if k in _OF_CALLS})
    return None if read.what in HINTS else read


def _request(record: Request, step: Step) -> Request:
    ask, tag = step.ask, step.tag
    body = record.body if is_stand_in(ask.body) else ask.body
    made = dataclasses.replace(record, method=ask.method, url=ask.url, headers=ask.headers, body=body)
    if tag is None:
        return made
    return dataclasses.replace(made, lane=tag.lane, n=tag.n, reads=tag.reads, sleeps=tag.sleeps, awake=tag.awake)


def _chunks(record: Chunks, exchange: Exchange | None, sent: dict[int, int], *, large: bool) -> Chunks | None:
    """The record with the pieces of the answer that was given; uploads that are not `large` are in the request."""
    if exchange is None:
        return None
    if record.to == "server":
        return record if large else None
    at = sent.get(record.of, 0)
    sent[record.of] = at + len(record.parts)
    pieces = [chunk.data for chunk in exchange.chunks[at : at + len(record.parts)]]
    # An empty chunk would end a chunked body.
    parts = tuple((dt, new) for (dt, old), new in zip(record.parts, pieces, strict=True) if new or not old)
    return dataclasses.replace(record, parts=parts) if parts else None
