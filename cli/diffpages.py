"""What `diff` prints for people: the branch point, then lane by lane what differs. Yields lines, prints none.

Whatever comes from a tape passes `printable` or `clip(printable(…))` on its way: see `rendering`.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tapeproxy.cli.diffsides import Shown
from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import Screen, clip, count, duration, printable
from tapeproxy.tapes.branchreads import ReadDifference
from tapeproxy.tapes.comparisons import Details
from tapeproxy.tapes.contexts import ContextChange
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.hintdiffs import KINDS as HINT_KINDS
from tapeproxy.tapes.hintdiffs import HintDiff
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.tapediff import Compared, Kind, LaneDiff, LanePair, TapeDiff, relation

SIGNS: Final[dict[Kind, str]] = {"same": "=", "moved": ">", "changed": "~", "missing": "-", "extra": "+"}
COLOURS: Final[dict[str, str]] = {
    "changed": "yellow",
    "moved": "cyan",
    "missing": "red",
    "extra": "green",
    "dropped": "red",
    "injected": "green",
    "truncated": "magenta",
}
_LISTED = 20
"""Events of a lane, and reads, that are listed unless one lane was asked for."""
_NAMED = 5
_SHORT = 36
"""Two values that are no longer stand on one line."""


def diff_page(
    shown: tuple[Shown, Shown], diff: TapeDiff, screen: Screen, *, context: bool, whole: bool
) -> Iterator[str]:
    """The lines of `diff`. `context`: with the details of each event. `whole`: all events are listed."""
    yield screen.paint(headline(diff), "green" if diff.same else "yellow", bold=True)
    yield from _side_lines("A", shown[0], screen)
    yield from _side_lines("B", shown[1], screen)
    if told := relation(shown[0].tape, shown[1].tape):
        yield told
    for found in diff.outcome:
        yield f"the runs ended otherwise: {printable(found.where)}: {_values(found, screen)}"
    if diff.branch is not None:
        yield ""
        yield from _branch_lines(diff, diff.branch, screen)
    if diff.hints:
        yield ""
        yield from _hint_lines(diff.hints, screen, whole=whole or context)
    for lane in diff.lanes:
        if not lane.same:
            yield ""
            yield from _lane_lines(diff, lane, screen, context=context, whole=whole)
    others = [lane for lane in diff.lanes if lane.same]
    if others and len(others) < len(diff.lanes):
        yield ""
        yield from _same_lanes(others)


def headline(diff: TapeDiff) -> str:
    """The result in a line."""
    counts = diff.counts()
    if diff.same:
        return f"the same: {count(counts['same'], 'exchange')}"
    parts = count_words(counts)
    where = "" if diff.branch is None else f"; they part at {numbers(diff.branch)}"
    hints = f"; {count(len(diff.hints), 'hint')} not the same" if diff.hints else ""
    return f"different: {parts}{where}{hints}"


def count_words(counts: Mapping[Kind, int]) -> str:
    """`2 changed, 1 missing, 11 same`."""
    kinds: tuple[Kind, ...] = ("changed", "moved", "missing", "extra", "same")
    return ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind]) or "no exchanges"


def numbers(event: Compared) -> str:
    """Which exchange it is, on both tapes."""
    if event.ours is None:
        return f"exchange {event.theirs} of B"
    if event.theirs is None:
        return f"exchange {event.ours} of A"
    return (
        f"exchange {event.ours}" if event.ours == event.theirs else f"exchange {event.ours} of A, {event.theirs} of B"
    )


def lane_label(lane: LanePair) -> str:
    """A lane's name and its ids, safe to print."""
    ids = " / ".join(dict.fromkeys(one for one in (lane.ours, lane.theirs) if one))
    if not ids:
        return "no lane"
    return printable(ids if lane.name in (lane.ours, lane.theirs) else f"{lane.name} ({ids})")


def side_facts(shown: Shown) -> str:
    """What a run was, in a line; safe to print."""
    tape, totals = shown.tape, shown.totals
    facts = [shlex.join(tape.head.argv) or "(no command)"]
    facts += [duration(totals.duration)] if totals.duration else []
    facts += [outcome(tape.seal, tape.exit), count(totals.exchanges, "exchange")]
    if totals.tokens_in is not None or totals.tokens_out is not None:
        facts.append(f"{totals.tokens_in or 0} tokens in, {totals.tokens_out or 0} out")
    return printable(", ".join(facts))


def _side_lines(name: str, shown: Shown, screen: Screen) -> Iterator[str]:
    yield f"{name}  {printable(shown.path)}"
    yield screen.paint(f"   {side_facts(shown)}", "bright_black")


def _branch_lines(diff: TapeDiff, event: Compared, screen: Screen) -> Iterator[str]:
    yield screen.paint(f"branch point: {numbers(event)}, {event.kind}, in {lane_label(event.lane)}", bold=True)
    yield f"  {_safe(event.request, screen)}"
    if said := diff.gist(event):
        yield f"  {_safe(said, screen)}"
    yield from _event_facts(diff, event)
    yield from _detail_lines(diff.details(event), screen, "  ")
    reads = diff.reads()
    if reads:
        yield "  what was read otherwise before:"
        yield from (f"    {_read_line(read, screen)}" for read in reads[:_LISTED])
        if len(reads) > _LISTED:
            yield f"    and {len(reads) - _LISTED} more; --json has them all"


