"""The terminal viewer: a bar, lanes, a list, a page of what is chosen, keys. Needs Textual.

Knows widgets. What is looked at is a `View`; what keys do stands in `tuikeys`, what forks do in `tuiforks`.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.widgets import Static

from tapeproxy.cli.rendering import block, printable
from tapeproxy.cli.tuidiff import DiffView
from tapeproxy.cli.tuiforks import Forks
from tapeproxy.cli.tuiforms import ForkForm
from tapeproxy.cli.tuikeys import ACTIONS
from tapeproxy.cli.tuilanepane import LanePane
from tapeproxy.cli.tuipages import wanted_in, wanted_of
from tapeproxy.cli.tuipanes import ListPane, PagePane, Row, Tame, Words
from tapeproxy.cli.tuiplayer import Player
from tapeproxy.cli.tuiprompt import Prompt
from tapeproxy.cli.tuiview import TapeView, View
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.web.library import Library

_EVERY: Final = 0.15
"""Seconds between two looks at a tape that grows."""


class Viewer(App[None]):
    """The whole of it. `library`: where its tapes are, and who forks them; None: there are no forks."""

    CSS = """
    #top { height: 1; background: $panel; }
    #list { width: 45%; }
    #page { width: 1fr; border-left: solid $panel; padding-left: 1; }
    ForkForm { width: 1fr; border-left: solid $panel; }
    #panes.both { layout: vertical; }
    #panes.both #list { width: 1fr; height: 45%; }
    #panes.both #page { width: 1fr; height: 1fr; border-left: none; border-top: solid $panel; padding-left: 0; }
    .forking #page { display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, view: View, library: Library | None = None) -> None:
        super().__init__()
        self.view: View = view
        self.below: list[View] = []
        """The views to which `u` goes back, the next one last."""
        self._going: str | None = None
        self.own_page = True
        """Whether the page is that of the chosen exchange."""
        self._tame = Tame()
        self.list_pane = ListPane(self._draw)
        self.page = PagePane()
        self.lanes: LanePane = LanePane(view)
        self.prompt: Prompt = Prompt()
        self.player: Player = Player(self)
        self.forks: Forks = Forks(self, library)

    def compose(self) -> ComposeResult:
        """The bar, the lanes, the two panes, the prompt."""
        yield Static(id="top", markup=False)
        yield self.lanes
        with Horizontal(id="panes"):
            yield self.list_pane
            yield self.page
        yield self.prompt

    def on_mount(self) -> None:
        """Show the first view. Whoever closes the terminal ends the forks, too."""
        for number in (signal.SIGTERM, *((signal.SIGHUP,) if sys.platform != "win32" else ())):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows; not the main thread
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.look(self.view)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Those of Textual, and the last gate for what would act on the terminal."""
        return [*super().get_line_filters(), self._tame]

    # --- what is looked at ------------------------------------------------------------------------------------------

    def look(self, view: View) -> None:
        """Show a view, and follow its tape if it grows."""
        self.view = view
        self.query_one("#panes").set_class(isinstance(view, DiffView), "both")
        self._refill()
        self.list_pane.focus()
        if isinstance(view, TapeView) and view.looked.ending is None and not view.followed:
            view.followed = True
            self.run_worker(self._follow(view))

    def open(self, view: View) -> None:
        """Show another view; `u` comes back."""
        self.below.append(self.view)
        self.look(view)

    def back(self) -> None:
        """The view before."""
        if self.below:
            self.look(self.below.pop())

    async def _follow(self, view: TapeView) -> None:
        spent = 0.0
        while view.looked.ending is None:
            # A long tape costs more to look at: no more than a fifth of the time goes into that.
            await asyncio.sleep(max(_EVERY, 4 * spent))
            begun = time.monotonic()
            try:
                serial, numbers, looked = await asyncio.to_thread(view.shown.since, view.serial)
            except TapeproxyError as error:
                view.told = f"no longer followed: {error}"
                self.retitle()
                return
            if serial != view.serial:
                view.take(serial, numbers, looked)
                if view is self.view:
                    self._grown(numbers)
            spent = time.monotonic() - begun

    def _grown(self, numbers: frozenset[int] | None) -> None:
        self.list_pane.refill(len(self.view.lines), self.view.at, still=True)
        self.lanes.look(self.view)
        self.retitle()
        if self.own_page and not self.player.plays and (numbers is None or self.view.number in numbers):
            self.page.fill(self.view.page(), keep=True)

    # --- keys -------------------------------------------------------------------------------------------------------

    @property
    def number(self) -> int | None:
        """The exchange that is chosen; None on a lane."""
        return self.view.number

    def on_key(self, event: events.Key) -> None:
        """The keys of the page in the browser."""
        if self.focused not in (self.list_pane, self.page, None):
            return
        key = event.character if event.character and event.character.isprintable() else event.key
        tabs = self.view.tabs
        if self._going is not None:
            self._go(key)
        elif key in ACTIONS:
            ACTIONS[key](self)
        elif key.isdigit() and 1 <= int(key) <= len(tabs):
            self.view.tab = tabs[int(key) - 1]
            self.show()
        else:
            return
        event.prevent_default()
        event.stop()

    def step(self, by: int, *, in_lane: bool = False) -> None:
        """Choose the next line, or the next of the same lane; on the page, the next line of it."""
        if self.focused is self.page and not in_lane:
            self.page.step(by)
        elif self.view.step(by, in_lane=in_lane):
            self.list_pane.choose(self.view.at)
            self.show()

    def fold(self) -> None:
        """Shut or open the chosen lane."""
        if self.number is None:
            self.view.fold()
            self._refill()

    def turn(self) -> None:
        """The next order: lanes, time, causal rank."""
        self.view.turn()
        self._refill()

    def begin_go(self) -> None:
        """A number comes."""
        self._going = ""
        self.retitle()

    def mark(self) -> None:
        """Take note of an exchange, or of none any more."""
        self.view.marked = None if self.view.marked == self.number else self.number
        self.list_pane.refresh()

    def to_branch(self) -> None:
        """Where two runs part."""
        if isinstance(self.view, DiffView) and self.view.to_branch():
            self.view.tab = self.view.tabs[0]
            self._refill()

    def compare(self) -> None:
        """All that two tapes differ in; of a fork, its parent beside it."""
        if isinstance(self.view, DiffView):
            self.say(self.view.whole())
        else:
            self.attempt(self.forks.compare)

    def why(self) -> None:
        """Where the words of the request come from, or those of the chosen line of the page."""
        wanted = wanted_of(self.page.line()) if self.focused is self.page and self.own_page else None
        self.attempt(lambda: self.say(self.view.why(wanted)))

    def ask_why(self) -> None:
        """The same of what is typed."""
        self.prompt.ask(
            "words, or a place such as $.messages[1].content",
            lambda typed: self.attempt(lambda: self.say(self.view.why(wanted_in(typed) if typed else None))),
        )

    def ask_filter(self) -> None:
        """Let a filter be typed; who leaves it wants all."""
        self.prompt.ask("filter", self.filter, self.view.query, left=lambda: self.filter(""))

    def switch(self) -> None:
        """To the other pane."""
        (self.list_pane if self.focused is self.page else self.page).focus()

    def clear(self) -> None:
        """All exchanges again, and the page of the chosen one."""
        if self.view.query and self.own_page:
            self.filter("")
        else:
            self.show()

    # --- what is shown ----------------------------------------------------------------------------------------------

    def say(self, lines: Iterable[str]) -> None:
        """Something else than the page of the chosen exchange."""
        self.player.stop()
        self.own_page = False
        self.page.fill([Row(line) for line in lines])

    def show(self) -> None:
        """The page of what is chosen."""
        self.player.stop()
        self.own_page = True
        self.retitle()
        self.lanes.look(self.view)
        self.page.fill(self.view.page())

    def attempt(self, act: Callable[[], None]) -> None:
        """Do something, and say it where that cannot be done."""
        try:
            act()
        except TapeproxyError as error:
            self.say([block(str(error))])

    def retitle(self) -> None:
        """The bar."""
        view = self.view
        words = [view.told] if isinstance(view, TapeView) and view.told else []
        words += [view.facts(), view.order]
        words += [f"/{view.query}: {sum(len(line.numbers) for line in view.lines)}"] if view.query else []
        words += [f"go to {self._going}" if self._going is not None else "? keys  q leaves", view.title()]
        self.query_one("#top", Static).update(printable(f" {'  '.join(words)}"))

    def repaint(self) -> None:
        """The list and the lanes, in other colours."""
        self.list_pane.refresh()
        self.lanes.look(self.view)

    def _draw(self, at: int, width: int) -> list[Words]:
        return self.view.draw(at, width) if at < len(self.view.lines) else [("", Style())]

    def _refill(self) -> None:
        self.list_pane.refill(len(self.view.lines), self.view.at)
        self.show()

    def _go(self, key: str) -> None:
        if key.isdigit():
            self._going = f"{self._going}{key}"[:9]
        else:
            number, self._going = int(self._going or 0), None
            if key == "enter" and self.view.go(number):
                self.list_pane.choose(self.view.at)
                self.show()
        self.retitle()

    def filter(self, query: str) -> None:
        """Show what fits."""

        def act() -> None:
            self.view.filter(query)
            self._refill()

        self.attempt(act)

    @on(ForkForm.Asked)
    def _asked_of_form(self, event: ForkForm.Asked) -> None:
        self.forks.asked(event.form, event.what)
