"""Faults that a replay injects into the answers of the tape: which request gets one, and what it hears then."""

from typing import TYPE_CHECKING

from tapeproxy.proxy.decisions import Decision, Held
from tapeproxy.tapes.answers import SWITCHED, Answer, flaw
from tapeproxy.tapes.faults import Faults, Injected, apply
from tapeproxy.tapes.identity import Target
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask, Hit, Miss
from tapeproxy.tapes.requestlines import summary_line

if TYPE_CHECKING:
    from tapeproxy.proxy.replayer import Replayer


def inject(
    replayer: "Replayer", faults: Faults, ask: Ask, who: tuple[Target, LaneTag | None], http10: bool
) -> Decision | None:
    """The fault that a request gets which is on the tape, if it is to get one."""
    target, tag = who
    found = replayer.index.look(ask)
    picked = faults.pick(ask.method, target) if isinstance(found, Hit) else None
    if picked is None or isinstance(found, Miss):
        return None
    fault, number = picked
    exchange = found.exchange
    socket = exchange.response is not None and exchange.response.status == SWITCHED
    decision: Decision | None = None
    if not fault.instead or flaw(exchange) is not None:
        replayer.index.take(ask)
        decision = replayer.serve(exchange, ask, tag, http10)
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
