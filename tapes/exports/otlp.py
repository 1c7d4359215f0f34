"""A tape as spans of OpenTelemetry, in the JSON of OTLP: one trace a tape, a span an exchange.

The run is the root. Lanes are spans within it, a call of a tool is the span of the lane that its body ran in, and what
a lane asked is within the lane. What an exchange knew of another lane is a link, where the tape's edges tell it.
https://opentelemetry.io/docs/specs/otlp/
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import orjson
from blake3 import blake3

import tapeproxy
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports import Lost
from tapeproxy.tapes.exports.genai import chat, embeddings, http, tool
from tapeproxy.tapes.exports.otlpvalues import Attributes, attributes
from tapeproxy.tapes.exports.remarks import counted, ending, last_moment, sockets
from tapeproxy.tapes.hints import Call
from tapeproxy.tapes.hints import calls as tool_calls
from tapeproxy.tapes.imports.own import begun_ns
from tapeproxy.tapes.lanes import has_edges
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.records import Json, Lane

_INTERNAL: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2
_MOST_SPANS: Final = 256
_MOST_BYTES: Final = 2 << 20
"""Of a request to a collector: many refuse more than 4 MiB."""


def export(tape: Tape, source: str, lost: Lost, *, content: bool = False) -> Iterator[bytes]:
    """One line of JSON, as collectors read and write files; `content`: with what was said. `lost` as elsewhere."""
    trace = _Trace(tape, source, content)
    opening, closing = trace.frame
    yield opening
    for at, span in enumerate(trace.spans()):
        yield (b"," if at else b"") + orjson.dumps(span)
    yield closing + b"\n"
    trace.tell(lost)


def requests(tape: Tape, source: str, lost: Lost, *, content: bool = False) -> Iterator[tuple[int, bytes]]:
    """The same in pieces for a collector: how many spans, and the body of a request."""
    trace = _Trace(tape, source, content)
    opening, closing = trace.frame
    waiting: list[bytes] = []
    size = 0
    for span in chain(map(orjson.dumps, trace.spans()), [None]):
        full = len(waiting) == _MOST_SPANS or size + len(span or b"") > _MOST_BYTES
        if waiting and (span is None or full):
            yield len(waiting), opening + b",".join(waiting) + closing
            waiting, size = [], 0
        if span is not None:
            waiting.append(span)
            size += len(span)
    trace.tell(lost)


@dataclass
class _Extent:
    """When something began and ended, as far as it is known from what is within it; ns after the tape's start."""

    begin: int | None = None
    end: int = 0

    def hold(self, begin: int, end: int) -> None:
        self.begin = begin if self.begin is None else min(self.begin, begin)
        self.end = max(self.end, end)


