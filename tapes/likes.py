"""Which earlier body a request body is written like; knows bytes and the head's window, not lines or files.

An agent sends its whole conversation with every call, so a body is mostly the one before it. Written as what is new
around the ends that both share, a tape grows with the conversation, not with its square.

A body that refers to one that refers to another makes a chain, and readers follow at most `MAX_DEPTH` steps. So every
`_CHAIN` steps a body refers to where the chain began instead, and begins the next: what that costs is twice the new
bytes in all, where whole bodies would cost their square again.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tapeproxy.tapes.bodies import MAX_DEPTH, Window, allowance
from tapeproxy.tapes.records import Body, Like, Request
from tapeproxy.tapes.wording import shared_ends

WINDOW = 32 << 20
"""Bytes of request bodies that a recorder, and whoever reads its tapes, keeps to refer to."""
LEAST_SHARED = 2 << 10
"""Fewer shared bytes are written again: gzip finds them by itself, and `zcat | jq` shows them."""

_CHAIN = 48
_CANDIDATES = 128
"""Bodies of one method and URL that are looked at, the latest first."""
_PROBE = 32
"""Bytes by which a candidate must share more than the best so far, to be looked at more closely."""
_ENOUGH = 64
"""A candidate of which fewer bytes are not shared ends the search."""


class Plan(NamedTuple):
    """How a body is to be written.

    `depth`: the references it takes to resolve it; `chain`: those since its chain began.
    """

    body: Body
    depth: int = 0
    chain: int = 0


@dataclass(frozen=True, slots=True)
class _Base:
    """A body that may be referred to."""

    index: int
    body: bytes
    request: Request
    plan: Plan


class _Found(NamedTuple):
    """A candidate, and how many bytes it shares at both ends."""

    base: _Base
    head: int
    tail: int


class Likes:
    """The request bodies of a tape that is being written: `plan` each, and `keep` it once it stands on the tape."""

    def __init__(self, window: int) -> None:
        self._window = Window(window)
        self._bases: dict[int, _Base] = {}
        self._places: dict[tuple[bytes, bytes], deque[_Base]] = {}
        self._prints: dict[tuple[int, bytes], _Base] = {}
        """The latest body of each print, whatever its place."""
        self._expanded = 0

    def plan(self, request: Request, compressed: int = 0) -> Plan:
        """Decide how to write a request's body, behind so many bytes of the file.

        Raises ValueError for one that is a reference already.
        """
        body = request.body
        if isinstance(body, Like):
            raise ValueError("the references on a tape with a window are its encoder's own")
        if len(body) < LEAST_SHARED or self._expanded + len(body) > allowance(compressed):
            return Plan(body)
        found = _nearest(body, self._candidates(request)) or _nearest(body, self._twin(body))
        if found is None:
            return Plan(body)
        chain = found.base.plan.chain + 1
        if chain >= _CHAIN:
            begun = (one for one in self._candidates(request) if not one.plan.chain)
            found, chain = _nearest(body, (one for one in begun if one.plan.depth <= MAX_DEPTH - _CHAIN)), 0
            if found is None:
                return Plan(body)
        return Plan(_around(body, found), found.base.plan.depth + 1, chain)

    def keep(self, index: int, request: Request, plan: Plan) -> None:
        """Remember the body of record `index`, which was written as planned."""
        body = request.body
        assert isinstance(body, bytes)  # `plan` refuses another
        if plan.depth:
            self._expanded += len(body)
        if len(body) >= LEAST_SHARED:
            base = self._bases[index] = _Base(index, body, request, plan)
            self._places.setdefault(_place(request), deque(maxlen=_CANDIDATES)).append(base)
            self._prints[_print(body)] = base
        for gone in self._window.take(index, len(body)):
            self._forget(gone)

    def _candidates(self, request: Request) -> Iterator[_Base]:
        """The bodies of its place: first those of its lane, then the others; the latest first."""
        bases, lane = self._places.get(_place(request), ()), request.lane
        yield from (base for base in reversed(bases) if base.request.lane == lane)
        yield from (base for base in reversed(bases) if base.request.lane != lane)

    def _twin(self, body: bytes) -> Iterator[_Base]:
        """A body that is probably the same, sent elsewhere: one image goes to many URLs."""
        if (base := self._prints.get(_print(body))) is not None:
            yield base

    def _forget(self, index: int) -> None:
        base = self._bases.pop(index, None)
        if base is None:
            return
        if self._prints.get(printed := _print(base.body)) is base:
            del self._prints[printed]
        place = _place(base.request)
        bases = self._places[place]
        if bases[0] is base:  # else so many came after it that it was no candidate any more
            bases.popleft()
        if not bases:
            del self._places[place]


def _print(body: bytes) -> tuple[int, bytes]:
    """What two bodies have in common that are the same, and few others; of a long body not all is looked at."""
    middle = len(body) // 2
    return len(body), body[:_PROBE] + body[middle : middle + _PROBE] + body[-_PROBE:]


def _place(request: Request) -> tuple[bytes, bytes]:
    return request.method, request.url


def _nearest(body: bytes, candidates: Iterable[_Base]) -> _Found | None:
    """The first candidate that shares nearly all it has, or else the one that shares most, if that is enough."""
    best: _Found | None = None
    for base in candidates:
        if best is not None and not _reaches(base.body, body, best.head):
            continue
        found = _Found(base, *shared_ends(base.body, body))
        if best is None or found.head + found.tail > best.head + best.tail:
            best = found
        if len(base.body) - found.head - found.tail < _ENOUGH:
            break
    return best if best is not None and best.head + best.tail >= LEAST_SHARED else None


def _reaches(base: bytes, body: bytes, head: int) -> bool:
    """Whether a body may share its beginning beyond `head`: one look says no to most that don't."""
    return base[head : head + _PROBE] == body[head : head + _PROBE]


def _around(body: bytes, found: _Found) -> Like:
    """The body as new bytes around what is shared, cut between characters, so that text stays text."""
    head, last = found.head, len(body) - found.tail
    for _ in range(3):  # of a character's four bytes three are inside
        head -= _is_inside(body, head)
        last += _is_inside(body, last)
    return Like(found.base.index, head, body[head:last], len(body) - last)


def _is_inside(body: bytes, at: int) -> bool:
    """Whether a cut at `at` would part a character of UTF-8."""
    return 0 < at < len(body) and body[at] & 0xC0 == 0x80
