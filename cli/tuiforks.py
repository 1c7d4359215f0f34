"""Forks from the terminal viewer: the form, what would happen, the run, and its tape while it grows.

Every fork is a `tapeproxy fork` of its own, which `Library` starts, asks about and stops.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from textual.app import SuspendNotSupported

from tapeproxy.cli.editor import edit_answer
from tapeproxy.cli.rendering import block
from tapeproxy.cli.tuidiff import DiffView
from tapeproxy.cli.tuiforms import ForkForm, plan_lines
from tapeproxy.cli.tuilanes import Kind
from tapeproxy.cli.tuiview import TapeView
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.conversation import Text
from tapeproxy.tapes.editables import options_of
from tapeproxy.tapes.editlines import line_of
from tapeproxy.tapes.errors import TapeproxyError, UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.invisible import HOSTILE_IN_BLOCK
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.tapediff import diff_tapes
from tapeproxy.web.library import Library

if TYPE_CHECKING:
    from tapeproxy.cli.tuiapp import Viewer

_EVERY: Final = 0.3
"""Seconds between two looks at a fork that runs."""
_MUTE: Final = "this one has no forks: look at one tape, tapeproxy tui TAPE"


class Forks:
    """What the viewer does with forks."""

    def __init__(self, app: "Viewer", library: Library | None) -> None:
        self._app = app
        self._library = library
        self._running: dict[str, int] = {}
        """By the name of the child, the fork that writes it, of all that ran here."""
        self._parents: dict[str, TapeView] = {}
        self._form: ForkForm | None = None

    def begin(self) -> None:
        """The form for the chosen exchange."""
        app = self._app
        if self._library is None or not isinstance(app.view, TapeView):
            app.say([_MUTE])
        elif app.number is None:
            app.say(["choose an exchange first"])
        elif app.view.looked.ending is None:
            app.say(["a tape can be forked once its run has ended"])
        elif self._form is None:
            self._form = ForkForm(app.number, _said(app.view.exchange(app.number)))
            app.screen.add_class("forking")
            app.query_one("#panes").mount(self._form)

    def asked(self, form: ForkForm, what: str) -> None:
        """The form wants something."""
        if form is not self._form or not isinstance(self._app.view, TapeView):
            return
        match what:
            case "plan":
                self._app.run_worker(self._plan(form, self._app.view))
            case "run":
                self._app.run_worker(self._run(form, self._app.view), exclusive=True, group="forks")
            case "edit":
                self._edit(form, self._app.view)
            case _:
                self.leave()

    def leave(self) -> None:
        """Without the form."""
        if self._form is not None:
            self._form.remove()
            self._form = None
            self._app.screen.remove_class("forking")
            self._app.view.planned = {}
            self._app.repaint()
            self._app.list_pane.focus()

    def stop(self) -> None:
        """Interrupt the fork whose tape is shown."""
        number = self._fork_shown()
        if number is not None and self._library is not None:
            self._library.stop_fork(number)

    def tell_output(self) -> None:
        """What the fork whose tape is shown has printed."""
        number = self._fork_shown()
        if number is None or self._library is None:
            self._app.say(["no fork of this viewer writes this tape"])
            return
        state = self._library.fork_state(number)
        self._app.say([_ending(state), "", block(state["output"])])

    def compare(self) -> None:
        """The fork whose tape is shown beside its parent. Raises UsageError."""
        view = self._app.view
        parent = self._parents.get(view.name) if isinstance(view, TapeView) else None
        if parent is None or not isinstance(view, TapeView):
            raise UsageError("there is no other tape to compare with", fix="tapeproxy tui A B")
        self._app.open(compared((parent, view), (parent.name, view.name)))

    def _fork_shown(self) -> int | None:
        view = self._app.view
        return self._running.get(view.name) if isinstance(view, TapeView) else None

    async def _plan(self, form: ForkForm, view: TapeView) -> None:
        assert self._library is not None
        order = form.order()
        form.tell(["…"])
        try:
            plan = await asyncio.to_thread(self._library.plan, view.name, order)
        except TapeproxyError as error:
            form.tell([str(error)])
            return
        # A plan of what the form said before says nothing of what it says now.
        if form is self._form and form.order() == order:
            form.tell(plan_lines(plan))
            view.planned = planned(plan)
            self._app.repaint()

    async def _run(self, form: ForkForm, view: TapeView) -> None:
        assert self._library is not None
        form.tell(["starting …"])
        try:
            begun = await asyncio.to_thread(self._library.fork, view.name, form.order())
        except TapeproxyError as error:
            form.tell([str(error)])
            return
        name = begun["child"]
        self._running[name] = begun["fork"]
        self._parents[name] = view
        self._app.run_worker(self._watch(form, name))

    async def _watch(self, form: ForkForm, name: str) -> None:
        """Open the tape of a fork once it has begun, and say how that goes to its end."""
        assert self._library is not None
        child: TapeView | None = None
        while True:
            state = await asyncio.to_thread(self._library.fork_state, self._running[name])
            if child is None and state["begun"]:
                child = await asyncio.to_thread(self._opened, name)
                if child is not None and form is self._form:
                    self.leave()
                    self._app.open(child)
            if child is not None:
                child.told = f"fork {_ending(state)}"
                self._app.retitle()
            elif form is self._form:
                form.tell([f"the fork is {_ending(state)}", state["output"]])
            if not state["running"]:
                break
            await asyncio.sleep(_EVERY)
        if child is self._app.view and state["exit_code"]:
            self.tell_output()

    def _opened(self, name: str) -> TapeView | None:
        assert self._library is not None
        try:
            return TapeView(self._library.open(name), name)
        except (TapeproxyError, LookupError):  # not even its head has come
            return None

    def _edit(self, form: ForkForm, view: TapeView) -> None:
        exchange = view.exchange(form.number)
        told: tuple[tuple[tuple[str, str], ...], list[str]] | str
        try:
            with self._app.suspend():
                told = _edited(exchange)
        except SuspendNotSupported:
            told = "no editor can be opened in this terminal: tapeproxy fork --edit"
        if isinstance(told, str):
            form.tell([told])
        else:
            form.edited(*told)


def compared(views: tuple[TapeView, TapeView], names: tuple[str, str]) -> DiffView:
    """Two tapes side by side, so called. Raises UsageError for those that cannot be compared."""
    ours, theirs = (view.looked for view in views)
    if ours.ending is None or theirs.ending is None:
        raise UsageError("a tape that is recorded can be compared when its run has ended", fix="look at one of them")
    try:
        return DiffView(diff_tapes(ours.tape, theirs.tape), names)
    except ValueError as error:
        raise UsageError(f"the tapes cannot be compared: {error}") from None


def planned(plan: Json) -> dict[int, Kind]:
    """What a dry run says of each exchange."""
    kinds: tuple[Kind, ...] = ("reused", "mutated", "live")
    return {number: kind for lane in plan["lanes"] for kind in kinds for number in lane[kind]}


def _ending(state: Json) -> str:
    return "running: o its output, x stops it" if state["running"] else f"ended with exit code {state['exit_code']}"


def _edited(exchange: Exchange) -> tuple[tuple[tuple[str, str], ...], list[str]] | str:
    """Options and lines of what was made of an answer in an editor, or why that was no use.

    No error leaves: the terminal is the editor's until this returns.
    """
    try:
        edits = edit_answer(exchange, os.environ).edits
        return tuple(options_of(edits)), [line_of(edit.to_json()) for edit in edits]
    except (TapeproxyError, OSError, ValueError) as error:
        return str(error)


def _said(exchange: Exchange) -> str:
    """What the model said, to begin with; nothing where that has what a field cannot show."""
    call = read_call(exchange)
    if call is None or call.answer is None:
        return ""
    text = "".join(part.text for part in call.answer.parts if isinstance(part, Text))
    return "" if HOSTILE_IN_BLOCK.search(text) else text
