"""What of a tape a fork keeps: which answers are served, which are changed, and which lanes run live from where. Pure.

Knows the tape and the causal order that it is given; what an edit does to an answer is its maker's business.

The past of the branch and what is concurrent with it come from the tape. Its causal future is run again, live. A lane
is of the tape up to its `Cut`; a lane that has none is outside of the future and makes no live call.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, overload

from tapeproxy.tapes.cards import Listed
from tapeproxy.tapes.cuts import (
    UNLANED,
    Cut,
    Frontier,
    Row,
    above,
    cuts_of,
    firsts_of,
    lanes_of,
    rows_of,
    with_rest_of_lanes,
)
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Shelved, Tape, outlines
from tapeproxy.tapes.lanes import LaneTag, has_edges
from tapeproxy.tapes.records import Request, Value
from tapeproxy.tapes.valuefutures import Changed

_NEVER = 1 << 40

type Rerun = Literal["future", "changed"]
"""What runs again: all of the causal future, or only what asks something else than on the tape."""
type Outgoing = Callable[[Request], Request]
"""An edit of a live request on its way out: from what the agent sent, with its body in bytes, to what is forwarded."""


class CausalOrder(Protocol):
    """What is asked of `tapes.causality.Causality`."""

    def order(self) -> Sequence[int]:
        """The numbers of all exchanges in a causal order."""
        ...

    def future(self, number: int) -> frozenset[int]:
        """The exchanges that the answer of this one happened before; not itself."""
        ...

    def reached(self, number: int) -> Mapping[str, tuple[int, int]]:
        """Of each lane that comes to know of the answer, its requests and meetings before it did."""
        ...


@dataclass(frozen=True, slots=True)
class ClockJump:
    """What the clock of a lane of the future jumps to at its cut, in place of the real time.

    `ns`: so many nanoseconds past the tape's time there; or, where it is `absolute`, since 1970.
    """

    ns: int
    absolute: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan:
    """A fork of one tape. Exchanges are known by their numbers on it.

    `branch`: where it leaves the tape, empty for its beginning. `served`: answered as on the tape; `mutated`: with
    another answer, which is given; `live`: run again. With `rerun` "changed" those of the last that are asked as on the
    tape get the tape's answer all the same. `outgoing`: edits of live requests, by the number of the exchange that
    they stand for on the tape (same lane, same place in it); 0: of all of them. `cut`: the lanes of the future.
    `lanes`: all lanes of the tape. `clock`: what the clock jumps to at a cut; None: real time. `environment`: variables
    to set, None to unset. `seeds`: a lane's new seed from its cut on, 64 hex digits. `values`: what tools give instead
    of what is on the tape, by lane and number. `stays`: lanes that only call tools, and stay with the tape though one
    above them leaves it.
    """

    branch: tuple[int, ...] = ()
    served: frozenset[int] = frozenset()
    mutated: Mapping[int, Exchange] = field(default_factory=dict[int, Exchange])
    live: frozenset[int] = frozenset()
    rerun: Rerun = "future"
    outgoing: Mapping[int, Outgoing] = field(default_factory=dict[int, Outgoing])
    cut: Mapping[str, Cut] = field(default_factory=dict[str, Cut])
    lanes: frozenset[str] = frozenset()
    clock: ClockJump | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    seeds: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[tuple[str, int], Value] = field(default_factory=dict[tuple[str, int], Value])
    stays: frozenset[str] = frozenset()

    def keeps(self, number: int) -> bool:
        """Whether this exchange's answer may be given out."""
        return number in self.served or number in self.mutated or (self.rerun == "changed" and number in self.live)

    def is_past(self, tag: LaneTag | None) -> bool:
        """Whether a request is one of those that the fork has to ask as on the tape."""
        if tag is None or tag.lane not in self.lanes:
            return False
        cut = self.cut.get(tag.lane)
        return cut is None or tag.n < cut.requests

    def may_be_live(self, tag: LaneTag | None) -> bool:
        """Whether a request may go out to the world, once the branch was reached. A new lane goes by those above it."""
        if tag is not None and tag.lane in self.lanes:
            cut = self.cut.get(tag.lane)
            return cut is not None and tag.n >= cut.requests
        if tag is None or tag.lane.startswith("?") or not self.lanes:
            return UNLANED in self.cut
        return next((upper in self.cut for upper in above(tag.lane) if upper in self.lanes or upper in self.cut), False)

    def asks_anew(self, tag: LaneTag | None) -> bool:
        """Whether a request that may be live is not looked for on the tape first."""
        return self.rerun == "future" and tag is not None

    @property
    def borrows(self) -> bool:
        """Whether a lane may have the answer of another one, where it has none of its own."""
        return False

    @property
    def runs_tools(self) -> bool:
        """Whether the bodies of tools run in lanes that have not left the tape, too."""
        return False


