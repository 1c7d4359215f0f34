"""What is looked at in the terminal: a tape, as it is or as it grows. Knows lines and pages, no widget."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from rich.style import Style

from tapeproxy.cli.rendering import count, duration
from tapeproxy.cli.tuilanes import Chart, Kind, Window
from tapeproxy.cli.tuipages import PLAIN, TABS, context_lines, tab_lines
from tapeproxy.cli.tuipanes import Row, Words
from tapeproxy.cli.tuiplay import Piece, stream_lines, stream_pieces
from tapeproxy.cli.tuirows import ORDERS, Line, Order, Rows
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.why import Provenance, Wanted
from tapeproxy.web.library import Looked, Shown
from tapeproxy.web.overview import outline
from tapeproxy.web.searching import find

COLOURS: Final[Mapping[Kind, str]] = {
    "recorded": "#7f97f5",
    "inside": "#a79bcb",
    "reused": "#86ab93",
    "mutated": "#e39a3c",
    "live": "#3fbf85",
    "failed": "#ef6a6a",
}
"""Those of the page; a terminal that has not so many shows the nearest."""


class View(ABC):
    """A list of lines of which one is chosen, and pages about it."""

    tabs: tuple[str, ...] = TABS
    rows: Rows

    def __init__(self) -> None:
        self.order: Order = "lanes"
        self.query = ""
        self.folded: frozenset[str] = frozenset()
        self.lines: Sequence[Line] = []
        self.at = 0
        self.tab = self.tabs[0]
        self.marked: int | None = None
        self.planned: Mapping[int, Kind] = {}
        """What a fork would do with each exchange."""
        self.window: Window | None = None
        """The part of the lanes that is shown; None: all."""
        self._chart: Chart | None = None

    @property
    def line(self) -> Line | None:
        """The chosen line."""
        return self.lines[self.at] if self.lines else None

    @property
    def number(self) -> int | None:
        """The exchange that is chosen; None on a lane."""
        return next(iter(self.line.numbers), None) if self.line is not None else None

    @abstractmethod
    def title(self) -> str:
        """What is looked at."""

    @abstractmethod
    def facts(self) -> str:
        """What there is to be said of it, in a line."""

    @abstractmethod
    def exchange(self, number: int) -> Exchange:
        """One of them."""

    @abstractmethod
    def ranks(self) -> Mapping[int, int]:
        """The causal rank of each exchange."""

    @abstractmethod
    def draw(self, at: int, width: int) -> list[Words]:
        """A line of the list, in this many columns."""

    @abstractmethod
    def page(self) -> list[Row]:
        """The page of the chosen line."""

    @abstractmethod
    def pieces(self) -> list[Piece]:
        """The stream of the chosen exchange, or of the first of two."""

    @abstractmethod
    def played(self, pieces: Sequence[Piece], shown: int) -> list[Row]:
        """The page of a stream of which so many pieces have come."""

    @abstractmethod
    def _listed(self, numbers: Sequence[int]) -> Sequence[Line]:
        """The lines of these exchanges, in the order that is chosen."""

    def relist(self, number: int | None) -> None:
        """Make the lines anew; this exchange is chosen, or the first one, or None: what was there."""
        before = self.line
        numbers = self.rows.chosen(self.query)
        self.lines = self._listed(numbers)
        wanted = (lambda line: number in line.numbers) if number is not None else (lambda line: line == before)
        found = next((at for at, line in enumerate(self.lines) if wanted(line)), None)
        if found is None:
            found = next((at for at, line in enumerate(self.lines) if line.numbers), 0)
        self.at = found

    def filter(self, query: str) -> None:
        """Show what fits. Raises UsageError for a query that cannot be read."""
        self.rows.chosen(query)
        number = self.number
        self.query = query
        self.relist(number or 1)

    def turn(self) -> None:
        """The next order: lanes, time, causal rank."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._chart = self.window = None
        self.relist(self.number)

    def fold(self) -> None:
        """Shut or open the chosen lane."""
        if self.line is not None and not self.line.numbers:
            self.folded ^= {self.line.lane}
            self.relist(None)

    def step(self, by: int, *, in_lane: bool = False) -> bool:
        """Choose the next line, or the next exchange of the same lane; whether there is one."""
        at = self.at + by
        lane = self.line.lane if self.line is not None else ""
        while in_lane and 0 <= at < len(self.lines) and (self.lines[at].lane != lane or not self.lines[at].numbers):
            at += by
        if not 0 <= at < len(self.lines):
            return False
        self.at = at
        return True

    def go(self, number: int) -> bool:
        """Choose an exchange, if it is in the list."""
        found = next((at for at, line in enumerate(self.lines) if number in line.numbers), None)
        self.at = self.at if found is None else found
        return found is not None

    def chart(self) -> Chart:
        """Where the exchanges stand on the axis that is chosen."""
        if self._chart is None:
            self._chart = Chart(self.rows, self.ranks() if self.order == "rank" else None)
        return self._chart

    def context(self) -> list[str]:
        """The context of the chosen call against that of the marked one, or of the call before in its lane."""
        if self.number is None:
            return []
        before = self.marked if self.marked not in (None, self.number) else self._call_before(self.number)
        if before is None:
            return ["no call of this lane is before it: mark another one with m"]
        return [*context_lines(self.exchange(before), self.exchange(self.number))]

    def why(self, _wanted: Wanted | None) -> list[str]:
        """Where words of the chosen request come from. Raises UsageError for a place that there is not."""
        return ["of two tapes, look at one: tapeproxy tui TAPE"]

    def _call_before(self, number: int) -> int | None:
        lane = self.rows.lane(number)
        before = (one for one in range(number - 1, 0, -1) if self.rows.lane(one) == lane)
        return next((one for one in before if read_call(self.exchange(one)) is not None), None)

    def _style(self, number: int) -> Style:
        planned = self.planned.get(number)
        if planned is not None:
            return Style(color=COLOURS[planned])
        return Style(color=COLOURS["failed"]) if self.rows.failed(number) else Style()


