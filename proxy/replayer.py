"""The decisions of a replay: which answer each request gets, and what counts against the run. No socket, no clock.

What is asked and decided are values of `decisions`. One long class, for every request passes all of it, in an order
that matters; what only some replays need is in modules of its own (`injecting`, `joining`, `conversation`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tapeproxy.proxy.decisions import Asked, Decision, Held, Joined, Live, Upstream
from tapeproxy.proxy.findings import Findings, compared, explained, missed, parting
from tapeproxy.tapes.answers import SWITCHED, Answer, dropped, flaw, render
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.fronts import Fronted, Fronts
from tapeproxy.tapes.hosts import MCP_STDIO, is_loopback, is_mcp_stdio
from tapeproxy.tapes.identity import origin_of, parse_target
from tapeproxy.tapes.interleaving import Wait
from tapeproxy.tapes.lanes import LaneTag, split_tag
from tapeproxy.tapes.largebodies import LARGE, LargeBody, is_stand_in, stand_in
from tapeproxy.tapes.machine import Fact, Facts, facts_of, marks, usable
from tapeproxy.tapes.matching import Ask, Hit, Index, Miss
from tapeproxy.tapes.order import CompletionOrder
from tapeproxy.tapes.outcomes import broke_off
from tapeproxy.tapes.passing import passes
from tapeproxy.tapes.reading import Reading, replay_reading, taped_reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.refusals import is_refused, refusal
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.conversation import Conversation, Unsaid
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.duplex import Duplex
    from tapeproxy.tapes.faults import Faults
    from tapeproxy.tapes.forkplan import ForkPlan

_URLS = 1024
_COMMANDS = f"{MCP_STDIO}/".encode()
"""Redacted URLs that are kept: an agent asks the same few over and over."""


@dataclass(slots=True)
class Replayer:
    """One replay of one tape. `owns_port` says whether a process of the run listens on a loopback port.

    `noticed` is called with every violation and drift as it happens, `witness` with every request to the world,
    `untagged` with the client's port before a request without a lane is decided, `serving` with our port, 0 and
    `LANE#n` when a request is passed on to a server of the run. `keeps_order`: tasks that
    complete are told to `order`, so answers may wait for them. `rules` come after the tape's own, which `taped_rules`
    False leaves out. `here`: facts of this machine. `fork`: what may go out to the world, where the tape is what a fork
    keeps of its own, and `anew` what it asks anew. `by_position_not_by_content`: see `tapes.positional`; for `minimize`
    alone. `absent`: whether a lane of the tape is not to run. `known`: of a tape that is still being read, how many
    exchanges are there; see `is_certain`. `fronts` are those that are open. Raises ValueError for
    a tape that can't be replayed.
    """

    tape: Tape
    redactor: Redactor
    owns_port: Callable[[int], bool]
    noticed: Callable[[Violation | Drift], None]
    served: int = 0
    live: int = 0
    findings: Findings = field(init=False)
    conversations: "list[Conversation]" = field(default_factory=list)
    index: Index = field(init=False)
    by_lane: bool = True
    by_position_not_by_content: bool = False
    faults: "Faults | None" = None
    witness: Callable[[Step], None] | None = None
    untagged: Callable[[int], None] = lambda _port: None
    serving: Callable[[int, int, str], None] = lambda _port, _number, _request: None
    keeps_order: bool = False
    order: CompletionOrder = field(init=False)
    rules: tuple[Rule, ...] = ()
    taped_rules: bool = True
    absent: Callable[[str | None], bool] = lambda _lane: False
    here: Facts = field(default_factory=dict[Fact, tuple[str, ...]])
    fork: "ForkPlan | None" = None
    anew: tuple[Exchange, ...] = ()
    known: int | None = None
    fronts: Fronts = field(default_factory=Fronts)
    reading: Reading = field(init=False)
    begun: bool = False
    _redact_url: Callable[[bytes], bytes] = field(init=False)
    _redact_lane: Callable[[str], str] = field(init=False)
    _taped_facts: Facts = field(init=False)
    _branched: bool = False
    _fronted: Fronted | None = None

    def __post_init__(self) -> None:
        self.findings = Findings(self.tape, self.noticed)
        self._read()
        self.order = self._ordered()
        self._redact_url = lru_cache(_URLS)(self.redactor.url)
        self._redact_lane = lru_cache(_URLS)(self.redactor.text)

    def learn(self, version: str) -> None:
        """Take note of the version of a Python of the run, which counts for requests if it comes before the first."""
        known = self.here.get("python", ())
        if "python" in self._taped_facts and version not in known and not self.begun:
            self.here = usable({**self.here, "python": (*known, version)})
            self._read()

    def extend(self, known: int) -> None:
        """So many exchanges are there now. Raises ValueError for one that can't be replayed."""
        self.known = known
        self.index.extend(known)

    def complete(self, here: Facts) -> None:
        """The tape has been read to its end. Raises ValueError as the making of a replayer does."""
        self.known = None
        self.index.extend(len(self.tape.exchanges))
        self.order = self._ordered()
        if facts_of(self.tape.head, self.tape.notes, whole=self.tape.seal is not None) != self._taped_facts:
            used = {exchange.number for exchange in self.index.used()}
            self.here = here
            self._read()
            self.index.use(used)

    def passed_by(self, host: str, port: int, line: str) -> Violation | None:
        """The violation of calling a host that passed the recording by; None where it did not."""
        if not passes(self.tape.head.no_tape, host, port):
            return None
        option = "--allow" if self.fork is None else "--no-tape"
        what = (
            f"the recording let {host} pass by untaped (--no-tape), so the tape has no answer of it; "
            f"{option} {host}:{port} has the agent call it"
        )
        return Violation("no-tape", line, what)

    def is_certain(self, asked: Asked) -> bool:
        """Whether what `decide` says now is what it would say if the tape had been read to its end."""
        if self.known is None:
            return True
        if (led := self.fronts.led(asked.url)) is not None:
            asked = asked._replace(url=led.url, headers=led.there(asked.headers))
        ask, _ = self.read(asked)
        try:
            inside = is_loopback(parse_target(ask.url).host)
        except ValueError:
            return True
        return not inside and self.index.is_certain(ask)

    def speaks_http2(self, origin: bytes) -> bool | None:
        """Whether the agent spoke HTTP/2 with this server (scheme and authority) when it was recorded.

        None: it did not speak with it, as far as the tape has been read.
        """
        try:
            return self.index.speaks_http2(origin_of(self._redact_url(origin + b"/")))
        except ValueError:
            return None

    def decide(self, asked: Asked) -> Decision:
        """What to do with a request."""
        asked = self.lead(asked)
        self.begun = True
        ask, tag = self.read(asked)
        if tag is None:
            self.untagged(asked.port)
            ask = ask._replace(reading=self.reading)  # which depends on what was told there
        try:
            target = parse_target(ask.url)
        except ValueError as error:
            return self.violate(Violation("malformed", summary_line(ask), f"the request cannot be read: {error}"))
        if self.tape.head.no_tape and (passed := self.passed_by(target.host, target.port, summary_line(ask))):
            return self.violate(passed)
        loopback = is_loopback(target.host)
        if loopback and self.owns_port(target.port):
            return self._live(target.host, target.port, self.redacted(ask, asked.body), tag)
        if tag is not None:
            self.order.asked(tag.lane)
        if self.faults is not None:
            from tapeproxy.proxy.injecting import inject  # most replays have no faults

            decision = inject(self, self.faults, self.redacted(ask, asked.body), (target, tag), asked.http10)
            if decision is not None:
                return decision
        # A message to an MCP server on stdio can't go out: there is no such host.
        goes_out = self.may_go_out(tag) and not is_mcp_stdio(target.host)
        if goes_out and self.fork is not None and self.fork.asks_anew(tag):
            return Upstream()
        if hit := self.index.take_exact(ask):
            return self.serve(hit.exchange, ask, tag, asked.http10)
        ask = self.redacted(ask, asked.body)
        found = self._take(ask)
        if isinstance(found, Hit):
            return self.serve(found.exchange, ask, tag, asked.http10)
        if loopback and self.index.knows(self._inside(ask)):
            # A server of the run that is not up yet, or down again: what a client sees then is a closed connection.
            return dropped()
        if goes_out:
            return Upstream()
        self._witness(None, ask, tag)
        return self.miss(found, tag, asked.body)

    def lead(self, asked: Asked) -> Asked:
        """The request as it is meant, if it came by a front; its answer leads back there."""
        self._fronted = self.fronts.led(asked.url)
        if self._fronted is None:
            return asked
        return asked._replace(url=self._fronted.url, headers=self._fronted.there(asked.headers))

    def read(self, asked: Asked) -> tuple[Ask, LaneTag | None]:
        """The request and its lane, as they are looked for: redacted, but for the body.

        That is redacted when it matters: what is the same as on the tape, byte for byte, needs no more care.
        """
        tag, headers = split_tag(asked.headers)
        if tag is not None:
            tag = tag._replace(lane=self._redact_lane(tag.lane))  # as it is on the tape
        if self.reading.rules and self.reading.rules.headers():
            headers = self.redactor.headers(headers)
        lane = None if tag is None else tag.lane
        body = asked.body
        if not isinstance(body, bytes):
            body = body.stand_in
        elif len(body) > LARGE:
            body = stand_in(headers, (body,))
        return Ask(asked.method, self._redact_url(asked.url), headers, body, lane=lane, reading=self.reading), tag

    def join(self, asked: Asked, said: bytes) -> Joined | Violation | None:
        """What to do with a call of gRPC of which more is to come: see `joining.join`."""
        from tapeproxy.proxy.joining import join  # most replays have no such calls

        return join(self, asked, said)

    def parted(self, asked: Asked, duplex: "Duplex", difference: "Difference") -> Violation:
        """A call went on otherwise than the taped one that it was joined with."""
        from tapeproxy.proxy.joining import parted

        return parted(self, asked, duplex, difference)

    @property
    def injected(self) -> bool:
        """Whether a request got a fault: from then on the agent goes its own way."""
        return self.faults is not None and bool(self.faults.injected)

    def compare(self, live: Live, status: int, headers: Headers, body: bytes) -> None:
        """Compare the answer of a server of the run with what the tape heard from it."""
        drift = compared(live, status, headers, self.redactor.body(headers, body), self.reading)
        if drift is not None:
            self.drift(drift)

    @property
    def violations(self) -> list[Violation]:
        """What was found so far, in order."""
        return self.findings.violations

    @property
    def drifts(self) -> list[Drift]:
        """What was found so far, in order."""
        return self.findings.drifts

    def violate(self, violation: Violation) -> Violation:
        """Count a violation and tell whoever listens."""
        return self.findings.violate(violation)

    def drift(self, drift: Drift) -> None:
        """Count a drift and tell whoever listens."""
        self.findings.drift(drift)

    def _take(self, ask: Ask) -> Hit | Miss:
        """The next answer for this request: of its own lane, or, in an update, of whichever has it."""
        found = self.index.take(ask)
        if isinstance(found, Hit) or found.used or found.elsewhere is None:
            return found
        borrows = self.fork is not None and self.fork.borrows
        return self.index.take(ask._replace(lane=found.elsewhere)) if borrows else found

    def may_go_out(self, tag: LaneTag | None) -> bool:
        """Whether a request that is not on the tape may go out to the world: never before the branch was reached."""
        if self.fork is None or not (self._branched or not self.fork.mutated):
            return False
        return self.fork.may_be_live(tag)

    def _read(self) -> None:
        """Decide how requests are read, and index the tape's."""
        self._taped_facts = facts_of(self.tape.head, self.tape.notes, whole=self.tape.seal is not None)
        taped_reading(self.tape.head)  # a tape whose own rules can't be read has no trace to compare with
        marked = marks(self._taped_facts, self.here)
        self.reading = replay_reading(self.tape.head, self.rules, marked, taped=self.taped_rules)
        self.index = self._indexed()

    def _ordered(self) -> CompletionOrder:
        dones = (done for done, _ in self.tape.dones)
        exchanges = self.tape.exchanges if self.known is None else self.tape.exchanges[: self.known]
        return CompletionOrder(dones, exchanges, self.anew, self.absent)

    def _indexed(self) -> Index:
        if not self.by_position_not_by_content:
            return Index(self.tape.exchanges, by_lane=self.by_lane, reading=self.reading, until=self.known)
        from tapeproxy.tapes.positional import PositionIndex  # no replay of a user's needs it

        return PositionIndex(self.tape.exchanges, reading=self.reading)

    def redacted(self, ask: Ask, body: bytes | LargeBody) -> Ask:
        """The request with its body as it would be on a tape; in clear that is `body`."""
        if not isinstance(body, bytes) or len(body) > LARGE:
            headers = self.redactor.headers(ask.headers)
            return ask._replace(headers=headers, body=stand_in(headers, self._redacted_pieces(headers, body)))
        headers, clean = self.redactor.message(ask.headers, body)
        if ask.url.partition(b"?")[0].endswith(_COMMANDS):
            from tapeproxy.tapes.mcptaping import redacted_command

            clean = redacted_command(self.redactor, body)
        return ask._replace(headers=headers, body=clean)

    def _redacted_pieces(self, headers: Headers, body: bytes | LargeBody) -> Iterator[bytes]:
        pieces = (body,) if isinstance(body, bytes) else body.pieces()
        return self.redactor.pieces(headers, pieces)

    def _inside(self, ask: Ask) -> Ask:
        return ask._replace(inside=True)

    def _live(self, host: str, port: int, ask: Ask, tag: LaneTag | None) -> Live:
        inside = self._inside(ask)
        self.live += 1
        found = self.index.take(inside)
        if isinstance(found, Hit):
            self._check_position(found.exchange, inside, tag)
            return Live(host, port, inside, found.exchange, tag)
        what = "a request to a server of the run is not on the tape"
        explanation = explained(found, self.index)
        self.drift(Drift(summary_line(inside), what, explanation.differences))
        return Live(host, port, inside, None, tag)

    def _check_position(self, exchange: Exchange, ask: Ask, tag: LaneTag | None) -> None:
        """Compare where in its lane the request was made, where that can be what it was."""
        if self.injected:  # an agent that was refused something comes another way to all that follows
            return
        if self.fork is None or self.fork.is_past(tag):
            self.findings.check_position(exchange, ask, tag)

    def _witness(self, exchange: Exchange | None, ask: Ask, tag: LaneTag | None) -> None:
        """Tell what was asked, and the exchange that has the answer."""
        if self.witness is None:
            return
        ask = ask._replace(headers=self.redactor.headers(ask.headers))
        if exchange is not None and ask.body == exchange.request.body:
            ask = ask._replace(body=exchange.request.body)  # of two copies of a conversation one is enough
        self.witness(Step(None if exchange is None else exchange.number, tag, ask))

    def serve(self, exchange: Exchange, ask: Ask, tag: LaneTag | None, http10: bool) -> Decision:
        """Answer with what an exchange heard."""
        self._branched = self._branched or (self.fork is not None and exchange.number in self.fork.mutated)
        self._witness(exchange, ask, tag)
        self._check_position(exchange, ask, tag)
        socket = exchange.response is not None and exchange.response.status == SWITCHED
        if socket and (why := self._hindrance(exchange, ask)) is not None:
            return self.violate(Violation("websocket", summary_line(ask), why, tag=tag))
        if (wrong := flaw(exchange)) is not None:
            what = f"the tape holds a response that is not HTTP: of exchange {exchange.number}, {wrong}"
            return self.violate(Violation("malformed", summary_line(ask), what))
        self.served += 1
        if exchange.end is None:
            what = f"the tape was interrupted during exchange {exchange.number}: its answer is cut off there"
            self.violate(Violation("interrupted", summary_line(ask), what))
        if is_refused(exchange.request):
            self.violate(refusal(exchange, summary_line(ask), tag))
        answer = self._open_socket(exchange, ask, tag) if socket else render(self._seen(exchange), http10=http10)
        if is_mcp_stdio(parse_target(ask.url).host):
            # `tapeproxy mcp` asks message by message, and holds back itself what has to wait.
            answer = answer._replace(parts=(part._replace(due=0) for part in answer.parts))
        if self.wait(exchange) is not Wait.NOT:
            return Held(answer, exchange)
        self.order.delivered(exchange)
        return answer

    def _hindrance(self, exchange: Exchange, ask: Ask) -> str | None:
        from tapeproxy.tapes.wsanswers import hindrance

        return hindrance(exchange, ask.headers)

    def _open_socket(self, exchange: Exchange, ask: Ask, tag: LaneTag | None) -> Answer:
        # Imported late: most runs have no WebSocket.
        from tapeproxy.proxy.conversation import Conversation, Reporter
        from tapeproxy.tapes.wsanswers import opened, opening

        reporter = Reporter(self.violate, self.drift, tag)
        headers = opened(exchange, ask.headers)
        talk = Conversation(exchange, summary_line(ask), headers, self.redactor, self.reading, reporter)
        self.conversations.append(talk)
        return opening(exchange, ask.headers)._replace(talk=talk)

    def unsaid(self) -> "list[Unsaid]":
        """The WebSockets on which the client has said less than on the tape."""
        return [unsaid for talk in self.conversations if (unsaid := talk.unsaid()) is not None]

    def _seen(self, exchange: Exchange) -> Exchange:
        """The exchange as the client is to see it that is being answered."""
        if self._fronted is None or (response := exchange.response) is None:
            return exchange
        return replace(exchange, response=replace(response, headers=self._fronted.back(response.headers)))

    def wait(self, exchange: Exchange) -> Wait:
        """Whether the answer of this exchange has to wait for other flows of the agent, and how."""
        # An agent that was refused something comes another way to all that follows; without lanes there is no order.
        if not self.keeps_order or not self.by_lane or self.injected:
            return Wait.NOT
        return self.order.wait(exchange)

    def miss(self, miss: Miss, tag: LaneTag | None, body: bytes | LargeBody = b"") -> Violation:
        """Count a request that the tape has no answer for, and why it has none. `body`: in clear, if it is large."""

        def large(nearest: int) -> "Difference | None":
            return parting(self.tape.exchanges[nearest - 1], self._redacted_pieces(miss.ask.headers, body))

        given = large if is_stand_in(miss.ask.body) else None
        return self.violate(missed(miss, self.index, tag, given, cut=broke_off(self.tape.seal)))
