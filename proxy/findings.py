"""What counts against a replay, as it is found: violations, drifts, and what is worth a note. Tells who listens."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeproxy.proxy.decisions import Live
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.identity import read_body, read_target
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.largebodies import first_difference
from tapeproxy.tapes.matching import Ask, Index, Miss
from tapeproxy.tapes.positions import compare_positions, knows_sleeps
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.explain import Explanation


class Findings:
    """Those of one replay. `violations` and `drifts` only grow."""

    def __init__(self, tape: Tape, noticed: Callable[[Violation | Drift], None]) -> None:
        """`noticed` is called with each violation and drift as it is found."""
        self.violations: list[Violation] = []
        self.drifts: list[Drift] = []
        self._tape = tape
        self._noticed = noticed
        self._names: dict[str, str] = {}
        self._drifted: set[str] = set()
        self._soft: dict[str, list[tuple[int, tuple[Difference, ...]]]] = {}

    def violate(self, violation: Violation) -> Violation:
        """Count a violation and tell whoever listens."""
        if violation.tag is not None:
            violation = replace(violation, lane_name=self._lane_name(violation.tag.lane))
        self.violations.append(violation)
        self._noticed(violation)
        return violation

    def drift(self, drift: Drift) -> None:
        """Count a drift and tell whoever listens."""
        self.drifts.append(drift)
        self._noticed(drift)

    def call(self, lane: str, name: str) -> None:
        """Take note of what the agent calls a lane."""
        self._names[lane] = name

    def _lane_name(self, lane: str) -> str:
        """What the agent calls a lane, now or on the tape; empty where nobody said."""
        taped = (one.name for one in reversed(self._tape.lanes) if one.id == lane and one.name)
        return self._names.get(lane) or next(taped, "")

    def check_position(self, exchange: Exchange, ask: Ask, tag: LaneTag | None) -> None:
        """Compare where in its lane a request was made; of each lane only the first difference counts."""
        taped = exchange.request
        if tag is None or taped.lane != tag.lane or tag.lane in self._drifted:
            return
        found = compare_positions(taped, tag, sleeps=knows_sleeps(self._tape.head))
        if found.hard:
            self._drifted.add(tag.lane)
            what = f"lane {tag.lane} came another way to the request of exchange {exchange.number}"
            self.drift(Drift(summary_line(ask), what, found.hard, tag))
        elif found.soft:
            self._soft.setdefault(tag.lane, []).append((exchange.number, found.soft))

    def soft_notes(self) -> Iterator[str]:
        """Of each lane that polled another number of times than on the tape, one line: it made no other difference."""
        for lane, found in self._soft.items():
            number, differences = found[0]
            texts = [f"{d.where}: {d.asked}, on the tape {d.taped}" for d in differences]
            more = "" if len(found) == 1 else f"; and so before {len(found) - 1} more"
            yield (
                f"soft divergence: lane {lane} polled another number of times before the request of exchange "
                f"{number} ({'; '.join(texts)}){more}"
            )


def compared(live: Live, status: int, headers: Headers, body: bytes, reading: Reading) -> Drift | None:
    """The drift of what a server of the run answered from what the tape heard of it; None: it is the same.

    `body` is redacted, as the tape's is.
    """
    taped = live.taped
    if taped is None or taped.response is None:
        return None
    from tapeproxy.tapes.differences import Difference, body_differences

    found = [Difference("status", str(taped.response.status), str(status))] if taped.response.status != status else []
    target = read_target(live.ask.url, inside=True, reading=reading)
    local = reading.rules.at(target.authority, target.path)
    _, was = read_body(taped.response.headers, taped.response_body, local, reading)
    _, now = read_body(headers, body, local, reading)
    found += body_differences(was, now)
    if not found:
        return None
    what = f"a server of the run answered another way than in exchange {taped.number}"
    return Drift(summary_line(live.ask), what, tuple(found))


def missed(
    miss: Miss,
    index: Index,
    tag: LaneTag | None,
    large: "Callable[[int], Difference | None] | None" = None,
    *,
    cut: bool = False,
) -> Violation:
    """The violation of asking what the tape has no answer for, and why it has none.

    `large(number)` says where a large body is no longer that of the exchange. `cut`: the tape broke off.
    """
    end = index.spent(miss.ask.lane) if cut and miss.elsewhere is None else None
    if end is not None and not miss.used:
        return _past_the_end(miss, index, tag, end)
    explanation = explained(miss, index)
    if large is not None and explanation.nearest is not None and not explanation.nearest_used:
        parted = large(explanation.nearest)
        if parted is not None:
            explanation = replace(explanation, differences=(*explanation.differences, parted))
    if miss.used and miss.elsewhere is None:
        times = "once" if miss.used == 1 else f"{miss.used} times"
        what = f"the tape has this request {times}, and each answer was given out already"
        what += "" if end is None else f"; {_broke_off(miss, end)}"
        return Violation("used-up", explanation.request, what, explanation, tag)
    if miss.elsewhere is not None:
        what = f"the tape has this request for lane {miss.elsewhere}, but lane {miss.ask.lane} made it"
        return Violation("lane", explanation.request, what, explanation, tag)
    what = "this request is not on the tape"
    return Violation("miss", explanation.request, what, explanation, tag, miss.ask)


def _past_the_end(miss: Miss, index: Index, tag: LaneTag | None, last: int) -> Violation:
    """The violation of going on where a tape broke off: no taped request was meant, and no rule would help."""
    explanation = replace(explained(miss, index), nearest=None, differences=(), context=())
    return Violation("miss", explanation.request, _broke_off(miss, last), explanation, tag, miss.ask)


def _broke_off(miss: Miss, last: int) -> str:
    whose = "" if miss.ask.lane is None else f" of lane {miss.ask.lane}"
    after = f"after exchange {last}, the last{whose}" if last else f"before the first exchange{whose}"
    return f"the recording was interrupted, and the tape broke off here: {after}"


def parting(taped: Exchange, now: Iterable[bytes]) -> "Difference | None":
    """Where a large body is no longer the taped one."""
    from tapeproxy.tapes.differences import Difference

    found = first_difference(taped.sent_pieces(), now)
    if found is None:
        return None
    at, was, is_now = found
    return Difference(f"body, from byte {at} on", repr(was)[1:], repr(is_now)[1:])


def explained(miss: Miss, index: Index) -> "Explanation":
    """Why the tape has no answer."""
    # A replay that goes well never needs it, and it takes some milliseconds to load.
    from tapeproxy.tapes.explain import explain

    return explain(miss, index)