@dataclass
class _Trace:
    tape: Tape
    source: str
    content: bool
    untold: int = 0
    _extents: dict[str, _Extent] = field(default_factory=dict[str, _Extent])

    def __post_init__(self) -> None:
        head, seal = self.tape.head, self.tape.seal
        self._begun = begun_ns(head)
        run = (seal.trace if seal is not None else "", head.started_at, *head.argv)
        self._id = blake3("\0".join(run).encode("utf-8", "surrogateescape")).hexdigest(16)
        self._root = self._span_id("run")
        self._lanes: dict[str, Lane] = {}
        for lane in self.tape.lanes:
            self._lanes[lane.id] = lane if lane.name or lane.id not in self._lanes else self._lanes[lane.id]
        self._tools = {call.lane: call for call in tool_calls(self.tape) if call.value.what == "tool"}
        self._linked = _Links(self.tape)

    @property
    def frame(self) -> tuple[bytes, bytes]:
        """What stands before and after the spans."""
        head = self.tape.head
        resource = {
            "service.name": _service(head.argv) or self.source,
            "host.name": head.host or None,
            "process.runtime.version": head.python or None,
            "process.command_args": list(head.argv) if self.content and head.argv else None,
        }
        scope = {"name": "tapeproxy", "version": tapeproxy.__version__}
        before = {
            "resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"scope": scope}]}]
        }
        text = orjson.dumps(before)
        return text.removesuffix(b"}]}]}") + b',"spans":[', b"]}]}]}"

    def spans(self) -> Iterator[Json]:
        """Exchanges, then calls of tools, then lanes and the run, whose times are those of what is within them."""
        for exchange in self.tape.exchanges:
            yield self._exchange(exchange)
        for call in self._tools.values():
            yield self._tool(call)
        for lane in sorted(self._extents, key=len, reverse=True):
            if lane and lane not in self._tools and not self._is_root(lane):
                yield self._lane(lane)
        yield self._run()

    def tell(self, lost: Lost) -> None:
        """Say what is not in the trace."""
        others = sum(value.what != "tool" for _, value in self.tape.values)
        if others:
            lost(f"left out: {counted(others, 'value')} that the agent had from files, programs or messages")
        if not self.content:
            lost("left out: what was said to models and tools (--content)")
        for sentence in sockets(self.tape):
            lost(sentence)

    def _exchange(self, exchange: Exchange) -> Json:
        name, told = chat(exchange, content=self.content) or embeddings(exchange) or http(exchange)
        request = exchange.request
        own: dict[str, Any] = {
            "tapeproxy.exchange": exchange.number,
            "tapeproxy.ending": ending(exchange.end),
            "tapeproxy.inside": True if request.inside else None,
        }
        span = self._span(self._span_id(f"exchange {exchange.number}"), name, dict(told) | own, kind=_CLIENT)
        links = [self._span_id(f"exchange {number}") for number in self._linked.of(exchange.number)]
        if links:
            span["links"] = [{"traceId": self._id, "spanId": one} for one in links]
        return self._placed(span, request.lane or "", request.t, last_moment(exchange))

    def _tool(self, call: Call) -> Json:
        name, told = tool(call, content=self.content)
        span = self._span(self._lane_id(call.lane), name, told)
        within = self._extents.get(call.lane, _Extent())
        data = call.value.data
        began, ended = (value if isinstance(value := data.get(key), int) else None for key in ("began", "ended"))
        begin = call.value.t if began is None else began
        end = max(begin, call.value.t if ended is None else ended)
        within.hold(begin, end)
        return self._placed(span, call.lane.rpartition("/")[0], within.begin or 0, within.end)

    def _lane(self, lane: str) -> Json:
        known = self._lanes.get(lane)
        is_agent = known is not None and known.asked is not None and bool(known.name)
        told: dict[str, Any] = {"tapeproxy.lane": lane}
        if is_agent and known is not None:
            name = f"invoke_agent {known.name}"
            told |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": known.name}
        else:
            words = (known.what, known.name or lane) if known is not None else ("lane", lane)
            name = " ".join(filter(None, words))
        extent = self._extents[lane]
        span = self._span(self._lane_id(lane), name, told)
        return self._placed(span, lane.rpartition("/")[0], extent.begin or 0, extent.end)

    def _run(self) -> Json:
        tape, extent = self.tape, self._extents.get("", _Extent())
        code = None if tape.exit is None else tape.exit.code
        ended = outcome(tape.seal, tape.exit)
        told = {"tapeproxy.tape": self.source, "tapeproxy.outcome": ended, "process.exit.code": code}
        failed = tape.seal is None or (tape.exit is not None and code != 0)
        told["error.type"] = ended if failed else None
        span = self._span(self._root, f"run {_service(tape.head.argv) or self.source}", told)
        return self._timed(
            span, min(0, extent.begin or 0), max(extent.end, tape.ended, 0 if tape.exit is None else tape.exit.t)
        )

    def _span(self, span_id: str, name: str, told: Attributes, *, kind: int = _INTERNAL) -> Json:
        span: Json = {"traceId": self._id, "spanId": span_id, "name": name, "kind": kind}
        error = told.get("error.type")
        return span | {"attributes": attributes(told), "status": {"code": _ERROR, "message": error} if error else {}}

    def _placed(self, span: Json, lane: str, begin: int, end: int) -> Json:
        """The span within its lane, and the lane's own extent with it, and those of the lanes around that."""
        self._extents.setdefault("", _Extent()).hold(begin, end)
        around = lane
        while around:
            self._extents.setdefault(around, _Extent()).hold(begin, end)
            around = around.rpartition("/")[0]
        return self._timed({**span, "parentSpanId": self._lane_id(lane)}, begin, end)

    def _timed(self, span: Json, begin: int, end: int) -> Json:
        times = {"startTimeUnixNano": str(self._begun + begin), "endTimeUnixNano": str(self._begun + max(begin, end))}
        return span | times

    def _is_root(self, lane: str) -> bool:
        """Whether a lane is the run itself: the first one, that no agent's name was given to."""
        known = self._lanes.get(lane)
        return not lane or ("/" not in lane and (known is None or known.asked is None or not known.name))

    def _lane_id(self, lane: str) -> str:
        return self._root if self._is_root(lane) else self._span_id(f"lane {lane}")

    def _span_id(self, name: str) -> str:
        return blake3(f"{self._id} {name}".encode("utf-8", "surrogateescape")).hexdigest(8)


class _Links:
    """Of each exchange: the last ones of other lanes that it newly knew of. Empty where the tape has no edges."""

    def __init__(self, tape: Tape) -> None:
        self._order = Causality.of(tape) if has_edges(tape.head) else None
        self._lanes: dict[str, list[int]] = {}
        self._before: dict[int, int] = {}
        for number in () if self._order is None else self._order.order():
            lane = self._lanes.setdefault(self._order.lane(number), [])  # type: ignore[union-attr]  # there is one
            if lane:
                self._before[number] = lane[-1]
            lane.append(number)

    def of(self, number: int) -> list[int]:
        """The numbers of those exchanges."""
        order = self._order
        if order is None:
            return []
        before = self._before.get(number)
        known, knew = order.clock(number), {} if before is None else order.clock(before)
        found: list[int] = []
        for lane in sorted(lane for lane in known if lane != order.lane(number) and known[lane] != knew.get(lane)):
            last = next((one for one in reversed(self._lanes.get(lane, [])) if order.before(one, number)), None)
            if last is not None and (before is None or not order.before(last, before)):
                found.append(last)
        return found


def _service(argv: tuple[str, ...]) -> str:
    """What to call the agent: its script, or its program."""
    words = [word for word in argv if not word.startswith("-")]
    names = [word.rpartition("/")[2] for word in words]
    scripts = [name for name in names if name.endswith((".py", ".js", ".mjs", ".ts"))]
    return (scripts or names or [""])[0]
