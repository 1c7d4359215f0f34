"""What asks when its replay is over: refused, and told of the replay that it belongs to, never of another one."""

import sys
import warnings
from collections.abc import Callable
from types import FrameType

from tapeproxy.proxy.inprocess.failures import LateRequestWarning
from tapeproxy.proxy.inprocess.flows import Gone
from tapeproxy.proxy.inprocess.serving import calling_line
from tapeproxy.tapes.violations import Violation


class Latecomers:
    """Of one replay. `tell` is called once for each, in the thread that asks, with whose it is and what it did."""

    def __init__(self) -> None:
        self.found: list[Violation] = []
        self.tell: Callable[[str, Violation], object] = _warn

    def refuse(self, gone: Gone, what: str) -> str:
        """Take note of a request, or of what would lead to one; says why it may not."""
        why = f"a thread or task of {gone.whose} has asked for this when that was over: refused, end it sooner"
        found = Violation("egress", f"{what}, at {calling_line()}", why)
        if found not in self.found:
            self.found.append(found)
            self.tell(gone.whose, found)
        return why


def _warn(whose: str, found: Violation) -> None:
    del whose  # the text has it
    warnings.warn(found.to_text(), LateRequestWarning, stacklevel=3)


_LED = ("http.client", "httpcore", "httpcore2", "aiohttp")


def is_led() -> bool:
    """Whether a client that an open context leads to its tape is at work here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if any(name == led or name.startswith(f"{led}.") for led in _LED):
            return True
        frame = frame.f_back
    return False
