"""Sees to it that a report carries what a test did that is not on its tape, whatever else became of the test.

pytest and its plugins put other outcomes in the place of an error that a hook raises: unittest keeps those of its own,
`xfail` makes a failure an expected one. So what was raised is told only when a failing report has it.
"""

from typing import Any, Self

import pytest

from tapeproxy.proxy.inprocess.replays import TapeDriftError, TapeViolationError
from tapeproxy.tapes.errors import TapeproxyError

_Failed: Any = pytest.fail.Exception


class _Bare(_Failed):  # type: ignore[misc]  # pytest does not type it
    """Shown by its text alone: no line of the test is to blame more than another."""

    @classmethod
    def of(cls, found: TapeproxyError) -> Self:
        made: Self = cls.__new__(cls)
        BaseException.__init__(made, str(found))
        for name, value in {**vars(found), "msg": str(found), "pytrace": False}.items():
            setattr(made, name, value)
        return made


# Also what was found, so that `xfail(raises=…)` knows it.
class _BareViolationError(_Bare, TapeViolationError): ...


class _BareDriftError(_Bare, TapeDriftError): ...


for _kind in (_BareViolationError, _BareDriftError):  # a traceback is to name them as pytest's own
    _kind.__module__, _kind.__qualname__ = "builtins", _Failed.__name__


def bare(found: TapeViolationError | TapeDriftError) -> BaseException:
    """What to raise where the test has no error of its own."""
    return (_BareViolationError if isinstance(found, TapeViolationError) else _BareDriftError).of(found)


def carry(item: pytest.Item, report: pytest.TestReport, found: BaseException, raised: BaseException | None) -> None:
    """Have the report tell what was found. `raised`: what became of the phase, in the end."""
    if not _holds(raised, found):
        report.longrepr = _with(report.longrepr, str(found))
    elif hasattr(report, "wasxfail") and any(_names(mark, found) for mark in item.iter_markers("xfail")):
        return
    report.outcome = "failed"
    vars(report).pop("wasxfail", None)


def _holds(raised: BaseException | None, found: BaseException) -> bool:
    """Whether it is that, or several errors of which it is one."""
    if isinstance(raised, BaseExceptionGroup):
        return any(_holds(one, found) for one in raised.exceptions)
    return raised is found


def _names(mark: pytest.Mark, found: BaseException) -> bool:
    """Whether an `xfail` expects just that: what expects any error does not mean that the replay is another run."""
    kinds = mark.kwargs.get("raises")
    ours = [kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) if isinstance(kind, type)]
    return any(issubclass(kind, TapeproxyError) and isinstance(found, kind) for kind in ours)


def _with(told: Any, said: str) -> Any:
    """What a report told, and this."""
    if hasattr(told, "addsection"):
        told.addsection("what is not on the tape", said)
        return told
    if isinstance(told, tuple):  # of a skipped test: file, line, reason
        told = told[2]
    return f"{said}\n\n{told}" if told else said
