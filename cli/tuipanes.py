"""The panes of the terminal viewer: a list with a chosen line, and a page in one column or two. Needs Textual.

All text is plain: lines are drawn as segments, and no markup is ever parsed. Both draw only what is on the screen, so
that the length of a tape costs next to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tapeproxy.tapes.invisible import HOSTILE

_MOST_LINES: Final = 100_000
_MIDDLE: Final = " │ "
_MARKED: Final = " ┃ "
_PLAIN: Final = Style()

type Words = tuple[str, Style]
"""Text that is safe to show, and how."""


@dataclass(frozen=True, slots=True)
class Row:
    """Lines of a page. `right`: what stands beside them; None: they go across. `marked`: the two differ."""

    left: str
    right: str | None = None
    marked: bool = False
    style: Style = _PLAIN


class Tame(LineFilter):
    """The last gate: no character that acts on a terminal is drawn, whoever put it into a widget.

    What comes from a tape is spelled out long before; what is pasted into a field is not.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(HOSTILE.sub("\N{REPLACEMENT CHARACTER}", segment.text), segment.style, segment.control)
            for segment in segments
        ]


_SCROLLS: Final = "{ overflow-x: hidden; scrollbar-gutter: stable; scrollbar-size-vertical: 1; }"
"""The place of the scrollbar is always kept, so that lines are wrapped once."""


class ListPane(ScrollView, can_focus=True):
    """Lines of which only those on the screen are made; one is chosen."""

    DEFAULT_CSS = f"ListPane {_SCROLLS}"

    def __init__(self, draw: Callable[[int, int], list[Words]]) -> None:
        """`draw`: a line, and how many columns there are for it."""
        super().__init__(id="list")
        self._draw = draw
        self.at = 0
        self.count = 0

    def refill(self, count: int, at: int, *, still: bool = False) -> None:
        """There are other lines. `still`: what is on the screen stays where it is."""
        self.count, self.at = count, at
        self.virtual_size = Size(1, count)
        self.refresh()
        if not still:
            self.call_after_refresh(self.show)

    def choose(self, at: int) -> None:
        """Another line is chosen."""
        self.at = max(0, min(at, self.count - 1))
        self.refresh()
        self.show()

    def show(self) -> None:
        """Scroll to the chosen line."""
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if not top <= self.at < top + height:
            self.scroll_to(y=max(0, self.at - height // 2), animate=False)

    def render_line(self, y: int) -> Strip:
        """The line at a row of the screen."""
        at, width = self.scroll_offset.y + y, self.scrollable_content_region.width
        if at >= self.count:
            return Strip.blank(width, self.rich_style)
        chosen = Style(reverse=at == self.at)
        words = self._draw(at, width)
        parts = [Segment(text, self.rich_style + style + chosen) for text, style in words]
        return Strip(parts).adjust_cell_length(width, self.rich_style + words[-1][1] + chosen)


class PagePane(ScrollView, can_focus=True):
    """Rows, wrapped to the width; a line of them is chosen while it has the focus."""

    DEFAULT_CSS = f"PagePane {_SCROLLS}"

    def __init__(self) -> None:
        super().__init__(id="page")
        self._rows: Sequence[Row] = ()
        self._lines: list[tuple[int, str, str | None]] = []
        self.at = 0

    def fill(self, rows: Sequence[Row], *, keep: bool = False, follow: bool = False) -> None:
        """Other rows, from their top. `keep`: they have grown, and who stood at their end stays there.

        `follow`: to their end in any case.
        """
        ended = self.scroll_offset.y >= self.max_scroll_y > 0
        self._rows = [part for row in rows for part in _parts(row)]
        self._wrap()
        if not keep:
            self.at = 0
        self.at = min(self.at, max(0, len(self._lines) - 1))
        if follow or (keep and ended):
            self.call_after_refresh(self.scroll_end, animate=False)
        elif not keep:
            self.scroll_to(y=0, animate=False)

    def on_resize(self) -> None:
        """Wrap it anew."""
        self._wrap()

    def text(self) -> str:
        """What is in it; what stands side by side has a line between."""
        return "\n".join(row.left if row.right is None else row.left + _MIDDLE + row.right for row in self._rows)

    def line(self) -> str:
        """The whole line of which the chosen one is a part."""
        if not self._lines:
            return ""
        row = self._rows[self._lines[self.at][0]]
        return row.left if row.left.strip() else row.right or ""

    def step(self, by: int) -> None:
        """Choose another line, and scroll to it."""
        self.at = max(0, min(self.at + by, len(self._lines) - 1))
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self.at < top or self.at >= top + height:
            self.scroll_to(y=self.at if by < 0 else self.at - height + 1, animate=False)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The chosen line comes along with what is scrolled."""
        super().watch_scroll_y(old_value, new_value)
        top, height = int(new_value), max(1, self.size.height)
        self.at = max(0, min(max(self.at, top), top + height - 1, len(self._lines) - 1))

    def render_line(self, y: int) -> Strip:
        """The line at a row of the screen."""
        at, width = self.scroll_offset.y + y, self.scrollable_content_region.width
        if at >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        place, left, right = self._lines[at]
        row = self._rows[place]
        base = self.rich_style + row.style + Style(reverse=self.has_focus and at == self.at)
        if right is None:
            return Strip([Segment(set_cell_size(left, width), base)], width)
        half = _half(width)
        middle = Segment(_MARKED if row.marked else _MIDDLE, base)
        sides = [Style(color="red"), Style(color="green")] if row.marked else [Style(), Style()]
        one = Segment(set_cell_size(left, half), base + sides[0])
        other = Segment(set_cell_size(right, width - half - len(_MIDDLE)), base + sides[1])
        return Strip([one, middle, other], width)

    def _wrap(self) -> None:
        width = max(10, self.scrollable_content_region.width)
        half = _half(width)
        self._lines = []
        for place, row in enumerate(self._rows):
            if len(self._lines) >= _MOST_LINES:
                self._rows = [*self._rows[:place], Row("… more than is shown here: see `tapeproxy show`")]
                self._lines.append((place, self._rows[place].left, None))
                break
            if row.right is None:
                self._lines += [(place, line, None) for line in _chopped(row.left, width)]
                continue
            sides = _chopped(row.left, half), _chopped(row.right, width - half - len(_MIDDLE))
            self._lines += [(place, left, right) for left, right in zip_longest(*sides, fillvalue="")]
        self.virtual_size = Size(1, len(self._lines))
        self.refresh()


def _half(width: int) -> int:
    return (width - len(_MIDDLE)) // 2


def _parts(row: Row) -> list[Row]:
    """A row a line."""
    left = row.left.expandtabs(4).split("\n")
    if row.right is None:
        return [Row(line, style=row.style) for line in left]
    right = row.right.expandtabs(4).split("\n")
    return [Row(a, b, row.marked, row.style) for a, b in zip_longest(left, right, fillvalue="")]


def _chopped(line: str, width: int) -> list[str]:
    return chop_cells(line, width) if cell_len(line) > width else [line]
