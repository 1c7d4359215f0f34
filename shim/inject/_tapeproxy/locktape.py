"""What the tape says of locks: whose turn it is at each. Reads the file of a replay; makes nobody wait."""

from __future__ import annotations

from bisect import bisect_right

from . import settings
from .lanes import root
from .lockorder import Watched
from .locktypes import RLOCK
from .tapedtime import lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Held for a few steps only; by a signal's handler or a finaliser in the same thread once more.
ORDER_LOCK = RLOCK()
TAKE_HOLD, LET_GO = ORDER_LOCK.acquire, ORDER_LOCK.release


class Order:
    """The order of one lock: who acquired it from which number on, and who was refused it as which number."""

    __slots__ = ("free", "n", "numbers", "owners", "refused", "waiters")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.owners: list[str] = []
        self.refused: dict[int, str] = {}
        self.n = 0
        self.free = False
        self.waiters: dict[str, Any] = {}  # by flow: a lock that is released when its turn has come

    def begin(self, owner: str) -> Order:
        """A lock in use, whose first acquirer is `owner` where the tape says nothing else."""
        order = Order()
        order.refused = self.refused
        order.numbers, order.owners = [-1, *self.numbers], [owner, *self.owners]
        return order

    def turn(self) -> tuple[str, bool]:
        """Whose turn it is, and whether it gets the lock."""
        refused = self.refused.get(self.n)
        if refused is not None:
            return refused, False
        return self.owners[bisect_right(self.numbers, self.n) - 1], True


_NOTHING = Order()
_taped: dict[str, Order] = {}
_read: set[str] = set()  # lanes whose locks have been looked up


def order_of(watched: Watched) -> Order:
    """The order of a lock, looked up when it is used for the first time."""
    TAKE_HOLD()
    try:
        if watched.order is None:
            _load(root().id)
            _load(watched.id.partition("#")[0].partition("<")[0])
            watched.order = _taped.get(watched.id, _NOTHING).begin(watched.last or "")
            condition = watched.condition
            watched.order.free = condition is not None and condition.order is not None and condition.order.free
        order: Order = watched.order
        return order
    finally:
        LET_GO()


def _load(lane: str) -> None:
    """Read what the tape says of the locks made in a lane and in those below it."""
    if any(lane == known or lane.startswith(known + "/") for known in _read):
        return
    _read.add(lane)
    for line in lines_of(settings.THREADS, lane):
        order = _taped.setdefault(line["on"], Order())
        if line["what"] == "refused":
            order.refused[line["n"]] = line["lane"]
        elif line["what"] == "acquired" and (not order.numbers or line["n"] > order.numbers[-1]):
            order.numbers.append(line["n"])
            order.owners.append(line["lane"])
