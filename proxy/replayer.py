"""The decisions of a replay: which answer each request gets, and what counts against the run. No socket, no clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.answers import SWITCHED, Answer, dropped, flaw, render
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.fronts import Fronts, Led
from tapeproxy.tapes.hosts import is_loopback, is_mcp_stdio
from tapeproxy.tapes.identity import Target, origin_of, parse_target, read_body, read_target
from tapeproxy.tapes.interleaving import Wait
from tapeproxy.tapes.lanes import LaneTag, split_tag
from tapeproxy.tapes.machine import Fact, Facts, facts_of, marks, usable
from tapeproxy.tapes.matching import Ask, Card, Hit, Index, Miss
from tapeproxy.tapes.order import CompletionOrder
from tapeproxy.tapes.passing import passes
from tapeproxy.tapes.positions import compare_positions, knows_sleeps
from tapeproxy.tapes.reading import Reading, replay_reading, taped_reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.conversation import Conversation, Unsaid
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.duplex import Duplex
    from tapeproxy.tapes.explain import Explanation
    from tapeproxy.tapes.faults import Faults
    from tapeproxy.tapes.forkplan import ForkPlan

_URLS = 1024
"""Redacted URLs that are kept: an agent asks the same few over and over."""


class Asked(NamedTuple):
    """A request as the client sent it. `url` is absolute; `port` is the client's own, 0 where it is not known."""

    method: bytes
    url: bytes
    headers: Headers
    body: bytes
    http10: bool = False
    port: int = 0


class Live(NamedTuple):
    """The request goes to a server of the run itself; what comes back is given to `compare`."""

    host: str
    port: int
    ask: Ask
    taped: Exchange | None
    tag: LaneTag | None = None


class Held(NamedTuple):
    """The answer waits as `Replayer.wait(exchange)` says: other flows asked or completed before it came."""

    answer: Answer
    exchange: Exchange


class Joined(NamedTuple):
    """The answer begins before the request is whole, which has to go on as `duplex` says."""

    decision: Answer | Held
    duplex: "Duplex"


class Upstream(NamedTuple):
    """Of a fork: the request goes out to the world."""