def _event_facts(diff: TapeDiff, event: Compared) -> Iterator[str]:
    if event.changes:
        yield f"  {', '.join(event.changes)}"
    if event.theirs is not None and (source := diff.theirs.exchange(event.theirs).request.source):
        yield f"  {printable(source)} in B"


def _read_line(read: ReadDifference, screen: Screen) -> str:
    where = f" at {printable(read.where)}" if read.where else ""
    return f"{read.kind}  {printable(read.what)}{where}: {_pair(read.ours, read.theirs, screen)}"


def _hint_lines(hints: Sequence[HintDiff], screen: Screen, *, whole: bool) -> Iterator[str]:
    kinds = Counter(hint.kind for hint in hints)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in HINT_KINDS if kinds[kind])
    yield screen.paint(f"what hints told (tools, values, messages): {counts}", bold=True)
    shown = hints if whole else hints[:_LISTED]
    for hint in shown:
        yield "  " + screen.paint(f"{SIGNS[hint.kind]} {_safe(hint.label, screen)}", COLOURS[hint.kind])
        for difference in hint.differences:
            yield from ("      " + line for line in _difference_lines("", difference, screen))
    if len(shown) < len(hints):
        yield f"  and {len(hints) - len(shown)} more; --context lists them all"


def _lane_lines(diff: TapeDiff, lane: LaneDiff, screen: Screen, *, context: bool, whole: bool) -> Iterator[str]:
    yield screen.paint(f"{lane_label(lane.lane)}: {count_words(lane.counts())}", bold=True)
    apart = [event for event in lane.events if event.kind != "same"]
    shown = apart if whole else apart[:_LISTED]
    for event in shown:
        yield _event_line(diff, event, screen)
        if context and event.ours is not None and event.theirs is not None:
            yield from _detail_lines(diff.details(event), screen, "        ")
    if len(shown) < len(apart):
        told = _id(lane.lane)
        how = f"--lane {shlex.quote(told)} lists them all" if told else "--json has them all"
        yield f"  and {len(apart) - len(shown)} more; {how}"


def _same_lanes(lanes: Sequence[LaneDiff]) -> Iterator[str]:
    events = count(sum(len(lane.events) for lane in lanes), "exchange")
    names = ", ".join(lane_label(lane.lane) for lane in lanes[:_NAMED]) + (", …" if len(lanes) > _NAMED else "")
    yield f"nothing differs in {count(len(lanes), 'other lane')}, {events}: {names}"


def _id(lane: LanePair) -> str:
    return printable(lane.ours or lane.theirs or "")


def _event_line(diff: TapeDiff, event: Compared, screen: Screen) -> str:
    a, b = ("-" if number is None else str(number) for number in (event.ours, event.theirs))
    told = f"  [{', '.join(event.changes)}]" if event.changes else ""
    here = "  <- branch point" if event == diff.branch else ""
    line = f"  {a:>5} {b:>5} {SIGNS[event.kind]} "
    room = (screen.width or 160) - len(line) - len(told) - len(here)
    text = clip(printable(mark(f"{event.request}  {diff.gist(event)}".rstrip())), max(room, 20))
    return line[:-2] + screen.paint(line[-2:] + text, COLOURS[event.kind]) + told + here


def _detail_lines(details: Details, screen: Screen, indent: str) -> Iterator[str]:
    if details.tools:
        yield indent + screen.paint(_safe(details.tools, screen), "yellow")
    for change in details.context:
        yield indent + _context_line(change, screen)
    for what, found in (("request", details.request), ("response", details.response)):
        for difference in found:
            yield from (indent + line for line in _difference_lines(what, difference, screen))


def _context_line(change: ContextChange, screen: Screen) -> str:
    at = change.asked if change.asked is not None else change.taped
    head = screen.paint(f"{change.kind} message {at} ({printable(change.role)})", COLOURS[change.kind])
    return f"{head}: {_safe(change.text, screen)}"


def _difference_lines(what: str, difference: Difference, screen: Screen) -> Iterable[str]:
    where = difference.where.removeprefix("body ").removeprefix("answer ")
    place = f"{what} {printable(where)}".lstrip() if where not in ("status", "ending") else where
    kind = f" (both look like a {difference.kind})" if difference.kind else ""
    if difference.words:
        return [f"{place}: {_safe(difference.words, screen)}{kind}"]
    if max(len(difference.taped or ""), len(difference.asked or "")) <= _SHORT:
        return [f"{place}: {_values(difference, screen)}{kind}"]
    a, b = (_excerpt(side) for side in (difference.taped, difference.asked))
    return [f"{place}{kind}", f"  A: {screen.paint(a, 'red')}", f"  B: {screen.paint(b, 'green')}"]


def _values(difference: Difference, screen: Screen) -> str:
    return _pair(difference.taped, difference.asked, screen)


def _pair(ours: str | None, theirs: str | None, screen: Screen) -> str:
    return f"{screen.paint(_excerpt(ours), 'red')} -> {screen.paint(_excerpt(theirs), 'green')}"


def _excerpt(text: str | None) -> str:
    return "(absent)" if text is None else printable(mark(text))


def _safe(text: str, screen: Screen) -> str:
    return clip(printable(mark(text)), max(40, (screen.width or 400) * 3))
