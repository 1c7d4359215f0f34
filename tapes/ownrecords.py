"""The records of a replay's own tape: what was asked in it, with the answers that were given. Pure.

An answer of the tape that was replayed stands there with the time at which it was asked for: how long it took, and when
its pieces came, is on that tape. A request that was a violation has the answer 470 that it got. Violations and drifts
are notes, too. What the agent's hints told (calls of tools, messages, conclusions) stands there as on any tape.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.largebodies import is_stand_in
from tapeproxy.tapes.records import Chunks, End, Note, Record, Request, Response, Value
from tapeproxy.tapes.refusals import SOURCE, is_refused
from tapeproxy.tapes.requestlines import shorten, summary_line
from tapeproxy.tapes.violations import REASON, STATUS, Drift, Violation

_ANSWERED = frozenset({"interrupted", "refused"})
"""Violations whose request got the answer that is on the tape."""


@dataclass(slots=True)
class Asked:
    """A request, when it was made (nanoseconds after the replay began), and the violation that it was."""

    t: int
    step: Step
    refused: Violation | None = None

    def refuse(self, found: Violation) -> None:
        """Take note of a violation, if it is of this request and was its answer."""
        mine = found.request == shorten(summary_line(self.step.ask))
        if mine and self.refused is None and found.kind not in _ANSWERED:
            self.refused = found


type Event = Asked | Value | tuple[int, Violation | Drift]
"""What happened in a replay, in order; what was found, with its time."""


def own_records(events: Iterable[Event], taped: Callable[[int], Exchange]) -> Iterator[Record]:
    """Yield the records after the head. `taped`: an exchange of the tape that was replayed, by its number."""
    index = 1
    for event in events:
        for record in _records(event, index, taped):
            index += 1
            yield record


def _records(event: Event, index: int, taped: Callable[[int], Exchange]) -> Iterable[Record]:
    match event:
        case Asked():
            return _exchange(event, index, taped)
        case Value():
            return [event]
        case _:
            return [_note(*event)]


def _exchange(asked: Asked, index: int, taped: Callable[[int], Exchange]) -> Iterator[Record]:
    step, t = asked.step, asked.t
    if step.exchange is None or asked.refused is not None:
        yield _request(asked, Request(t=t, method=b"", url=b"", source=SOURCE))
        if asked.refused is not None:
            yield from _refusal(asked.refused, t, index)
        return
    exchange = taped(step.exchange)
    source = exchange.request.source if is_refused(exchange.request) else "reused"
    yield _request(asked, replace(exchange.request, source=source))
    if is_stand_in(step.ask.body):
        yield from (Chunks(t=t, of=index, to="server", parts=((0, chunk.data),)) for chunk in exchange.uploads)
    if exchange.response is not None:
        yield replace(exchange.response, t=t, of=index)
    if exchange.chunks:
        yield Chunks(t=t, of=index, parts=tuple((0, chunk.data) for chunk in exchange.chunks))
    if exchange.end is not None:
        yield replace(exchange.end, t=t, of=index)


def _request(asked: Asked, like: Request) -> Request:
    ask, tag = asked.step.ask, asked.step.tag
    made = replace(
        like,
        t=asked.t,
        method=ask.method,
        url=ask.url,
        headers=ask.headers,
        # Of a large one that was found the content is the taped one's; of another it is not kept.
        body=like.body if is_stand_in(ask.body) and like.url else ask.body,
        lane=None,
        n=None,
        reads=None,
        sleeps=0,
        awake=None,
    )
    if tag is None:
        return made
    return replace(made, lane=tag.lane, n=tag.n, reads=tag.reads, sleeps=tag.sleeps, awake=tag.awake)


def _refusal(found: Violation, t: int, index: int) -> Iterator[Record]:
    headers, content = found.parts()
    yield Response(t=t, of=index, status=STATUS, reason=REASON, headers=headers, framing="length")
    yield Chunks(t=t, of=index, parts=((0, content),))
    yield End(t=t, of=index, how="complete")


def _note(t: int, found: Violation | Drift) -> Note:
    kind = "violation" if isinstance(found, Violation) else "drift"
    return Note(t=t, what=f"replay-{kind}", text=f"{found.what}: {found.request}")
