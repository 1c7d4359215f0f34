"""Where the violations and drifts of a replay come from: it is run once more, with the call sites of all reads on.

A replay is free, so this is gathered only when there is something to explain. The second run is silent, as guarded as
the first, and bounded by it in time. What the agent does besides HTTP (files, databases) it does twice.
"""

import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tapeproxy.proxy.pastends import CLOCK_READS
from tapeproxy.proxy.replayed import Replayed, ReplaySettings
from tapeproxy.proxy.replaying import Replaying, replay
from tapeproxy.proxy.tracing import TraceLines
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.flow import Trace
from tapeproxy.tapes.leaves import leaf_texts
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.provenance import Provenance, Surroundings, guess, why
from tapeproxy.tapes.violations import Drift, Violation

_MOST = 10
"""Violations that are explained, and drifts; later ones mostly follow from the first."""
_MOST_DIFFERENCES = 8
_LEAST_TIME, _TIMES = 30.0, 20.0
"""The second run may take as many seconds, or as many times as long as the first: telling of a read takes 20 us."""
_POSITION = "clock reads before it"
type _Found = Violation | Drift


async def explain_by_reads(settings: ReplaySettings, replayed: Replayed) -> tuple[Provenance, ...]:
    """Run a replay again and say which reads flowed into its differences. Empty where there is nothing to explain.

    Needs the shim: without (`settings.shim`) nothing is run. Raises what `replay` raises.
    """
    asked = _to_explain(replayed)
    if not asked or not settings.shim:
        return ()
    limit = max(_LEAST_TIME, _TIMES * replayed.took_ns / 1e9)
    second = _Second(settings)
    traced = replace(settings, call_sites=True, timeout=min(limit, settings.timeout or limit), on_drift="report")
    ended = await replay(traced, second.notice, second.begin)
    stopped = None if ended.outcome is None else ended.outcome.stopped_by
    return tuple(found for key, one in asked for found in second.explain(key, one, stopped == "timeout"))


@dataclass(frozen=True, slots=True)
class _Heard:
    """A violation or drift of the second run, and how many reads had been heard of then."""

    found: _Found
    reads: int


class _Second:
    """The second run: what was noticed in it, and when."""

    def __init__(self, settings: ReplaySettings) -> None:
        self._environment = settings.environment
        self._session: Replaying | None = None
        self._count: Counter[Any] = Counter()
        self._heard: dict[Any, _Heard] = {}

    def begin(self, session: Replaying) -> None:
        """The run is about to start."""
        self._session = session

    def notice(self, found: _Found) -> None:
        """Something was found."""
        heard = _Heard(found, len(self._trace))
        for key in _keys(found, self._count):
            self._heard.setdefault(key, heard)

    @property
    def _trace(self) -> TraceLines:
        shims = None if self._session is None else self._session.shims
        return TraceLines() if shims is None or shims.trace is None else shims.trace

    @property
    def _tape(self) -> Tape:
        assert self._session is not None  # nothing is found before it begins
        return self._session.tape

    def explain(self, key: Any, found: _Found, stopped: bool) -> Iterator[Provenance]:
        """Explain something that the first run found. `stopped`: this one was, because it took too long."""
        heard = self._heard.get(key)
        if heard is None:
            yield Provenance(found.request, "difference", None, hint=_STOPPED if stopped else _NOT_AGAIN)
            return
        tag = heard.found.tag
        lane, n = (None, None) if tag is None else (tag.lane, tag.n)
        trace = Trace(self._trace.reads(heard.reads, lane, n))
        first = {one.where: one for one in _differences(found)}
        full = self._full(heard.found)
        again = {one.where: one for one in _differences(heard.found)}
        for where in [*first][:_MOST_DIFFERENCES]:
            difference = again.get(where)
            if difference is None:
                yield Provenance(found.request, where, first[where].asked, hint=_NOT_AGAIN)
            elif where == CLOCK_READS and lane is not None:
                yield self._past_end(difference, heard, lane, found.request)
            elif where == _POSITION and lane is not None and n is not None:
                yield self._position(difference, trace, lane, n, found.request)
            else:
                changed = difference.asked != first[where].asked
                yield self._flow(full.get(where, difference), trace, lane, found.request, changed)

    def _flow(self, one: Difference, trace: Trace, lane: str | None, request: str, changed: bool) -> Provenance:
        sources = trace.sources(one.taped, one.asked, lane)
        hint = why(sources, seeded=self._tape.head.seed is not None)
        if not sources:
            hint = "; ".join([guess(one.taped, one.asked, changed, self._around()), *trace.gaps()])
        return Provenance(request, one.where, _excerpt(one.asked), sources, hint=hint)

    def _position(self, one: Difference, trace: Trace, lane: str, n: int, request: str) -> Provenance:
        """A lane that read the clock another number of times than on the tape."""
        sites = trace.sites(lane, n)
        did = "these places did" if sites else "no place did that the shim saw"
        counts = f"on the tape the lane had read the clock {one.taped} times, now {one.asked}"
        hint = f"{counts}; since its request before, {did}"
        return Provenance(request, one.where, one.asked, sites=sites, hint=hint)

    def _past_end(self, one: Difference, heard: _Heard, lane: str, request: str) -> Provenance:
        """A lane that read on past its end on the tape."""
        everything = self._trace.reads(len(self._trace), None, None)
        n = self._trace.requests_at(lane, heard.reads)
        return self._position(one, Trace(everything), lane, n, request)

    def _full(self, found: _Found) -> Mapping[str, Difference]:
        """The differences in bodies, uncut, by place."""
        nearest = None if isinstance(found, Drift) or found.explanation is None else found.explanation.nearest
        if isinstance(found, Drift) or found.ask is None or nearest is None:
            return {}
        taped = leaf_texts(_ask(self._tape.exchanges[nearest - 1]).identity().body)
        asked = leaf_texts(found.ask.identity().body)
        return {
            one.where: Difference(one.where, _whole(one, taped), asked[one.where])
            for one in _differences(found)
            if one.where in asked and one.asked is not None
        }

    def _around(self) -> Surroundings:
        home, tmpdir = self._environment.get("HOME", ""), self._environment.get("TMPDIR", "")
        folders = (os.getcwd(), home, tmpdir, self._tape.head.tmpdir or "")  # noqa: PTH109 - a text is wanted
        return Surroundings(frozenset(self._trace.pids), folders, socket.gethostname())


