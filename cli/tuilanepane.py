"""The lanes above the list: a row of bars for each, and the axis. Needs Textual; where bars stand is `tuilanes`'s."""

from itertools import groupby
from typing import Final

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tapeproxy.cli.tuilanes import Kind
from tapeproxy.cli.tuiview import COLOURS, View

_GUTTER: Final = 16
_PART: Final = 5
"""The lanes take at most this part of the height."""
_LEAST: Final = 2
_CHOSEN: Final = "▆"


class LanePane(Widget):
    """Lanes of a view, those around the chosen one where there are too many."""

    DEFAULT_CSS = "LanePane { height: auto; }"

    def __init__(self, view: View) -> None:
        super().__init__(id="lanes")
        self._view = view
        self._hidden = False
        self._tall = 0

    def look(self, view: View) -> None:
        """Another view, or the same once something of it has changed."""
        self._view = view
        tall = self._rows()
        if tall != self._tall:
            self._tall = tall
            self.styles.height = tall
            self.display = tall > 0
        self.refresh()

    def on_resize(self) -> None:
        """There may be place for more."""
        self.look(self._view)

    def switch(self) -> None:
        """Show or hide them."""
        self._hidden = not self._hidden
        self.look(self._view)

    def zoom(self, factor: float) -> None:
        """Show `factor` times as much."""
        view = self._view
        if view.rows.count:
            window = view.window or view.chart().span()
            number = view.number
            middle = (window.start + window.stop) / 2
            if number is not None:
                middle = (view.chart().begin(number) + view.chart().stop(number)) / 2
            view.window = window.zoomed(factor, middle)
            self.refresh()

    def pan(self, part: float) -> None:
        """Move along the axis."""
        if self._view.window is not None:
            self._view.window = self._view.window.moved(part)
            self.refresh()

    def fit(self) -> None:
        """Show all."""
        self._view.window = None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A lane, or the axis below them."""
        view, width = self._view, self.size.width
        room = width - _GUTTER
        if room < 10 or not view.rows.count:
            return Strip.blank(width, self.rich_style)
        chart = view.chart()
        window = view.window or chart.span()
        dim = self.rich_style + Style(color="bright_black")
        if y == self._tall - 1:
            axis = chart.axis(window, room)
            return Strip([Segment(" " * _GUTTER, dim), Segment(set_cell_size(axis, room), dim)], width)
        lane = chart.lanes[self._first() + y]
        here = view.line is not None and lane in (view.rows.lane(one) for one in view.line.numbers)
        name = set_cell_size(view.rows.lane_name(lane), _GUTTER - 1) + " "
        parts = [Segment(name, self.rich_style + Style(bold=True) if here else dim)]
        chosen: set[int] = set()
        for number in view.line.numbers if view.line is not None else ():
            columns = chart.column(number, window, room) if view.rows.lane(number) == lane else None
            chosen |= set(range(columns[0], columns[1] + 1)) if columns else set()
        bars = enumerate(chart.bars(lane, window, room, view.planned))
        for kind, run in groupby(bars, key=_kind_of):
            style = self.rich_style + Style(color=COLOURS[kind]) if kind else self.rich_style
            parts.append(Segment("".join(_CHOSEN if at in chosen else char for at, (char, _) in run), style))
        return Strip(parts, width)

    def _rows(self) -> int:
        view = self._view
        if self._hidden or not view.rows.count:
            return 0
        return 1 + min(len(view.chart().lanes), max(_LEAST, self.app.size.height // _PART - 1))

    def _first(self) -> int:
        """The first lane that is shown, so that the chosen one is."""
        view, shown = self._view, self._tall - 1
        number = view.number
        lanes = view.chart().lanes
        at = lanes.index(view.rows.lane(number)) if number is not None else 0
        return max(0, min(at - shown // 2, len(lanes) - shown))


def _kind_of(bar: tuple[int, tuple[str, Kind]]) -> Kind:
    return bar[1][1]
