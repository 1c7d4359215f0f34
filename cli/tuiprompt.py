"""The line below the panes in which something is typed. Needs Textual."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input


class Prompt(Input):
    """Seen while it is asked. What is done with an answer is said by who asks."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]
    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0; display: none; }
    Prompt.asked { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True)
        self._answered: Callable[[str], None] = lambda _: None
        self._left: Callable[[], None] = lambda: None

    def ask(
        self, what: str, answered: Callable[[str], None], value: str = "", left: Callable[[], None] = lambda: None
    ) -> None:
        """Let something be typed; `left` is called where nothing is."""
        self.placeholder = what
        self.value = value
        self._answered, self._left = answered, left
        self.add_class("asked")
        self.focus()

    def action_leave(self) -> None:
        """Nothing after all."""
        self._hide()
        self._left()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._hide()
        self._answered(event.value)

    def _hide(self) -> None:
        self.remove_class("asked")
        self.app.query_one("#list").focus()
