"""Which parts of a whole does a failure need? Delta debugging that asks for trials and is told their outcomes. Pure.

After Zeller and Hildebrandt's ddmin ("Simplifying and Isolating Failure-Inducing Input", 2002) and its hierarchical
form (Misherghi and Su, "HDD", 2006): first whole branches of a tree are tried to be left out, then what is below those
that have to stay. Of ddmin's two kinds of trial only complements are made (all but one part): a failure that needs
several parts in different places is in no single one, and looking for it there doubles the work. What comes out is
1-minimal: leave out any one leaf of it, and the failure is gone.
"""

from collections.abc import Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node[K: Hashable]:
    """A branch with all that is below it, or a leaf: `key` says which, and is used of leaves only."""

    key: K
    children: "tuple[Node[K], ...]" = ()

    def leaves(self) -> frozenset[K]:
        """The keys of the leaves below, or its own."""
        return frozenset(_leaves((self,)))


type Trials[K] = tuple[frozenset[K], ...]
"""Sets of leaves to be kept; whoever makes the trials says which is the first that fails still, or None of them.

Those before the first have to have been tried, those behind it need not be.
"""
type Minimizing[K] = Generator[Trials[K], int | None, frozenset[K]]


def minimize[K: Hashable](roots: Sequence[Node[K]]) -> Minimizing[K]:
    """Search for the least set of leaves that fails still. With all of them it must fail, with none it must not."""
    search = _Search(roots)
    level = [node for root in roots for node in _parted(root)]
    while level:
        yield from search.reduce(level)
        kept = [node for node in level if node.leaves() & search.kept]
        level = [node for above in kept for child in above.children for node in _parted(child)]
    # Leaves at different depths have not been tried against each other yet.
    yield from search.reduce([Node(key) for key in search.in_order()], 1)
    return search.kept


class _Search[K: Hashable]:
    def __init__(self, roots: Sequence[Node[K]]) -> None:
        self._order = {key: place for place, key in enumerate(_leaves(roots))}
        self.kept = frozenset(self._order)

    def in_order(self) -> list[K]:
        return sorted(self.kept, key=self._order.__getitem__)

    def reduce(self, nodes: Sequence[Node[K]], size: int = 0) -> Generator[Trials[K], int | None, None]:
        """Leave out of these nodes what can be; `size`: at first so many at once (0: half of them)."""
        parts = [node.leaves() for node in nodes]
        size = size or max(len(parts) // 2, 1)
        while parts:
            before = len(parts)
            parts = yield from self._pass(parts, size)
            if size == 1 and len(parts) == before:
                return
            size = max(min(size, len(parts)) // 2, 1)

    def _pass(self, parts: list[frozenset[K]], size: int) -> Generator[Trials[K], int | None, list[frozenset[K]]]:
        """Once through all parts, so many at a time; returns those that stay."""
        at = 0
        while at < len(parts):
            starts = range(at, len(parts), size)
            groups = [frozenset[K]().union(*parts[start : start + size]) for start in starts]
            # With nothing left it does not fail.
            trials = tuple(self.kept - group for group in groups)
            possible = [n for n, trial in enumerate(trials) if trial]
            found = (yield tuple(trials[n] for n in possible)) if possible else None
            if found is None:
                break
            start = starts[possible[found]]
            self.kept = trials[possible[found]]
            parts = parts[:start] + parts[start + size :]
            at = start
        return parts


def _parted[K: Hashable](node: Node[K]) -> Iterable[Node[K]]:
    """The node, or what is below it where that is one only: to try both would be to try the same twice."""
    while len(node.children) == 1:
        (node,) = node.children
    return (node,)


def _leaves[K: Hashable](nodes: Iterable[Node[K]]) -> Iterable[K]:
    for node in nodes:
        if node.children:
            yield from _leaves(node.children)
        else:
            yield node.key
