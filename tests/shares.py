"""Tests that need not run with every value of a parameter each time: which they run with, and what the soak has."""

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

import pytest


def pick[T](name: str, values: Sequence[T], step: int = 0) -> T:
    """One of the values for the test of this name, another one from test to test, and always the same."""
    return values[(crc32(name.encode()) + step) % len(values)]


def leave_to_soak(
    items: Iterable[pytest.Item], mark: pytest.MarkDecorator, kept: Callable[[str], Iterable[object]]
) -> None:
    """Mark those for the soak that are parametrized by `mark` with another value than those `kept` for their name."""
    (parameter, *_) = mark.mark.args
    for item in items:
        if not isinstance(item, pytest.Function) or mark.mark not in item.iter_markers("parametrize"):
            continue
        if item.callspec.params[parameter] not in [*kept(item.originalname)]:
            item.add_marker(pytest.mark.soak)