_NOT_AGAIN = "the difference did not come again in a second replay: it is not determined by what is on the tape"
_STOPPED = "the second replay took too long and was stopped before it came there"


def _to_explain(replayed: Replayed) -> list[tuple[Any, _Found]]:
    """What of a replay is to be explained, each with the key by which it is known again."""
    count: Counter[Any] = Counter()
    both: list[_Found] = [*replayed.violations, *replayed.drifts]
    keyed = [(_keys(found, count)[0], found) for found in both]
    found = [(key, one) for key, one in keyed if _differences(one)]
    violations = [one for one in found if isinstance(one[1], Violation)][:_MOST]
    return violations + [one for one in found if isinstance(one[1], Drift)][:_MOST]


def _keys(found: _Found, count: Counter[Any]) -> list[Any]:
    """By what it may be known in another run, the surest first: lane and number, or being the n-th of its kind.

    Not by its request, which may be what differs. A run without the shim has no lanes.
    """
    kind = found.kind if isinstance(found, Violation) else found.what
    number = count[kind]
    count[kind] += 1
    keys: list[Any] = [(kind, number)]
    if isinstance(found, Violation) and found.tag is not None:
        keys.insert(0, (kind, found.tag.lane, found.tag.n))
    return keys


def _differences(found: _Found) -> tuple[Difference, ...]:
    if isinstance(found, Drift):
        return found.differences
    # Of a request whose answers are used up, the nearest other one tells nothing.
    return () if found.explanation is None or found.kind != "miss" else found.explanation.differences


def _ask(exchange: Exchange) -> Ask:
    request = exchange.request
    return Ask(request.method, request.url, request.headers, exchange.request_body, request.inside, request.lane)


def _whole(one: Difference, taped: Mapping[str, str]) -> str | None:
    """The taped text that a difference gives an excerpt of; in lists of another length it has another index."""
    if one.taped is None:
        return None
    excerpt = one.taped.strip("…")
    candidates = (taped.get(one.where, ""), *taped.values())
    return next((text for text in candidates if excerpt in text), one.taped)


def _excerpt(text: str | None) -> str | None:
    return text if text is None or len(text) <= 200 else text[:199] + "…"
