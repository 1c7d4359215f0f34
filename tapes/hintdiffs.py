"""What tools gave, what values were and what was said to other agents, in two runs, lane by lane. Pure.

Of a lane the n-th hint with the same name and arguments stands for the other lane's n-th; between two such pairs, those
of one name in their order. A call within the body of another one counts where both tapes tell of such, for a replay
runs no bodies. Lanes whose names are chance count as one, in no order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tapeproxy.tapes.alignment import anchor
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hints import CALLS, Bodies, call_title, form_differences
from tapeproxy.tapes.lanes import is_floating
from tapeproxy.tapes.records import Value
from tapeproxy.tapes.tokens import mask_tokens
from tapeproxy.tapes.values import with_contents

type Kind = Literal["changed", "moved", "missing", "extra"]
KINDS: tuple[Kind, ...] = ("changed", "moved", "missing", "extra")

_COMPARED = frozenset({*CALLS, "message"})
_FLOATING = "?"


@dataclass(frozen=True, slots=True)
class HintDiff:
    """A hint that is not the same on both tapes, by its lane and number there (None: that one has none). `title`: in a
    line, as the first tape has it where it does. `differences`: of its arguments and of what it gave."""

    kind: Kind
    ours: tuple[str, int] | None
    theirs: tuple[str, int] | None
    what: str
    title: str
    differences: tuple[Difference, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
        """Where it is, on both tapes."""
        return self.ours, self.theirs

    @property
    def label(self) -> str:
        """Where it is, and what: `m#5 step(n=5)`."""
        a, b = map(place_of, self.places)
        return f"{a if a == b or b is None else f'{a} / {b}' if a is not None else b} {self.title}"


def place_of(place: tuple[str, int] | None) -> str | None:
    """A hint's lane and number as an edit names it: `m#5`."""
    return None if place is None else f"{place[0]}#{place[1]}"


def hint_diffs(ours: Tape, theirs: Tape, lanes: Mapping[str, str]) -> Iterator[HintDiff]:
    """The hints of two tapes that differ. `lanes`: which lane stands for which; others stand for those of their id.

    Nothing of tapes that cannot tell: recorded without the shim, or of a test's replay.
    """
    if not (_tells(ours) and _tells(theirs)):
        return
    a, b = _by_lane(ours), _by_lane(theirs)
    known = set(lanes.values())
    pairs = [(lane, lanes.get(lane, "" if lane in known else lane)) for lane in sorted(a)]
    pairs += [("", lane) for lane in sorted(b.keys() - {other for _, other in pairs})]
    inner = Bodies(ours), Bodies(theirs)
    for lane, other in pairs:
        left, right = a.get(lane, []), b.get(other, [])
        within = inner[0].call_of(lane) or inner[1].call_of(other)
        if not within or (left and right):
            yield from _lane_diffs(left, right, ordered=lane != _FLOATING)


def rows(found: Sequence[HintDiff]) -> Iterator[Difference]:
    """The same as places that differ, for a list of such."""
    for one in found:
        if not one.differences:
            told = {"missing": ("(told)", None), "extra": (None, "(told)"), "moved": ("(here)", "(elsewhere)")}
            yield Difference(one.label, *told.get(one.kind, (None, None)))
        for difference in one.differences:
            where = f"{one.label}, {difference.where}"
            yield Difference(where, difference.taped, difference.asked, difference.words, difference.kind)


def _tells(tape: Tape) -> bool:
    return tape.head.seed is not None or any(value.what in _COMPARED for _, value in tape.values)


def _by_lane(tape: Tape) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for _, value in with_contents(tape.values):
        if value.what in _COMPARED:
            found.setdefault(_FLOATING if is_floating(value.lane) else value.lane, []).append(value)
    for lane, values in found.items():
        values.sort(key=lambda value: (_key(value), value.content or b"") if lane == _FLOATING else value.n)
    return found


def _key(value: Value) -> tuple[str, str, bytes]:
    return value.what, value.name, mask_tokens(_arguments(value))


def _arguments(value: Value) -> bytes:
    return str(value.data.get("args", "")).encode(errors="surrogateescape")


def _lane_diffs(ours: Sequence[Value], theirs: Sequence[Value], *, ordered: bool) -> Iterator[HintDiff]:
    found = anchor([_key(value) for value in ours], [_key(value) for value in theirs])
    out: list[tuple[int, int, HintDiff]] = []
    for a, b in found.pairs:
        differences = tuple(_differences(ours[a], theirs[b]))
        if differences or (ordered and (a, b) in found.moved):
            out.append((a, 0, _diff("changed" if differences else "moved", ours[a], theirs[b], differences)))
    for left, right in found.gaps:
        at = left[0] if left else len(ours)
        out += [(at, 1, one) for one in _gap([ours[a] for a in left], [theirs[b] for b in right])]
    yield from (one for *_, one in sorted(out, key=lambda row: row[:2]))


def _gap(ours: Sequence[Value], theirs: Sequence[Value]) -> Iterator[HintDiff]:
    """What stands between two pairs: of one name, the n-th is the n-th with other arguments."""
    names = [[(value.what, value.name) for value in side] for side in (ours, theirs)]
    pairs = dict(anchor(*names).pairs)
    for a, value in enumerate(ours):
        if a not in pairs:
            yield _diff("missing", value, None)
            continue
        other = theirs[pairs[a]]
        yield _diff("changed", value, other, (*_argument_differences(value, other), *_differences(value, other)))
    taken = set(pairs.values())
    yield from (_diff("extra", None, value) for b, value in enumerate(theirs) if b not in taken)


def _diff(kind: Kind, ours: Value | None, theirs: Value | None, differences: tuple[Difference, ...] = ()) -> HintDiff:
    first = ours or theirs
    assert first is not None
    a, b = (None if one is None else (one.lane, one.n) for one in (ours, theirs))
    arguments = _arguments(first).decode(errors="backslashreplace")
    title = f"message to {first.name}" if first.what == "message" else call_title(first.what, first.name, arguments)
    return HintDiff(kind, a, b, first.what, title, differences)


def _argument_differences(ours: Value, theirs: Value) -> Iterator[Difference]:
    for found in form_differences(_arguments(ours), _arguments(theirs)):
        yield _at(f"argument {found.where}", found)


def _differences(ours: Value, theirs: Value) -> Iterator[Difference]:
    if ours.error != theirs.error:
        yield Difference("raised", ours.error, theirs.error)
    was, now = (str(end) if (end := value.data.get("end")) is not None else None for value in (ours, theirs))
    if was != now and ours.error == theirs.error:
        yield Difference("ended", was, now)
    if None not in (ours.content, theirs.content):
        yield from (_at(found.where, found) for found in form_differences(ours.content, theirs.content))
    elif ours.content is not theirs.content:
        a, b = ("(not on the tape)" if one.content is None else "(told)" for one in (ours, theirs))
        yield Difference("content", a, b)


def _at(where: str, found: Difference) -> Difference:
    # What it looks like is of use to rules for matching, and there are none for these.
    return Difference(where, found.taped, found.asked, found.words)