def fork_at(
    tape: Tape,
    causality: CausalOrder,
    number: int,
    mutated: Mapping[int, Exchange] | None = None,
    *,
    rerun: Rerun = "future",
    outgoing: Mapping[int, Outgoing] | None = None,
    values: Sequence[Changed] = (),
) -> ForkPlan:
    """Leave the tape at the answer of exchange `number`; 0: at its beginning, or where `values` were given.

    `mutated`: exchanges with changed answers, by number. Where `number` is not among them, it is asked again itself.
    Raises UsageError for a number that is not on the tape, and for a changed answer that nobody would get.
    """
    changed, edits = dict(mutated or {}), dict(outgoing or {})
    inside = _inside(tape)
    for one in (number, *changed, *edits):
        _check(tape, one, inside)
    again = ({number} | edits.keys()) - changed.keys() - {0}
    branch = (again | changed.keys()) if number else set[int]()
    everyone = frozenset(range(1, len(tape.exchanges) + 1)) - inside
    rows = rows_of(tape)
    live = everyone
    if branch or values:
        after = frozenset(again).union(*map(causality.future, branch), *(value.future for value in values))
        live = with_rest_of_lanes(rows, after, branch) - inside
    for lost in sorted(live & changed.keys()) if rerun == "future" else ():
        what = f"the answer of event {lost} can't be changed: it comes after another change, and is asked anew"
        raise UsageError(what, fix="leave it out, or reuse what is asked as on the tape: --rerun changed")
    known = _known_since(tape, rows, branch, changed, everyone - live)
    given = [value.t for value in values]
    frontier = Frontier(
        firsts_of(rows, live, branch),
        (lambda lane: min(given) if not branch else min(known(lane), *given)) if given else known,
        {tape.exchanges[one - 1].request.lane or UNLANED for one in changed} if branch or values else rows.keys(),
        _reached(causality, branch, values) if has_edges(tape.head) and (branch or values) else None,
    )
    cut = cuts_of(tape, rows, frontier)
    for value in values:
        if value.lane not in cut or cut[value.lane].requests >= value.asked:
            # Only a request says for sure that the lane has the value.
            cut[value.lane] = Cut(value.asked, 0, _NEVER)
    return ForkPlan(
        branch=tuple(sorted(branch)),
        served=everyone - live - changed.keys(),
        mutated=changed,
        live=live - changed.keys(),
        rerun=rerun,
        outgoing=edits,
        cut=cut,
        lanes=lanes_of(tape, rows),
        values={(value.lane, value.value.n): value.value for value in values},
    )


def first(tape: Tape, causality: CausalOrder, k: int) -> ForkPlan:
    """Serve the first `k` exchanges of the causal order, and run the rest live. Raises UsageError."""
    inside = _inside(tape)
    order = [number for number in causality.order() if number not in inside]
    if not 0 <= k <= len(order):
        raise UsageError(f"the tape has {len(order)} events, not {k}")
    served, live = frozenset(order[:k]), frozenset(order[k:])
    rows = rows_of(tape)
    firsts = firsts_of(rows, live, set())
    cut = cuts_of(tape, rows, Frontier(firsts, _last_served(rows, firsts, served), () if k else rows.keys()))
    return ForkPlan(served=served, live=live, cut=cut, lanes=lanes_of(tape, rows))


def _inside(tape: Tape) -> set[int]:
    return {one.number for one in outlines(tape.exchanges) if one.request.inside}


def events(tape: Tape) -> int:
    """How many exchanges of a tape can be served or asked anew: those with the world."""
    return sum(not one.request.inside for one in outlines(tape.exchanges))