class TapeView(View):
    """One tape. `shown` is asked for what is new of it; raises TapeproxyError where it cannot be read."""

    def __init__(self, shown: Shown, name: str) -> None:
        super().__init__()
        self.shown = shown
        self.name = name
        self.told = ""
        """What else is to be said of it: how its fork goes, or why it is followed no longer."""
        self.followed = False
        """Whether somebody already asks for what is new."""
        self.serial, _, self.looked = shown.since(0)
        self.rows = Rows(outline(self.looked.tape, self.looked.ending, name), self.exchange, self._find)
        self.relist(1)

    def take(self, serial: int, numbers: frozenset[int] | None, looked: Looked) -> None:
        """What has come meanwhile, of these exchanges; None: all of it is new."""
        self.serial, self.looked = serial, looked
        drawn = outline(looked.tape, looked.ending, self.name, only=numbers)
        if numbers is None:
            self.rows = Rows(drawn, self.exchange, self._find)
        else:
            self.rows.update(drawn)
        self._chart = None
        self.relist(None)

    def title(self) -> str:
        return " ".join(self.rows.about["argv"]) or self.name

    def facts(self) -> str:
        about = self.rows.about
        facts = [about["outcome"] or ("● recording" if about["recording"] else "interrupted")]
        facts += [count(self.rows.count, "exchange"), duration(about["duration"] * 1000)]
        facts += ["a fork"] if about["parent"] else []
        return ", ".join(facts)

    def exchange(self, number: int) -> Exchange:
        return self.looked.tape.exchanges[number - 1]

    def ranks(self) -> Mapping[int, int]:
        order = self._causality()
        return {number: order.rank(number) for number in order.order()}

    def draw(self, at: int, width: int) -> list[Words]:
        line = self.lines[at]
        if line.number is None:
            return [(self.rows.lane_words(line.lane), Style(bold=True))]
        mark = "*" if line.number == self.marked else " "
        indent = "  " if self.order == "lanes" else ""
        return [(mark + self.rows.words(line.number, indent), self._style(line.number))]

    def page(self) -> list[Row]:
        if self.number is None:
            return [Row("nothing fits the filter" if not self.lines else "a lane: Enter shuts or opens it")]
        lines = tab_lines(self.tab, self.exchange(self.number), self.rows.count, self._causality)
        return [Row(f"── {self.tab} ──"), *map(Row, lines)]

    def pieces(self) -> list[Piece]:
        return [] if self.number is None else stream_pieces(self.exchange(self.number), PLAIN)

    def played(self, pieces: Sequence[Piece], shown: int) -> list[Row]:
        assert self.number is not None
        lines = stream_lines(self.exchange(self.number), pieces, shown, PLAIN)
        return [Row("── stream, playing ──"), *map(Row, lines)]

    def why(self, wanted: Wanted | None) -> list[str]:
        from tapeproxy.cli.whypage import why_page

        if self.number is None:
            return ["choose an exchange first"]
        found = Provenance(self.looked.tape, self._causality()).why(self.number, wanted)
        return [*why_page(found, PLAIN)]

    def _listed(self, numbers: Sequence[int]) -> Sequence[Line]:
        ranked = self._causality().order() if self.order == "rank" else ()
        return self.rows.lines(self.order, numbers, self.folded, ranked)

    def _causality(self) -> Causality:
        try:
            return self.shown.causality()
        except TapeproxyError:  # the file has gone: what was read of it is still here
            return Causality.of(self.looked.tape)

    def _find(self, text: str) -> list[int]:
        return find(self.looked.tape, text)
