"""Where lanes learn of each other: one comes to know what another one knew when it let something out.

Knows no threads, tasks or queues; those who do call `learn`. What a lane knows is its place: (lane, requests, meetings,
last meeting), see Lane.place. It travels with whatever is handed over, and a line is written only where it brings the
receiver something new: a million items between two lanes that ask nothing cost no line.
"""

from __future__ import annotations

from _thread import get_ident

from . import channel, settings
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 20_000
"""Meetings of one lane that are told; after that the tape says that there were more."""
_END = 1 << 62
_visited: dict[int, dict[str, Lane]] = {}  # by thread: lanes of copied contexts that have something to say
_FAR = 64  # places that are looked at to find out whether there is anything new


def emit_out(what: str, token: str) -> None:
    """The current lane lets something out that others will know by `token`, the same in every run and used once."""
    lane = LANE.get(None) or current()
    lane.tell()
    channel.emit("edge", what=what, on=token, lane=lane.id, n=lane.met, asked=lane.requests, out=True)


def emit_in(what: str, token: str) -> None:
    """The current lane has taken in what somebody, perhaps in another process, let out as `token`."""
    lane = LANE.get(None) or current()
    _tell(lane, what, token, (_END, 0), None)


def emit_request(token: str) -> None:
    """The current lane, of a server, has read a request."""
    emit_in("serve", token)
    lane = LANE.get(None) or current()
    if lane.known is not None:
        lane.known.pop(token, None)  # of no use again


def place() -> Any:
    """What the current lane knows; None: nothing."""
    lane = LANE.get(None) or current()
    return lane.place()


def learn(what: str, place: Any, lane: Lane | None = None) -> None:
    """The current lane, or this one, comes to know what was known at `place`."""
    if place is None:
        return
    if lane is None:
        lane = LANE.get(None) or current()
    other, asked, met, link = place
    if other == lane.id or lane.id[0] == "?" or _knows(lane, place):
        return
    _tell(lane, what, other, (asked, met), link)


def learn_all(what: str, id: str) -> None:
    """The current lane comes to know all that the lane `id` has done: it is over."""
    learn(what, all_of(id))


def visit(lane: Lane) -> None:
    """A copied context's lane has something to say: whoever runs it, in this thread, knows that afterwards."""
    if lane.kind == "c":
        _visited.setdefault(get_ident(), {})[lane.id] = lane


def absorb(lane: Lane, own: bool = False) -> None:
    """The lane knows what was done in the copied contexts that ran in this thread; `own`: only in those it made."""
    visited = _visited.get(get_ident())
    if visited:
        for id, one in list(visited.items()):
            if one is not lane and (not own or one.parent == lane.id):
                visited.pop(id, None)
                learn("context", one.place(), lane)


def absorb_one(id: str, lane: Lane) -> None:
    """The lane knows what was done in this copied context, in whatever thread."""
    for visited in list(_visited.values()):
        one = visited.pop(id, None)
        if one is not None:
            learn("context", one.place(), lane)


def all_of(id: str) -> Any:
    """The place at the end of a lane that somebody else's process may have, and of those below it."""
    return id, _END, 0, None


def _tell(lane: Lane, what: str, on: str, at: Any, link: Any) -> None:
    number = lane.met
    if number >= MOST:
        if number == MOST:
            lane.met = number + 1
            channel.emit(
                "note", what="edges-dropped", text=f"lane {lane.id} met others more often than is told", data=None
            )
        return
    lane.tell()
    fields: dict[str, object] = {"what": what, "on": on, "lane": lane.id, "n": number, "asked": lane.requests}
    if at[0] != _END:
        fields["at"] = at
    channel.emit("edge", **fields)
    if lane.known is None:
        lane.known = {}
    lane.known[on] = at
    lane.met = number + 1
    visit(lane)
    lane.link = number, (on, *at, link), lane.link
    if settings.FORK:
        from . import forkedtime

        forkedtime.meet(lane, on, at)


def _knows(lane: Lane, place: Any) -> bool:
    """Whether the lane knows all that was known at the place, by what it has met itself."""
    known = lane.known
    if known is None:
        known = lane.known = {}
    origin = lane.origin
    if origin is not None and origin[0] not in known:
        known[origin[0]] = origin[1:3]
    todo, left = [place], _FAR
    while todo:
        id, asked, met, link = todo.pop()
        if id == lane.id:
            continue
        have = known.get(id)
        if have is not None and have >= (asked, met):
            continue
        left -= 1
        if not left or have is None or asked > have[0] or (met > have[1] and link is None):
            return False
        while link is not None and link[0] >= have[1]:
            todo.append(link[1])
            link = link[2]
    known[place[0]] = place[1:3]
    return True
