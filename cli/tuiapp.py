"""The terminal viewer: a list of exchanges, a page of the one that is chosen, keys. Needs Textual.

All text is plain: lines are drawn as segments, and no markup is ever parsed. Both panes draw only what is on the
screen, so the length of a tape costs next to nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from tapeproxy.cli.rendering import Screen, block, printable
from tapeproxy.cli.tuipages import HELP, TABS, context_lines, tab_lines
from tapeproxy.cli.tuirows import ORDERS, Line, Order, Rows
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import TapeproxyError

_MOST_LINES: Final = 100_000


class ListPane(ScrollView, can_focus=True):
    """Lines of which only those on the screen are made; one is chosen."""

    def __init__(self, draw: Callable[[int], tuple[str, Style]]) -> None:
        super().__init__(id="list")
        self._draw = draw
        self.at = 0
        self.count = 0

    def refill(self, count: int, at: int) -> None:
        """There are other lines."""
        self.count, self.at = count, at
        self.virtual_size = Size(1, count)
        self.refresh()
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
        at, width = self.scroll_offset.y + y, self.size.width
        if at >= self.count:
            return Strip.blank(width, self.rich_style)
        text, style = self._draw(at)
        base = self.rich_style + style + Style(reverse=at == self.at)
        return Strip([Segment(set_cell_size(text, width), base)], width)


class PagePane(ScrollView, can_focus=True):
    """A text, wrapped to the width."""

    def __init__(self) -> None:
        super().__init__(id="page")
        self._text: Sequence[str] = ()
        self._lines: list[str] = []

    def fill(self, lines: Iterable[str]) -> None:
        """Another text, from its top."""
        self._text = [part for line in lines for part in line.expandtabs(4).split("\n")]
        self._wrap()
        self.scroll_to(y=0, animate=False)

    def on_resize(self) -> None:
        """Wrap it anew."""
        self._wrap()

    def text(self) -> str:
        """What is in it."""
        return "\n".join(self._text)

    def _wrap(self) -> None:
        width = max(10, self.size.width)
        self._lines = []
        for line in self._text:
            self._lines += chop_cells(line, width) if cell_len(line) > width else [line]
            if len(self._lines) >= _MOST_LINES:
                self._lines.append("… more than is shown here: see `tapeproxy show`")
                break
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line at a row of the screen."""
        at, width = self.scroll_offset.y + y, self.size.width
        text = self._lines[at] if at < len(self._lines) else ""
        return Strip([Segment(set_cell_size(text, width), self.rich_style)], width)


