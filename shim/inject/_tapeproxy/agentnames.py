"""Which agent a lane belongs to, by what hints have named it."""

from __future__ import annotations

from . import channel
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_agents: dict[str, str] = {}


def enter_agent(name: str) -> Callable[[], object]:
    """Name the agent of the current lane; returns what ends that."""
    lane = LANE.get(None) or current()
    outer = _agents.get(lane.id)
    _name(lane, name)

    def leave() -> None:
        if outer is None:
            _agents.pop(lane.id, None)
        else:
            _name(lane, outer)

    return leave


def _name(lane: Lane, name: str) -> None:
    _agents[lane.id] = lane.name = name
    lane.told = True
    channel.emit("lane", id=lane.id, parent=lane.parent, kind=lane.kind, name=name, asked=lane.requests)


def agent_of(lane: Lane) -> str:
    """The agent that a lane belongs to: its own, or that of the nearest lane it descends from; else its id."""
    id = lane.id
    while id:
        if id in _agents:
            return _agents[id]
        id = id.rpartition("/")[0]
    return lane.id
