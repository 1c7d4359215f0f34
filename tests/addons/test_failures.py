"""Errors are kept from the agent and kept for the report; what is no error passes."""

import asyncio

import pytest

from tapeproxy.addons.failures import Failures


def test_errors_are_counted_and_the_first_is_kept() -> None:
    failures = Failures()
    first = ValueError("first")
    for error in (first, OSError("second"), AssertionError("third")):
        with failures:
            raise error
    with failures:
        pass
    assert failures.count == 3 and failures.first is first


def test_the_first_error_is_told_when_it_happens_and_no_other() -> None:
    failures, told = Failures(), list[BaseException]()
    failures.at_first = told.append
    first = ValueError("first")
    for error in (first, OSError("second")):
        with failures:
            raise error
    assert told == [first]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_what_ends_a_task_is_not_swallowed(kind: type[BaseException]) -> None:
    failures = Failures()
    with pytest.raises(kind), failures:
        raise kind
    assert failures.count == 0 and failures.first is None