type Decision = Answer | Held | Violation | Live | Upstream


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
    violations: list[Violation] = field(default_factory=list)
    drifts: list[Drift] = field(default_factory=list)
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
    _redact_url: Callable[[bytes], bytes] = field(init=False)
    _redact_lane: Callable[[str], str] = field(init=False)
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _drifted: set[str] = field(default_factory=set)
    _soft: "dict[str, list[tuple[int, tuple[Difference, ...]]]]" = field(default_factory=dict)
    _taped_facts: Facts = field(init=False)
    _begun: bool = False
    _branched: bool = False
    _led: Led | None = None

    def __post_init__(self) -> None:
        self._read()
        self.order = self._ordered()
        self._redact_url = lru_cache(_URLS)(self.redactor.url)
        self._redact_lane = lru_cache(_URLS)(self.redactor.text)

    def learn(self, version: str) -> None:
        """Take note of the version of a Python of the run, which counts for requests if it comes before the first."""
        known = self.here.get("python", ())
        if "python" in self._taped_facts and version not in known and not self._begun:
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
        what = (
            f"the recording let {host} pass by untaped (--no-tape), so the tape has no answer of it; "
            f"--allow {host}:{port} has the agent call it"
        )
        return Violation("no-tape", line, what)

    def is_certain(self, asked: Asked) -> bool:
        """Whether what `decide` says now is what it would say if the tape had been read to its end."""
        if self.known is None:
            return True
        if (led := self.fronts.led(asked.url)) is not None:
            asked = asked._replace(url=led.url, headers=led.there(asked.headers))
        tag, headers = split_tag(asked.headers)
        if self.reading.rules and self.reading.rules.headers():
            headers = self.redactor.headers(headers)
        lane = self._redact_lane(tag.lane) if tag is not None else None
        ask = Ask(asked.method, self._redact_url(asked.url), headers, asked.body, lane=lane, reading=self.reading)
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
        self._led = self.fronts.led(asked.url)
        if self._led is not None:
            asked = asked._replace(url=self._led.url, headers=self._led.there(asked.headers))
        self._begun = True
        # The body is redacted when that matters: what is the same as on the tape, byte for byte, needs no more care.
        tag, headers = split_tag(asked.headers)
        if tag is None:
            self.untagged(asked.port)
        else:
            tag = tag._replace(lane=self._redact_lane(tag.lane))  # as it is on the tape
        lane = tag.lane if tag is not None else None
        if self.reading.rules and self.reading.rules.headers():
            headers = self.redactor.headers(headers)
        ask = Ask(asked.method, self._redact_url(asked.url), headers, asked.body, lane=lane, reading=self.reading)
        try:
            target = parse_target(ask.url)
        except ValueError as error:
            return self.violate(Violation("malformed", summary_line(ask), f"the request cannot be read: {error}"))
        if self.tape.head.no_tape and (passed := self.passed_by(target.host, target.port, summary_line(ask))):
            return self.violate(passed)
        loopback = is_loopback(target.host)
        if loopback and self.owns_port(target.port):
            return self._live(target.host, target.port, self._redacted(ask), tag)
        if tag is not None:
            self.order.asked(tag.lane)
        if self.faults is not None:
            decision = self._inject(self.faults, self._redacted(ask), (target, tag), asked.http10)
            if decision is not None:
                return decision
        # A message to an MCP server on stdio can't go out: there is no such host.
        goes_out = self._may_go_out(tag) and not is_mcp_stdio(target.host)
        if goes_out and self.fork is not None and self.fork.asks_anew(tag):
            return Upstream()
        if hit := self.index.take_exact(ask):
            return self._serve(hit.exchange, ask, tag, asked.http10)
        ask = self._redacted(ask)
        found = self._take(ask)
        if isinstance(found, Hit):
            return self._serve(found.exchange, ask, tag, asked.http10)
        if loopback and self.index.knows(self._inside(ask)):
            # A server of the run that is not up yet, or down again: what a client sees then is a closed connection.
            return dropped()
        if goes_out:
            return Upstream()
        self._witness(None, ask, tag)
        return self.violate(self._miss(found, tag))

    def join(self, asked: Asked) -> Joined | Violation | None:
        """What to do with a call of gRPC of which more is to come; None: wait until all is there.

        `asked.body` is what has come, at least one message. A call is joined with a taped one that began alike, and in
        which the server did not wait for the end; it can't be told in any other way who is to go on.
        """
        from tapeproxy.tapes.duplex import Duplex, overlaps

        tag, headers = split_tag(asked.headers)
        if tag is not None:
            tag = tag._replace(lane=self._redact_lane(tag.lane))
        lane = tag.lane if tag is not None else None
        ask = Ask(asked.method, self._redact_url(asked.url), headers, asked.body, lane=lane, reading=self.reading)
        target = parse_target(ask.url)
        if self.faults is not None or (is_loopback(target.host) and self.owns_port(target.port)):
            return None
        self._begun = True
        cards = self.index.at_place(ask)
        different: Violation | None = None
        for card in cards:
            duplex = Duplex(card.exchange, lambda message: self.redactor.body(headers, message))
            difference = duplex.take(asked.body)
            alike = difference is None
            if card.used or (alike and not overlaps(duplex.exchange)):
                if not card.used:
                    return None  # it is answered when it is whole, if it ends as this one did
                continue
            if difference is None:
                return self._joined(duplex, card, ask, tag)
            what = f"a call is not on the tape: nearest is exchange {card.number}, which began otherwise"
            different = different or Violation("miss", summary_line(ask), what, tag=tag, differences=(difference,))
        if tag is None:
            self.untagged(asked.port)
        if different is not None:
            return self.violate(different)
        return self.violate(self._miss(Miss(self._redacted(ask), len(cards)), tag))

    def _joined(self, duplex: "Duplex", card: Card, ask: Ask, tag: LaneTag | None) -> Joined | Violation:
        if tag is not None:
            self.order.asked(tag.lane)
        decision = self._serve(card.give().exchange, ask, tag, http10=False)
        if isinstance(decision, Answer):
            return Joined(decision._replace(is_due=duplex.is_due), duplex)
        if isinstance(decision, Held):
            return Joined(decision._replace(answer=decision.answer._replace(is_due=duplex.is_due)), duplex)
        assert isinstance(decision, Violation)
        return decision

    def parted(self, asked: Asked, duplex: "Duplex", difference: "Difference") -> Violation:
        """A call went on otherwise than the taped one that it was joined with."""
        tag, _ = split_tag(asked.headers)
        line = f"{asked.method.decode('latin-1')} {self._redact_url(asked.url).decode('latin-1')}"
        what = f"a call went on otherwise than exchange {duplex.exchange.number}, with which it had begun alike"
        return self.violate(Violation("miss", line, what, tag=tag, differences=(difference,)))

    @property
    def injected(self) -> bool:
        """Whether a request got a fault: from then on the agent goes its own way."""
        return self.faults is not None and bool(self.faults.injected)

    def compare(self, live: Live, status: int, headers: Headers, body: bytes) -> None:
        """Compare the answer of a server of the run with what the tape heard from it."""
        taped = live.taped
        if taped is None or taped.response is None:
            return
        from tapeproxy.tapes.differences import Difference, body_differences

        found = (
            [Difference("status", str(taped.response.status), str(status))] if taped.response.status != status else []
        )
        target = read_target(live.ask.url, inside=True, reading=self.reading)
        local = self.reading.rules.at(target.authority, target.path)
        _, was = read_body(taped.response.headers, taped.response_body, local, self.reading)
        _, now = read_body(headers, self.redactor.body(headers, body), local, self.reading)
        found += body_differences(was, now)
        if found:
            what = f"a server of the run answered another way than in exchange {taped.number}"
            self.drift(Drift(summary_line(live.ask), what, tuple(found)))

    def violate(self, violation: Violation) -> Violation:
        """Count a violation and tell whoever listens."""
        if violation.tag is not None:
            violation = replace(violation, lane_name=self._lane_name(violation.tag.lane))
        self.violations.append(violation)
        self.noticed(violation)
        return violation

    def call(self, lane: str, name: str) -> None:
        """Take note of what the agent calls a lane."""
        self._names[lane] = name

    def _lane_name(self, lane: str) -> str:
        """What the agent calls a lane, now or on the tape; empty where nobody said."""
        taped = (one.name for one in reversed(self.tape.lanes) if one.id == lane and one.name)
        return self._names.get(lane) or next(taped, "")

    def drift(self, drift: Drift) -> None:
        """Count a drift and tell whoever listens."""
        self.drifts.append(drift)
        self.noticed(drift)

    def _take(self, ask: Ask) -> Hit | Miss:
        """The next answer for this request: of its own lane, or, in an update, of whichever has it."""
        found = self.index.take(ask)
        if isinstance(found, Hit) or found.used or found.elsewhere is None:
            return found
        borrows = self.fork is not None and self.fork.borrows
        return self.index.take(ask._replace(lane=found.elsewhere)) if borrows else found

    def _may_go_out(self, tag: LaneTag | None) -> bool:
        """Whether a request that is not on the tape may go out to the world: never before the branch was reached."""
        if self.fork is None or not (self._branched or not self.fork.mutated):
            return False
        return self.fork.may_be_live(tag)

    def _inject(self, faults: "Faults", ask: Ask, who: tuple[Target, LaneTag | None], http10: bool) -> Decision | None:
        """The fault that a request gets which is on the tape, if it is to get one."""
        from tapeproxy.tapes.faults import Injected, apply

        target, tag = who
        found = self.index.look(ask)
        picked = faults.pick(ask.method, target) if isinstance(found, Hit) else None
        if picked is None or isinstance(found, Miss):
            return None
        fault, number = picked
        exchange = found.exchange
        socket = exchange.response is not None and exchange.response.status == SWITCHED
        decision: Decision | None = None
        if not fault.instead or flaw(exchange) is not None:
            self.index.take(ask)
            decision = self._serve(exchange, ask, tag, http10)
            if not isinstance(decision, Answer | Held):
                return decision
        faults.injected.append(Injected(fault.text, number, summary_line(ask), exchange.number))
        if not socket or fault.status is not None or fault.finish is not None:
            return apply(fault, exchange, http10=http10)
        if fault.cut is not None:  # once it is open
            from tapeproxy.tapes.wsanswers import opening

            return opening(exchange, ask.headers)._replace(finish="cut", delay=fault.delay_ns)
        answer = decision.answer if isinstance(decision, Held) else decision
        assert isinstance(answer, Answer)
        return answer._replace(delay=fault.delay_ns)

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

    def _redacted(self, ask: Ask) -> Ask:
        headers, body = self.redactor.message(ask.headers, ask.body)
        return ask._replace(headers=headers, body=body)

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
        explanation = self._explain(found)
        self.drift(Drift(summary_line(inside), what, explanation.differences))
        return Live(host, port, inside, None, tag)

    def _check_position(self, exchange: Exchange, ask: Ask, tag: LaneTag | None) -> None:
        """Compare where in its lane the request was made; of each lane only the first difference counts."""
        taped = exchange.request
        if self.injected:  # an agent that was refused something comes another way to all that follows
            return
        if self.fork is not None and not self.fork.is_past(tag):
            return
        if tag is None or taped.lane != tag.lane or tag.lane in self._drifted:
            return
        found = compare_positions(taped, tag, sleeps=knows_sleeps(self.tape.head))
        if found.hard:
            self._drifted.add(tag.lane)
            what = f"lane {tag.lane} came another way to the request of exchange {exchange.number}"
            self.drift(Drift(summary_line(ask), what, found.hard, tag))
        elif found.soft:
            self._soft.setdefault(tag.lane, []).append((exchange.number, found.soft))

    def _witness(self, exchange: Exchange | None, ask: Ask, tag: LaneTag | None) -> None:
        """Tell what was asked, and the exchange that has the answer."""
        if self.witness is None:
            return
        ask = ask._replace(headers=self.redactor.headers(ask.headers))
        if exchange is not None and ask.body == exchange.request.body:
            ask = ask._replace(body=exchange.request.body)  # of two copies of a conversation one is enough
        self.witness(Step(None if exchange is None else exchange.number, tag, ask))

    def _serve(self, exchange: Exchange, ask: Ask, tag: LaneTag | None, http10: bool) -> Decision:
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
        if self._led is None or (response := exchange.response) is None:
            return exchange
        return replace(exchange, response=replace(response, headers=self._led.back(response.headers)))

    def wait(self, exchange: Exchange) -> Wait:
        """Whether the answer of this exchange has to wait for other flows of the agent, and how."""
        # An agent that was refused something comes another way to all that follows; without lanes there is no order.
        if not self.keeps_order or not self.by_lane or self.injected:
            return Wait.NOT
        return self.order.wait(exchange)

    def _explain(self, miss: Miss) -> "Explanation":
        # A replay that goes well never needs it, and it takes some milliseconds to load.
        from tapeproxy.tapes.explain import explain

        return explain(miss, self.index)

    def _miss(self, miss: Miss, tag: LaneTag | None) -> Violation:
        explanation = self._explain(miss)
        if miss.used and miss.elsewhere is None:
            times = "once" if miss.used == 1 else f"{miss.used} times"
            what = f"the tape has this request {times}, and each answer was given out already"
            return Violation("used-up", explanation.request, what, explanation, tag)
        if miss.elsewhere is not None:
            what = f"the tape has this request for lane {miss.elsewhere}, but lane {miss.ask.lane} made it"
            return Violation("lane", explanation.request, what, explanation, tag)
        what = "this request is not on the tape"
        return Violation("miss", explanation.request, what, explanation, tag, miss.ask)
