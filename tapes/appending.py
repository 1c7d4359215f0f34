"""Exchanges of one tape behind those of another. Pure: records in, records out."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from tapeproxy.tapes.records import Chunks, End, Record, Request, Response


def with_leftovers(records: Iterable[Record], old: Iterable[Record], indexes: Container[int]) -> Iterator[Record]:
    """Yield `records`, those of a tape without its seal, and the exchanges of the `old` one whose requests have these
    indexes there.

    Those have no lane here, for nobody asked for them: whoever does may have them. Their times follow the others'.
    """
    place = latest = 0
    for record in records:
        latest = max(latest, record.t if isinstance(record, Request | Response | Chunks | End) else 0)
        place += 1
        yield record
    places: dict[int, int] = {}
    since: int | None = None
    for index, record in enumerate(old):
        if isinstance(record, Request) and index in indexes:
            places[index] = place
            record = replace(record, lane=None, n=None, reads=None, sleeps=0, awake=None, source=None)
        elif isinstance(record, Response | Chunks | End) and record.of in places:
            record = replace(record, of=places[record.of])
        else:
            continue
        since = record.t if since is None else since
        yield replace(record, t=latest + max(record.t - since, 0))
        place += 1
