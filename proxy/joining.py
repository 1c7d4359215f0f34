"""Calls of gRPC that are answered before they are whole: which taped call each goes on as. Sends nothing."""

from typing import TYPE_CHECKING, Literal

from tapeproxy.proxy.decisions import Asked, Held, Joined
from tapeproxy.tapes.answers import Answer, flaw
from tapeproxy.tapes.duplex import Duplex, overlaps
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.identity import Target, parse_target
from tapeproxy.tapes.lanes import LaneTag, split_tag
from tapeproxy.tapes.matching import Ask, Card, Miss
from tapeproxy.tapes.requestlines import summary_line
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.replayer import Replayer
    from tapeproxy.tapes.differences import Difference


def join(replayer: "Replayer", asked: Asked, said: bytes) -> Joined | Violation | None:
    """What to do with a call of which more is to come; None: wait until all is there.

    `said` is what has come, at least one message. A call is joined with a taped one that began alike, and in
    which the server did not wait for the end; it can't be told in any other way who is to go on.
    """
    ask, tag = replayer.read(replayer.lead(asked))
    target = parse_target(ask.url)
    if is_loopback(target.host) and replayer.owns_port(target.port):
        return None
    replayer.begun = True
    cards = replayer.index.at_place(ask)
    different: Violation | None = None
    for card in cards:
        duplex = Duplex(card.exchange, lambda message: replayer.redactor.body(ask.headers, message))
        difference = duplex.take(said)
        alike = difference is None
        # Of one that the tape broke off, nobody knows if the server waited: it goes as far as the tape does.
        if card.used or (alike and not overlaps(duplex.exchange) and duplex.exchange.end is not None):
            if not card.used:
                return None  # it is answered when it is whole, if it ends as this one did
            continue
        if difference is None:
            return _spoilt(replayer, card, (ask, tag), target) or _joined(replayer, duplex, card, (ask, tag))
        what = f"a call is not on the tape: nearest is exchange {card.number}, which began otherwise"
        different = different or Violation("miss", summary_line(ask), what, tag=tag, differences=(difference,))
    if tag is None:
        replayer.untagged(asked.port)
    if different is not None:
        return replayer.violate(different)
    return replayer.miss(Miss(replayer.redacted(ask, said), len(cards)), tag)


def outlook(replayer: "Replayer", asked: Asked) -> Literal["inside", "live", "unknown", "whole"]:
    """Of a fork, what is known of a call by its head. `inside`: it is for a server of the run; `live`: it goes out;
    `unknown`: the tape has none at its place; `whole`: what it says decides.
    """
    ask, tag = replayer.read(asked)
    target = parse_target(ask.url)
    if is_loopback(target.host) and replayer.owns_port(target.port):
        return "inside"
    known = bool(replayer.index.at_place(ask))
    if replayer.may_go_out(tag) and replayer.fork is not None and (replayer.fork.asks_anew(tag) or not known):
        return "live"
    return "whole" if known else "unknown"


def _spoilt(
    replayer: "Replayer", card: Card, asking: tuple[Ask, LaneTag | None], target: Target
) -> Joined | Violation | None:
    """The fault that a call gets which was joined with a taped one, if it is to get one."""
    ask, tag = asking
    picked = None if replayer.faults is None else replayer.faults.pick(ask.method, target)
    if picked is None or replayer.faults is None:
        return None
    from tapeproxy.tapes.faults import Injected, apply

    fault, number = picked
    exchange = card.exchange
    if not fault.instead or flaw(exchange) is not None:
        served = replayer.serve(card.give().exchange, ask, tag, http10=False)
        if isinstance(served, Violation):
            return served
    replayer.faults.injected.append(Injected(fault.text, number, summary_line(ask), exchange.number))
    return Joined(apply(fault, exchange, http10=False), None)


def _joined(replayer: "Replayer", duplex: Duplex, card: Card, asking: tuple[Ask, LaneTag | None]) -> Joined | Violation:
    ask, tag = asking
    if tag is not None:
        replayer.order.asked(tag.lane)
    decision = replayer.serve(card.give().exchange, ask, tag, http10=False)
    if isinstance(decision, Answer):
        return Joined(decision._replace(is_due=duplex.is_due), duplex)
    if isinstance(decision, Held):
        return Joined(decision._replace(answer=decision.answer._replace(is_due=duplex.is_due)), duplex)
    assert isinstance(decision, Violation)
    return decision


def parted(replayer: "Replayer", asked: Asked, duplex: Duplex, difference: "Difference") -> Violation:
    """Count that a call went on otherwise than the taped one that it was joined with."""
    asked = replayer.lead(asked)
    tag, _ = split_tag(asked.headers)
    line = f"{asked.method.decode('latin-1')} {replayer.redactor.url(asked.url).decode('latin-1')}"
    what = f"a call went on otherwise than exchange {duplex.exchange.number}, with which it had begun alike"
    return replayer.violate(Violation("miss", line, what, tag=tag, differences=(difference,)))
