"""Decides about each request of a fork: an answer of the tape's, out into the world, or refused. No socket, no clock.

What the tape answers is the Replayer's decision, as in a replay. Here it gets a ticket, by which the tape server finds
it again when the wire has sent the request there.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import reduce

from tapeproxy.proxy.decisions import Asked, Decision, Upstream
from tapeproxy.proxy.joining import outlook
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.cuts import UNLANED, rows_of
from tapeproxy.tapes.duplex import overlaps
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.forkplan import ForkPlan, Outgoing
from tapeproxy.tapes.forkverdict import TICKET_HEADER, Verdict
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.lanes import LANE_HEADER, LaneTag, format_tag
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.records import End, Request
from tapeproxy.tapes.refusals import SOURCE, is_refused
from tapeproxy.tapes.violations import Violation

_LONG = 260
"""Bytes of a request line that are shown."""


class ForkJudge:
    """The decisions of one fork of `parent`. `replayer` has what the plan keeps of it.

    `drain` is called before each decision, so that what the shims have said until then is known. `placeholders` are
    values that must not be sent. `reused`, `mutated` and `live_of`, by lane, count what was decided. `left` is told of
    live requests of an update: the lane, and which of its requests that is.
    """

    def __init__(
        self,
        parent: Tape,
        plan: ForkPlan,
        replayer: Replayer,
        drain: Callable[[], None],
        placeholders: Iterable[str] = (),
    ) -> None:
        self.reused = 0
        self.mutated = 0
        self.live_of: Counter[str] = Counter()
        self.left: Callable[[str, int], object] | None = None
        self._plan = plan
        self._replayer = replayer
        self._drain = drain
        self._placeholders = {name.encode() for name in placeholders}
        rows = rows_of(parent)
        self._places = {row.number: (lane, row.reads) for lane, of_lane in rows.items() for row in of_lane}
        self._numbers = {(lane, row.place): row.number for lane, of_lane in rows.items() for row in of_lane}
        self._both = {
            (one.request.method, parse_target(one.request.url).path)
            for one in outlines(parent.exchanges)
            if overlaps(one)
        }
        self._refused: set[int] = set()
        self._ends: dict[int, End] = {}
        for one in outlines(replayer.tape.exchanges):
            if is_refused(one.request):
                self._refused.add(one.number)
            if one.end is not None:
                self._ends[one.number] = one.end
        self._ahead: dict[str, int] = {}
        self._found: int | None = None
        self._tickets: dict[int, Decision] = {}
        self._last = 0
        self._under_way = 0
        replayer.witness = self._witness

    def judge(self, request: Request, tag: LaneTag | None, port: int) -> Verdict:
        """Decide about a request of the agent's."""
        self._drain()
        assert isinstance(request.body, bytes)
        if self._is_inside(request, tag):
            return Verdict(None)
        asked = self._asked(request, tag, port)
        decision, number = self._decide(asked)
        if isinstance(decision, Upstream):
            return self._send_out(request, tag)
        if isinstance(decision, Violation):
            return self._ticket(decision, SOURCE)
        if number is None:  # a server of the run that is not up: the connection is closed
            return self._ticket(decision, "reused")
        of_lane, reads = self._places[number]
        if tag is not None and of_lane in (tag.lane, UNLANED):
            self._ahead[tag.lane] = tag.reads - reads
        if number in self._refused:
            return self._ticket(decision, SOURCE, self._ends.get(number))
        changed = number in self._plan.mutated
        self.mutated += changed
        self.reused += not changed
        return self._ticket(decision, "mutated" if changed else "reused", self._ends.get(number))

    def judge_call(self, request: Request, tag: LaneTag | None, port: int) -> Verdict | None:
        """Decide about a call of gRPC by its head, where what it will say makes no difference; None: when it is whole.

        Who speaks while the other does would wait for ever: such a call is not answered from the tape.
        """
        self._drain()
        asked = self._asked(request, tag, port)
        found = outlook(self._replayer, asked)
        both = (request.method, parse_target(request.url).path) in self._both
        edited = bool(self._edits(UNLANED if tag is None else tag.lane, tag))
        if found == "inside":
            return Verdict(None) if both else None
        if found == "live" and not edited:
            return self._send_out(request, tag)
        if found == "unknown":
            return self.judge(request, tag, port)
        if not both:
            return None
        why = "edited on its way" if found == "live" else "answered from the tape"
        what = f"a call in which both sides speak at once can't be {why} in a fork, and went nowhere"
        line = f"{request.method.decode('latin-1')} {self._replayer.redactor.url(request.url).decode('latin-1')}"
        return self._ticket(self._replayer.violate(Violation("miss", line, what, tag=tag)), SOURCE)

    def refused(self, line: bytes, reason: str) -> None:
        """The wire could not read a request: nobody knows whether the tape has it."""
        shown = self._replayer.redactor.url(line[:_LONG]).decode("utf-8", "backslashreplace")
        what = f"a request could not be read, and went nowhere: {reason.partition(':')[0]}"
        self._replayer.violate(Violation("malformed", shown, what))

    def kept_off(self, host: str, port: int, line: bytes) -> Violation | None:
        """The violation of calling a host that the parent's recording let pass by; None where it may be called."""
        shown = self._replayer.redactor.url(line[:_LONG]).decode("utf-8", "backslashreplace")
        found = self._replayer.passed_by(host, port, shown)
        return None if found is None else self._replayer.violate(found)

    def speaks_http2(self, host: str, port: int) -> bool | None:
        """Whether the tape's agent spoke HTTP/2 with a server over TLS; None: it did not speak with it."""
        name = f"[{host}]" if ":" in host else host
        return self._replayer.speaks_http2(f"https://{name}:{port}".encode("latin-1", "replace"))

    def ended(self, verdict: Verdict) -> None:
        """The exchange is over."""
        self._under_way -= verdict.source == "live"
        if verdict.instead is not None:
            self._replayer.order.passed(verdict.instead)

    def look(self) -> None:
        """Hear the shims. A live call that is under way is progress, for those who wait until its lane goes on."""
        self._drain()
        if self._under_way:
            self._replayer.order.progress += 1

    def redeem(self, asked: Asked) -> Decision:
        """The decision that a request to the tape server has the ticket of, once."""
        ticket = next((value for name, value in asked.headers if name.lower() == TICKET_HEADER), b"")
        found = self._tickets.pop(int(ticket), None) if ticket.isdigit() else None
        if found is None:
            what = "a request came to the tape server of a fork that was not sent there"
            return self._replayer.violate(Violation("internal", asked.url.decode("latin-1"), what))
        return found

    def _decide(self, asked: Asked) -> tuple[Decision, int | None]:
        """The replayer's decision, and the exchange that it gives the answer of."""
        self._found = None
        decision = self._replayer.decide(asked)
        return decision, self._found

    def _is_inside(self, request: Request, tag: LaneTag | None) -> bool:
        """Whether it goes to a server of the run itself, which answers live, as in a recording."""
        try:
            target = parse_target(request.url)
        except ValueError:
            return False
        if not is_loopback(target.host) or not self._replayer.owns_port(target.port):
            return False
        assert isinstance(request.body, bytes)
        lane = None if tag is None else tag.lane
        headers, body = self._replayer.redactor.message(request.headers, request.body)
        url = self._replayer.redactor.url(request.url)
        # So that nobody else gets its answer, and it does not count as left over.
        self._replayer.index.take(
            Ask(request.method, url, headers, body, inside=True, lane=lane, reading=self._replayer.reading)
        )
        return True

    def _asked(self, request: Request, tag: LaneTag | None, port: int) -> Asked:
        headers = request.headers
        assert isinstance(request.body, bytes)
        if tag is not None:
            # A lane that polled longer counts on; its tape does not.
            ahead = self._ahead.get(tag.lane, 0)
            awake = None if tag.awake is None else max(tag.awake - ahead, 0)
            tag = tag._replace(reads=max(tag.reads - ahead, 0), awake=awake)
            headers = (*headers, (LANE_HEADER, format_tag(tag)))
        http10 = request.http == "HTTP/1.0"
        return Asked(request.method, request.url, headers, request.body, http10, port)

    def _send_out(self, request: Request, tag: LaneTag | None) -> Verdict:
        lane = UNLANED if tag is None else tag.lane
        edits = self._edits(lane, tag)
        if self._placeholders and self._holds_placeholder(request, edits):
            what = "a live request holds the placeholder of a secret that is not set here, and was not sent"
            line = f"{request.method.decode('latin-1')} {self._replayer.redactor.url(request.url).decode('latin-1')}"
            return self._ticket(self._replayer.violate(Violation("placeholder", line, what, tag=tag)), SOURCE)
        self.live_of[lane] += 1
        self._under_way += 1
        if self.left is not None:
            self.left(lane, 0 if tag is None else tag.n)
            return Verdict("live", instead=None if tag is None else self._numbers.get((lane, tag.n)))
        if not edits:
            return Verdict("live")
        return Verdict("live", edit=lambda sent: reduce(lambda one, edit: edit(one), edits, sent))

    def _edits(self, lane: str, tag: LaneTag | None) -> list[Outgoing]:
        """The edits of a live request: that of all, and that of the one which it stands for on the tape."""
        number = None if tag is None else self._numbers.get((lane, tag.n))
        found = [self._plan.outgoing.get(0), None if number is None else self._plan.outgoing.get(number)]
        return [edit for edit in found if edit is not None]

    def _holds_placeholder(self, request: Request, edits: Iterable[Outgoing]) -> bool:
        sent = reduce(lambda one, edit: edit(one), edits, request)
        assert isinstance(sent.body, bytes)
        places = (sent.url, sent.body, *(value for _, value in sent.headers))
        return any(name in place for name in self._placeholders for place in places)

    def _ticket(self, decision: Decision, source: str, ending: End | None = None) -> Verdict:
        self._last += 1
        self._tickets[self._last] = decision
        return Verdict(source, self._last, ending)

    def _witness(self, step: Step) -> None:
        self._found = step.exchange
