"""Which taped request did this one mean to be? Scores how alike two requests are and finds the nearest. Pure.

In full, requests are compared by the leaves of their JSON, which takes about a millisecond for a long conversation. So
when there are many, those that share the most bytes are looked for first, and only they are compared in full.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import Identity
from tapeproxy.tapes.matching import Ask, Card
from tapeproxy.tapes.wording import shared_ends

_IN_FULL = 48
"""Taped requests that are compared in full, at most; of more, the likeliest."""
_ROUGHLY = 64
_SLACK = 2 / _ROUGHLY + 1e-9
"""What a likeness may be more than it is roughly, in steps of a `_ROUGHLY`-th of the longer body."""
_USED_COUNTS = 0.2
"""So much nearer must a request be whose answer was given out, to be named before one that still waits."""

type Leaf = tuple[str, str, str]
"""A JSON path without indexes, the type and the value as text."""


class Near(NamedTuple):
    """A taped request, `score` alike from 0 to 1. `used`: its answer was given out."""

    exchange: Exchange
    identity: Identity
    score: float
    used: bool


def nearest(ask: Ask, asked: Identity, cards: Sequence[Card]) -> Near | None:
    """The nearest of the taped requests, those whose answers still wait first; None when there are none."""
    best: dict[bool, Near] = {}
    for card in _likeliest(ask, cards):
        taped_ask, used = card.ask, card.used
        taped = taped_ask.identity()
        near = Near(card.exchange, taped, similarity(taped, asked), used)
        # Of equals, the one of the same lane, and then the first.
        lane = 1e-6 if taped_ask.lane == ask.lane else 0.0
        if used not in best or near.score + lane > best[used].score:
            best[used] = near._replace(score=near.score + lane)
    if not best:
        return None
    waiting, given = best.get(False), best.get(True)
    chosen = given if waiting is None or (given and given.score > waiting.score + _USED_COUNTS) else waiting
    return None if chosen is None else chosen._replace(score=min(chosen.score, 1.0))


def similarity(one: Identity, other: Identity) -> float:
    """How alike two requests are, from 0 to 1: half for where they go, half for what they say."""
    parts = (
        one.method == other.method,
        one.target.host == other.target.host,
        (one.target.scheme, one.target.port) == (other.target.scheme, other.target.port),
        _alike(one.target.path, other.target.path),
        one.query == other.query,
    )
    return 0.5 * sum(parts) / len(parts) + 0.5 * _body_similarity(one, other)


def _likeliest(ask: Ask, cards: Sequence[Card]) -> Sequence[Card]:
    if len(cards) <= _IN_FULL:
        return cards
    place = ask.place()

    def floor(card: Card, roughly: int | None = None) -> float:
        taped = card.ask
        grain = 1 if roughly is None else max(len(taped.body), len(ask.body)) // roughly + 1
        where = 1.0 if taped.place() == place else 0.5 * _alike(taped.url, ask.url)
        return where + _alike(taped.body, ask.body, grain) - card.used * _USED_COUNTS

    # Roughly first: most are so far off that it need not be known how far.
    floors = [floor(card, _ROUGHLY) for card in cards]
    needed = sorted(floors, reverse=True)[_IN_FULL - 1] - _SLACK
    likely = [card for card, least in zip(cards, floors, strict=True) if least >= needed]
    return sorted(likely, key=lambda card: (-floor(card), card.number))[:_IN_FULL]


def _body_similarity(one: Identity, other: Identity) -> float:
    if one.body.canonical == other.body.canonical:
        return 1.0
    if one.body.form == other.body.form and one.body.form in ("json", "lines"):
        return _json_similarity(one.body.value, other.body.value)
    return _alike(one.body.canonical, other.body.canonical)


def _json_similarity(one: Any, other: Any) -> float:
    """By leaves: whole ones count wherever they stand in their list, changed ones by what they share."""
    a, b = dict(_leaves(one)), dict(_leaves(other))
    weight = sum(map(_weight, a.values())) + sum(map(_weight, b.values()))
    if not weight:
        return 0.0
    equal = {path for path, leaf in a.items() if b.get(path) == leaf}
    shared = sum(_weight(a[path]) for path in equal)
    rest_a = {path: leaf for path, leaf in a.items() if path not in equal}
    rest_b = {path: leaf for path, leaf in b.items() if path not in equal}
    moved = Counter(rest_a.values()) & Counter(rest_b.values())
    shared += 0.95 * sum(_weight(leaf) * times for leaf, times in moved.items())
    for path, leaf in rest_a.items():
        theirs = rest_b.get(path)
        if theirs is not None and not moved[leaf] and not moved[theirs] and leaf[1] == theirs[1]:
            shared += 0.9 * min(_weight(leaf), _weight(theirs)) * _alike(leaf[2], theirs[2])
    return min(2 * shared / weight, 1.0)


def _weight(leaf: Leaf) -> float:
    """A long text says more than a flag, but not as much more as it is longer."""
    return 1.0 + len(leaf[2]).bit_length() / 4


def _leaves(value: Any, path: str = "$", kind: str = "$") -> Iterator[tuple[str, Leaf]]:
    """Leaves by their full path."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}", f"{kind}.{name}")
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}[{at}]", f"{kind}[]")
    else:
        yield path, (kind, type(value).__name__, value if isinstance(value, str) else repr(value))


def _alike(one: bytes | str, other: bytes | str, grain: int = 1) -> float:
    """The part of the longer one that both begin or end with; with a `grain` (see `shared_ends`) a little less."""
    longer = max(len(one), len(other))
    return sum(shared_ends(one, other, grain)) / longer if longer else 1.0
