"""The form for a fork in the terminal viewer: what is changed, what would happen, how it goes. Needs Textual.

Knows no tape and runs nothing: it says what was ordered, and shows what it is told.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Select, Static, TextArea

from tapeproxy.cli.fork import number_runs
from tapeproxy.cli.rendering import block, count, printable
from tapeproxy.tapes.records import Json
from tapeproxy.web.library import ForkOrder

KINDS: Final = (
    ("--text", "the answer's text", "what the model says instead"),
    ("--set", "a value of the answer", '$.choices[0].message.content="…"'),
    ("--status", "the answer's status", "429"),
    ("--request-set", "a value of requests", '$.messages[0].content="…"'),
    ("--model", "the model", "gpt-4o"),
    ("--system", "the system prompt", "You are brief."),
)
_HINTS: Final = {option: hint for option, _, hint in KINDS}
_ABOUT_ANSWERS: Final = ("--text", "--set", "--status")
_RERUNS: Final = (("all that follows", "future"), ("only what is not asked as on the tape", "changed"))
KEYS: Final = "^P what would happen  ^R run it  ^O the answer in your editor  Esc back"


class ForkForm(VerticalScroll):
    """A form for one exchange: what was typed for one is never sent for another."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "plan", priority=True),
        Binding("ctrl+r", "run", priority=True),
        Binding("ctrl+o", "edit", priority=True),
        Binding("escape", "leave", priority=True),
    ]
    DEFAULT_CSS = """
    ForkForm { height: 1fr; padding: 0 1; }
    ForkForm > Static { height: auto; }
    ForkForm #fork-value { height: 5; }
    """

    @dataclass
    class Asked(Message):
        """Something is wanted of this form: `what` is plan, run, edit or leave."""

        form: "ForkForm"
        what: str

    def __init__(self, number: int, text: str) -> None:
        """`text`: what the model said, where it said something."""
        super().__init__(id="fork")
        self.number = number
        self._text = text
        self.edits: tuple[tuple[str, str], ...] = ()
        """What was changed in the editor: it counts instead of the value."""

    def compose(self) -> ComposeResult:
        """The fields, and what is told below them."""
        yield Static(f"Fork at exchange {self.number}", markup=False)
        yield Static("change", markup=False)
        kind = "--text" if self._text else "--set"
        choices = [(words, option) for option, words, _ in KINDS]
        yield Select(choices, value=kind, allow_blank=False, compact=True, id="fork-kind")
        yield TextArea(self._text, compact=True, id="fork-value", placeholder=Content(_HINTS[kind]))
        yield Static("asked anew", markup=False)
        yield Select(_RERUNS, value="future", allow_blank=False, compact=True, id="fork-rerun")
        yield Static("secret variables that no live call needs", markup=False)
        yield Input(placeholder="NAME, NAME", compact=True, id="fork-keyless")
        yield Static(KEYS, markup=False)
        yield Static(id="fork-told", markup=False)

    def on_mount(self) -> None:
        """Begin with the value."""
        self.query_one("#fork-value", TextArea).focus()

    def order(self) -> ForkOrder:
        """What the fields say."""
        kind = str(self.query_one("#fork-kind", Select).value)
        value = self.query_one("#fork-value", TextArea).text
        # Without a value nothing is changed: the exchange itself is asked anew.
        edits = self.edits or (((kind, self._named(kind, value)),) if value or kind == "--text" else ())
        keyless = self.query_one("#fork-keyless", Input).value.replace(",", " ").split()
        rerun = str(self.query_one("#fork-rerun", Select).value)
        return ForkOrder((("--at", str(self.number)), *edits), rerun, tuple(keyless))

    def _named(self, kind: str, value: str) -> str:
        """With the event, so that a text that itself begins like one (12::) is none."""
        if kind not in _ABOUT_ANSWERS:
            return value
        return f"{self.number}::{value}" if kind == "--text" else f"{self.number}:{value}"

    def edited(self, edits: tuple[tuple[str, str], ...], lines: list[str]) -> None:
        """What came of the editor."""
        self.edits = edits
        field = self.query_one("#fork-value", TextArea)
        field.disabled = bool(edits)
        field.text = block("\n".join(lines)) if edits else self._text
        self.tell(["changed in the editor" if edits else "nothing was changed in the editor"])

    def tell(self, lines: list[str]) -> None:
        """Show what is to be said below the fields."""
        self.query_one("#fork-told", Static).update(block("\n".join(lines)))
        self.call_after_refresh(self.scroll_end, animate=False)

    def action_plan(self) -> None:
        """What would happen."""
        self.post_message(self.Asked(self, "plan"))

    def action_run(self) -> None:
        """Run it."""
        self.post_message(self.Asked(self, "run"))

    def action_edit(self) -> None:
        """The editor."""
        self.post_message(self.Asked(self, "edit"))

    def action_leave(self) -> None:
        """Back to the page, or out of a list that is open."""
        for field in self.query(Select):
            if field.expanded:
                field.expanded = False
                return
        self.post_message(self.Asked(self, "leave"))

    @on(Select.Changed, "#fork-kind")
    def _kind_chosen(self, event: Select.Changed) -> None:
        field = self.query_one("#fork-value", TextArea)
        field.placeholder = Content(_HINTS[str(event.value)])
        if event.value != "--text" and field.text == self._text:
            field.text = ""
        elif event.value == "--text" and not field.text:
            field.text = self._text


def plan_lines(plan: Json) -> list[str]:
    """A dry run, lane by lane; safe to show."""
    lines = [f"about {count(plan['live_calls'], 'live call')}"]
    for lane in plan["lanes"]:
        parts = [f"{what} {number_runs(lane[what])}" for what in ("reused", "mutated", "live") if lane[what]]
        lines.append(printable(f"{lane['name']}: {'; '.join(parts) or 'nothing'}"))
    return lines
