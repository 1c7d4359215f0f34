"""Whether a replay's lanes knew what they knew on the tape when they asked. Pure.

How lanes interleave is free; which answers a lane could know of when it made a request is not. Where the edges of both
are the same, line by line, so is all that follows from them. Only where they are not are clocks computed and compared,
as the same knowledge may have come in another order.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.lanes import ANSWER, SERVE, LaneTag, is_floating
from tapeproxy.tapes.records import Edge, Lane
from tapeproxy.tapes.violations import Drift

if TYPE_CHECKING:
    from tapeproxy.tapes.causality import Causality
    from tapeproxy.tapes.differences import Difference

_MOST = 8
"""Edges that a drift names."""
_TOOL = re.compile(r"/k\d+(/|$)")


class _Row(NamedTuple):
    """What makes an edge the same in two runs."""

    asked: int
    n: int
    what: str
    on: str
    at: tuple[int, int]
    out: bool


def compare_meetings(tape: Tape, edges: Iterable[Edge], lanes: Iterable[Lane], served: Collection[int]) -> list[Drift]:
    """The drifts between a tape and its replay, which told of these edges and lanes, and was given these exchanges.

    At most one a lane: at its first request that knew other things. What lanes learned by way of a server of the run
    is left out: in which order it is asked by several is for the network to say.
    """
    edges, lanes = [edge for edge in edges if _is_firm(edge)], list(lanes)
    tape = replace(tape, edges=[edge for edge in tape.edges if _is_firm(edge)])
    taped, now = _rows(tape.edges), _rows(edges)
    odd = {lane for lane in {*taped, *now} if taped.get(lane) != now.get(lane)}
    was, became = _origins(tape.lanes), _origins(lanes)
    odd |= {lane for lane in {*was} & {*became} if was[lane] != became[lane]}
    if not any(_counts(lane) for lane in odd):
        return []
    from tapeproxy.tapes.causality import Causality  # in most replays nothing of this is needed

    then = Causality.of(_cut(tape, tape.edges, tape.lanes), served)
    replayed = Causality.of(_cut(tape, edges, lanes), served)
    found = list[Drift]()
    seen = set[str]()
    for number in then.order():
        lane = then.lane(number)
        if lane not in seen and _counts(lane) and _clock(then, number) != _clock(replayed, number):
            seen.add(lane)
            request = tape.exchanges[number - 1].request
            differences = tuple(_differences(taped, now, lane, request.n or 0, then))
            differences = differences or tuple(_clock_differences(then, replayed, number))
            what = (
                f"lane {then.name(lane)} knew of other answers than on the tape when it made the request of exchange "
                f"{number}"
            )
            found.append(Drift(f"lane {lane}", what, differences, LaneTag(lane, request.n or 0, request.reads or 0)))
    return found


def _is_firm(edge: Edge) -> bool:
    return edge.what not in (SERVE, ANSWER)


def _counts(lane: str) -> bool:
    """Whether the lane is the same one in every run, and runs in a replay."""
    return not is_floating(lane) and _TOOL.search(lane) is None


def _rows(edges: Iterable[Edge]) -> dict[str, set[_Row]]:
    rows: dict[str, set[_Row]] = {}
    for edge in edges:
        if edge.asked is not None and _counts(edge.lane) and not is_floating(edge.on):
            rows.setdefault(edge.lane, set()).add(
                _Row(edge.asked, edge.n, edge.what, edge.on, edge.at or (-1, -1), edge.out)
            )
    return rows


def _origins(lanes: Iterable[Lane]) -> dict[str, tuple[str, int, int] | None]:
    origins: dict[str, tuple[str, int, int] | None] = {}
    for lane in lanes:
        origins[lane.id] = origins.get(lane.id) or lane.origin
    return origins


def _cut(tape: Tape, edges: Iterable[Edge], lanes: Iterable[Lane]) -> Tape:
    """The tape with these edges and lanes, those left out that a replay does not have."""
    edges = [edge for edge in edges if edge.asked is not None and _TOOL.search(edge.lane) is None]
    return replace(tape, edges=edges, lanes=[lane for lane in lanes if _TOOL.search(lane.id) is None])


def _clock(causality: "Causality", number: int) -> Mapping[str, int]:
    return {lane: count for lane, count in causality.clock(number).items() if _counts(lane)}


def _differences(
    taped: Mapping[str, set[_Row]], now: Mapping[str, set[_Row]], lane: str, n: int, names: "Causality"
) -> "Iterator[Difference]":
    """The edges of a lane up to its request `n` that only one of the two has."""
    from tapeproxy.tapes.differences import Difference

    was = Counter(_text(row, names) for row in sorted(taped.get(lane, ())) if row.asked <= n and not row.out)
    became = Counter(_text(row, names) for row in sorted(now.get(lane, ())) if row.asked <= n and not row.out)
    lost, new = list((was - became).elements()), list((became - was).elements())
    for at in range(min(max(len(lost), len(new)), _MOST)):
        yield Difference(
            "what it had learned", lost[at] if at < len(lost) else None, new[at] if at < len(new) else None
        )


def _clock_differences(then: "Causality", now: "Causality", number: int) -> "Iterator[Difference]":
    """Of a lane that met the same ones: who of them knew other things."""
    from tapeproxy.tapes.differences import Difference

    was, became = _clock(then, number), _clock(now, number)
    odd = sorted(lane for lane in {*was, *became} if was.get(lane) != became.get(lane))
    for lane in odd[:_MOST]:
        where = f"requests and answers of lane {then.name(lane)} that it knew of"
        yield Difference(where, str(was.get(lane, 0)), str(became.get(lane, 0)))


def _text(row: _Row, names: "Causality") -> str:
    after = "" if row.at == (-1, -1) else f" after its request {row.at[0]}" if row.at[0] else " before it asked"
    return f"{row.what} of {names.name(row.on)}{after}"
