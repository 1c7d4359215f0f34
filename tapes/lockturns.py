"""The turns at the locks of a tape, where some of its lanes don't run: they are numbered as if those had never come."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tapeproxy.tapes.records import Edge


class _Turns:
    """One lock: whose turns come next, and how many turns were left out so far."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.next = 0
        self.left_out = 0


def without_lanes(edges: Iterable[Edge], absent: Callable[[str], bool]) -> Iterator[Edge]:
    """The turns (edges without `asked`, in the order of the tape) of the other lanes, with new numbers.

    Turns without an edge are of the lane that acquired the lock last; the first ones, of the lane that made it.
    """
    locks: dict[str, _Turns] = {}
    for edge in edges:
        turns = locks.setdefault(edge.on, _Turns(edge.on.partition("#")[0].rpartition("<")[2]))
        if absent(turns.owner):
            turns.left_out += max(edge.n - turns.next, 0)
        if not absent(edge.lane):
            yield replace(edge, n=edge.n - turns.left_out)
        else:
            turns.left_out += 1
        turns.next = edge.n + 1
        if edge.what == "acquired":
            turns.owner = edge.lane
