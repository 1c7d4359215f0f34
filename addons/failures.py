"""What went wrong while taping; knows how to keep it from the agent, not what to do about it."""

from collections.abc import Callable
from types import TracebackType


class Failures:
    """Errors that were swallowed. As a context manager it swallows any `Exception` raised inside.

    Nothing that tapeproxy does wrong may reach the agent: an exception in a stream tap would hang its connection. So
    every hook runs in `with failures:`, and whoever seals the tape looks here and says that it is incomplete.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: BaseException | None = None
        self.at_first: Callable[[BaseException], None] = lambda _: None
        """Called with the first error when it happens; must not raise."""

    def add(self, error: BaseException) -> None:
        """Count an error and keep it when it is the first."""
        self.count += 1
        if self.first is None:
            self.first = error
            self.at_first(error)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self.add(error)
        return True
