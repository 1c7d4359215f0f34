"""Two tapes in the terminal: their lanes side by side, what differs marked, and both sides of what is chosen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Final

from rich.cells import set_cell_size
from rich.style import Style

from tapeproxy.cli.diffpages import COLOURS, SIGNS, diff_page, headline
from tapeproxy.cli.diffsides import Shown
from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import block, printable
from tapeproxy.cli.tuipages import PLAIN, TABS, tab_lines
from tapeproxy.cli.tuipanes import Row, Words
from tapeproxy.cli.tuiplay import Piece, stream_lines, stream_pieces
from tapeproxy.cli.tuirows import Line, Rows
from tapeproxy.cli.tuiview import View
from tapeproxy.tapes.alignment import anchor
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.contexts import message_text
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.hintdiffs import rows
from tapeproxy.tapes.tapediff import Compared, LanePair, TapeDiff
from tapeproxy.web.rundiff import SIDES, RunDiff
from tapeproxy.web.searching import find

_WORDS: Final = {
    "same": "the same in both runs",
    "moved": "the same, elsewhere",
    "changed": "changed",
    "missing": "only A has it",
    "extra": "only B has it",
}
_BRANCH: Final = "◆"
_READS: Final = 200
_BOLD: Final = Style(bold=True)


class DiffView(View):
    """Two tapes. Exchanges of B are numbered on from the last one of A; what is shown of them is A3 or B3."""

    tabs = ("difference", *TABS)

    def __init__(self, diff: TapeDiff, names: tuple[str, str]) -> None:
        super().__init__()
        self.names = names
        self._diff = diff
        self._both = RunDiff(diff, names)
        self._tapes = (diff.ours.tape, diff.theirs.tape)
        self._first = len(self._tapes[0].exchanges)
        self._events = list(diff.events())
        self._lanes = {_lane(lane.lane): lane for lane in diff.lanes}
        different = (one for at, event in enumerate(self._events) if event.kind != "same" for one in self._numbers(at))
        self.rows = Rows(self._both.outline(), self.exchange, self._find, frozenset(different))
        self.relist(None)
        self.to_branch()

    def title(self) -> str:
        return f"A {self.names[0]}  B {self.names[1]}"

    def facts(self) -> str:
        return headline(self._diff)

    def exchange(self, number: int) -> Exchange:
        side = int(number > self._first)
        return self._tapes[side].exchanges[number - side * self._first - 1]

    def ranks(self) -> Mapping[int, int]:
        found = self._both.ranks()
        return dict(zip(found["number"], found["rank"], strict=True))

    def to_branch(self) -> bool:
        """Choose the event at which the runs part, if they do and it is in the list."""
        branch = self._branch
        return branch is not None and any(self.go(number) for number in self._numbers(branch))

    def whole(self) -> list[str]:
        """All that differs, as `diff` tells it."""
        sides = [Shown(name, tape) for name, tape in zip(self.names, self._tapes, strict=True)]
        return [*diff_page((sides[0], sides[1]), self._diff, PLAIN, context=True, whole=False)]

    def draw(self, at: int, width: int) -> list[Words]:
        line = self.lines[at]
        half = (width - 3) // 2
        if line.event is None:
            lane = self._lanes[line.lane].lane
            heads = [self._head(side, one) for side, one in zip(SIDES, (lane.ours, lane.theirs), strict=True)]
            return [(f"{set_cell_size(heads[0], half)} │ {heads[1]}", _BOLD)]
        event = self._events[line.event]
        indent = "  " if self.order == "lanes" else ""
        sides = [self._side(one, indent) for one in (line.number, line.other)]
        style = Style(color=COLOURS[event.kind]) if event.kind != "same" else Style()
        branch = line.event == self._branch
        sign = f" {_BRANCH if branch else SIGNS[event.kind]} "
        return [
            (set_cell_size(sides[0], half), style),
            (sign, style + Style(bold=branch, reverse=branch)),
            (sides[1], style),
        ]

    def page(self) -> list[Row]:
        line = self.line
        if line is None or line.event is None:
            return [Row("nothing fits the filter" if line is None else "a lane: Enter shuts or opens it")]
        event = self._events[line.event]
        if self.tab == "difference":
            return [*self._difference(line, event)]
        sides = [self._tab(number) for number in (line.number, line.other)]
        return [self._title(line, self.tab), *beside(*sides)]

    def pieces(self) -> list[Piece]:
        # Both are played by the times of the first; each has its own pieces.
        return [] if self.number is None else stream_pieces(self.exchange(self.number), PLAIN)

    def played(self, pieces: Sequence[Piece], shown: int) -> list[Row]:
        line = self.line
        assert line is not None
        return [self._title(line, "stream, playing"), *beside(*self._played(line, pieces, shown))]

    def _played(self, line: Line, pieces: Sequence[Piece], shown: int) -> Iterator[list[str]]:
        until = max((piece.t or 0 for piece in pieces[:shown]), default=0) - self.exchange(line.numbers[0]).request.t
        for number in (line.number, line.other):
            if number is None:
                yield []
                continue
            exchange = self.exchange(number)
            found = stream_pieces(exchange, PLAIN)
            come = sum((piece.t or 0) - exchange.request.t <= until for piece in found) if shown < len(pieces) else None
            yield [*stream_lines(exchange, found, len(found) if come is None else come, PLAIN)]

    def _listed(self, numbers: Sequence[int]) -> Sequence[Line]:
        kept = set(numbers)
        lines = [line for at in range(len(self._events)) if kept & set((line := self._line(at)).numbers)]
        if self.order == "time":
            return sorted(lines, key=lambda line: self.rows.columns["at"][line.numbers[0] - 1])
        if self.order == "rank":
            ranks = self.ranks()
            return sorted(lines, key=lambda line: min(ranks[number] for number in line.numbers))
        by_lane: dict[str, list[Line]] = {}
        for line in lines:
            by_lane.setdefault(line.lane, []).append(line)
        out: list[Line] = []
        for lane, found in by_lane.items():
            out += [Line(lane), *(() if lane in self.folded else found)]
        return out

    @cached_property
    def _branch(self) -> int | None:
        return None if self._diff.branch is None else self._events.index(self._diff.branch)

    def _numbers(self, at: int) -> tuple[int, ...]:
        return self._line(at).numbers

    def _line(self, at: int) -> Line:
        event = self._events[at]
        other = None if event.theirs is None else event.theirs + self._first
        return Line(_lane(event.lane), event.ours, other, at)

    def _head(self, side: str, lane: str | None) -> str:
        known = lane is not None and f"{side}:{lane}" in self.rows.places
        return self.rows.lane_words(f"{side}:{lane}") if known else f"▸ not in {side}"

    def _side(self, number: int | None, indent: str) -> str:
        if number is None:
            return ""
        return ("*" if number == self.marked else " ") + self.rows.words(number, indent)

    def _title(self, line: Line, tab: str) -> Row:
        names = [
            "nothing" if number is None else f"exchange {self.rows.columns['label'][number - 1]}"
            for number in (line.number, line.other)
        ]
        return Row(f"── {tab} ── {names[0]}", names[1], style=_BOLD)

    def _tab(self, number: int | None) -> list[str]:
        if number is None:
            return []
        tape = self._tapes[number > self._first]
        return [*tab_lines(self.tab, self.exchange(number), len(tape.exchanges), lambda: Causality.of(tape))]

    def _difference(self, line: Line, event: Compared) -> Iterator[Row]:
        yield self._title(line, self.tab)
        branch = "branch point: " if line.event == self._branch else ""
        yield Row(f"{branch}{_WORDS[event.kind]}{': ' if event.changes else ''}{', '.join(event.changes)}", style=_BOLD)
        yield Row(printable(mark(event.request)))
        details = self._diff.details(event)
        if details.tools:
            yield Row(printable(mark(details.tools)), style=Style(color="yellow"))
        for change in details.context:
            at = change.asked if change.asked is not None else change.taped
            colour = Style(color=COLOURS[change.kind])
            yield Row(f"{change.kind} message {at} ({printable(change.role)})", style=colour)
            pairs = zip(details.messages, (change.taped, change.asked), strict=True)
            said = ["" if one is None else block(mark(message_text(of[one])), "  ") for of, one in pairs]
            yield Row(said[0], said[1], marked=True)
        yield from _places("request", details.request)
        yield from _places("response", details.response)
        if branch:
            reads = self._diff.reads()
            for read in reads[:_READS]:
                where = f" at {read.where}" if read.where else ""
                yield from _values(f"read otherwise before: {read.kind} {read.what}{where}", read.ours, read.theirs)
            if len(reads) > _READS:
                yield Row(f"and {len(reads) - _READS} more: `tapeproxy diff --json` has them all")
        if branch or self._branch is None:
            yield from _places("what hints told:", rows(self._diff.hints))
            yield from _places("how the runs ended:", self._diff.outcome)

    def _find(self, text: str) -> list[int]:
        return [number + side * self._first for side, tape in enumerate(self._tapes) for number in find(tape, text)]


def beside(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Row]:
    """Two texts side by side: lines that both have stand next to each other, the others are marked."""
    ours, theirs = ([line for text in side for line in text.split("\n")] for side in (ours, theirs))
    if not ours or not theirs:
        yield from (Row(left, right) for left, right in zip_longest(ours, theirs, fillvalue=""))
        return
    found = anchor(ours, theirs)
    a = b = 0
    for at, other in [*(pair for pair in found.pairs if pair not in found.moved), (len(ours), len(theirs))]:
        for left, right in zip_longest(ours[a:at], theirs[b:other], fillvalue=""):
            yield Row(left, right, marked=True)
        if at < len(ours):
            yield Row(ours[at], theirs[other])
        a, b = at + 1, other + 1


def _lane(pair: LanePair) -> str:
    return f"A:{pair.ours}" if pair.ours is not None else f"B:{pair.theirs}"


def _places(what: str, found: Iterable[Difference]) -> Iterator[Row]:
    for one in found:
        where = one.where.removeprefix("body ").removeprefix("answer ")
        kind = f" (both look like a {one.kind})" if one.kind else ""
        yield from _values(f"{what} {where}{kind}", one.taped, one.asked)
        if one.words:
            yield Row(block(mark(one.words), "  "))


def _values(where: str, ours: str | None, theirs: str | None) -> Iterator[Row]:
    yield Row(printable(where), style=_BOLD)
    sides = ["(absent)" if value is None else block(mark(value)) for value in (ours, theirs)]
    yield Row(sides[0], sides[1], marked=True)