class Viewer(App[None]):
    """The whole of it. `other`: lines that compare with another tape, made when they are asked for."""

    CSS = """
    #top { height: 1; background: $panel; }
    #list { width: 45%; }
    #page { width: 1fr; border-left: solid $panel; padding-left: 1; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    #filter.asked { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, rows: Rows, causality: Causality, other: Callable[[], Iterable[str]] | None = None) -> None:
        super().__init__()
        self._rows = rows
        self._causality = causality
        self._other = other
        self._order: Order = "lanes"
        self._query = ""
        self._numbers: Sequence[int] = range(1, rows.count + 1)
        self._folded: frozenset[int] = frozenset()
        self._lines: list[Line] = []
        self._tab = TABS[0]
        self._marked: int | None = None
        self._going: str | None = None
        self.list_pane = ListPane(self._draw)
        self.page = PagePane()

    def compose(self) -> ComposeResult:
        """The bar, the two panes, the filter."""
        yield Static(id="top", markup=False)
        with Horizontal():
            yield self.list_pane
            yield self.page
        yield Input(id="filter", placeholder="filter", compact=True)

    def on_mount(self) -> None:
        """Fill the panes."""
        self._refill(1 if self._rows.count else None)
        self.list_pane.focus()
        if self._other is not None:
            self._say(self._other())

    @property
    def number(self) -> int | None:
        """The exchange that is chosen; None on a lane."""
        return self._lines[self.list_pane.at].number if self._lines else None

    def on_key(self, event: events.Key) -> None:
        """The keys of the page in the browser."""
        if isinstance(self.focused, Input):
            if event.key == "escape":
                self._leave_filter("")
                event.stop()
            return
        key = event.character if event.character and event.character.isprintable() else event.key
        if self._going is not None:
            self._go(key)
        elif key in _ACTIONS:
            _ACTIONS[key](self)
        elif key.isdigit() and 1 <= int(key) <= len(TABS):
            self._tab = TABS[int(key) - 1]
            self._show()
        else:
            return
        event.prevent_default()
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A filter was typed."""
        self._leave_filter(event.value)

    def step(self, by: int, *, in_lane: bool = False) -> None:
        """Choose the next line, or the next of the same lane; on the page, scroll."""
        if self.focused is self.page and not in_lane:
            self.page.scroll_relative(y=by, animate=False)
            return
        at = self.list_pane.at + by
        if in_lane and self._lines:
            lane = self._lines[self.list_pane.at].lane
            while 0 <= at < len(self._lines) and (self._lines[at].lane != lane or self._lines[at].number is None):
                at += by
        if 0 <= at < len(self._lines):
            self.list_pane.choose(at)
            self._show()

    def fold(self) -> None:
        """Shut or open the chosen lane."""
        if self._lines and self._order == "lanes" and self.number is None:
            self._folded ^= {self._lines[self.list_pane.at].lane}
            at = self.list_pane.at
            self._refill(None)
            self.list_pane.choose(at)

    def turn(self) -> None:
        """The next order: lanes, time, causal rank."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._refill(self.number)

    def ask_filter(self) -> None:
        """Let a filter be typed."""
        field = self.query_one(Input)
        field.add_class("asked")
        field.value = self._query
        field.focus()

    def begin_go(self) -> None:
        """A number comes."""
        self._going = ""
        self._bar()

    def mark(self) -> None:
        """Take note of an exchange."""
        self._marked = self.number
        self._bar()

    def compare_context(self) -> None:
        """The context of the chosen call against that of the marked one."""
        if self._marked is not None and self.number is not None:
            exchanges = self._rows.tape.exchanges
            self._say(context_lines(exchanges[self._marked - 1], exchanges[self.number - 1]))

    def compare_tapes(self) -> None:
        """The other tape."""
        self._say(["there is no other tape: tapeproxy tui A B"] if self._other is None else self._other())

    def why(self) -> None:
        """Where the words of the request come from."""
        from tapeproxy.cli.whypage import why_page
        from tapeproxy.tapes.why import Provenance

        if self.number is not None:
            self._say(why_page(Provenance(self._rows.tape, self._causality).why(self.number), Screen()))

    def help(self) -> None:
        """The keys."""
        self._say([HELP])

    def switch(self) -> None:
        """To the other pane."""
        (self.list_pane if self.focused is self.page else self.page).focus()

    def clear(self) -> None:
        """All exchanges again, and the page of the chosen one."""
        if self._query:
            self._leave_filter("")
        else:
            self._show()

    def _say(self, lines: Iterable[str]) -> None:
        self.page.fill([*lines])

    def _draw(self, at: int) -> tuple[str, Style]:
        line = self._lines[at]
        if line.number is None:
            return self._rows.words(line, self._order), Style(bold=True)
        mark = "*" if line.number == self._marked else " "
        failed = self._rows.failed(line.number)
        return mark + self._rows.words(line, self._order), Style(color="red") if failed else Style()

    def _refill(self, number: int | None) -> None:
        ranked = self._causality.order() if self._order == "rank" else ()
        self._lines = self._rows.lines(self._order, self._numbers, self._folded, ranked)
        at = next((at for at, line in enumerate(self._lines) if line.number == number and number), 0)
        if at == 0 and number is not None:
            at = next((at for at, line in enumerate(self._lines) if line.number is not None), 0)
        self.list_pane.refill(len(self._lines), at)
        self._show()

    def _show(self) -> None:
        self._bar()
        if self.number is None:
            self._say(["nothing fits the filter" if not self._lines else "a lane: Enter shuts or opens it"])
            return
        exchange = self._rows.tape.exchanges[self.number - 1]
        self._say([f"── {self._tab} ──", *tab_lines(self._tab, exchange, self._rows.count, self._causality)])

    def _bar(self) -> None:
        about = self._rows.about
        words = f" {' '.join(about['argv']) or about['name']}  {len(self._numbers)}/{self._rows.count}  {self._order}"
        words += f"  /{self._query}" if self._query else ""
        words += f"  go to {self._going}" if self._going is not None else "  ? keys  q leaves"
        self.query_one("#top", Static).update(printable(words))

    def _go(self, key: str) -> None:
        if key.isdigit():
            self._going = f"{self._going}{key}"[:9]
            self._bar()
            return
        number = int(self._going or 0)
        self._going = None
        at = next((at for at, line in enumerate(self._lines) if line.number == number), None)
        if key == "enter" and at is not None:
            self.list_pane.choose(at)
            self._show()
        self._bar()

    def _leave_filter(self, query: str) -> None:
        self.query_one(Input).remove_class("asked")
        self.list_pane.focus()
        try:
            self._numbers = self._rows.chosen(query)
        except TapeproxyError as error:
            self._say([block(str(error))])
            return
        self._query = query
        self._refill(self.number or 1)


_ACTIONS: Final[dict[str, Callable[[Viewer], Any]]] = {
    "j": lambda app: app.step(1),
    "k": lambda app: app.step(-1),
    "down": lambda app: app.step(1),
    "up": lambda app: app.step(-1),
    "J": lambda app: app.step(1, in_lane=True),
    "K": lambda app: app.step(-1, in_lane=True),
    "/": Viewer.ask_filter,
    "?": Viewer.help,
    "g": Viewer.begin_go,
    "t": Viewer.turn,
    "m": Viewer.mark,
    "c": Viewer.compare_context,
    "d": Viewer.compare_tapes,
    "w": Viewer.why,
    "q": lambda app: app.exit(),
    "enter": Viewer.fold,
    " ": Viewer.fold,
    "tab": Viewer.switch,
    "escape": Viewer.clear,
}
