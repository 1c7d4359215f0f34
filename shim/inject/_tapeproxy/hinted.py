"""What `tapeproxy.hints` asks of the shim: agents' names, messages, tools, values and what a run concluded.

Loaded when an agent uses hints. A tool's body runs in a lane of its own, a child of the caller's: so whatever it reads
and asks moves nothing in the caller's lane, and a replay that leaves the body out goes the same way as the recording.
"""

from __future__ import annotations

from . import channel, edges, hintlines, jsonforms, settings
from .agentnames import agent_of
from .agentnames import enter_agent as enter_agent
from .hintedcalls import call as call
from .hintedcalls import call_async as call_async
from .hintedgenerators import generate as generate
from .hintedgenerators import generate_async as generate_async
from .hintlines import OFF
from .lanes import LANE, current

_used: list[bool] = []
_sent: dict[tuple[str, str], int] = {}
_got: dict[tuple[str, str], int] = {}


def use() -> None:
    """Tell, once in a process, that the agent uses hints."""
    if _used:
        return
    _used.append(True)
    if OFF:
        channel.emit("note", what="hints", text="the tape was made without them: tools run")
    elif not settings.REPLAY or settings.FORK:
        channel.emit("note", what="hints", text="the agent uses hints")


def message(to: str, payload: object) -> None:
    """Tell of a message to an agent, and that what comes before it is its cause."""
    if OFF:
        return
    lane = LANE.get(None) or current()
    sender = agent_of(lane)
    number = _count(_sent, sender, to)
    data = {"from": sender, "number": number, "asked": lane.requests}
    hintlines.emit(
        "message", to, lane, hintlines.where(), hintlines.fitting(jsonforms.dump_loosely, payload), data=data
    )
    if settings.EDGES:
        edges.emit_out("message", _token(sender, to, number))


def received(from_: str) -> None:
    """Tell that the current agent has got the next message of another."""
    if OFF:
        return
    lane = LANE.get(None) or current()
    receiver = agent_of(lane)
    number = _count(_got, from_, receiver)
    if settings.EDGES:
        edges.emit_in("message", _token(from_, receiver, number))


def final_state(state: object) -> None:
    """Tell what the run concluded."""
    if OFF:
        return
    lane = LANE.get(None) or current()
    where = hintlines.where()
    try:
        content = hintlines.fitting(jsonforms.dump, state)
    except Exception as error:
        hintlines.note_untaped("final_state()", where, hintlines.reason_of(error))
        return
    hintlines.emit("final", "final", lane, where, content, data={"asked": lane.requests})


def _count(counts: dict[tuple[str, str], int], sender: str, to: str) -> int:
    number = counts.get((sender, to), 0)
    counts[sender, to] = number + 1
    return number


def _token(sender: str, to: str, number: int) -> str:
    """By what both ends of a message know it; the same in every run."""
    return f"message:{sender}>{to}#{number}"
