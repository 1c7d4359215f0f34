"""Why a request has no answer: the nearest taped request, and where the two differ. Pure; for people and `--json`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from tapeproxy.tapes.calls import read_messages
from tapeproxy.tapes.contexts import ContextChange, context_changes
from tapeproxy.tapes.differences import Difference, difference_text, differences
from tapeproxy.tapes.matching import Ask, Index, Miss
from tapeproxy.tapes.nearness import Near, nearest
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.toollists import offered, tool_changes

_MOST_DIFFERENCES = 100
_LISTED = 20
"""Answers that wait, in a report."""
_NAMED = 5
"""Those on a terminal."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A taped answer that nobody has asked for yet: its exchange's number and request line."""

    exchange: int
    request: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """`request` in one line; `used`: how many answers to just this request the tape had, all given out before.

    `nearest` is the number of the taped exchange that comes closest (None: there is none), `score` from 0 to 1,
    `nearest_used` whether its answer was given out already, `why` what kept it from being taken. `context`: of LLM
    calls, what happened to the messages; `tools`: how the list of tools changed. `waiting`: the first answers that are
    left, of `left` in all.
    """

    request: str
    used: int
    nearest: int | None = None
    nearest_request: str = ""
    nearest_used: bool = False
    score: float = 0.0
    why: str = ""
    differences: tuple[Difference, ...] = ()
    context: tuple[ContextChange, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    left: int = 0
    tools: str = ""

    def to_json(self) -> dict[str, Any]:
        """What a violation's JSON says beside kind, request and what."""
        out: dict[str, Any] = {"waiting": [asdict(one) for one in self.waiting], "left": self.left}
        if self.nearest is not None:
            out["nearest"] = {
                "exchange": self.nearest,
                "request": self.nearest_request,
                "score": self.score,
                "used": self.nearest_used,
                "why": self.why,
                "differences": [asdict(difference) for difference in self.differences],
                "context": [asdict(change) for change in self.context],
                "tools": self.tools,
            }
        return out

    def _text(self, difference: Difference) -> str:
        # The words that changed are told with the messages, where there are any.
        return difference_text(replace(difference, words="") if self.context else difference)

    def lines(self, limit: int) -> Iterator[str]:
        """For a terminal; the caller escapes control characters. At most `limit` differences."""
        if self.nearest is not None:
            yield f"  nearest: exchange {self.nearest}, {self.score:.0%} alike; not taken, because {self.why}"
            if self.nearest_request != self.request:
                yield f"           {self.nearest_request}"
            if self.tools:
                yield f"    {self.tools}"
            yield from _cut_list(self.context, limit, _context_line, "changes to the context")
            # What the context says in messages need not be said in JSON paths at length.
            yield from _cut_list(self.differences, limit // 3 if self.context else limit, self._text, "differences")
        if self.left:
            answers = "1 answer waits" if self.left == 1 else f"{self.left} answers wait"
            first = [f"exchange {one.exchange}" for one in self.waiting[:_NAMED]]
            more = ["…"] if self.left > len(first) else []
            yield f"  unused:  {answers} still: {', '.join([*first, *more])}"


def explain(miss: Miss, index: Index) -> Explanation:
    """Explain a miss of `index`. Raises ValueError when the request's URL is not absolute."""
    asked = miss.ask.identity()
    cards = index.cards()
    left = [card for card in cards if not card.used]
    waiting = tuple(Waiting(card.number, summary_line(card.ask)) for card in left[:_LISTED])
    # A request that was answered before is nearest to itself, which says nothing.
    near = nearest(miss.ask, asked, [card for card in cards if not (miss.used and card.used)])
    line = summary_line(miss.ask)
    if near is None:
        return Explanation(line, miss.used, waiting=waiting, left=len(left))
    found = tuple(islice(differences(near.identity, asked), _MOST_DIFFERENCES))
    request = near.exchange.request
    return Explanation(
        line,
        miss.used,
        near.exchange.number,
        summary_line(Ask(request.method, request.url, (), b"", request.inside)),
        near.used,
        round(near.score, 3),
        _why(miss, near, len(found)),
        found,
        tuple(islice(_context(miss.ask, near), _MOST_DIFFERENCES)),
        waiting,
        len(left),
        tool_changes(offered(request.headers, near.exchange.compared_body), offered(miss.ask.headers, miss.ask.body)),
    )


def _why(miss: Miss, near: Near, found: int) -> str:
    if found:
        places = "1 place" if found == 1 else f"{found} places" if found < _MOST_DIFFERENCES else "many places"
        return f"it differs in {places}" + (", and its answer was given out already" if near.used else "")
    if near.used:
        return "its answer was given out already"
    if near.exchange.request.lane != miss.ask.lane:
        return f"it is lane {near.exchange.request.lane}'s; --match any takes no account of lanes"
    return "it differs in what cannot be shown"


def _context(ask: Ask, near: Near) -> Iterator[ContextChange]:
    taped = near.exchange
    before = read_messages(taped.request.url, taped.request.headers, taped.compared_body)
    after = read_messages(ask.url, ask.headers, ask.body)
    return context_changes(before, after) if before and after else iter(())


def _cut_list[T](items: Sequence[T], limit: int, line: Callable[[T], str], what: str) -> Iterator[str]:
    yield from map(line, items[:limit])
    if (rest := len(items) - limit) > 0:
        yield f"    and {rest} more {what}"


def _context_line(change: ContextChange) -> str:
    at = change.asked if change.asked is not None else change.taped
    return f"    {change.kind} message {at} ({change.role}): {change.text}"