def kept(tape: Tape, plan: ForkPlan) -> Tape:
    """The tape with those exchanges alone whose answers the fork may give out, the changed ones changed.

    Who takes turns with whom is only kept among them: nobody has to wait for what may never be asked again.
    """
    base = tape.exchanges if isinstance(tape.exchanges, Shelved) else Listed(tape.exchanges)
    places = [at for at in range(len(base)) if plan.keeps(at + 1) or base.answer(at).request.inside]
    dones = [done for done in tape.dones if done[0].lane not in plan.cut]
    return Tape(
        tape.head,
        _Kept(base, places, plan.mutated),
        notes=tape.notes,
        lanes=tape.lanes,
        clocks=tape.clocks,
        lane_ends=tape.lane_ends,
        dones=dones,
        envs=tape.envs,
        values=tape.values,
        edges=tape.edges,
        exit=tape.exit,
        seal=tape.seal,
        ended=tape.ended,
    )


def anew(tape: Tape, plan: ForkPlan) -> tuple[Exchange, ...]:
    """The requests of the tape that a fork asks anew, without bodies or answers. Others wait for them in their turn."""
    return tuple(
        Exchange(one.number, one.index, replace(one.request, body=b"", headers=()))
        for one in outlines(tape.exchanges)
        if one.number in plan.live and not plan.keeps(one.number)
    )


class _Kept(Shelved):
    """Some of a tape's exchanges, a few of them changed."""

    def __init__(self, base: Shelved, places: Sequence[int], changed: Mapping[int, Exchange]) -> None:
        self._base, self._places, self._changed = base, places, changed

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Exchange]: ...
    def __getitem__(self, at: int | slice) -> Exchange | Sequence[Exchange]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        place = self._places[at]
        return self._changed.get(place + 1) or self._base[place]

    def answer(self, at: int) -> Exchange:
        place = self._places[at]
        return self._changed.get(place + 1) or self._base.answer(place)

    def compared_body(self, at: int) -> bytes:
        return self._base.compared_body(self._places[at])


def _check(tape: Tape, number: int, inside: set[int]) -> None:
    if not 0 <= number <= len(tape.exchanges):
        raise UsageError(f"there is no event {number} on the tape", fix=f"it has 1 to {len(tape.exchanges)}: see show")
    if number in inside:
        what = f"event {number} is a request to a server of the run itself: it is not answered from the tape"
        raise UsageError(what, fix="fork at an event of that server's, or at what it was asked for")


def _known_since(
    tape: Tape, rows: Mapping[str, list[Row]], branch: Container[int], changed: Container[int], served: Container[int]
) -> Callable[[str], int]:
    """For each lane, the moment before which it can't know of the branch: in ns after the tape's start.

    That is when a changed answer began. Who asks anew may have prepared that since the last answer of the tape.
    """
    moments: list[int] = []
    again: dict[str, int] = {}
    for lane, of_lane in rows.items():
        for at, row in enumerate(of_lane):
            if row.number in branch and row.number in changed:
                one = tape.exchanges[row.number - 1]
                moments.append(row.ended if one.response is None else one.response.t)
            elif row.number in branch:
                moments.append(row.asked)
                again.setdefault(lane, at)
    before = _last_served(rows, again, served)
    return lambda lane: min([*moments, *([before(lane)] if lane in again else [])], default=0)


def _last_served(
    rows: Mapping[str, list[Row]], firsts: Mapping[str, int], served: Container[int]
) -> Callable[[str], int]:
    """For each lane, when the last answer of the tape had come before its first request that is not the tape's."""
    ends = sorted(row.ended for of_lane in rows.values() for row in of_lane if row.number in served)

    def since(lane: str) -> int:
        before = bisect_right(ends, rows[lane][firsts[lane]].asked)
        return ends[before - 1] if before else 0

    return since


def _reached(causality: CausalOrder, branch: Iterable[int], values: Iterable[Changed]) -> dict[str, tuple[int, int]]:
    """Of each lane, the earliest that it knows of any of these."""
    found: dict[str, tuple[int, int]] = {}
    for reached in (*map(causality.reached, branch), *(value.reached for value in values)):
        for lane, place in reached.items():
            found[lane] = min(found.get(lane, place), place)
    return found
